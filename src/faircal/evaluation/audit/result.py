"""The result of an audit: values with their intervals, looked up by what they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal.evaluation.audit.pairs import ScoredPairs, check_points
from faircal.evaluation.curves import Curves, ScoreSource, make_curves
from faircal.metrics import EvidenceBounds, log_likelihood_ratio, wilson
from faircal.metrics.intervals import (
    BY_PEOPLE,
    LEVEL,
    NAMELESS,
    PAIR_WISE,
    Uncertainty,
    as_reported,
    least_ratios,
)
from faircal.metrics.intervals.sufficient_data import ERROR_RATES
from faircal.metrics.measures import RATES, Rankings, at_threshold, measure, ties_at
from faircal.metrics.results import GLOBAL, Result, as_table, find_result

#: How intervals are made of pairs that were only counted.
COUNTED = (
    "pair-wise Wilson of rates only (of so many pairs it is not kept who is in them, so they are "
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
    interval_kind : str
        How the intervals are made.
    ties : dict from condition to int
        Pairs with one score that keep a global rate from being met; see `ties_at`.

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
    interval_kind: str = COUNTED
    ties: Mapping[str, int] = field(default_factory=dict)

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
            named = [_counted_interval(each) for each in named]
        rows = as_reported(named, self.uncertainty, self._people_behind)
        return [*rows, *least_ratios(rows)]

    def value(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> float:
        """Return one value, e.g. ``value("fpr", group="Asian F")``; NaN where undefined.

        `condition` is empty for values at the audit's own threshold and for those that need none
        (AUROC, KS), or such as ``"global_fpr=0.01"``.
        """
        # Least ratios come of intervals.
        rows = self.rows if metric.endswith("_least_ratio") else self.measures
        return find_result(rows, metric, group, condition).value

    def result(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> Result:
        """Return all that is known of one value: interval, counts, whether it may be shown."""
        return find_result(self.rows, metric, group, condition)

    def interval(
        self, metric: str, *, group: str = GLOBAL, condition: str = "", level: float = LEVEL
    ) -> tuple[float, float]:
        """Return (low, high) of a value; NaN where it is undefined.

        Where identities are given, intervals know that pairs share people.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
        measured = find_result(self.measures, metric, group, condition)
        if self.uncertainty is not None:
            return self.uncertainty.interval(group, condition, metric, level)
        counted = _counted_interval(measured, level)
        return counted.low, counted.high

    def evidence(self, calibrated_at: float | None = None) -> tuple[EvidenceBounds, float] | None:
        """Return how far likelihood ratios may go that rest on the people of these pairs.

        And the share of genuine pairs that probabilities were taken to hold for: that of these
        pairs unless it is given. None where there are no probabilities, or pairs were only counted.
        """
        if self.uncertainty is None:
            return None
        of, alone = self.uncertainty.sets[GLOBAL], self.uncertainty.independent
        genuine, trials = of.identified.genuine, of.identified.trials
        share = float(genuine.mean()) if calibrated_at is None else calibrated_at
        if not len(of.probability) or not 0 < share < 1:
            return None
        units = {kind: d.pairs if alone else d.effective_people for kind, d in trials.items()}
        people, unit = (units["fnr"], units["fpr"]), "pairs" if alone else "people"
        ratio = log_likelihood_ratio(of.probability, calibrated_at=share)
        return EvidenceBounds.of(ratio, genuine, people=people, unit=unit), share

    def effective_people(self, metric: str = "fpr") -> dict[str, float] | None:
        """Return how many people, each in equally many pairs, would tell as much; by group.

        Imposter pairs for ``fpr``, genuine ones for ``fnr`` and ``tpr``. None where identities are
        unknown or pairs were only counted.
        """
        if self.uncertainty is None or self.uncertainty.independent:
            return None
        kind, sets = ERROR_RATES.get(metric, "fpr"), self.uncertainty.sets
        return {g: sets[g].identified.trials[kind].effective_people for g in (GLOBAL, *self.groups)}

    def _people_behind(self, group: str, metric: str) -> float | None:
        if self.people is None:
            return None
        if self.uncertainty is None or self.uncertainty.independent:
            return float(self.people[group])
        trials = self.uncertainty.sets[group].identified.trials[ERROR_RATES.get(metric, "fpr")]
        # Where a set has no such pairs, its people count as they are.
        return trials.effective_people or float(self.people[group])

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)


def _counted_interval(rate: Result, level: float = LEVEL) -> Result:
    """Return a rate of counted pairs with Wilson's interval; other values have none."""
    if np.isnan(rate.errors):
        return rate
    low, high = wilson(np.clip(rate.errors, 0, rate.trials), rate.trials, level)
    return rate._replace(low=float(low), high=float(high), level=level, effective=rate.trials)


