"""The error rates of each group at an operating point, and which of them can be shown.

Sentences (`words`), ``audit.json`` (`machine`) and the terminal are all made from these: a rate
with its interval, or why there is none, and how groups compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from faircal.evaluation.curves import ScoreSource
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import (
    CAUTION_PEOPLE,
    NOT_ENOUGH,
    effective_people_by_group,
    insufficient_data_reason,
    people_by_group,
)
from faircal.metrics.proportions import effective_trials, joint_level, wilson
from faircal.metrics.results import ALL, GLOBAL, Condition
from faircal.report.cells import TableValue
from faircal.report.store import ResultKey, Results, ResultsFolder, StoredInterval, Variant

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
    target : float or None
        The rate that the operating point sets for all pairs, if it sets this one.
    spread : float
        Standard deviation over folds; NaN in an audit.
    folds : int
    people : float, optional
        Effective people behind the trials; None where not known.
    interval : StoredInterval, optional
        What the run wrote of its interval. Without it, as in folders of old, pairs are taken as
        independent of each other, as far as the spread over folds lets them be.

    Examples
    --------
    >>> rate = Rate("fpr", 0.05, 200)
    >>> rate.reportable, round(rate.low, 3), round(rate.high, 3)
    (True, 0.027, 0.09)
    >>> Rate("fpr", 0.05, 200, target=0.01).reason
    'only 200 pairs of strangers: not enough data (300 are needed)'
    >>> Rate("fpr", 0.05, 2000, people=12.7).reason
    'only 13 effective people: not enough data (20 are needed)'
    """

    metric: str
    value: float
    trials: int | None
    target: float | None = None
    spread: float = math.nan
    folds: int = 1
    people: float | None = None
    interval: StoredInterval | None = None

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
        if self.interval is None:
            return self._wilson(value, level)
        low, high = min(self.interval.low, value), max(self.interval.high, value)
        if level <= LEVEL or math.isnan(self.interval.effective):
            return low, high
        lower, upper = wilson(value * self.interval.effective, self.interval.effective, level)
        return min(low, float(lower)), max(high, float(upper))

    def _wilson(self, value: float, level: float) -> tuple[float, float]:
        """Return Wilson's interval, wider where folds vary more than by chance."""
        trials = effective_trials(value, self.trials or 0, self.spread, self.folds, level)
        low, high = wilson(value * trials, trials, level)
        return float(low), float(high)

    def whole_errors(self) -> Rate:
        """Return the rate as sentences give it: less than one error counts as none.

        Rates at a global rate are interpolated between scores, so there can be a part of an error.
        """
        return replace(self, value=0.0) if self.errors < 1 - 1e-6 else self

    @property
    def insufficient_data(self) -> str | None:
        """What there is too little of, in words; None where trials were not counted."""
        if not self.trials:
            return None
        return insufficient_data_reason(
            self.metric, self.trials, self.people, self.target, of=TRIALS[self.metric]
        )

    @property
    def reportable(self) -> bool:
        """Whether there is a rate, and data enough to show it."""
        return self.insufficient_data is None and not math.isnan(self.value)

    @property
    def reason(self) -> str | None:
        """Why the rate is not shown, or None where it is."""
        if self.reportable:
            return None
        if self.trials == 0:
            return f"no {TRIALS[self.metric]}: nothing to say"
        return self.insufficient_data or "undefined: no threshold could be set"


