"""Auditing pairs that are all in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faircal.evaluation.audit.counted import PeopleCounter
from faircal.evaluation.audit.pairs import ScoredPairs, check_rates, check_threshold
from faircal.evaluation.audit.result import Audit, audit_rankings
from faircal.metrics.measures import RATES, Rankings


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
        Global error rates at which groups are compared besides.
    score_range : (float, float)
        The range of `score`.
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
    return audit_pairs(pairs, threshold=threshold, rates=rates, score_range=score_range, **labels)


def audit_pairs(
    pairs: ScoredPairs,
    *,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    score_range: tuple[float, float] = (-1.0, 1.0),
    **labels: str,
) -> Audit:
    """Measure checked pairs; see `audit`."""
    at, checked_rates = check_threshold(threshold), check_rates(rates)
    groups = pairs.groups
    upper = score_range[1] if pairs.score is not None else 1.0
    rankings = Rankings.of(pairs.ranked, pairs.probability, pairs.genuine, groups, upper)
    people = None
    if pairs.people is not None:
        counter = PeopleCounter()
        counter.add(pairs.people, None if groups is None else groups.pair)
        people = counter.count(() if groups is None else groups.names)
    return audit_rankings(
        rankings,
        people=people,
        threshold=at,
        rates=checked_rates,
        score_range=score_range,
        pairs=pairs,
        **labels,
    )
