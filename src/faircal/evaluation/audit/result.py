"""The result of an audit: values with their intervals, looked up by what they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.curves import Curves, ScoreSource, make_curves
from faircal.metrics import wilson
from faircal.metrics.intervals import (
    BY_PEOPLE,
    LEVEL,
    PAIR_WISE,
    Uncertainty,
    least_ratios,
    replicated_values,
    with_intervals,
    with_reasons,
)
from faircal.metrics.measures import Rankings, at_threshold, measure
from faircal.metrics.results import GLOBAL, Replicated, Result, as_table

#: How intervals are made of streamed pairs.
STREAMED = (
    "pair-wise Wilson of rates only (of streamed pairs it is not kept who is in them, so they are "
    "taken as independent: too narrow where pairs share people)"
)


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit: values, intervals, and a long table.

    Intervals are worked out when they are first asked for, and kept.

    Attributes
    ----------
    measures : list of Result
        The values, without intervals.
    groups : tuple of str
    people : dict from group to number of people, or None where identities are unknown
    trials : dict from group to (genuine, imposter) counts
    curves : Curves
        The scores counted by group: what figures are drawn from.
    uncertainty : Uncertainty, optional
        How sure the values are; None where pairs were only counted.

    Examples
    --------
    >>> from faircal import audit
    >>> result = audit(score=[0.9, 0.4, 0.3], genuine=[1, 0, 0], groups=list("AAB"), threshold=0.4)
    >>> result.value("fpr"), result.value("fpr", group="A"), result.value("fnr", group="B")
    (0.5, 1.0, nan)
    >>> result.result("fpr").trials, result.result("fpr").withheld
    (2.0, 'only 2 pairs of strangers: not enough data (100 are needed)')
    """

    measures: list[Result]
    groups: tuple[str, ...]
    people: dict[str, int] | None
    trials: dict[str, tuple[int, int]]
    curves: Curves
    dataset: str = ""
    feature: str = ""
    attribute: str = ""
    method: str = ""
    uncertainty: Uncertainty | None = None

    @cached_property
    def rows(self) -> list[Result]:
        """Every value with its interval, counts, and why it must not be shown."""
        named = [
            each._replace(
                dataset=self.dataset,
                feature=self.feature,
                method=self.method,
                attribute=self.attribute,
            )
            for each in self.measures
        ]
        if self.uncertainty is None:
            rows = [_counted_interval(each) for each in named]
        else:
            rows = with_intervals(named, self.uncertainty)
        rows = with_reasons(rows, self._people_behind)
        return [*rows, *least_ratios(rows)]

    def value(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> float:
        """Return one value, e.g. ``value("fpr", group="Asian F")``; NaN where undefined.

        `condition` is empty for values at the audit's own threshold and for those that need none
        (AUROC, KS), or such as ``"global_fpr=0.01"``.
        """
        return self._find(self.measures, metric, group, condition).value

    def result(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> Result:
        """Return all that is known of one value: interval, counts, whether it may be shown."""
        return self._find(self.rows, metric, group, condition)

    def interval(
        self, metric: str, *, group: str = GLOBAL, condition: str = "", level: float = LEVEL
    ) -> tuple[float, float]:
        """Return (low, high) of a value; NaN where it is undefined.

        Where identities are given, intervals know that pairs share people.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
        found = self._find(self.measures, metric, group, condition)
        if self.uncertainty is not None:
            return self.uncertainty.interval(group, condition, metric, level)
        counted = _counted_interval(found, level)
        return counted.low, counted.high

    def effective_people(self, metric: str = "fpr") -> dict[str, float] | None:
        """Return how many people, each in equally many pairs, would tell as much; by group.

        Imposter pairs for ``fpr``, genuine ones for ``fnr`` and ``tpr``. None where identities are
        unknown or pairs were only counted.
        """
        if self.uncertainty is None or self.uncertainty.independent:
            return None
        return {g: self.uncertainty.effective_people(g, metric) for g in (GLOBAL, *self.groups)}

    def _people_behind(self, group: str, metric: str) -> float | None:
        if self.people is None:
            return None
        if self.uncertainty is None or self.uncertainty.independent:
            return float(self.people[group])
        kind = "fnr" if metric in ("fnr", "tpr") else "fpr"
        # Where a set has no such pairs, its people count as they are.
        return self.uncertainty.effective_people(group, kind) or float(self.people[group])

    def replicates(self) -> list[Replicated]:
        """Return replicates of the values of all pairs and of groups; none of counted pairs."""
        if self.uncertainty is None:
            return []
        source = ScoreSource(self.feature, self.method, attribute=self.attribute)
        return replicated_values(self.uncertainty, self.measures, source)

    @property
    def interval_kind(self) -> str:
        """How the intervals are made."""
        if self.uncertainty is None:
            return STREAMED
        return PAIR_WISE if self.uncertainty.independent else BY_PEOPLE

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)

    def _find(self, rows: Sequence[Result], metric: str, group: str, condition: str) -> Result:
        if metric.endswith("_least_ratio"):  # comes of intervals
            rows = self.rows
        for row in rows:
            if row.what == (group, condition, metric):
                return row
        raise ParameterError(self._unknown(metric, group, condition))

    def _unknown(self, metric: str, group: str, condition: str) -> str:
        metrics = dict.fromkeys(each.metric for each in self.measures)
        if metric not in metrics:
            return f"the audit has no metric {metric!r}; {did_you_mean(metric, metrics)}"
        groups = dict.fromkeys(each.group for each in self.measures if each.metric == metric)
        if group not in groups:
            return f"the audit has no {metric} of group {group!r}; {did_you_mean(group, groups)}"
        conditions = dict.fromkeys(m.condition for m in self.measures if m.metric == metric)
        listing = ", ".join(map(repr, conditions))
        return f"the audit has no {metric} under condition {condition!r}; it has {listing}"


def _counted_interval(rate: Result, level: float = LEVEL) -> Result:
    """Return a rate of counted pairs with Wilson's interval; other values have none."""
    if np.isnan(rate.errors):
        return rate
    low, high = wilson(np.clip(rate.errors, 0, rate.trials), rate.trials, level)
    return rate._replace(low=float(low), high=float(high), level=level, effective=rate.trials)


def audit_rankings(
    rankings: Rankings,
    *,
    people: dict[str, int] | None,
    threshold: float | None,
    rates: Sequence[float],
    score_range: tuple[float, float],
    pairs: ScoredPairs | None,
    **labels: str,
) -> Audit:
    """Measure rankings, of single pairs, which are then given, or of counts; see `audit`."""
    measures = measure(rankings, rates=rates)
    if threshold is not None:
        measures += at_threshold(rankings, threshold)
    source = ScoreSource(**{key: text for key, text in labels.items() if key != "dataset"})
    curves = Curves(make_curves(rankings, source, score_range))
    uncertainty = None if pairs is None else pairs.uncertainty(measures)
    groups = tuple(rankings.groups)
    counts = rankings.counts()
    return Audit(measures, groups, people, counts, curves, **labels, uncertainty=uncertainty)