@dataclass(frozen=True)
class RatesByGroup:
    """One error rate of all pairs and of each group, at an operating point.

    Examples
    --------
    >>> groups = {"A": Rate("fpr", 0.2, 500), "B": Rate("fpr", 0.1, 500), "C": Rate("fpr", 0.9, 5)}
    >>> rates = RatesByGroup("fpr", Rate("fpr", 0.15, 1005), groups)
    >>> rates.worst, rates.best, rates.ratio, rates.differ, list(rates.withheld)
    ('A', 'B', 2.0, True, ['C'])
    """

    metric: str
    overall: Rate
    groups: dict[str, Rate]

    @cached_property
    def reportable(self) -> dict[str, Rate]:
        """The groups with enough data."""
        return {group: rate for group, rate in self.groups.items() if rate.reportable}

    @cached_property
    def withheld(self) -> dict[str, Rate]:
        """The groups without; none where the rate is undefined for all pairs already."""
        if math.isnan(self.overall.value):
            return {}
        return {group: rate for group, rate in self.groups.items() if not rate.reportable}

    @property
    def worst(self) -> str | None:
        """The group with the highest rate, the largest of equals; None with fewer than two."""
        return self._end(1)

    @property
    def best(self) -> str | None:
        """The group with the lowest rate, the largest of equals; None with fewer than two."""
        return self._end(-1)

    def _end(self, sign: int) -> str | None:
        if len(self.reportable) < 2:
            return None
        return max(
            self.reportable,
            key=lambda g: (sign * self.reportable[g].value, self.reportable[g].trials or 0),
        )

    @property
    def ratio(self) -> float:
        """How many times the best group's rate the worst group's is; NaN without such groups."""
        if self.worst is None or self.best is None:
            return math.nan
        worst, best = (
            self.reportable[self.worst].value,
            self.reportable[self.best].whole_errors().value,
        )
        if best > 0:
            return worst / best
        return math.inf if worst > 0 else 1.0

    @cached_property
    def least_ratio(self) -> float:
        """The ratio of the near ends of both intervals, widened to hold at once for all groups.

        Above 1 the two groups differ. NaN where there are no counts.
        """
        if self.worst is None or self.best is None:
            return math.nan
        level = joint_level(len(self.reportable), LEVEL)
        low = self.reportable[self.worst].ends(level)[0]
        high = self.reportable[self.best].ends(level)[1]
        return low / high if high > 0 else math.nan

    @property
    def differ(self) -> bool | None:
        """Whether the worst group differs from the best; None where that is not known."""
        return None if math.isnan(self.least_ratio) else self.least_ratio > 1

    @property
    def overlap(self) -> bool:
        """Whether the ordinary intervals of the worst group and the best one overlap."""
        if self.worst is None or self.best is None:
            return True
        return self.reportable[self.worst].low <= self.reportable[self.best].high


