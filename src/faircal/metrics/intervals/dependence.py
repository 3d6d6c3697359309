"""How alike pairs that share people decide: design effects of error rates.

The variance of a counted rate p of N pairs is p (1 − p) / N times the design effect
1 + (C₂ r₂ + C₁ r₁) / N (Kish), with C₂ couples of pairs of the same two people, C₁ couples with one
person in common, and r the correlations of their errors. At a low rate there are few errors, and r
would be estimated from next to nothing. So r is estimated at higher rates of the same pairs, where
there are errors enough, and carried to the rate in question by what stays the same for normal
scores: the correlation of the scores themselves (tetrachoric correlation; Pearson, 1900).
`docs/decisions/0024-intervals-over-people.md` has the measurement that chose this way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, owens_t

from faircal.metrics.intervals.dyadic import (
    FEWEST,
    Dyads,
    Float64,
    IdentifiedPairs,
    Int64,
    PeopleVariance,
    unbiased,
)
from faircal.metrics.intervals.inversion import rate_interval

#: Rates at which correlations are estimated, from high to low; each has half the errors.
_RUNGS = 0.32 * 0.5 ** np.arange(16)

#: With so many effective errors a correlation needs no help from higher rates.
_SUFFICIENT_ERRORS = 30.0

#: Rates of wrong orders that imposters are raised to.
_WRONG_ORDERS = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01)
#: Pairs of each class by which it is decided how much to raise imposters.
_SAMPLE = 5000

#: People are heavy-tailed where the excess kurtosis of their mean scores is so many of its standard
#: errors. Of people with normal effects one set in twenty is, of 120 or more with t₃ effects nearly
#: every one. Then the correlation of the scores says too little of rare errors, and variances of
#: rates are taken larger, up to so many times; `docs/study-uncertainty.md` shows what that does.
_HEAVY, _WIDEST = 1.75, 4.0

#: Correlations of scores that `latent_correlation` looks up, ever closer towards 1.
_LATENT = np.concatenate([np.linspace(0, 0.9, 91), 1 - 0.1 * 0.6 ** np.arange(1, 16)])


@dataclass(eq=False)
class ThresholdRungs:
    """Correlations of scores, estimated at a ladder of rates.

    For a rate those rungs count that are from it upwards, till errors suffice.

    Parameters
    ----------
    rates, weights : ndarray of float64, shape (n_rungs,)
        Rates, descending, and the effective errors at each.
    latent : ndarray of float64, shape (n_rungs, n_kinds)
        Correlation of the scores of two pairs that share people, by what they share.
    freedom : ndarray of float64, shape (n_rungs,)
        Degrees of freedom of the variance at each rung: the fewer people make most of it, the
        fewer.

    Examples
    --------
    >>> latent, freedom = np.array([[0.4], [0.4], [0.1]]), np.array([60.0, 30.0, 5.0])
    >>> rates, errors = np.array([0.1, 0.01, 0.001]), np.array([60.0, 20.0, 3.0])
    >>> ladder = ThresholdRungs(rates, errors, latent, freedom)
    >>> ladder.use(np.array(0.01)), ladder.degrees_of_freedom(0.01)
    (array([0.33333333, 0.66666667, 0.        ]), 40.0)
    """

    rates: Float64
    weights: Float64
    latent: Float64
    freedom: Float64

    def __post_init__(self) -> None:
        # Weights of the rungs, by the lowest that counts; a row also where there are none.
        n = len(self.rates)
        uses = np.zeros((max(n, 1), n))
        for lowest in range(n):
            left = _SUFFICIENT_ERRORS
            for k in range(lowest, -1, -1):
                uses[lowest, k] = min(self.weights[k], left)
                left -= uses[lowest, k]
        self._uses, self._negative = uses / uses.sum(axis=1, keepdims=True), -self.rates

    def use(self, rate: Float64) -> Float64:
        """Return the weight of each rung for rates of any shape: that shape and (n_rungs,)."""
        # Rungs halve: those from 0.7 ≈ 1/√2 of the rate on are nearest on the scale of logs.
        above = self._negative.searchsorted(-0.7 * rate, side="right")
        return np.asarray(self._uses[np.maximum(above - 1, 0)])

    def degrees_of_freedom(self, rate: float) -> float:
        """Return how well a variance at a rate is known, as degrees of freedom; at least 3."""
        return max(float(self.use(np.asarray(min(rate, 1 - rate))) @ self.freedom), 3.0)


@dataclass(eq=False)
class Dependence(ThresholdRungs):
    """How alike pairs of one class decide that share people; build it with `Dependence.of`.

    Parameters
    ----------
    rates, weights, latent, freedom : ndarray
        As of `ThresholdRungs`; the kinds are two pairs of the same two people, and two pairs with
        one person in common.
    dyads : Dyads
    heaviness : float
        How much heavier than normal the tails of people's mean scores are; see `heaviness_of`.
    """

    dyads: Dyads
    heaviness: float = 0.0

    @classmethod
    def of(cls, scores: Float64, dyads: Dyads) -> Dependence:
        """Estimate correlations of the upper tail of `scores`; pass −scores for the lower one.

        Where there are too few people they cannot be estimated, and are taken as none.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_pairs,)
            In the order that `dyads` was made of.
        """
        n, order = dyads.pairs, np.argsort(scores)
        rungs: list[tuple[float, float, float, float]] = []
        for rate in _RUNGS[_RUNGS * n >= 2] if dyads.people >= FEWEST else ():
            cut = scores[order[n - int(np.ceil(rate * n))]]
            errors = order[np.searchsorted(scores, cut, sorter=order) :]
            p = len(errors) / n
            # Where most scores are tied at the top, what is left goes together as errors do.
            rare = min(p, 1 - p)
            if rare > 0 and (not rungs or rare < rungs[-1][0]):
                rungs.append((rare, *_correlations(errors, p, dyads)))
        rates, both, one, freedom = np.reshape(rungs, (-1, 4)).T.copy()
        couples = dyads.same_dyad * both + dyads.one_person * one
        weights = rates * n / (1 + couples / max(n, 1))
        latent = [latent_correlation(of_kind, rates) for of_kind in (both, one)]
        heaviness = heaviness_of(scores, dyads)
        return cls(rates, weights, np.stack(latent, axis=1), freedom, dyads, heaviness)

    def design_effect(self, rate: npt.ArrayLike) -> Float64:
        """Return by what factor sharing people widens the variance of a rate; at least 1."""
        both, one = self.correlations(rate)
        couples = self.dyads.same_dyad * both + self.dyads.one_person * one
        return np.asarray(1 + couples / max(self.dyads.pairs, 1))

    @property
    def heavy(self) -> bool:
        """Whether a few people score far higher or lower than the others."""
        return self.heaviness > _HEAVY

    @property
    def wider(self) -> float:
        """By what factor a rate varies more than its design effect says: above 1 if heavy."""
        return min(max(self.heaviness - _HEAVY + 1, 1.0), _WIDEST)

    def interval(self, rate: float, level: float, *, wider: float = 1.0) -> tuple[float, float]:
        """Return the interval of a counted rate; people make its variance, or it is `wider`."""
        return rate_interval(
            rate,
            self.dyads.pairs,
            lambda p: wider * self.wider * self.design_effect(p),
            level=level,
            freedom=self.degrees_of_freedom(rate),
        )

    def correlations(self, rate: npt.ArrayLike) -> tuple[Float64, Float64]:
        """Return how errors correlate at a rate: pairs of the same two people, and with one shared.

        For sums in which pairs have weights, as those of a region have.
        """
        at = np.minimum(np.maximum(np.asarray(rate, np.float64), 1e-12), 1 - 1e-12)
        if not len(self.rates):
            return np.zeros(at.shape), np.zeros(at.shape)
        low = np.minimum(at, 1 - at)
        of_errors = binary_correlation(self.use(low) @ self.latent, low[..., None])
        return of_errors[..., 0], of_errors[..., 1]


def _correlations(errors: Int64, p: float, dyads: Dyads) -> tuple[float, float, float]:
    """Return the correlations of errors of pairs of the same dyad, and of pairs that meet once.

    And the degrees of freedom of the variance. `errors` are the pairs that are wrong.
    """
    of_dyad = np.bincount(dyads.dyad_of[errors], minlength=len(dyads.sizes)) - p * dyads.sizes
    of_person = dyads.per_person(of_dyad)
    dyad_square, person_square = float((of_dyad**2).sum()), float((of_person**2).sum())
    each, n = p * (1 - p), dyads.people
    # The rate is estimated from the same pairs: that takes its share of the variance.
    factor = unbiased(n, alone=dyads.alone)
    same = dyad_square * factor if dyads.alone else dyad_square
    both = (same - dyads.pairs * each) / (dyads.same_dyad * each) if dyads.same_dyad else 0.0
    one = 0.0
    if dyads.one_person:
        one = ((person_square - dyad_square) * factor - dyad_square) / (dyads.one_person * each)
    # As in `IdentifiedPairs.spread`.
    kurtosis = n * float((of_person**4).sum()) / max(person_square**2, 1e-300)
    freedom = 2 * n / max(kurtosis - 1, 1.0)
    # Two scores with one of two people in common: if each person adds as much, r₁ is ½ at most.
    return float(np.clip(both, 0, 0.999)), float(np.clip(one, 0, 0.5)), freedom


def heaviness_of(scores: Float64, dyads: Dyads) -> float:
    """Return by how many standard errors people's mean scores have heavier tails than normal ones.

    Scores count by their ranks, as normal scores (van der Waerden), so that no other scale of them
    matters. Each person's sum of these is taken in units of its standard deviation, and the
    kurtosis of that is compared with 3 and what tied scores add by chance. It is a matter of
    imposter pairs; of genuine ones it is 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> left, right = np.triu_indices(150, 1)
    >>> for person in (rng.normal(size=150), rng.standard_t(3, size=150)):
    ...     scores = 0.3 * (person[left] + person[right]) + rng.normal(size=len(left))
    ...     print(heaviness_of(scores, Dyads(left, right)) > 1.75)
    False
    True
    """
    n = dyads.people
    if dyads.alone or n < FEWEST:
        return 0.0
    off = _normal_scores(scores)
    square = float(off @ off) / dyads.pairs
    if not square > 0:
        return 0.0
    of_dyad = dyads.per_dyad(off)
    of_person = dyads.per_person(of_dyad)
    dyad_square, person_square = float((of_dyad**2).sum()), float((of_person**2).sum())
    same = (dyad_square - square * dyads.pairs) / max(dyads.same_dyad, 1)
    shared = (person_square - dyad_square) * unbiased(n, alone=False) - dyad_square
    one = shared / max(dyads.one_person, 1)
    pairs, squares = dyads.per_person(dyads.sizes), dyads.per_person(dyads.sizes**2)
    variance = square * pairs + max(same, 0) * (squares - pairs)
    variance += max(one, 0) * (pairs**2 - squares)
    units = of_person / np.sqrt(variance)
    units -= units.mean()
    if not units.any():  # all people are alike
        return 0.0
    kurtosis = float((units**4).mean() / (units**2).mean() ** 2)
    # Tied scores, such as decisions, make heavy tails by chance: cumulants of pairs add up.
    excess = max(float((off**4).mean()) / square**2 - 3, 0.0)
    by_chance = excess * square**2 * float((pairs / variance**2).mean())
    return (kurtosis - 3 - by_chance) / (math.sqrt(24 / n) * (1 + by_chance))


def _normal_scores(scores: Float64) -> Float64:
    """Return normal quantiles of the ranks, of equal scores that of their mean rank."""
    _, code, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - count / 2
    return np.asarray(ndtri(rank / len(scores))[code])


def binary_correlation(latent: Float64, rate: Float64) -> Float64:
    """Return the correlation of exceeding the level of `rate` for correlated normal scores.

    Both exceed h with probability p − 2 T(h, √((1 − ρ) / (1 + ρ))), T being Owen's function (1956).
    """
    joint = rate - 2 * owens_t(-ndtri(rate), np.sqrt((1 - latent) / (1 + latent)))
    correlation = (joint - rate * rate) / (rate * (1 - rate))
    return np.asarray(np.minimum(np.maximum(correlation, 0.0), 1.0))


def latent_correlation(binary: Float64, rates: Float64) -> Float64:
    """Turn `binary_correlation` around: correlations of scores from those of their errors."""
    return np.array(
        [
            np.interp(r, binary_correlation(_LATENT, np.full(len(_LATENT), rate)), _LATENT)
            for r, rate in zip(binary, rates, strict=True)
        ]
    )


@dataclass(eq=False)
class AurocDependence(ThresholdRungs):
    """Wrong orders of genuine and imposter pairs, at a ladder of rates.

    One minus the AUROC is the rate at which an imposter pair scores above a genuine one, a
    two-sample U statistic. Where it is low, few people make most of it, and its variance is as
    badly known as that of a low error rate. The way out is the same: with all imposter scores
    raised, there are errors enough to estimate their correlations, which are carried down.

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
        high, low = (
            _SortedScores.of(score[identified.trials[metric].rows]) for metric in ("fnr", "fpr")
        )
        unraised = _compare(None, high, low, identified)
        if unraised.rate > 0.5:  # worse than chance: the other way round it is better
            other = cls.of(-score, identified)
            spread = other.spread._replace(influence=-other.spread.influence)
            return replace(other, spread=spread, turned=True)
        raised = [rung for rung in _WRONG_ORDERS if rung > 1.4 * unraised.rate]
        rungs = [_compare(rung, high, low, identified) for rung in raised]
        rungs = [rung for rung in (*rungs, unraised) if 0 < rung.rate < 0.5]
        rates = np.array([rung.rate for rung in rungs])
        correlations = np.array([rung.correlations for rung in rungs])
        correlations = correlations.reshape(-1, len(unraised.shares))
        of_kinds = correlations @ unraised.shares
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
            unraised.spread,
            len(high.values) * len(low.values),
            unraised.shares,
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


