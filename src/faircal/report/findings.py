"""What a run found of each group at an operating point, and what of it can be told.

Sentences (`words`), ``audit.json`` (`machine`) and the terminal are all made from these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from faircal.evaluation.curves import ScoreSource
from faircal.metrics.intervals.sufficient_data import (
    CAUTION_PEOPLE,
    NOT_ENOUGH,
    effective_people_by_group,
    insufficient_data_reason,
    people_by_group,
)
from faircal.metrics.results import ALL, GLOBAL, Condition
from faircal.report.rates import TRIALS, Rate, RatesAtPoint, RatesByGroup
from faircal.report.store import ResultsFolder, StoredInterval
from faircal.report.tables import Results, TableValue, Variant


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


def with_interval(
    store: ResultsFolder,
    feature: str,
    variant: Variant,
    attribute: str,
    group: str,
    condition: str,
    metric: str,
) -> TableValue:
    """Look a value up with its interval, whether or not there is data enough for it."""
    where = (feature, variant, attribute, group, condition, metric)
    found, known = store.results.value(*where), store.known(*where)
    if known is None or math.isnan(found.mean):
        return found
    return replace(found, low=known.low, high=known.high)


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

    def value(self, metric: str, group: str = GLOBAL, condition: str = "") -> TableValue:
        """Look up a value, with its interval; NaN where it was not measured."""
        where = (self.feature, self.variant, self.attribute, group, condition, metric)
        return with_interval(self.store, *where)

    def has(self, metric: str, group: str = GLOBAL, condition: str = "") -> bool:
        """Whether a value was measured, be it undefined."""
        return self.store.results.has(
            self.feature, self.variant, self.attribute, group, condition, metric
        )

    def counts(self, group: str, fold: str | None = None) -> tuple[int, int] | None:
        """Return a group's genuine and imposter pairs, of a fold or of all; None if not kept."""
        if group not in self._counted:
            return None
        histogram = self.store.curves.get(group, source=self._source, fold=fold)
        return histogram.n_genuine, histogram.n_imposter

    def point(self, condition: str) -> RatesAtPoint:
        """Return what was found at an operating point."""
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

    def known(self, metric: str, group: str = GLOBAL, condition: str = "") -> StoredInterval | None:
        """Return what the run wrote of how sure a value is."""
        where = (self.feature, self.variant, self.attribute, group, condition, metric)
        return self.store.known(*where)

    def _rate(self, group: str, condition: str, metric: str) -> Rate:
        wanted = Condition.of(condition).wanted(metric)
        value = self.value(metric, group, condition)
        folds = self._folds(group, metric)
        return Rate(
            metric,
            value.mean,
            self._trials(group, condition, metric),
            wanted,
            value.std if folds > 1 else math.nan,
            folds,
            effective_people(self.store, self.attribute, metric).get(group),
            self.known(metric, group, condition),
        )

    def _folds(self, group: str, metric: str) -> int:
        """Return in how many folds the group has trials."""
        counts = (self.counts(group, fold) for fold in self.store.curves.folds)
        return sum(bool(of and of[metric == "fpr"]) for of in counts)

    def _trials(self, group: str, condition: str, metric: str) -> int | None:
        counts = self.counts(group)
        if counts is not None:
            return counts[metric == "fpr"]
        known = self.known(metric, group, condition)
        return None if known is None or math.isnan(known.trials) else round(known.trials)

    def lacking(self, metric: str, group: str, condition: str = "") -> str | None:
        """Say what there is too little of for a metric of a group to be told, or None."""
        kind = "fnr" if metric == "tpr" else metric
        if kind in TRIALS:
            rate = self._rate(group, condition, kind)
            return rate.reason if rate.too_few else None
        counts = self.counts(group)
        pairs = sum(counts) if counts is not None else 10**9  # not known: people decide
        people = effective_people(self.store, self.attribute).get(group)
        return insufficient_data_reason(metric, pairs, people)

    def too_few(self, metric: str, group: str, condition: str) -> bool:
        """Whether there is not enough data for a metric of a group to be told."""
        return self.lacking(metric, group, condition) is not None


class ReportableResults(Results):
    """Results as people are told them: with intervals, or that there is not enough data.

    ``results.csv`` keeps all numbers; the paper's tables show them, too.
    """

    def __init__(self, store: ResultsFolder) -> None:
        vars(self).update(vars(store.results))  # the same rows, looked through already
        self._measured: dict[tuple[str, str, Variant], VariantResults] = {}
        self._store = store

    def value(
        self,
        feature: str,
        variant: Variant,
        attribute: str,
        group: str,
        condition: str,
        metric: str,
    ) -> TableValue:
        """Look a value up; NaN that `says` why where there is not enough data."""
        found = with_interval(self._store, feature, variant, attribute, group, condition, metric)
        if group == ALL or math.isnan(found.mean):
            return found
        key = feature, attribute, variant
        measured = self._measured.setdefault(
            key, VariantResults(self._store, attribute, feature, variant)
        )
        few = measured.too_few(metric, group, condition)
        return TableValue(math.nan, says=NOT_ENOUGH) if few else found


def people(store: ResultsFolder, attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known."""
    return people_by_group(store.run, attribute)


def effective_people(store: ResultsFolder, attribute: str, metric: str = "fpr") -> dict[str, float]:
    """Return how many people, each in equally many pairs, would tell as much; as far as known."""
    return effective_people_by_group(store.run, attribute, metric)


def caution(store: ResultsFolder, attribute: str, group: str) -> str | None:
    """Say that a group's numbers rest on few people, or None."""
    n = people(store, attribute).get(group)
    if n is None or n >= CAUTION_PEOPLE:
        return None
    return (
        f"only {n} {'person' if n == 1 else 'people'} (fewer than {CAUTION_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
