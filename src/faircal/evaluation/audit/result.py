"""The result of an audit: values, intervals, and how far counted scores can be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.curves import Curves, ScoreSource, make_curves
from faircal.metrics import wilson
from faircal.metrics.intervals import (
    BY_PEOPLE,
    PAIR_WISE,
    Uncertainty,
    ValueInterval,
    replicated_values,
    value_intervals,
)
from faircal.metrics.intervals.sufficient_data import insufficient_data_reason
from faircal.metrics.measures import Measure, Rankings, at_threshold, error_bounds, measure
from faircal.metrics.results import (
    ALL,
    GLOBAL,
    Condition,
    Interval,
    Replicated,
    ResultRow,
    as_table,
)

#: How intervals are made of streamed pairs.
STREAMED = (
    "pair-wise Wilson of rates only (of streamed pairs it is not kept who is in them, so they are "
    "taken as independent: too narrow where pairs share people)"
)


@dataclass(frozen=True, eq=False)
class Audit:
    """The result of an audit: values, intervals, and a long table.

    Attributes
    ----------
    measures : list of Measure
    groups : tuple of str
    people : dict from group to number of people, or None where identities are unknown
    trials : dict from group to (genuine, imposter) counts
    curves : Curves
        The scores counted by group: what figures are drawn from.
    uncertainty : Uncertainty, optional
        How sure the values are; None where pairs were streamed.
    error_bounds : list of Measure
        Where scores were counted in bins: how far each of `measures` can be from the exact value.
        Empty where the values are exact.

    Examples
    --------
    >>> from faircal import audit
    >>> result = audit(score=[0.9, 0.4, 0.3], genuine=[1, 0, 0], groups=list("AAB"), threshold=0.4)
    >>> result.value("fpr"), result.value("fpr", group="A"), result.value("fnr", group="B")
    (0.5, 1.0, nan)
    >>> result.table.num_rows == len(result.measures)
    True
    """

    measures: list[Measure]
    groups: tuple[str, ...]
    people: dict[str, int] | None
    trials: dict[str, tuple[int, int]]
    curves: Curves
    dataset: str = ""
    feature: str = ""
    attribute: str = ""
    method: str = ""
    uncertainty: Uncertainty | None = None
    error_bounds: list[Measure] = field(default_factory=list)

    def value(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> float:
        """Return one value, e.g. ``value("fpr", group="Asian F")``; NaN where undefined.

        `condition` is empty for values at the audit's own threshold and for those that need none
        (AUROC, KS), or such as ``"global_fpr=0.01"``.
        """
        return self._look_up(self.measures, metric, group, condition)

    def worst_bounds(self) -> dict[str, float]:
        """Return the largest of `error_bounds` of each kind of value; nothing where all is exact.

        Kinds are the metrics, deviations over groups with the metric they are of.
        """
        worst: dict[str, float] = {}
        for group, _, metric, bound in self.error_bounds:
            kind = metric.partition("_")[0] if group == ALL else metric
            worst[kind] = float(np.nanmax([worst.get(kind, 0.0), bound]))
        return worst

    def effective_people(self, metric: str = "fpr") -> dict[str, float] | None:
        """Return how many people, each in equally many pairs, would tell as much; by group.

        Imposter pairs for ``fpr``, genuine ones for ``fnr`` and ``tpr``. None where identities are
        unknown or pairs were streamed.
        """
        if self.uncertainty is None or self.uncertainty.independent:
            return None
        return {g: self.uncertainty.effective_people(g, metric) for g in (GLOBAL, *self.groups)}

    def replicates(self) -> list[Replicated]:
        """Return replicates of the values of all pairs and of groups; none of streamed pairs."""
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

    def interval(
        self, metric: str, *, group: str = GLOBAL, condition: str = "", level: float = 0.95
    ) -> tuple[float, float]:
        """Return (low, high) of a value; NaN where it is undefined.

        Where identities are given, intervals know that pairs share people. Where pairs were
        streamed, only rates have one, and it takes pairs as independent.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
        value = self.value(metric, group=group, condition=condition)
        if self.uncertainty is not None:
            return self.uncertainty.interval(group, condition, metric, level)
        trials = self._trials(metric, group)
        if trials is None or np.isnan(value):
            return float("nan"), float("nan")
        low, high = wilson(np.clip(value, 0, 1) * trials, trials, level)
        return float(low), float(high)

    def reportable(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> bool:
        """Whether there are pairs and people enough for a rate to be told.

        `faircal.metrics.intervals.sufficient_data` is the rule, for pairs and, where they are
        known, for people. It holds for ``fpr``, ``fnr`` and ``tpr``; for other metrics the answer
        is yes.
        """
        self.value(metric, group=group, condition=condition)
        trials = self._trials(metric, group)
        if trials is None:
            return True
        people = self.effective_people(metric) or self.people  # who streamed is only counted
        behind = None if people is None else people[group]
        return (
            insufficient_data_reason(metric, trials, behind, Condition.of(condition).wanted(metric))
            is None
        )

    def intervals(self, level: float = 0.95) -> list[Interval]:
        """Return every value that has an interval, and every rate."""
        where = {"feature": self.feature, "method": self.method, "attribute": self.attribute}
        return [Interval.of(row._asdict(), level=level, **where) for row in self._known(level)]

    def _known(self, level: float) -> list[ValueInterval]:
        if self.uncertainty is not None:
            return value_intervals(self.uncertainty, self.measures, level)
        rows = []
        for group, condition, metric, value in self.measures:
            trials = self._trials(metric, group)
            if trials is not None:
                ends = self.interval(metric, group=group, condition=condition, level=level)
                counts = round(value * trials, 6), trials, trials
                rows.append(ValueInterval(group, condition, metric, value, *ends, *counts))
        return rows

    @property
    def rows(self) -> list[ResultRow]:
        """The values as rows of ``results.csv``."""
        # Calibrator, clusters, seed and fold are of benchmarks.
        front = self.dataset, self.feature, self.method, "", "", "", "", self.attribute
        return [ResultRow(*front, *row) for row in self.measures]

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)

    def _look_up(self, values: Sequence[Measure], metric: str, group: str, condition: str) -> float:
        for row in values:
            if (row.metric, row.group, row.condition) == (metric, group, condition):
                return row.value
        raise ParameterError(self._unknown(metric, group, condition))

    def _trials(self, metric: str, group: str) -> int | None:
        if group not in self.trials or metric not in ("fpr", "fnr", "tpr"):
            return None
        genuine, imposter = self.trials[group]
        return imposter if metric == "fpr" else genuine

    def _unknown(self, metric: str, group: str, condition: str) -> str:
        metrics = dict.fromkeys(measure.metric for measure in self.measures)
        if metric not in metrics:
            return f"the audit has no metric {metric!r}; {did_you_mean(metric, metrics)}"
        groups = dict.fromkeys(f.group for f in self.measures if f.metric == metric)
        if group not in groups:
            return f"the audit has no {metric} of group {group!r}; {did_you_mean(group, groups)}"
        conditions = dict.fromkeys(f.condition for f in self.measures if f.metric == metric)
        listing = ", ".join(repr(known) for known in conditions)
        return f"the audit has no {metric} under condition {condition!r}; it has {listing}"


