"""Comparing two runs, or methods of one run, value by value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.compare.paired import difference, holm
from faircal.evaluation.compare.runs import (
    ComparedRun,
    MatchedValues,
    can_pair,
    in_words,
    match,
    notes,
)
from faircal.evaluation.compare.verdicts import (
    Comparison,
    GateVerdict,
    Verdict,
    check_margin,
    improvement_sign,
    no_worse,
    non_inferior,
)
from faircal.metrics.catalogue import METRICS
from faircal.metrics.intervals import Key
from faircal.metrics.results import (
    ALL,
    GLOBAL,
    REPLICATES,
    Condition,
    Result,
    write_rows,
)

_RATES = ("fpr", "fnr", "tpr")
#: What a method changes, in short: groups, metric, and where rates are taken.
HEADLINES = (
    (GLOBAL, "auroc", ""),
    (GLOBAL, "tpr", "fpr"),
    (GLOBAL, "ks", ""),
    (GLOBAL, "nll", ""),
    (ALL, "ks_mean", ""),
    (ALL, "ks_aad", ""),
    (ALL, "fpr_aad", "global_fpr"),
    (ALL, "fpr_mad", "global_fpr"),
)


def compare(
    run_a: ComparedRun,
    run_b: ComparedRun,
    *,
    methods: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
    level: float = 0.95,
    tolerance: float = 0.0,
    paired: bool = True,
) -> list[Comparison]:
    """Return how the values of B differ from those of A, of all pairs and of each group.

    One family of comparisons: p-values are corrected for all that are returned with a verdict.

    Parameters
    ----------
    run_a, run_b : ComparedRun
        The same attribute, groups and operating points.
    methods : (str, str), optional
        Which of A with which of B; by default each with itself, or the only one of each.
    metrics : sequence of str
        As in ``results.csv``; FPR, FNR and KS by default. Rates are compared at the runs' own
        threshold where both have one, else at the global FPRs.
    level : float
        Of intervals, and one minus the risk of a wrong verdict.
    tolerance : float
        A difference up to this size is none.
    paired : bool
        Take people of the same name for the same person.

    Examples
    --------
    >>> import numpy as np
    >>> from faircal.evaluation.compare.paired import Estimate
    >>> from faircal.evaluation.compare.runs import ScoreKey
    >>> noise = {name: np.random.default_rng(2).normal(size=500).astype("f") for name in "ab"}
    >>> estimates = {
    ...     name: {("F", "", "ks"): Estimate(value, value - 0.02, value + 0.02, noise[name])}
    ...     for name, value in (("a", 0.05), ("b", 0.08))
    ... }
    >>> run_a, run_b = (
    ...     ComparedRun(name, {}, {ScoreKey("f", "m", "", "", "sex"): result})
    ...     for name, result in estimates.items()
    ... )
    >>> (result,) = compare(run_a, run_b)
    >>> result.group, result.metric, round(result.difference, 3), result.verdict
    ('F', 'ks', 0.03, 'worse')
    """
    if not 0.5 <= level < 1:
        raise ParameterError(f"level: expected from 0.5 to below 1, found {level:g}")
    if not 0 <= tolerance < math.inf:
        raise ParameterError(f"tolerance: expected a number from 0 on, found {tolerance:g}")
    matched = match(run_a, run_b, methods)
    chosen_metrics = _compared_metrics(matched, metrics)
    compared = []
    for both in matched:
        keys = _keys(run_a, run_b, both, chosen_metrics)
        compared += [_one(both, key, level, paired, tolerance) for key in keys]
    if not compared:  # nothing compared is not nothing worse
        raise ParameterError(
            f"metrics: nothing is left to compare: {_why(matched, chosen_metrics)}; name others"
            " (--metrics fnr,auroc) or audit by group"
        )
    return correct(compared)


@dataclass(frozen=True)
class ComparedRuns:
    """How two folders of results differ.

    Attributes
    ----------
    comparisons : list of Comparison
    notes : list of str
        Whether people could be paired, and what differs between the runs besides.
    gate : GateVerdict, optional
        Whether the second may take the place of the first.
    """

    comparisons: list[Comparison]
    notes: list[str]
    gate: GateVerdict | None = None


def compare_runs(
    run_a: str | Path,
    run_b: str | Path,
    *,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    level: float = 0.95,
    tolerance: float = 0.0,
    unpaired: bool = False,
    gate: Literal["worse", "noninferior"] | None = None,
    margin: float | None = None,
) -> ComparedRuns:
    """Compare two folders of results, as audits and benchmarks write them.

    Parameters
    ----------
    run_a, run_b : path
        The old run and the new one; or the same folder twice, with two `methods`.
    methods : sequence of two str, optional
        Method of each run; each with itself unless given.
    metrics, level, tolerance
        As for `compare`.
    unpaired : bool
        People of the same name in both runs are not the same people.
    gate : {"worse", "noninferior"}, optional
        Stop an update that is worse, or that may be worse by `margin` or more.
    margin : float, optional

    Examples
    --------
    >>> import faircal
    >>> compared = faircal.compare_runs("old/", "new/", gate="worse")  # doctest: +SKIP
    >>> compared.gate.passed  # doctest: +SKIP
    """
    if (gate == "noninferior") != (margin is not None):
        raise ParameterError(
            "--gate noninferior and --margin go together; give both, such as --gate noninferior"
            " --margin 0.002"
        )
    if margin is not None:
        check_margin(margin)
    if methods is not None and len(methods) != 2:
        raise ParameterError(
            f"--method: expected one method of each run, A,B; found {','.join(methods)}"
        )
    a, b = ComparedRun.read(Path(run_a)), ComparedRun.read(Path(run_b))
    paired = not unpaired and can_pair(a, b)
    compared = compare(
        a,
        b,
        methods=None if methods is None else (methods[0], methods[1]),
        metrics=metrics,
        level=level,
        tolerance=tolerance,
        paired=paired,
    )
    result = None
    if gate is not None:
        result = no_worse(compared) if margin is None else non_inferior(compared, margin)
    return ComparedRuns(compared, notes(a, b, paired), result)


def differences(
    run: ComparedRun,
    reference: str = "baseline",
    *,
    attribute: str | None = None,
    level: float = 0.95,
) -> list[Comparison]:
    """Return how each method of a run differs from `reference` in the headline numbers.

    One family: p-values are corrected for all that is returned. Nothing is, where the reference was
    not run.

    Parameters
    ----------
    run : ComparedRun
        A benchmark.
    reference : str
        The method that A is.
    attribute : str, optional
        The first one by default.
    level : float
        Of intervals, and one minus the risk of a wrong verdict.
    """
    by = (run.names("attribute") or [""])[0] if attribute is None else attribute
    compared = []
    for feature in run.names("feature"):
        a = run.find(feature, reference, by) or {}
        keys = [
            key
            for group, metric, kind in HEADLINES
            for key in a
            if key[0] == group and key[2] == metric and Condition.of(key[1]).kind == kind
        ]
        for method in run.names("method"):
            b = run.find(feature, method, by)
            if b is not None and method != reference:
                both = MatchedValues(feature, by, reference, method, a, b)
                compared += [_one(both, key, level, True, 0.0) for key in keys if key in b]
    return correct(compared)


#: The method that others are compared with, in a benchmark's own folder.
REFERENCE = "baseline"
DIFFERENCES = "differences.csv"


def write_differences(folder: Path, record: dict[str, Any], rows: Sequence[Result]) -> None:
    """Write how the methods of a benchmark differ from `REFERENCE`, by attribute, where it ran.

    Parameters
    ----------
    folder : Path
        Where the replicates are already.
    record : dict
        ``run.json``.
    rows : sequence of Result
        ``results.csv``.
    """
    compared: list[Comparison] = []
    if (folder / REPLICATES).exists():
        run = ComparedRun.of(folder, record, rows)
        for attribute in run.names("attribute"):
            compared += differences(run, REFERENCE, attribute=attribute)
    write_rows(folder / DIFFERENCES, Comparison, compared)


def default_metrics() -> tuple[str, ...]:
    """Return what is compared by default: error rates where decisions are made, headline metrics.

    Examples
    --------
    >>> default_metrics()
    ('fpr', 'fnr', 'ks')
    """
    return "fpr", "fnr", *(metric.name for metric in METRICS.values() if metric.headline)


def _compared_metrics(matched: Sequence[MatchedValues], metrics: Sequence[str]) -> list[str]:
    """Return the metrics to compare, all of which there are."""
    in_both: dict[str, None] = {}
    for both in matched:
        of_b = {metric for *_, metric in both.b}
        in_both |= dict.fromkeys(metric for *_, metric in both.a if metric in of_b)
    for metric in metrics:
        if metric not in in_both:
            raise ParameterError(
                f"metrics: {metric!r} is not in both runs; {did_you_mean(metric, in_both)}"
            )
    return list(metrics) or [metric for metric in default_metrics() if metric in in_both]


def _keys(
    run_a: ComparedRun, run_b: ComparedRun, both: MatchedValues, metrics: Sequence[str]
) -> list[Key]:
    """Return what is compared, in the order of metrics, conditions and groups of A."""
    thresholded = run_a.thresholded and run_b.thresholded

    def compared(condition: str, metric: str) -> bool:
        of = metric.partition("_")[0]
        if of not in _RATES and metric not in ("fdr", "ir", "garbe"):
            return True
        if thresholded and of != "tpr":
            return condition == ""
        return condition.startswith(("global_fpr", "fpr"))

    keys_to_compare: list[Key] = []
    for metric in metrics:
        keys_a, keys_b = (
            [key for key in values if key[2] == metric and compared(key[1], metric)]
            for values in (both.a, both.b)
        )
        for place, what in enumerate(("groups", "operating points")):
            a, b = ({key[place] for key in keys} for keys in (keys_a, keys_b))
            for run, other, more in ((run_a, run_b, a - b), (run_b, run_a, b - a)):
                if more:
                    raise DataError(
                        f"{other.name}: lacks the {what} {in_words(sorted(more))} of {run.name};"
                        f" run both with the same {what}"
                    )
        keys_to_compare += (key for key in keys_a if not _set(key, both))
    return keys_to_compare


def _why(matched: Sequence[MatchedValues], metrics: Sequence[str]) -> str:
    """Say why there is nothing to compare."""
    if not metrics:
        return f"none of {', '.join(default_metrics())} is in both runs"
    names = " and ".join(dict.fromkeys(metric.upper() for metric in metrics))
    concerned = [(key, both) for both in matched for key in both.a if key[2] in metrics]
    if any(key in both.b and _set(key, both) for key, both in concerned):
        return f"the {names} of all pairs is what the operating point sets"
    return f"there is no {names} at an operating point of both runs"


def _set(key: Key, both: MatchedValues) -> bool:
    """Whether a rate is what was asked for: that of all pairs at its own operating point."""
    group, condition, metric = key
    rate = Condition.of(condition).wanted(metric)
    if group != GLOBAL or rate is None:
        return False
    return all(
        math.isclose(side[key].value, rate, rel_tol=1e-6) or audit  # which counts at most that
        for side, audit in zip((both.a, both.b), both.audits, strict=True)
    )


def _one(
    both: MatchedValues,
    key: Key,
    level: float,
    paired: bool,
    tolerance: float,
) -> Comparison:
    """Compare one value; the verdict comes when all have been."""
    a, b = both.a[key], both.b[key]
    apart = difference(a, b, level=level, correlation=None if paired else 0.0)
    fewest = min((each.people for each in (a, b) if not math.isnan(each.people)), default=math.nan)
    verdict: Verdict = "not known" if math.isnan(apart.value) else "not told apart"
    if (a.withheld or b.withheld) and not math.isnan(b.value - a.value):
        verdict = "not enough data"
    where = both.feature, both.attribute, both.method_a, both.method_b, *key
    ends = apart.value, apart.low, apart.high, apart.level, apart.correlation, apart.freedom
    p = apart.p_value(tolerance)
    return Comparison(*where, a.value, b.value, *ends, p, p, verdict, 0.0, fewest, tolerance)


def correct(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct p-values for all comparisons that tell anything, and give verdicts."""
    reportable = [each for each in comparisons if each.reportable]
    corrected = iter(holm([each.p for each in reportable]))
    judged = []
    for each in comparisons:
        row = each._replace(family=float(len(reportable)))
        if each.reportable:
            p, verdict = next(corrected), "not told apart"
            # 1 − 0.95 is a little more than 0.05 in floating point, other levels a little less.
            if p <= 1 - each.level + 1e-12:
                better = math.copysign(1, each.difference) == improvement_sign(each.metric)
                verdict = "better" if better else "worse"
            row = row._replace(p_holm=p, verdict=verdict)
        judged.append(row)
    return judged