class _SortedScores(NamedTuple):
    """Scores of one class, ascending, and the pairs that they are of."""

    values: Float64
    order: Int64

    @classmethod
    def of(cls, scores: Float64) -> _SortedScores:
        order = np.argsort(scores)
        return cls(scores[order], order)

    def in_order_of_pairs(self, values: Float64) -> Float64:
        """Return what goes with each score, sorted, in the order of the pairs."""
        placed = np.empty(len(values))
        placed[self.order] = values
        return placed


def _compare(
    rung: float | None, high: _SortedScores, low: _SortedScores, identified: IdentifiedPairs
) -> _RaisedComparison:
    """Compare genuine pairs with imposters, raised till about `rung` of the orders are wrong."""
    raised = 0.0
    if rung is not None:
        sample = [of.values[:: max(len(of.values) // _SAMPLE, 1)] for of in (high, low)]
        bottom, top = 0.0, float(high.values[-1] - low.values[0])
        for _ in range(30):
            middle = (bottom + top) / 2
            if _below(sample[1] + middle, sample[0]).mean() < 1 - rung:
                top = middle
            else:
                bottom = middle
        raised = (bottom + top) / 2
    # The share of wrong orders of each genuine and of each imposter pair (DeLong's components).
    genuine, imposters = identified.trials["fnr"], identified.trials["fpr"]
    lifted = low.values + raised
    misordered = high.in_order_of_pairs(1 - _below(lifted, high.values))
    other = low.in_order_of_pairs(_below(high.values, lifted))
    rate = float(misordered.mean())
    misordered, other = misordered - rate, other - rate
    shares, covariances = np.array([*_kinds(misordered, genuine), *_kinds(other, imposters)]).T
    each = max(rate * (1 - rate), 1e-300)
    moves = np.empty(len(identified.genuine))
    moves[genuine.rows] = -misordered / len(misordered)
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


def _below(ordered: Float64, values: Float64) -> Float64:
    """Return the share of sorted values below each of `values`, half of those that are equal."""
    if not len(ordered):
        return np.zeros(len(values))
    below = np.searchsorted(ordered, values)
    twice, equal = 2 * below, ordered[np.minimum(below, len(ordered) - 1)] == values
    if equal.any():
        twice[equal] = below[equal] + np.searchsorted(ordered, values[equal], side="right")
    return np.asarray(twice / (2 * len(ordered)))
