"""The intervals and replicates that results keep, of one set of pairs and over folds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from faircal.metrics import wilson
from faircal.metrics.intervals.uncertainty import RATES, Uncertainty
from faircal.metrics.measures import Measure
from faircal.metrics.results import ALL, Replicated

LEVEL = 0.95

#: How intervals are made, said wherever they are shown.
BY_PEOPLE = "identity-aware (what other people would have given; pairs share people)"
PAIR_WISE = (
    "pair-wise (who is in the pairs is not known, so they are taken as independent: too narrow "
    "where pairs share people)"
)


class ValueInterval(NamedTuple):
    """A value with its interval; a rate also with the pairs it counts.

    `counted` are its errors (`trials` less them for a TPR), a fraction where it is interpolated;
    `effective` is how many independent pairs would make it as uncertain as it is.
    """

    group: str
    condition: str
    metric: str
    value: float
    low: float
    high: float
    counted: float = math.nan
    trials: float = math.nan
    effective: float = math.nan


def value_intervals(
    uncertainty: Uncertainty, measures: Iterable[Measure], level: float = LEVEL
) -> list[ValueInterval]:
    """Return every value but thresholds with its interval."""
    rows = []
    for group, condition, metric, value in measures:
        if metric == "threshold":
            continue
        key = group, condition, metric
        counts: tuple[float, ...] = ()
        if group != ALL and metric in RATES:
            trials = uncertainty.trials(group, metric)
            counts = round(value * trials, 6), trials, uncertainty.effective_trials(*key)
        rows.append(ValueInterval(*key, value, *uncertainty.interval(*key, level), *counts))
    return rows


def over_folds(folds: Sequence[ValueInterval], level: float = LEVEL) -> ValueInterval:
    """Return the mean over folds of a value, with its interval; folds share no people.

    A rate counts the effective trials of all folds. For anything else the folds' intervals are put
    together as errors of independent values are. A calibration error or a deviation is too large in
    each fold, which a mean does not mend: its lower end is the mean of the folds'.
    """
    defined = [fold for fold in folds if not math.isnan(fold.value)]
    if not defined:
        return folds[0]
    first, n = defined[0], len(defined)
    value = float(np.mean([fold.value for fold in defined]))
    if not math.isnan(sum(fold.trials for fold in defined)):
        return _rate(first, value, defined, level)
    if math.isinf(value):  # a ratio to a group without an error
        return ValueInterval(
            *first[:3], value, float(np.min([fold.low for fold in defined])), math.inf
        )
    # MOVER of independent values: distances to the ends are put together as standard errors are.
    below = [fold.value - fold.low for fold in defined]
    above = [fold.high - fold.value for fold in defined]
    high = value + float(np.sqrt(np.square(above).sum())) / n
    if first.group == ALL or first.metric in ("ks", "ece"):
        low = value - float(np.mean(below))
    else:
        low = value - float(np.sqrt(np.square(below).sum())) / n
    return ValueInterval(*first[:3], value, low, high)


def _rate(
    first: ValueInterval, value: float, folds: Sequence[ValueInterval], level: float
) -> ValueInterval:
    """Put the rates of folds together: the variance of their mean says how many trials it is."""
    trials = sum(fold.trials for fold in folds)
    counted = sum(fold.counted for fold in folds)
    # Each fold counts the same, however many trials it has.
    effective = len(folds) ** 2 / sum(1 / np.maximum(fold.effective, 1e-9) for fold in folds)
    if math.isnan(effective):
        return ValueInterval(*first[:3], value, math.nan, math.nan, counted, trials, effective)
    inside = min(max(value, 0.0), 1.0)
    low, high = wilson(inside * effective, effective, level)
    return ValueInterval(*first[:3], value, float(low), float(high), counted, trials, effective)


def replicated_values(
    uncertainty: Uncertainty, measures: Iterable[Measure], source: tuple[str, ...]
) -> list[Replicated]:
    """Return replicates of the values of all pairs and of groups, as far as there are any.

    `source` is a `faircal.evaluation.curves.ScoreSource`: whose scores they are.
    """
    varying = [m for m in measures if uncertainty.spread(m.group, m.condition, m.metric)]
    noise = uncertainty.replicates([(m.group, m.condition, m.metric) for m in varying])
    feature, method, calibrator, clusters, _, attribute = source
    front = feature, method, calibrator, clusters, attribute
    return [Replicated(*front, *m, noise[:, i]) for i, m in enumerate(varying)]
