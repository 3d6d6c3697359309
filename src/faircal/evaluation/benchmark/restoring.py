"""Curves over the number of labelled pairs: where calibration is as good as it gets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from faircal.evaluation.benchmark.moving import AS_IS, RECALIBRATED, MovedRow, read_moved
from faircal.metrics.results import ALL, GLOBAL

#: Feature, method, calibrator, clusters, attribute, strategy.
_Key = tuple[str, str, str, str, str, str]
#: Differences of fewer standard errors over folds than this can't be told from chance.
ERRORS = 2.0


class Point(NamedTuple):
    """A metric with so many labelled pairs: of how many people (NaN: unknown), and by fold."""

    people: float
    by_fold: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Over the folds where it is known; NaN where it is in none."""
        known = [value for value in self.by_fold.values() if not math.isnan(value)]
        return float(np.mean(known)) if known else math.nan

    @property
    def error(self) -> float:
        """The standard error of `mean` over folds; NaN with fewer than two."""
        return _error([value for value in self.by_fold.values() if not math.isnan(value)])


@dataclass(frozen=True)
class Restoring:
    """How a metric falls as pairs of the new population are labelled, one strategy of a method.

    Parameters
    ----------
    feature, method, calibrator, clusters, attribute, strategy : str
        As in ``moving.csv``.
    points : mapping from number of labelled pairs to Point
        Ascending; the model as it is has 0.

    Examples
    --------
    >>> points = {0: Point(0, {"1": 0.2, "2": 0.21}), 100: Point(9, {"1": 0.03, "2": 0.01})}
    >>> curve = Restoring("f", "m", "", "", "", "recalibrated", points | {
    ...     1000: Point(80, {"1": 0.01, "2": 0.02})})
    >>> curve.enough, curve.gains
    (100, True)
    """

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str
    strategy: str
    points: Mapping[int, Point]

    @cached_property
    def most(self) -> int:
        """The largest number of labelled pairs."""
        return max(self.points)

    @property
    def enough(self) -> int:
        """As `as_good`; 0 where labelled pairs gain nothing over the model as it is."""
        return 0 if 0 in self.points and not self.gains else self.as_good

    @cached_property
    def as_good(self) -> int:
        """The fewest labelled pairs with which, and with more, it is as good as with the most.

        As good is: no worse than can be told by the folds, `ERRORS` standard errors of the
        difference. So few folds tell little, and rather too few pairs are named than too many.
        """
        found = self.most
        for labels in sorted(self.points, reverse=True):
            if self.worse(labels, self.most):
                break
            found = labels
        return found

    @property
    def gains(self) -> bool:
        """Whether the most labelled pairs are better than none, beyond chance."""
        return self.worse(0, self.most) if 0 in self.points else False

    def worse(self, one: int, other: int) -> bool:
        """Whether `one` number of labelled pairs is worse than another, fold by fold."""
        here, there = self.points[one].by_fold, self.points[other].by_fold
        differences = [here[fold] - there[fold] for fold in here if fold in there]
        known = [value for value in differences if not math.isnan(value)]
        error = _error(known)
        return bool(known) and float(np.mean(known)) > (
            0.0 if math.isnan(error) else ERRORS * error
        )

    @property
    def words(self) -> str:
        """How many labelled pairs it takes, and what is left then.

        Examples
        --------
        >>> points = {0: Point(0, {"1": 0.2, "2": 0.21}), 100: Point(9, {"1": 0.01, "2": 0.02})}
        >>> Restoring("f", "m", "", "", "", "recalibrated", points).words
        'still better with all 100 labelled pairs (9 people): 20.5 % as it is, 1.5 % with 100.'
        """
        first, most, enough = min(self.points), self.most, self.enough
        start, last = (f"{100 * self.points[labels].mean:.3g} %" for labels in (first, most))
        change = f"{start} {f'with {first}' if first else 'as it is'}, {last} with {most}."
        if first == 0 and not self.gains:
            text = f"labelled pairs gain nothing that can be told: {change}"
            least = self.as_good
            return text + (f" If any are used, use about {least} or more." if least else "")
        people = self.points[enough].people
        whose = "" if math.isnan(people) else f" ({people:.0f} people)"
        how = "still better with all" if enough == most > first else "restored with about"
        return f"{how} {enough} labelled pairs{whose}: {change}"

    def record(self, metric: str) -> dict[str, Any]:
        """Return everything by name, for machines; `metric` is that of the points."""
        names = ("feature", "method", "calibrator", "clusters", "attribute", "strategy")
        return {
            **{name: getattr(self, name) for name in names},
            "metric": metric,
            "points": [
                {"labels": labels, "people": at.people, "value": at.mean, "error": at.error}
                for labels, at in self.points.items()
            ],
            "enough": self.enough,
            "gains": self.gains,
        }


def curves_of(folder: Path) -> dict[str, list[Restoring]]:
    """Return the curves of a benchmark on two populations: KS of all pairs, and over groups."""
    rows = read_moved(folder)
    return {"ks": restoring(rows, "ks", GLOBAL), "ks_mean": restoring(rows, "ks_mean", ALL)}


def restoring(rows: Iterable[MovedRow], metric: str, group: str) -> list[Restoring]:
    """Return the curves of a metric without condition; those of recalibrated models begin at 0.

    Parameters
    ----------
    rows : iterable of MovedRow
    metric, group : str
        Such as ``ks`` of ``global``, or ``ks_mean`` of ``all``.
    """
    curves: dict[_Key, dict[int, list[MovedRow]]] = {}
    for row in rows:
        if (row.metric, row.group, row.condition) == (metric, group, ""):
            # The model as it is, is the recalibrated one before a pair is labelled.
            strategy = RECALIBRATED if row.strategy == AS_IS else row.strategy
            steps = curves.setdefault((*row[:5], strategy), {})
            steps.setdefault(int(row.labels), []).append(row)
    return [
        Restoring(*key, {labels: _point(steps[labels]) for labels in sorted(steps)})
        for key, steps in curves.items()
    ]


def _point(rows: list[MovedRow]) -> Point:
    people = [float(row.people) if row.people else math.nan for row in rows]
    return Point(float(np.mean(people)), {row.fold: row.value for row in rows})


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