def audit(
    *,
    genuine: Any,
    score: Any = None,
    probability: Any = None,
    groups: Any = None,
    left_identity: Any = None,
    right_identity: Any = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    score_range: tuple[float, float] = (-1.0, 1.0),
    calibrated_at: float | None = None,
    **labels: str,
) -> Audit:
    """Measure scores and probabilities, overall and by group.

    Parameters
    ----------
    genuine : array of shape (n_pairs,)
        Same person or not. One class only is accepted: what it leaves undefined is NaN.
    score, probability : array of shape (n_pairs,), at least one of them
        What decisions rank by, and P(genuine). Without `score`, `probability` ranks.
    groups : array of shape (n_pairs,) or (n_pairs, 2), or Groups, optional
        Each pair's group, or that of its two images; empty or None is unknown. Pairs of two groups
        count globally and in no group.
    left_identity, right_identity : array of shape (n_pairs,), optional
        The people in each pair.
    threshold : float, optional
        The decision threshold whose error rates are wanted: a match is ``score >= threshold``.
    rates : sequence of float
        Global error rates at which groups are compared besides: at the lowest threshold at which at
        most that share of imposters passes, and the highest at which so few genuine pairs fail.
    score_range : (float, float)
        The range of `score`.
    calibrated_at : float, optional
        The share of genuine pairs that `probability` holds for, which Cllr takes out of it; that
        of these pairs by default, which is right only where calibration pairs had the same.
    **labels
        ``dataset``, ``feature``, ``attribute``, ``method``: for the table.

    Examples
    --------
    >>> a = audit(
    ...     score=[0.9, 0.8, 0.3, 0.7, 0.6, 0.1], genuine=[1, 1, 0, 1, 0, 0],
    ...     groups=["A", "A", "A", "B", "B", "B"], threshold=0.5,
    ... )
    >>> a.value("fpr", group="A"), a.value("fpr", group="B")
    (0.0, 0.5)
    >>> [round(end, 2) for end in a.interval("fpr", group="B")]
    [0.09, 0.91]
    """
    pairs = ScoredPairs.of(genuine, score, probability, groups, left_identity, right_identity)
    return audit_pairs(
        pairs,
        threshold=threshold,
        rates=rates,
        score_range=score_range,
        calibrated_at=calibrated_at,
        **labels,
    )


def audit_pairs(
    pairs: ScoredPairs,
    *,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    score_range: tuple[float, float] = (-1.0, 1.0),
    calibrated_at: float | None = None,
    **labels: str,
) -> Audit:
    """Measure checked pairs; see `audit`, and `measure` for `calibrated_at`."""
    upper = score_range[1] if pairs.score is not None else 1.0
    rankings = Rankings.of(pairs.ranked, pairs.probability, pairs.genuine, pairs.groups, upper)
    made = audit_rankings(
        rankings,
        threshold=threshold,
        rates=rates,
        score_range=score_range,
        calibrated_at=calibrated_at,
        **labels,
    )
    uncertainty = pairs.uncertainty(made.measures, calibrated_at)
    people = None
    if pairs.people is not None:
        n = len(pairs.people.names)
        people = {
            name: int(np.searchsorted(each.identified.people, n))
            for name, each in uncertainty.sets.items()
        }
    kind = PAIR_WISE if uncertainty.independent else BY_PEOPLE
    if kind == BY_PEOPLE and pairs.people is not None and pairs.people.unknown.any():
        kind += NAMELESS.format(100 * pairs.people.unknown.mean())
    return replace(made, uncertainty=uncertainty, people=people, interval_kind=kind)


def audit_rankings(
    rankings: Rankings,
    *,
    threshold: float | None,
    rates: Sequence[float],
    score_range: tuple[float, float],
    calibrated_at: float | None = None,
    **labels: str,
) -> Audit:
    """Measure rankings, of single pairs or of counts; see `audit`."""
    at, checked_rates = check_points(threshold, rates)
    measures = measure(rankings, rates=checked_rates, counted=True, calibrated_at=calibrated_at)
    if at is not None:
        measures += at_threshold(rankings, at)
    source = ScoreSource(**{key: text for key, text in labels.items() if key != "dataset"})
    curves = Curves(make_curves(rankings, source, score_range))
    groups, ties = tuple(rankings.groups), ties_at(rankings, checked_rates)
    known: dict[str, Any] = {"uncertainty": None, "ties": ties, **labels}
    return Audit(measures, groups, None, rankings.counts, curves, **known)