def bounds_note(audits: Sequence[Audit]) -> list[str]:
    """Say how far the values of counted scores can be from the exact ones; nothing if they are."""
    worst: dict[str, float] = {}
    for audit in audits:
        for kind, bound in audit.worst_bounds().items():
            worst[kind] = max(bound, worst.get(kind, 0.0))
    if not worst:
        return []
    apart = {"nll": "NLL", "threshold": "thresholds"}
    # A metric without a bound of its own must not spoil what is known of the others.
    unbounded = [kind for kind, bound in worst.items() if bound == math.inf and kind not in apart]
    alike = (b for kind, b in worst.items() if kind not in {*apart, *unbounded})
    most = max(alike, default=0.0)
    more = "".join(f", {name} within {_up(worst[k])}" for k, name in apart.items() if k in worst)
    more += "".join(f", {kind} not known" for kind in unbounded)
    note = (
        f"counted in bins: every value of results.csv within {_up(most)} of the exact one{more}; "
        "intervals and ratios move with them; pairs, curves and error rates at a given threshold "
        "are exact"
    )
    return [note]


def _up(bound: float) -> str:
    """Return a bound with two digits, rounded up."""
    if not 0 < bound < math.inf:
        return f"{bound:g}"
    step = 10.0 ** (math.floor(math.log10(bound)) - 1)
    return f"{math.ceil(bound / step) * step:.1e}"


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
    trials = {g: (r.n_genuine, r.n_imposter) for g, r in rankings.scores.items()}
    source = ScoreSource(**{key: text for key, text in labels.items() if key != "dataset"})
    curves = Curves(make_curves(rankings, source, score_range))
    bounds = error_bounds(rankings, measures, rates) if rankings.score_bins else []
    groups = tuple(rankings.groups)
    uncertainty = None if pairs is None else pairs.uncertainty(measures)
    return Audit(
        measures,
        groups,
        people,
        trials,
        curves,
        **labels,
        uncertainty=uncertainty,
        error_bounds=bounds,
    )
