"""Error rates as people are told them: with an interval, or why not; and how groups compare."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import insufficient_data_reason
from faircal.metrics.proportions import effective_trials, joint_level, wilson
from faircal.report.store import StoredInterval

#: What the trials of a rate are, in words.
TRIALS = {"fpr": "pairs of strangers", "fnr": "pairs of one person"}


@dataclass(frozen=True)
class Rate:
    """An error rate of one group with its interval; NaN where undefined or not known.

    Parameters
    ----------
    metric : {"fpr", "fnr"}
    value : float
    trials : int or None
        None where the store keeps no counts (folders of old).
    wanted : float or None
        The rate that the operating point sets for all pairs, if it sets this one.
    spread : float
        Standard deviation over folds; NaN in an audit.
    folds : int
    people : float, optional
        Effective people behind the trials; None where nobody knows.
    known : StoredInterval, optional
        What the run wrote of the interval. Without it, as in folders of old, pairs are taken as
        independent of each other, as far as the spread over folds lets them be.

    Examples
    --------
    >>> rate = Rate("fpr", 0.05, 200)
    >>> rate.enough, round(rate.low, 3), round(rate.high, 3)
    (True, 0.027, 0.09)
    >>> Rate("fpr", 0.05, 200, wanted=0.01).reason
    'only 200 pairs of strangers: not enough data (300 are needed)'
    >>> Rate("fpr", 0.05, 2000, people=12.7).reason
    'only 13 effective people: not enough data (20 are needed)'
    """

    metric: str
    value: float
    trials: int | None
    wanted: float | None = None
    spread: float = math.nan
    folds: int = 1
    people: float | None = None
    known: StoredInterval | None = None

    @property
    def errors(self) -> float:
        """The errors counted, a fraction where the rate is interpolated."""
        return math.nan if self.trials is None else round(self.value * self.trials, 6)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.ends(LEVEL)[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.ends(LEVEL)[1]

    def ends(self, level: float) -> tuple[float, float]:
        """Return the interval at a level: the one that was written, or a wider one like it."""
        if not self.trials or math.isnan(self.value):
            return math.nan, math.nan
        value = min(max(self.value, 0.0), 1.0)
        if self.known is None:
            return self._wilson(value, level)
        low, high = min(self.known.low, value), max(self.known.high, value)
        if level <= LEVEL or math.isnan(self.known.effective):
            return low, high
        lower, upper = wilson(value * self.known.effective, self.known.effective, level)
        return min(low, float(lower)), max(high, float(upper))

    def _wilson(self, value: float, level: float) -> tuple[float, float]:
        """Return Wilson's interval, wider where folds vary more than by chance."""
        trials = effective_trials(value, self.trials or 0, self.spread, self.folds, level)
        low, high = wilson(value * trials, trials, level)
        return float(low), float(high)

    def seen(self) -> Rate:
        """Return the rate as people are told it: less than one error is none that was seen.

        Rates at a global rate are interpolated between scores, so there can be a part of an error.
        """
        return replace(self, value=0.0) if self.errors < 1 - 1e-6 else self

    @property
    def too_few(self) -> bool:
        """Whether there are trials, but not enough data; not where they were not counted."""
        return self._lacking is not None

    @property
    def _lacking(self) -> str | None:
        if not self.trials:
            return None
        return insufficient_data_reason(
            self.metric, self.trials, self.people, self.wanted, of=TRIALS[self.metric]
        )

    @property
    def enough(self) -> bool:
        """Whether the rate can be told."""
        return not self.too_few and not math.isnan(self.value)

    @property
    def reason(self) -> str | None:
        """Say why the rate is not told, or None where it is."""
        if self.enough:
            return None
        if self.trials == 0:
            return f"no {TRIALS[self.metric]}: nothing to say"
        return self._lacking or "undefined: no threshold could be set"


@dataclass(frozen=True)
class RatesByGroup:
    """One error rate of all pairs and of each group, at an operating point.

    Examples
    --------
    >>> groups = {"A": Rate("fpr", 0.2, 500), "B": Rate("fpr", 0.1, 500), "C": Rate("fpr", 0.9, 5)}
    >>> rates = RatesByGroup("fpr", Rate("fpr", 0.15, 1005), groups)
    >>> rates.worst, rates.best, rates.ratio, rates.told_apart, list(rates.withheld)
    ('A', 'B', 2.0, True, ['C'])
    """

    metric: str
    overall: Rate
    groups: dict[str, Rate]

    @cached_property
    def told(self) -> dict[str, Rate]:
        """The groups with enough data."""
        return {group: rate for group, rate in self.groups.items() if rate.enough}

    @cached_property
    def withheld(self) -> dict[str, Rate]:
        """The groups without; none where the rate is undefined for all pairs already."""
        if math.isnan(self.overall.value):
            return {}
        return {group: rate for group, rate in self.groups.items() if not rate.enough}

    @property
    def worst(self) -> str | None:
        """The group with the highest rate, the largest of equals; None with fewer than two."""
        return self._end(1)

    @property
    def best(self) -> str | None:
        """The group with the lowest rate, the largest of equals; None with fewer than two."""
        return self._end(-1)

    def _end(self, sign: int) -> str | None:
        if len(self.told) < 2:
            return None
        return max(self.told, key=lambda g: (sign * self.told[g].value, self.told[g].trials or 0))

    @property
    def ratio(self) -> float:
        """How many times the best group's rate the worst group's is; NaN without such groups."""
        if self.worst is None or self.best is None:
            return math.nan
        worst, best = self.told[self.worst].value, self.told[self.best].seen().value
        if best > 0:
            return worst / best
        return math.inf if worst > 0 else 1.0

    @cached_property
    def least_ratio(self) -> float:
        """The ratio of the near ends of both intervals, widened to hold at once for all groups.

        Above 1 the two groups are told apart. NaN where there are no counts.
        """
        if self.worst is None or self.best is None:
            return math.nan
        level = joint_level(len(self.told), LEVEL)
        low = self.told[self.worst].ends(level)[0]
        high = self.told[self.best].ends(level)[1]
        return low / high if high > 0 else math.nan

    @property
    def told_apart(self) -> bool | None:
        """Whether the data tells the worst group from the best; None where it can't be asked."""
        return None if math.isnan(self.least_ratio) else self.least_ratio > 1

    @property
    def overlap(self) -> bool:
        """Whether the ordinary intervals of the worst group and the best one overlap."""
        if self.worst is None or self.best is None:
            return True
        return self.told[self.worst].low <= self.told[self.best].high


@dataclass(frozen=True)
class RatesAtPoint:
    """What was found at one operating point of one feature.

    Parameters
    ----------
    feature : str
    condition : str
        As in ``results.csv``; empty at the threshold of an audit.
    threshold : float
        NaN where folds have thresholds of their own.
    rates : dict from ``"fpr"`` and ``"fnr"`` to RatesByGroup, as far as measured
    """

    feature: str
    condition: str
    threshold: float
    rates: dict[str, RatesByGroup]

    def seen(self) -> RatesAtPoint:
        """Return the point as people are told it; see `Rate.seen`."""
        rates = {
            metric: RatesByGroup(
                metric,
                found.overall.seen(),
                {group: rate.seen() for group, rate in found.groups.items()},
            )
            for metric, found in self.rates.items()
        }
        return replace(self, rates=rates)
