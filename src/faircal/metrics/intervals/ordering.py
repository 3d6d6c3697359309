"""How sure an AUROC is.

One minus the AUROC is the rate at which an imposter pair scores above a genuine one. Where it is
low, few people make most of it, and its variance is as badly known as that of a low error rate. The
way out is the same (`faircal.metrics.intervals.dependence`): with all imposter scores raised, there
are errors enough to tell how strongly they go together, and that is carried down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from faircal.metrics.intervals.crowd import Crowd, Spread
from faircal.metrics.intervals.dependence import (
    ThresholdRungs,
    binary_correlation,
    latent_correlation,
)
from faircal.metrics.intervals.sharing import FEWEST, Float64, PeopleSharing, unbiased

#: Rates of wrong orders that imposters are raised to.
_RUNGS = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01)
#: So many pairs of each class tell by how much to raise them.
_SOME = 5000


@dataclass(frozen=True, eq=False)
class Ordering:
    """Wrong orders of genuine and imposter pairs, at a ladder of rates.

    Two comparisons are dependent where they have a pair, two people or a person in common, on the
    genuine side or on the imposters'. Each kind has its own correlation.

    Parameters
    ----------
    spread : Spread
        How the AUROC itself varies with the people.
    rates, weights, freedom : ndarray of float64, shape (n_rungs,)
        As in `faircal.metrics.intervals.dependence.Dependence`.
    shares : ndarray of float64, shape (n_kinds,)
        What share of all couples of comparisons is of each kind.
    latent : ndarray of float64, shape (n_rungs, n_kinds)
        Correlation of their scores.
    turned : bool
        Whether all scores were turned around, since the AUROC is below ½.
    together : ndarray of float64, shape (n_rungs,)
        What part of the variance is left where a person's genuine pairs make up for his others.
    """

    spread: Spread
    rates: Float64
    weights: Float64
    freedom: Float64
    shares: Float64
    latent: Float64
    together: Float64
    turned: bool = False

    @classmethod
    def of(cls, score: Float64, crowd: Crowd) -> Ordering:
        """Compare the genuine pairs of `crowd` with its imposter pairs."""
        high, low = np.sort(score[crowd.hits]), np.sort(score[crowd.misses])
        own = _compare(score, 0.0, high, low, crowd)
        if own.rate > 0.5:  # worse than chance: the other way round it is better
            other = cls.of(-score, crowd)
            spread = other.spread._replace(influence=-other.spread.influence)
            return replace(other, spread=spread, turned=True)
        raised = [rung for rung in _RUNGS if rung > 1.4 * own.rate]
        rungs = [_compare(score, _by(rung, high, low), high, low, crowd) for rung in raised]
        rungs = [rung for rung in (*rungs, own) if 0 < rung.rate < 0.5]
        rates = np.array([rung.rate for rung in rungs])
        found = np.array([rung.correlations for rung in rungs]).reshape(-1, len(own.shares))
        # People whose strangers score high often score high with themselves: one makes up for some
        # of the other, which the kinds do not know.
        apart = found @ own.shares * rates * (1 - rates)
        whole = np.array([rung.spread.variance for rung in rungs])
        latent = [latent_correlation(of_kind, rates) for of_kind in found.T]
        return cls(
            own.spread,
            rates,
            rates / np.maximum(found @ own.shares, 1e-12),
            np.array([rung.spread.freedom for rung in rungs]),
            own.shares,
            np.array(latent).T,
            np.clip(whole / np.maximum(apart, 1e-300), 0.3, 1.0),
        )

    def correlation(self, rate: npt.ArrayLike) -> Float64:
        """Return the variance of a rate of wrong orders, over p (1 − p)."""
        at = np.clip(np.asarray(rate, np.float64), 1e-12, 0.5)
        use = self._ladder.use(at)
        apart = binary_correlation(use @ self.latent, at[..., None]) @ self.shares
        return np.asarray(apart * (use @ self.together))

    def degrees_of_freedom(self, rate: float) -> float:
        """Return how well that is known, as degrees of freedom."""
        at = np.asarray(min(max(rate, 1e-12), 0.5))
        return max(float(self._ladder.use(at) @ self.freedom), 3.0)

    @cached_property
    def _ladder(self) -> ThresholdRungs:
        return ThresholdRungs(self.rates, self.weights)


class _Rung(NamedTuple):
    """Comparisons with imposters raised: how many are wrong, and how they go together."""

    rate: float
    spread: Spread
    shares: Float64
    correlations: Float64


def _by(rate: float, high: Float64, low: Float64) -> float:
    """Return by how much to raise imposters for a rate of wrong orders, about."""
    some = [of[:: max(len(of) // _SOME, 1)] for of in (high, low)]
    bottom, top = 0.0, float(high[-1] - low[0])
    for _ in range(30):
        middle = (bottom + top) / 2
        if _below(some[1] + middle, some[0]).mean() < 1 - rate:
            top = middle
        else:
            bottom = middle
    return (bottom + top) / 2


def _compare(score: Float64, raised: float, high: Float64, low: Float64, crowd: Crowd) -> _Rung:
    """Compare genuine pairs with imposters that are raised."""
    own = 1 - _below(low + raised, score[crowd.hits])  # of each genuine pair: wrong orders
    other = _below(high, score[crowd.misses] + raised)
    rate = float(own.mean())
    own, other = own - rate, other - rate
    kinds = [*_kinds(own, crowd.hit_sharing), *_kinds(other, crowd.miss_sharing)]
    shares, covariances = np.array(kinds).T
    each = max(rate * (1 - rate), 1e-300)
    moves = np.empty(len(score))
    moves[crowd.hits], moves[crowd.misses] = -own / len(own), -other / len(other)
    return _Rung(rate, crowd.spread(moves), shares, np.clip(covariances / each, 0, 0.999))


def _kinds(values: Float64, sharing: PeopleSharing) -> Iterator[tuple[float, float]]:
    """Give shares and covariances of couples with the same pair, people, and one person."""
    n, people = sharing.pairs, sharing.people
    square = float((values**2).sum())
    dyad = sharing.per_dyad(values)
    dyads, persons = float((dyad**2).sum()), float((sharing.per_person(dyad) ** 2).sum())
    factor = unbiased(max(people, FEWEST), alone=sharing.alone)
    same = dyads * factor if sharing.alone else dyads
    yield 1 / n, square / n
    yield sharing.same_dyad / n**2, (same - square) / max(sharing.same_dyad, 1)
    if not sharing.alone:
        one = (persons - dyads) * factor - dyads
        yield sharing.one_person / n**2, one / max(sharing.one_person, 1)


def _below(ordered: Float64, values: Float64) -> NDArray[np.float64]:
    """Return the share of sorted values below each of `values`, half of those that are equal."""
    found = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    return np.asarray(found / (2 * max(len(ordered), 1)))
