"""Runs that are compared: what each left, and which values of two are of the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.compare.paired import Estimate, Noise, of_results
from faircal.metrics.intervals import Key
from faircal.metrics.results import (
    AGAIN,
    REPLICATES,
    Result,
    Results,
    read_replicates,
    read_results,
    read_run,
)


class ScoreKey(NamedTuple):
    """Whose scores values are of, and by which attribute groups are made."""

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """The values of a benchmark (means over folds) or an audit, and how sure they are.

    Parameters
    ----------
    name : str
        The folder, for messages.
    record : dict
        ``run.json``.
    estimates : dict from ScoreKey to dict from (group, condition, metric) to Estimate
    """

    name: str
    record: dict[str, Any]
    estimates: dict[ScoreKey, dict[Key, Estimate]]

    @classmethod
    def read(cls, folder: str | Path) -> ComparedRun:
        """Read the folder that ``faircal benchmark`` or ``faircal audit`` wrote."""
        home = Path(folder)
        return cls.of(home, read_run(home), read_results(home))

    @classmethod
    def of(cls, home: Path, record: dict[str, Any], rows: Sequence[Result]) -> ComparedRun:
        """Put what was measured together with the replicates in the same folder."""
        noise: dict[ScoreKey, dict[Key, Noise]] = {}
        for each in read_replicates(home / REPLICATES):
            what = each.group, each.condition, each.metric
            noise.setdefault(ScoreKey(*each[:5]), {})[what] = each.noise
        if not noise:
            raise DataError(
                f"{home}: no {REPLICATES}, which differences are made of; {AGAIN} with this version"
                " (audits of more pairs than fit in memory keep none)"
            )
        results: dict[ScoreKey, list[Result]] = {}
        for row in Results(rows).by_key.values():
            if row.metric != "threshold":
                results.setdefault(ScoreKey(*row.key[:5]), []).append(row)
        estimates = {of: of_results(results[of], noise[of]) for of in noise if of in results}
        return cls(str(home), record, estimates)

    def names(self, field: str) -> list[str]:
        """Return the features, methods or attributes, in order."""
        return list(dict.fromkeys(getattr(each, field) for each in self.estimates))

    def find(self, feature: str, method: str, attribute: str) -> dict[Key, Estimate] | None:
        """Return the values of a method's main variant; None where it was not run."""
        for each, estimates in self.estimates.items():
            if (each.feature, each.method, each.attribute) == (feature, method, attribute):
                return estimates
        return None

    @property
    def people_known(self) -> bool:
        """Whether it is known who is in the pairs."""
        return self.record.get("effective_people") is not None

    @property
    def thresholded(self) -> bool:
        """Whether error rates at a threshold of the user's own were measured."""
        return any(("global", "", "fpr") in estimates for estimates in self.estimates.values())


@dataclass(frozen=True)
class MatchedValues:
    """The values of the same feature and attribute of A and of B, and which of these are audits."""

    feature: str
    attribute: str
    method_a: str
    method_b: str
    a: dict[Key, Estimate]
    b: dict[Key, Estimate]
    audits: tuple[bool, bool] = (False, False)


def match(
    run_a: ComparedRun, run_b: ComparedRun, methods: tuple[str, str] | None
) -> list[MatchedValues]:
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
            f" (it has {in_words(names)})"
        )
    same = "; run both by the same"
    attributes = _couples(run_a, run_b, "attribute", f"{same} attribute", renamed=False)
    features = _couples(run_a, run_b, "feature", f"{same} feature")
    audits = run_a.record.get("kind") == "audit", run_b.record.get("kind") == "audit"
    both = []
    for method_a, method_b in _methods(run_a, run_b, methods):
        for feature_a, feature_b in features:
            for attribute, _ in attributes:
                a = run_a.find(feature_a, method_a, attribute)
                b = run_b.find(feature_b, method_b, attribute)
                if a is not None and b is not None:
                    feature = feature_a if feature_a == feature_b else f"{feature_a} → {feature_b}"
                    both.append(MatchedValues(feature, attribute, method_a, method_b, a, b, audits))
    if not both:
        raise DataError(
            f"{run_b.name}: no method was run on a feature that {run_a.name} has it for, too;"
            " run both again on the same features"
        )
    return both


def _methods(
    run_a: ComparedRun, run_b: ComparedRun, methods: tuple[str, str] | None
) -> list[tuple[str, str]]:
    """Return which method of A is compared with which of B."""
    if methods is None:
        return _couples(run_a, run_b, "method", "; name one of each: --method a,b")
    for run, method in zip((run_a, run_b), methods, strict=True):
        if method not in run.names("method"):
            hint = did_you_mean(method, run.names("method"))
            raise ParameterError(f"{run.name}: has no method {method!r}; {hint}")
    return [methods]


def _couples(
    run_a: ComparedRun, run_b: ComparedRun, field: str, remedy: str, *, renamed: bool = True
) -> list[tuple[str, str]]:
    """Return what is of the same name; the only one of each may be `renamed`."""
    a, b = run_a.names(field), run_b.names(field)
    if renamed and len(a) == len(b) == 1:
        return [(a[0], b[0])]
    shared = [(name, name) for name in a if name in b]
    if not shared:
        raise DataError(
            f"{run_a.name} and {run_b.name} have no {field} in common: {in_words(a)} in the one,"
            f" {in_words(b)} in the other{remedy}"
        )
    return shared


def in_words(names: Iterable[str]) -> str:
    """Return names in words."""
    return ", ".join(name or "(none)" for name in names)


def notes(run_a: ComparedRun, run_b: ComparedRun, paired: bool = True) -> list[str]:
    """Say what is to be known of two runs that are compared."""
    lines = []
    if not (run_a.people_known and run_b.people_known):
        lines.append(
            "who is in the pairs is not known: they are taken as independent, so intervals are too"
            " narrow where pairs share people"
        )
    if not same_data(run_a, run_b):
        how = "people of the same name are taken for the same person (--unpaired if they are not)"
        lines.append(
            "the two runs are not of the same data: "
            + (how if paired else "they are compared as of different people")
        )
    thresholds = [run.record.get("settings", {}).get("threshold") for run in (run_a, run_b)]
    if run_a.thresholded and run_b.thresholded and thresholds[0] != thresholds[1]:
        lines.append(f"thresholds differ: {thresholds[0]} in the one, {thresholds[1]} in the other")
    return lines


def same_data(run_a: ComparedRun, run_b: ComparedRun) -> bool:
    """Whether both runs say that their data is the same."""
    a, b = (run.record.get("data_sha256") for run in (run_a, run_b))
    return bool(a) and a == b


def can_pair(run_a: ComparedRun, run_b: ComparedRun) -> bool:
    """Whether people can be told to be the same: by name, or because the data is."""
    return same_data(run_a, run_b) or (run_a.people_known and run_b.people_known)
