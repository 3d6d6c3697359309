"""The dependence behind the interval of an AUROC.

One minus the AUROC is the rate at which an imposter pair scores above a genuine one, a two-sample U
statistic. Where it is low, few people make most of it, and its variance is as badly known as that
of a low error rate. The way out is the same (`faircal.metrics.intervals.dependence`): with all
imposter scores raised, there are errors enough to estimate their correlations, which are carried
down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from faircal.metrics.intervals.inversion import rate_interval

#: Rates of wrong orders that imposters are raised to.
_RUNGS = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01)
#: Pairs of each class by which it is decided how much to raise imposters.
_SAMPLE = 5000


@dataclass(eq=False)
class AurocDependence(ThresholdRungs):
    """Wrong orders of genuine and imposter pairs, at a ladder of rates.

    Two comparisons are dependent where they have a pair, two people or a person in common, on the
    genuine side or on the imposters'. Each kind has its own correlation.

    Parameters
    ----------
    rates, weights, latent, freedom : ndarray
        As of `ThresholdRungs`.
    spread : PeopleVariance
        How the AUROC itself varies with the people.
    comparisons : int
        Of a genuine pair with an imposter pair.
    shares : ndarray of float64, shape (n_kinds,)
        What share of all couples of comparisons is of each kind.
    compensation : ndarray of float64, shape (n_rungs,)
        What part of the variance is left where a person's genuine pairs make up for his others.
    turned : bool
        Whether all scores were turned around, since the AUROC is below ½.
    """

    spread: PeopleVariance
    comparisons: int
    shares: Float64
    compensation: Float64
    turned: bool = False

    @classmethod
    def of(cls, score: Float64, identified: IdentifiedPairs) -> AurocDependence:
        """Compare the genuine pairs of `identified` with its imposter pairs."""
        trials = identified.trials
        high, low = (np.sort(score[trials[metric].rows]) for metric in ("fnr", "fpr"))
        own = _compare(score, None, high, low, identified)
        if own.rate > 0.5:  # worse than chance: the other way round it is better
            other = cls.of(-score, identified)
            spread = other.spread._replace(influence=-other.spread.influence)
            return replace(other, spread=spread, turned=True)
        raised = [rung for rung in _RUNGS if rung > 1.4 * own.rate]
        rungs = [_compare(score, rung, high, low, identified) for rung in raised]
        rungs = [rung for rung in (*rungs, own) if 0 < rung.rate < 0.5]
        rates = np.array([rung.rate for rung in rungs])
        correlations = np.array([rung.correlations for rung in rungs])
        correlations = correlations.reshape(-1, len(own.shares))
        of_kinds = correlations @ own.shares
        # People whose imposter pairs score high often have high genuine scores: one makes up for
        # some of the other, which the kinds do not know.
        expected = of_kinds * rates * (1 - rates)
        latent = [latent_correlation(of_kind, rates) for of_kind in correlations.T]
        variance = np.array([rung.spread.variance for rung in rungs])
        return cls(
            rates,
            rates / np.maximum(of_kinds, 1e-12),
            np.array(latent).T,
            np.array([rung.spread.freedom for rung in rungs]),
            own.spread,
            len(high) * len(low),
            own.shares,
            np.clip(variance / np.maximum(expected, 1e-300), 0.3, 1.0),
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the interval of an AUROC; NaN where there is not a wrong order to go by."""
        wrong = value if self.turned else 1 - value
        if not len(self.rates) or not 0 <= wrong < 0.5:
            return math.nan, math.nan
        low, high = rate_interval(
            wrong,
            self.comparisons,
            self.design_effect,
            level=level,
            freedom=self.degrees_of_freedom(wrong),
        )
        return (low, high) if self.turned else (1 - high, 1 - low)

    def design_effect(self, rate: npt.ArrayLike) -> Float64:
        """Return by what factor sharing widens the variance of a rate of wrong orders."""
        at = np.clip(np.asarray(rate, np.float64), 1e-12, 0.5)
        use = self.use(at)
        of_kinds = binary_correlation(use @ self.latent, at[..., None]) @ self.shares
        return np.asarray(self.comparisons * (of_kinds * (use @ self.compensation)))


class _RaisedComparison(NamedTuple):
    """Comparisons with imposters raised: the share that is wrong, and their correlations."""

    rate: float
    spread: PeopleVariance
    shares: Float64
    correlations: Float64


def _compare(
    score: Float64, rung: float | None, high: Float64, low: Float64, identified: IdentifiedPairs
) -> _RaisedComparison:
    """Compare genuine pairs with imposters, raised till about `rung` of the orders are wrong."""
    raised = 0.0
    if rung is not None:
        sample = [of[:: max(len(of) // _SAMPLE, 1)] for of in (high, low)]
        bottom, top = 0.0, float(high[-1] - low[0])
        for _ in range(30):
            middle = (bottom + top) / 2
            if _below(sample[1] + middle, sample[0]).mean() < 1 - rung:
                top = middle
            else:
                bottom = middle
        raised = (bottom + top) / 2
    # The share of wrong orders of each genuine and of each imposter pair (DeLong's components).
    genuine, imposters = identified.trials["fnr"], identified.trials["fpr"]
    own = 1 - _below(low + raised, score[genuine.rows])
    other = _below(high, score[imposters.rows] + raised)
    rate = float(own.mean())
    own, other = own - rate, other - rate
    shares, covariances = np.array([*_kinds(own, genuine), *_kinds(other, imposters)]).T
    each = max(rate * (1 - rate), 1e-300)
    moves = np.empty(len(score))
    moves[genuine.rows] = -own / len(own)
    moves[imposters.rows] = -other / len(other)
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
