"""The dependence behind the interval of an AUROC.

One minus the AUROC is the rate at which an imposter pair scores above a genuine one, a two-sample U
statistic. Where it is low, few people make most of it, and its variance is as badly known as that
of a low error rate. The way out is the same (`faircal.metrics.intervals.dependence`): with all
imposter scores raised, there are errors enough to estimate their correlations, which are carried
down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from faircal.metrics.intervals.dependence import (
    ThresholdRungs,
    binary_correlation,
    latent_correlation,
)
from faircal.metrics.intervals.dyadic import (
    FEWEST,
    Dyads,
    Float64,
    IdentifiedPairs,
    PeopleVariance,
    unbiased,
)

#: Rates of wrong orders that imposters are raised to.
_RUNGS = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01)
#: Pairs of each class by which it is decided how much to raise imposters.
_SAMPLE = 5000


@dataclass(frozen=True, eq=False)
class AurocDependence:
    """Wrong orders of genuine and imposter pairs, at a ladder of rates.

    Two comparisons are dependent where they have a pair, two people or a person in common, on the
    genuine side or on the imposters'. Each kind has its own correlation.

    Parameters
    ----------
    spread : PeopleVariance
        How the AUROC itself varies with the people.
    rates, weights, freedom : ndarray of float64, shape (n_rungs,)
        As in `faircal.metrics.intervals.dependence.Dependence`.
    shares : ndarray of float64, shape (n_kinds,)
        What share of all couples of comparisons is of each kind.
    latent : ndarray of float64, shape (n_rungs, n_kinds)
        Correlation of their scores.
    turned : bool
        Whether all scores were turned around, since the AUROC is below ½.
    compensation : ndarray of float64, shape (n_rungs,)
        What part of the variance is left where a person's genuine pairs make up for his others.
    """

    spread: PeopleVariance
    rates: Float64
    weights: Float64
    freedom: Float64
    shares: Float64
    latent: Float64
    compensation: Float64
    turned: bool = False

    @classmethod
    def of(cls, score: Float64, identified: IdentifiedPairs) -> AurocDependence:
        """Compare the genuine pairs of `identified` with its imposter pairs."""
        high = np.sort(score[identified.genuine_rows])
        low = np.sort(score[identified.imposter_rows])
        own = _compare(score, 0.0, high, low, identified)
        if own.rate > 0.5:  # worse than chance: the other way round it is better
            other = cls.of(-score, identified)
            spread = other.spread._replace(influence=-other.spread.influence)
            return replace(other, spread=spread, turned=True)
        raised = [rung for rung in _RUNGS if rung > 1.4 * own.rate]
        rungs = [_compare(score, _shift(rung, high, low), high, low, identified) for rung in raised]
        rungs = [rung for rung in (*rungs, own) if 0 < rung.rate < 0.5]
        rates = np.array([rung.rate for rung in rungs])
        correlations = np.array([rung.correlations for rung in rungs])
        correlations = correlations.reshape(-1, len(own.shares))
        # People whose imposter pairs score high often have high genuine scores: one makes up for
        # some of the other, which the kinds do not know.
        of_kinds = correlations @ own.shares * rates * (1 - rates)
        variance = np.array([rung.spread.variance for rung in rungs])
        latent = [latent_correlation(of_kind, rates) for of_kind in correlations.T]
        return cls(
            own.spread,
            rates,
            rates / np.maximum(correlations @ own.shares, 1e-12),
            np.array([rung.spread.freedom for rung in rungs]),
            own.shares,
            np.array(latent).T,
            np.clip(variance / np.maximum(of_kinds, 1e-300), 0.3, 1.0),
        )

    def correlation(self, rate: npt.ArrayLike) -> Float64:
        """Return the variance of a rate of wrong orders, over p (1 − p)."""
        at = np.clip(np.asarray(rate, np.float64), 1e-12, 0.5)
        use = self._ladder.use(at)
        of_kinds = binary_correlation(use @ self.latent, at[..., None]) @ self.shares
        return np.asarray(of_kinds * (use @ self.compensation))

    def degrees_of_freedom(self, rate: float) -> float:
        """Return how well that is known, as degrees of freedom."""
        at = np.asarray(min(max(rate, 1e-12), 0.5))
        return max(float(self._ladder.use(at) @ self.freedom), 3.0)

    @cached_property
    def _ladder(self) -> ThresholdRungs:
        return ThresholdRungs(self.rates, self.weights)


class _RaisedComparison(NamedTuple):
    """Comparisons with imposters raised: the share that is wrong, and their correlations."""

    rate: float
    spread: PeopleVariance
    shares: Float64
    correlations: Float64


def _shift(rate: float, high: Float64, low: Float64) -> float:
    """Return by how much to raise imposters for a rate of wrong orders, about."""
    sample = [of[:: max(len(of) // _SAMPLE, 1)] for of in (high, low)]
    bottom, top = 0.0, float(high[-1] - low[0])
    for _ in range(30):
        middle = (bottom + top) / 2
        if _below(sample[1] + middle, sample[0]).mean() < 1 - rate:
            top = middle
        else:
            bottom = middle
    return (bottom + top) / 2


def _compare(
    score: Float64, raised: float, high: Float64, low: Float64, identified: IdentifiedPairs
) -> _RaisedComparison:
    """Compare genuine pairs with imposters that are raised."""
    # The share of wrong orders of each genuine and of each imposter pair (DeLong's components).
    own = 1 - _below(low + raised, score[identified.genuine_rows])
    other = _below(high, score[identified.imposter_rows] + raised)
    rate = float(own.mean())
    own, other = own - rate, other - rate
    kinds = [*_kinds(own, identified.genuine_dyads), *_kinds(other, identified.imposter_dyads)]
    shares, covariances = np.array(kinds).T
    each = max(rate * (1 - rate), 1e-300)
    moves = np.empty(len(score))
    moves[identified.genuine_rows] = -own / len(own)
    moves[identified.imposter_rows] = -other / len(other)
    return _RaisedComparison(
        rate, identified.spread(moves), shares, np.clip(covariances / each, 0, 0.999)
    )


def _kinds(values: Float64, dyads: Dyads) -> Iterator[tuple[float, float]]:
    """Give shares and covariances of couples with the same pair, people, and one person."""
    n, square = dyads.pairs, float((values**2).sum())
    of_dyad = dyads.per_dyad(values)
    dyad_square = float((of_dyad**2).sum())
    person_square = float((dyads.per_person(of_dyad) ** 2).sum())
    factor = unbiased(max(dyads.people, FEWEST), alone=dyads.alone)
    same = dyad_square * factor if dyads.alone else dyad_square
    yield 1 / n, square / n
    yield dyads.same_dyad / n**2, (same - square) / max(dyads.same_dyad, 1)
    if not dyads.alone:
        one = (person_square - dyad_square) * factor - dyad_square
        yield dyads.one_person / n**2, one / max(dyads.one_person, 1)


def _below(ordered: Float64, values: Float64) -> NDArray[np.float64]:
    """Return the share of sorted values below each of `values`, half of those that are equal."""
    twice = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    return np.asarray(twice / (2 * max(len(ordered), 1)))
