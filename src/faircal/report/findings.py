"""The error rates of each group at an operating point, and which of them can be shown.

Sentences (`words`), ``audit.json`` (`machine`) and the terminal are all made from these, which are
looked up in the results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from faircal.evaluation.curves import ScoreSource
from faircal.metrics.intervals import worst_and_best
from faircal.metrics.intervals.sufficient_data import CAUTION_PEOPLE, ERROR_RATES, PeopleByGroup
from faircal.metrics.results import ALL, GLOBAL, Condition, Result, ResultKey
from faircal.report.cells import TableValue
from faircal.report.store import LabelledResults, ResultsFolder, Variant


@dataclass(frozen=True)
class RatesByGroup:
    """One error rate of all pairs and of each group, at an operating point.

    Parameters
    ----------
    metric : {"fpr", "fnr"}
    overall : Result
    groups : dict from group to Result
    least_ratio : float
        How many times the best group's rate the worst group's is at least; above 1 the two differ.
        NaN where that was not measured.

    Examples
    --------
    >>> rates = {name: Result(metric="fpr", value=v) for name, v in (("A", 0.2), ("B", 0.1))}
    >>> rates["C"] = Result(metric="fpr", value=0.9, withheld="only 5 pairs")
    >>> rates = RatesByGroup("fpr", Result(metric="fpr", value=0.15), rates, least_ratio=1.4)
    >>> rates.worst, rates.best, rates.ratio, rates.differ, list(rates.withheld)
    ('A', 'B', 2.0, True, ['C'])
    """

    metric: str
    overall: Result
    groups: dict[str, Result]
    least_ratio: float = math.nan

    @cached_property
    def reportable(self) -> dict[str, Result]:
        """The groups with enough data."""
        return {group: rate for group, rate in self.groups.items() if rate.reportable}

    @cached_property
    def withheld(self) -> dict[str, Result]:
        """The groups without; none where the rate is undefined for all pairs already."""
        if math.isnan(self.overall.value):
            return {}
        return {group: rate for group, rate in self.groups.items() if not rate.reportable}

    @cached_property
    def _ends(self) -> tuple[str | None, str | None]:
        return worst_and_best(self.groups) or (None, None)

    @property
    def worst(self) -> str | None:
        """The group with the highest rate, the largest of equals; None with fewer than two."""
        return self._ends[0]

    @property
    def best(self) -> str | None:
        """The group with the lowest rate, the largest of equals; None with fewer than two."""
        return self._ends[1]

    @property
    def ratio(self) -> float:
        """How many times the best group's rate the worst group's is; NaN without such groups."""
        if self.worst is None or self.best is None:
            return math.nan
        worst = self.reportable[self.worst].value
        best = self.reportable[self.best].whole_errors().value
        if best > 0:
            return worst / best
        return math.inf if worst > 0 else 1.0

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
        """Return the point as sentences give it; see `Result.whole_errors`."""
        rates = {
            metric: replace(
                by_group,
                overall=by_group.overall.whole_errors(),
                groups={group: rate.whole_errors() for group, rate in by_group.groups.items()},
            )
            for metric, by_group in self.rates.items()
        }
        return replace(self, rates=rates)


def conditions(results: LabelledResults, attribute: str) -> list[str]:
    """Return all operating points: the given threshold (""), then those of global rates."""
    given = any(
        row.metric == "fpr" and not row.condition and row.attribute == attribute
        for row in results.rows
    )
    rates = [*results.rates("global_fpr"), *results.rates("global_fnr")]
    return [""] * given + rates


def main_condition(results: LabelledResults, attribute: str) -> str | None:
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
        return ResultKey(self.feature, *self.variant, self.attribute, group, condition, metric)

    def value(self, metric: str, group: str = GLOBAL, condition: str = "") -> TableValue:
        """Look up a value, with its interval; NaN where it was not measured."""
        return self.store.results.with_interval(self.key(metric, group, condition))

    def shown(self, metric: str, group: str = GLOBAL, condition: str = "") -> TableValue:
        """Look up a value as people are shown it."""
        return self.store.reportable.value(self.key(metric, group, condition))

    def result(self, metric: str, group: str = GLOBAL, condition: str = "") -> Result:
        """Look up all that is known of a value."""
        return self.store.results.get(self.key(metric, group, condition))

    def has(self, metric: str, group: str = GLOBAL, condition: str = "") -> bool:
        """Whether a value was measured, be it undefined."""
        return self.key(metric, group, condition) in self.store.results

    def counts(self, group: str, fold: str | None = None) -> tuple[int, int] | None:
        """Return a group's genuine and imposter pairs, of a fold or of all; None if not kept."""
        if group not in self._counted:
            return None
        histogram = self.store.curves.get(group, source=self._source, fold=fold)
        return histogram.n_genuine, histogram.n_imposter

    def point(self, condition: str) -> RatesAtPoint:
        """Return the error rates at an operating point."""
        metrics = ("fnr",) if condition.startswith("global_fnr") else ("fpr", "fnr")
        rates = {metric: self._rates(metric, condition) for metric in metrics}
        threshold = self.value("threshold", condition=condition)
        one = math.isnan(threshold.std)
        return RatesAtPoint(self.feature, condition, threshold.mean if one else math.nan, rates)

    def _rates(self, metric: str, condition: str) -> RatesByGroup:
        return RatesByGroup(
            metric,
            self.result(metric, GLOBAL, condition),
            {group: self.result(metric, group, condition) for group in self.groups},
            self.result(f"{metric}_least_ratio", ALL, condition).value,
        )

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


def people(store: ResultsFolder, attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known."""
    return PeopleByGroup.of(store.run, attribute).people


def effective_people(store: ResultsFolder, attribute: str, metric: str = "fpr") -> dict[str, float]:
    """Return the effective number of people of each group, as far as it is known."""
    return PeopleByGroup.of(store.run, attribute).effective[ERROR_RATES.get(metric, "fpr")]


def caution(store: ResultsFolder, attribute: str, group: str) -> str | None:
    """Warn that a group's numbers rest on few people, or return None."""
    n = people(store, attribute).get(group)
    if n is None or n >= CAUTION_PEOPLE:
        return None
    return (
        f"only {n} {'person' if n == 1 else 'people'} (fewer than {CAUTION_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
