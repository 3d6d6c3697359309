"""From measured values to results: intervals, means over folds, and what may be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from faircal.metrics import wilson
from faircal.metrics.intervals.sufficient_data import ERROR_RATES, withheld_reason
from faircal.metrics.intervals.uncertainty import Uncertainty
from faircal.metrics.proportions import joint_level
from faircal.metrics.results import ALL, GLOBAL, MEAN, STD, Replicated, Result

LEVEL = 0.95

#: How intervals are made, said wherever they are shown.
BY_PEOPLE = "identity-aware (what other people would have given; pairs share people)"
NAMELESS = (
    "; in {:.3g} % of the pairs somebody has no identity, and these people are taken as all "
    "different: too narrow where they are not"
)
PAIR_WISE = (
    "pair-wise (who is in the pairs is not known, so they are taken as independent: too narrow "
    "where pairs share people)"
)

#: From a group and a metric to the effective people behind it; None where they are not known.
PeopleBehind = Callable[[str, str], float | None]


def as_reported(
    measures: Iterable[Result],
    uncertainty: Uncertainty | None = None,
    people: PeopleBehind = lambda *_: None,
    level: float = LEVEL,
) -> list[Result]:
    """Return values with intervals, the effective people behind them, and why some are withheld.

    A threshold has neither; `measures` keep the intervals they have without `uncertainty`.
    """
    rows = []
    for row in measures:
        if row.metric == "threshold":
            rows.append(row)
            continue
        changes: dict[str, Any] = {}
        if uncertainty is not None:
            low, high = uncertainty.interval(*row.what, level)
            changes = {"low": low, "high": high, "level": level}
            if row.group != ALL and row.metric in ERROR_RATES:
                changes["effective"] = uncertainty.effective_trials(*row.what)
        if row.group != ALL:
            behind = people(row.group, row.metric)
            changes["people"] = math.nan if behind is None else behind
            changes["withheld"] = withheld_reason(row._replace(people=changes["people"]))
        rows.append(row._replace(**changes))
    return rows


def summarise(
    rows: Iterable[Result], people: Callable[[str], PeopleBehind] = lambda _: lambda *_: None
) -> list[Result]:
    """Return `rows` with, behind each value's folds, their mean and standard deviation (ddof 0).

    A fold where a value is undefined (NaN) is left out of both; where one is infinite (a ratio to a
    group without an error) the mean is, and there is no standard deviation.

    Parameters
    ----------
    rows : iterable of Result
    people : callable
        From an attribute to the people behind the values of all folds together.
    """
    values: dict[tuple[str, ...], list[Result]] = {}
    for row in rows:
        values.setdefault((*row[:6], *row[7:11]), []).append(row)
    summed: list[Result] = []
    for folds in values.values():
        defined = np.array([row.value for row in folds if not math.isnan(row.value)])
        mean = over_folds(folds)
        std = float(defined.std()) if np.isfinite(mean.value) else math.nan
        summed += [*folds, *as_reported([mean], people=people(mean.attribute))]
        summed.append(Result(*mean[:11], std)._replace(fold=STD))
    return summed


def over_folds(folds: Sequence[Result]) -> Result:
    """Return the mean over folds of a value, with its interval; folds share no people.

    A rate counts the effective trials of all folds. For anything else the folds' intervals are put
    together as errors of independent values are. A calibration error or a deviation is too large in
    each fold, which a mean does not mend: its lower end is the mean of the folds'.
    """
    defined = [fold for fold in folds if not math.isnan(fold.value)]
    if not defined:
        return folds[0]._replace(fold=MEAN)
    n = len(defined)
    value = float(np.mean([fold.value for fold in defined]))
    row = defined[0]._replace(
        fold=MEAN,
        value=value,
        errors=sum(fold.errors for fold in defined),
        trials=sum(fold.trials for fold in defined),
    )
    if row.group != ALL and row.metric in ERROR_RATES:
        # The variance of their mean says how many trials it is: each fold counts the same, however
        # many trials it has.
        effective = n**2 / sum(1 / np.maximum(fold.effective, 1e-9) for fold in defined)
        if math.isnan(effective):
            return row._replace(low=math.nan, high=math.nan, effective=math.nan)
        inside = min(max(value, 0.0), 1.0)
        ends = wilson(inside * effective, effective, row.level)
        return row._replace(low=float(ends[0]), high=float(ends[1]), effective=float(effective))
    if math.isinf(value):  # a ratio to a group without an error
        return row._replace(low=float(np.min([fold.low for fold in defined])), high=math.inf)
    # MOVER of independent values: distances to the ends are put together as standard errors are.
    below = [fold.value - fold.low for fold in defined]
    above = [fold.high - fold.value for fold in defined]
    high = value + float(np.sqrt(np.square(above).sum())) / n
    if row.group == ALL or row.metric in ("ks", "ece"):
        low = value - float(np.mean(below))
    else:
        low = value - float(np.sqrt(np.square(below).sum())) / n
    return row._replace(low=low, high=high)


def worst_and_best(groups: Mapping[str, Result]) -> tuple[str, str] | None:
    """Return the groups with the highest and the lowest rate that may be shown; None without two.

    The one with most trials of equals.
    """
    shown = {name: rate for name, rate in groups.items() if rate.reportable}
    if len(shown) < 2:
        return None
    worst = max(shown, key=lambda name: (shown[name].value, shown[name].trials))
    return worst, max(shown, key=lambda name: (-shown[name].value, shown[name].trials))


def least_ratios(rows: Iterable[Result]) -> list[Result]:
    """Give how many times the best group's error rate the worst group's is at least.

    The ratio of the near ends of both intervals, widened to hold at once for all groups that may be
    shown, since the worst and the best are picked after looking. Above 1 the two groups differ.
    """
    points: dict[tuple[str, ...], dict[str, Result]] = {}
    for row in rows:
        if row.metric in ("fpr", "fnr") and row.group not in (GLOBAL, ALL):
            name = f"{row.metric}_least_ratio"
            points.setdefault((*row[:8], ALL, row.condition, name), {})[row.group] = row
    made = []
    for over, groups in points.items():
        worst_best = worst_and_best(groups)
        if worst_best is None:
            continue
        level = joint_level(sum(rate.reportable for rate in groups.values()), LEVEL)
        ends = []
        for name in worst_best:
            rate = groups[name]
            value = min(max(rate.value, 0.0), 1.0)
            low, high = min(rate.low, value), max(rate.high, value)
            if level > rate.level and not math.isnan(rate.effective):
                lower, upper = wilson(value * rate.effective, rate.effective, level)
                low, high = min(low, float(lower)), max(high, float(upper))
            ends.append((low, high))
        (low, _), (_, high) = ends
        ratio = low / high if high > 0 else math.nan
        made.append(Result._make((*over, ratio, *Result()[12:])))
    return made


def replicated_values(
    uncertainty: Uncertainty, measures: Iterable[Result], source: tuple[str, ...]
) -> list[Replicated]:
    """Return replicates of the values of all pairs and of groups, as far as there are any.

    `source` is a `faircal.evaluation.curves.ScoreSource`: whose scores they are.
    """
    varying = [m for m in measures if uncertainty.spread(*m.what)]
    noise = uncertainty.replicates([m.what for m in varying])
    feature, method, calibrator, clusters, _, attribute = source
    front = feature, method, calibrator, clusters, attribute
    return [Replicated(*front, *m.what, m.value, noise[:, i]) for i, m in enumerate(varying)]
