"""What a run found of each group at an operating point, and what of it can be told.

Sentences (`words`), ``audit.json`` (`machine`) and the terminal are all made from these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from faircal.curves import Source
from faircal.metrics.intervals import (
    FEWEST_PEOPLE,
    effective_trials,
    enough,
    joint_level,
    trials_needed,
    wilson,
)
from faircal.report.store import Store
from faircal.report.tables import Results, Value, Variant
from faircal.results import ALL, GLOBAL, Condition

#: What the trials of a rate are, in words.
TRIALS = {"fpr": "pairs of strangers", "fnr": "pairs of one person"}
LEVEL = 0.95


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

    Examples
    --------
    >>> rate = Rate("fpr", 0.05, 200)
    >>> rate.enough, round(rate.low, 3), round(rate.high, 3)
    (True, 0.027, 0.09)
    >>> Rate("fpr", 0.05, 200, wanted=0.01).reason
    'only 200 pairs of strangers: too few to say (300 are needed)'
    """

    metric: str
    value: float
    trials: int | None
    wanted: float | None = None
    spread: float = math.nan
    folds: int = 1

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
        """Return the Wilson interval at a level, wider where folds vary more than by chance."""
        if not self.trials or math.isnan(self.value):
            return math.nan, math.nan
        value = min(max(self.value, 0.0), 1.0)
        trials = effective_trials(value, self.trials, self.spread, self.folds, level)
        low, high = wilson(value * trials, trials, level)
        return float(low), float(high)

    def seen(self) -> Rate:
        """Return the rate as people are told it: less than one error is none that was seen.

        Rates at a global rate are interpolated between scores, so there can be a part of an error.
        """
        return replace(self, value=0.0) if self.errors < 1 - 1e-6 else self

    @property
    def too_few(self) -> bool:
        """Whether there are trials, but too few; not where they were not counted."""
        return bool(self.trials) and not enough(self.trials or 0, self.wanted)

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
        if not self.too_few:
            return "undefined: no threshold could be set"
        few = TRIALS[self.metric] if self.trials != 1 else TRIALS[self.metric].replace("s", "", 1)
        needed = f"{trials_needed(self.wanted):,} are needed"
        return f"only {self.trials:,} {few}: too few to say ({needed})"


