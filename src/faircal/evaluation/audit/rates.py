"""Error rates at an operating point: of all pairs, of each group, of every two groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from faircal._base.errors import ParameterError
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.audit.result import Audit
from faircal.metrics import wilson
from faircal.metrics.disparity import cells
from faircal.metrics.intervals import LEVEL, as_reported
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import FEWEST, Dyads, IdentifiedPairs
from faircal.metrics.intervals.sufficient_data import withheld_reason
from faircal.metrics.measures import Rankings, at_threshold
from faircal.metrics.results import ALL, Result


class OperatingRates(NamedTuple):
    """What was measured of all pairs, or of a group, at a threshold.

    Rates and the ends of their intervals are NaN where they are not reported: `fpr_lacking` and
    `fnr_lacking` say why. `people` are those of imposter pairs, `effective_people` is their
    effective number; None where nobody knows who is in the pairs.
    """

    name: str
    people: int | None
    effective_people: float | None
    imposters: int
    fpr: float
    fpr_low: float
    fpr_high: float
    genuine: int
    fnr: float
    fnr_low: float
    fnr_high: float
    fpr_lacking: str | None
    fnr_lacking: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it by name as JSON knows it: None where a rate is not reported."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in self._asdict().items()
        }


def rates_at(pairs: ScoredPairs, threshold: float, *, level: float = 0.95) -> list[OperatingRates]:
    """Count the errors of ``score >= threshold``: of all pairs, then of each group.

    Rates and intervals are those of `faircal.audit` at this threshold, and are reported where
    it reports them. Intervals know that pairs share people where it is known who is in them.

    Parameters
    ----------
    pairs : ScoredPairs
    threshold : float
    level : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> genuine = np.repeat([True, False], 200)
    >>> scores = np.concatenate([np.linspace(0.3, 1, 200), np.linspace(-1, 0.4, 200)])
    >>> (result,) = rates_at(ScoredPairs.of(genuine, scores), 0.35)
    >>> result.fpr, result.fnr, round(result.fpr_low, 3), round(result.fpr_high, 3)
    (0.04, 0.075, 0.02, 0.077)
    """
    scores = pairs.ranked
    if scores is None:
        raise ParameterError("rates: expected pairs with scores, found none; score them first")
    rankings = Rankings.of(scores, None, pairs.genuine, pairs.groups)
    measures = at_threshold(rankings, threshold)
    uncertainty = pairs.uncertainty(measures)
    identified = not uncertainty.independent
    trials = {name: each.identified.trials for name, each in uncertainty.sets.items()}
    by_group: dict[str, dict[str, Result]] = {}
    for each in as_reported(
        (each for each in measures if each.metric in ("fpr", "fnr") and each.group != ALL),
        uncertainty,
        lambda group, metric: trials[group][metric].effective_people if identified else None,
        level,
    ):
        by_group.setdefault(each.group, {})[each.metric] = each
    rows = []
    for name, of in by_group.items():
        sharing = trials[name]["fpr"]
        false, missed = of["fpr"], of["fnr"]
        rows.append(
            OperatingRates(
                name,
                sharing.people if identified else None,
                sharing.effective_people if identified else None,
                int(false.trials),
                *_reported(false),
                int(missed.trials),
                *_reported(missed),
                false.withheld or None,
                missed.withheld or None,
            )
        )
    return rows


def _reported(rate: Result) -> tuple[float, float, float]:
    """Return a rate with its interval; NaN where it is not reported."""
    if not rate.reportable or math.isnan(rate.low):
        return math.nan, math.nan, math.nan
    return rate.value, rate.low, rate.high


MATRIX = "matrix.csv"


class MatrixRow(NamedTuple):
    """The false-positive rate of imposter pairs with one image of each of two groups.

    The interval is NaN where too few people are in the pairs to tell how they vary; `withheld` says
    why the rate must not be shown, and is empty where it may.
    """

    feature: str
    attribute: str
    condition: str
    left_group: str
    right_group: str
    imposters: float
    errors: float
    fpr: float
    low: float
    high: float
    effective_people: float
    withheld: str = ""


def imposter_matrix(pairs: ScoredPairs, audit: Audit) -> Iterator[MatrixRow]:
    """Give a row for every two groups with imposter pairs, at each operating point of an audit.

    Parameters
    ----------
    pairs : ScoredPairs
        With groups; what `audit` was made of.
    audit : Audit
    """
    groups, score = pairs.groups, pairs.ranked
    if groups is None or score is None:
        return
    n = len(groups.names)
    cell = np.where(pairs.genuine, -1, cells(groups.left, groups.right, n))
    people = pairs.people
    identified = (
        IdentifiedPairs.of(pairs.genuine, people) if people is not None and people.names else None
    )
    points = [
        (each.condition, each.value)
        for each in audit.measures
        if each.metric == "threshold"
        and not each.condition.startswith("global_fnr")
        and not np.isnan(each.value)
    ]
    for number, (i, j) in enumerate(zip(*np.triu_indices(n), strict=True)):
        rows = np.flatnonzero(cell == number)
        if not len(rows):
            continue
        dyads = dependence = None
        if identified is not None:
            dyads = Dyads(identified.left, identified.right, rows)
            if i != j and dyads.people >= FEWEST:
                dependence = Dependence.of(score[rows], dyads)
        effective = np.nan if dyads is None else dyads.effective_people
        of_cell = Result(metric="fpr", trials=len(rows), people=effective)
        names = groups.names[i], groups.names[j]
        for condition, threshold in points:
            front = audit.feature, audit.attribute, condition, *names
            errors = int((score[rows] >= threshold).sum())
            rate = errors / len(rows)
            low = high = np.nan
            if i == j:
                low, high = audit.interval("fpr", group=names[0], condition=condition)
            elif dependence is not None:
                low, high = dependence.interval(rate, LEVEL)
            elif dyads is None:
                low, high = (float(end) for end in wilson(errors, len(rows), LEVEL))
            few = withheld_reason(of_cell._replace(condition=condition, value=rate))
            yield MatrixRow(*front, len(rows), errors, rate, low, high, effective, few)
