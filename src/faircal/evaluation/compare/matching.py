"""Which values of two runs are of the same thing, and what is to be known of comparing them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.compare.paired import Estimate
from faircal.evaluation.compare.runs import ComparedRun
from faircal.metrics.intervals import Key


@dataclass(frozen=True)
class Both:
    """The values of the same feature and attribute of A and of B."""

    feature: str
    attribute: str
    method_a: str
    method_b: str
    a: dict[Key, Estimate]
    b: dict[Key, Estimate]


def match(run_a: ComparedRun, run_b: ComparedRun, methods: tuple[str, str] | None) -> list[Both]:
    """Put together what is of the same feature and attribute, and of the methods asked for."""
    if methods is None and Path(run_a.name).resolve() == Path(run_b.name).resolve():
        names = run_a.names("method")
        if names == [""]:
            raise ParameterError(
                f"{run_a.name}: both runs are this one, and an audit has one set of scores; give"
                " another run to compare it with"
            )
        example = ",".join(names[:2]) if len(names) > 1 else "a,b"
        raise ParameterError(
            f"{run_a.name}: both runs are this one; name two of its methods: --method {example}"
            f" (it has {listed(names)})"
        )
    attributes = _shared(run_a, run_b, "attribute")
    features = _couples(run_a, run_b, "feature")
    both = []
    for method_a, method_b in _methods(run_a, run_b, methods):
        for feature_a, feature_b in features:
            for attribute in attributes:
                a = run_a.find(feature_a, method_a, attribute)
                b = run_b.find(feature_b, method_b, attribute)
                if a is not None and b is not None:
                    same = feature_a if feature_a == feature_b else f"{feature_a} → {feature_b}"
                    both.append(Both(same, attribute, method_a, method_b, a, b))
    if not both:
        raise DataError(
            f"{run_b.name}: no method was run on a feature that {run_a.name} has it for, too;"
            " run both again on the same features"
        )
    return both


def _methods(
    run_a: ComparedRun, run_b: ComparedRun, methods: tuple[str, str] | None
) -> list[tuple[str, str]]:
    if methods is None:
        return _couples(run_a, run_b, "method", "; name one of each: --method a,b")
    for run, method in zip((run_a, run_b), methods, strict=True):
        if method not in run.names("method"):
            hint = did_you_mean(method, run.names("method"))
            raise ParameterError(f"{run.name}: has no method {method!r}; {hint}")
    return [methods]


def _shared(run_a: ComparedRun, run_b: ComparedRun, field: str, remedy: str = "") -> list[str]:
    a, b = run_a.names(field), run_b.names(field)
    shared = [name for name in a if name in b]
    if not shared:
        remedy = remedy or f"; run both by the same {field}"
        raise DataError(
            f"{run_a.name} and {run_b.name} have no {field} in common: {listed(a)} in the one,"
            f" {listed(b)} in the other{remedy}"
        )
    return shared


def _couples(
    run_a: ComparedRun, run_b: ComparedRun, field: str, remedy: str = ""
) -> list[tuple[str, str]]:
    """Return what is of the same name; the only one of each may be of different names."""
    a, b = run_a.names(field), run_b.names(field)
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    return [(name, name) for name in _shared(run_a, run_b, field, remedy)]


def listed(names: Iterable[str]) -> str:
    """Return names in words."""
    return ", ".join(name or "(none)" for name in names)


def notes(run_a: ComparedRun, run_b: ComparedRun, paired: bool = True) -> list[str]:
    """Say what is to be known of two runs that are compared."""
    said = []
    if not (run_a.people_known and run_b.people_known):
        said.append(
            "who is in the pairs is not known: they are taken as independent, so intervals are too"
            " narrow where pairs share people"
        )
    if not same_data(run_a, run_b):
        how = "people of the same name are taken for the same person (--unpaired if they are not)"
        said.append(
            "the two runs are not of the same data: "
            + (how if paired else "they are compared as of different people")
        )
    own = [run.record.get("settings", {}).get("threshold") for run in (run_a, run_b)]
    if run_a.thresholded and run_b.thresholded and own[0] != own[1]:
        said.append(f"thresholds differ: {own[0]} in the one, {own[1]} in the other")
    return said


def same_data(run_a: ComparedRun, run_b: ComparedRun) -> bool:
    """Whether both runs say that their data is the same."""
    return bool(run_a.data_hash) and run_a.data_hash == run_b.data_hash


def can_pair(run_a: ComparedRun, run_b: ComparedRun) -> bool:
    """Whether people can be told to be the same: by name, or because the data is."""
    return same_data(run_a, run_b) or (run_a.people_known and run_b.people_known)