@dataclass(frozen=True)
class Rates:
    """One error rate of all pairs and of each group, at an operating point.

    Examples
    --------
    >>> groups = {"A": Rate("fpr", 0.2, 500), "B": Rate("fpr", 0.1, 500), "C": Rate("fpr", 0.9, 5)}
    >>> rates = Rates("fpr", Rate("fpr", 0.15, 1005), groups)
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
class Point:
    """What was found at one operating point of one feature.

    Parameters
    ----------
    feature : str
    condition : str
        As in ``results.csv``; empty at the threshold of an audit.
    threshold : float
        NaN where folds have thresholds of their own.
    rates : dict from ``"fpr"`` and ``"fnr"`` to Rates, as far as measured
    """

    feature: str
    condition: str
    threshold: float
    rates: dict[str, Rates]

    def seen(self) -> Point:
        """Return the point as people are told it; see `Rate.seen`."""
        rates = {
            metric: Rates(
                metric,
                found.overall.seen(),
                {group: rate.seen() for group, rate in found.groups.items()},
            )
            for metric, found in self.rates.items()
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
    found = [c for c in conditions(results, attribute) if not c.startswith("global_fnr")]
    return "" if "" in found else max(found, key=lambda c: Condition.of(c).rate, default=None)


@dataclass(frozen=True, eq=False)
class Measured:
    """All that a store holds of one feature, variant of a method and attribute."""

    store: Store
    attribute: str
    feature: str
    variant: Variant

    @cached_property
    def groups(self) -> list[str]:
        """The groups in order."""
        return self.store.results.groups(self.attribute)

    def value(self, metric: str, group: str = GLOBAL, condition: str = "") -> Value:
        """Look up a value; NaN where it was not measured."""
        where = (self.feature, self.variant, self.attribute, group, condition, metric)
        return self.store.results.value(*where)

    def counts(self, group: str, fold: str | None = None) -> tuple[int, int] | None:
        """Return a group's genuine and imposter pairs, of a fold or of all; None if not kept."""
        if group not in self._counted:
            return None
        histogram = self.store.curves.get(group, source=self._source, fold=fold)
        return histogram.n_genuine, histogram.n_imposter

    def point(self, condition: str) -> Point:
        """Return what was found at an operating point."""
        metrics = ("fnr",) if condition.startswith("global_fnr") else ("fpr", "fnr")
        rates = {
            metric: Rates(
                metric,
                self._rate(GLOBAL, condition, metric),
                {group: self._rate(group, condition, metric) for group in self.groups},
            )
            for metric in metrics
        }
        threshold = self.value("threshold", condition=condition)
        one = math.isnan(threshold.std)
        return Point(self.feature, condition, threshold.mean if one else math.nan, rates)

    @cached_property
    def _source(self) -> Source | None:
        """Whose pairs are counted: all methods are measured on the same."""
        found = (
            source
            for source in self.store.curves.sources
            if (source.feature, source.attribute) == (self.feature, self.attribute)
        )
        return next(found, None)

    @cached_property
    def _counted(self) -> set[str]:
        source = self._source
        return set() if source is None else {GLOBAL, *self.store.curves.groups(source)}

    @cached_property
    def _audited(self) -> dict[tuple[str, str], int]:
        """The trials that an audit wrote beside its intervals."""
        return {
            (row.group, row.metric): round(row.trials)
            for row in self.store.intervals
            if (row.feature, row.attribute) == (self.feature, self.attribute)
        }

    def _rate(self, group: str, condition: str, metric: str) -> Rate:
        wanted = Condition.of(condition).wanted(metric)
        value = self.value(metric, group, condition)
        folds = self._folds(group, metric)
        spread = value.std if folds > 1 else math.nan
        return Rate(metric, value.mean, self._trials(group, metric), wanted, spread, folds)

    def _folds(self, group: str, metric: str) -> int:
        """Return in how many folds the group has trials."""
        counts = (self.counts(group, fold) for fold in self.store.curves.folds)
        return sum(bool(of and of[metric == "fpr"]) for of in counts)

    def _trials(self, group: str, metric: str) -> int | None:
        counts = self.counts(group)
        if counts is not None:
            return counts[metric == "fpr"]
        return self._audited.get((group, metric))

    def too_few(self, metric: str, group: str, condition: str) -> bool:
        """Whether a metric of a group has too few pairs to be told."""
        if metric in TRIALS:
            return self._rate(group, condition, metric).too_few
        counts = self.counts(group)
        return counts is not None and not enough(sum(counts))


class Told(Results):
    """Results as people are told them: where a group has too few pairs, that instead of a number.

    ``results.csv`` keeps all numbers; the paper's tables show them, too.
    """

    def __init__(self, store: Store) -> None:
        vars(self).update(vars(store.results))  # the same rows, looked through already
        self._measured: dict[tuple[str, str, Variant], Measured] = {}
        self._store = store

    def value(
        self,
        feature: str,
        variant: Variant,
        attribute: str,
        group: str,
        condition: str,
        metric: str,
    ) -> Value:
        """Look a value up; NaN that `says` why where there are too few pairs."""
        found = super().value(feature, variant, attribute, group, condition, metric)
        if group == ALL or math.isnan(found.mean):
            return found
        key = feature, attribute, variant
        measured = self._measured.setdefault(
            key, Measured(self._store, attribute, feature, variant)
        )
        few = measured.too_few(metric, group, condition)
        return Value(math.nan, says="too few") if few else found


def people(store: Store) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known."""
    found = store.run.get("people")
    return {str(k): int(v) for k, v in found.items()} if isinstance(found, dict) else {}


def caution(store: Store, group: str) -> str | None:
    """Say that a group's numbers rest on few people, or None."""
    n = people(store).get(group)
    if n is None or n >= FEWEST_PEOPLE:
        return None
    return (
        f"only {n} {'person' if n == 1 else 'people'} (fewer than {FEWEST_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