@dataclass(frozen=True)
class RatesAtPoint:
    """The error rates at one operating point of one feature.

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

    def whole_errors(self) -> RatesAtPoint:
        """Return the point as sentences give it; see `Rate.whole_errors`."""
        rates = {
            metric: RatesByGroup(
                metric,
                by_group.overall.whole_errors(),
                {group: rate.whole_errors() for group, rate in by_group.groups.items()},
            )
            for metric, by_group in self.rates.items()
        }
        return replace(self, rates=rates)


def conditions(results: Results, attribute: str) -> list[str]:
    """Return all operating points: the given threshold (""), then those of global rates."""
    given = any(
        row.metric == "fpr" and not row.condition and row.attribute == attribute
        for row in results.rows
    )
    rates = [*results.rates("global_fpr"), *results.rates("global_fnr")]
    return [""] * given + rates


def main_condition(results: Results, attribute: str) -> str | None:
    """Return the operating point to speak of: a given threshold, else the highest global FPR."""
    points = [c for c in conditions(results, attribute) if not c.startswith("global_fnr")]
    return "" if "" in points else max(points, key=lambda c: Condition.of(c).rate, default=None)


@dataclass(frozen=True, eq=False)
class VariantResults:
    """All that a store holds of one feature, variant of a method and attribute."""

    store: ResultsFolder
    attribute: str
    feature: str
    variant: Variant

    @cached_property
    def groups(self) -> list[str]:
        """The groups in order."""
        return self.store.results.groups(self.attribute)

    def key(self, metric: str, group: str = GLOBAL, condition: str = "") -> ResultKey:
        """Return where a value is in the results."""
        return ResultKey(self.feature, self.variant, self.attribute, group, condition, metric)

    def value(self, metric: str, group: str = GLOBAL, condition: str = "") -> TableValue:
        """Look up a value, with its interval; NaN where it was not measured."""
        return self.store.with_interval(self.key(metric, group, condition))

    def has(self, metric: str, group: str = GLOBAL, condition: str = "") -> bool:
        """Whether a value was measured, be it undefined."""
        return self.store.results.has(self.key(metric, group, condition))

    def counts(self, group: str, fold: str | None = None) -> tuple[int, int] | None:
        """Return a group's genuine and imposter pairs, of a fold or of all; None if not kept."""
        if group not in self._counted:
            return None
        histogram = self.store.curves.get(group, source=self._source, fold=fold)
        return histogram.n_genuine, histogram.n_imposter

    def point(self, condition: str) -> RatesAtPoint:
        """Return the error rates at an operating point."""
        metrics = ("fnr",) if condition.startswith("global_fnr") else ("fpr", "fnr")
        rates = {
            metric: RatesByGroup(
                metric,
                self._rate(GLOBAL, condition, metric),
                {group: self._rate(group, condition, metric) for group in self.groups},
            )
            for metric in metrics
        }
        threshold = self.value("threshold", condition=condition)
        one = math.isnan(threshold.std)
        return RatesAtPoint(self.feature, condition, threshold.mean if one else math.nan, rates)

    @cached_property
    def _source(self) -> ScoreSource | None:
        """Whose pairs are counted: all methods are measured on the same."""
        sources = (
            source
            for source in self.store.curves.sources
            if (source.feature, source.attribute) == (self.feature, self.attribute)
        )
        return next(sources, None)

    @cached_property
    def _counted(self) -> set[str]:
        source = self._source
        return set() if source is None else {GLOBAL, *self.store.curves.groups(source)}

    def _rate(self, group: str, condition: str, metric: str) -> Rate:
        value = self.value(metric, group, condition)
        folds = self._folds(group, metric)
        return Rate(
            metric,
            value.mean,
            self._trials(group, condition, metric),
            Condition.of(condition).wanted(metric),
            value.std if folds > 1 else math.nan,
            folds,
            effective_people(self.store, self.attribute, metric).get(group),
            self.store.interval(self.key(metric, group, condition)),
        )

    def _folds(self, group: str, metric: str) -> int:
        """Return in how many folds the group has trials."""
        counts = (self.counts(group, fold) for fold in self.store.curves.folds)
        return sum(bool(of and of[metric == "fpr"]) for of in counts)

    def _trials(self, group: str, condition: str, metric: str) -> int | None:
        counts = self.counts(group)
        if counts is not None:
            return counts[metric == "fpr"]
        interval = self.store.interval(self.key(metric, group, condition))
        return None if interval is None or math.isnan(interval.trials) else round(interval.trials)

    def insufficient_data(self, metric: str, group: str, condition: str = "") -> str | None:
        """Say what there is too little of for a metric of a group to be shown, or None."""
        kind = "fnr" if metric == "tpr" else metric
        if kind in TRIALS:
            return self._rate(group, condition, kind).insufficient_data
        counts = self.counts(group)
        pairs = sum(counts) if counts is not None else 10**9  # not known: people decide
        people = effective_people(self.store, self.attribute).get(group)
        return insufficient_data_reason(metric, pairs, people)


class ReportableResults(Results):
    """Results as people are shown them: with intervals, or that there is not enough data.

    ``results.csv`` keeps all numbers; the paper's tables show them, too.
    """

    def __init__(self, store: ResultsFolder) -> None:
        vars(self).update(vars(store.results))  # the same rows, looked through already
        self._store = store
        self._by_variant: dict[tuple[str, str, Variant], VariantResults] = {}

    def value(self, key: ResultKey) -> TableValue:
        """Look a value up; NaN that `says` why where there is not enough data."""
        value = self._store.with_interval(key)
        if key.group == ALL or math.isnan(value.mean):
            return value
        place = key.attribute, key.feature, key.variant
        of = self._by_variant.setdefault(place, VariantResults(self._store, *place))
        few = of.insufficient_data(key.metric, key.group, key.condition)
        return TableValue(math.nan, says=NOT_ENOUGH) if few else value


def people(store: ResultsFolder, attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known."""
    return people_by_group(store.run, attribute)


def effective_people(store: ResultsFolder, attribute: str, metric: str = "fpr") -> dict[str, float]:
    """Return the effective number of people of each group, as far as it is known."""
    return effective_people_by_group(store.run, attribute, metric)


def caution(store: ResultsFolder, attribute: str, group: str) -> str | None:
    """Warn that a group's numbers rest on few people, or return None."""
    n = people(store, attribute).get(group)
    if n is None or n >= CAUTION_PEOPLE:
        return None
    return (
        f"only {n} {'person' if n == 1 else 'people'} (fewer than {CAUTION_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
