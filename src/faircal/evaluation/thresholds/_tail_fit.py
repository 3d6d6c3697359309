"""Both laws of `_tail_families` fitted above one threshold, with what people do to them.

How sure a fit is comes from leaving out one person at a time (a jackknife in one Newton step, from
sums of derivatives by person): pairs that share a person are not independent. Leaving out people
counts what two people have between them twice, so that is taken off once, as measured by leaving
out one couple of people at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from faircal.evaluation.thresholds._tail_families import FAMILIES, Family, Float64

Codes = NDArray[np.int64]
#: Shares of the exceedances at which law and data are compared.
_COMPARED = np.arange(1, 20) / 20
#: One person can seem to matter so much that nothing is known; the study shows these to be enough.
_LEAST_FREEDOM, _MOST_SKEWED = 6.0, 0.5


@dataclass(frozen=True)
class TailPeople:
    """Who is in which pair: codes of shape (n_pairs,), and pairs of each person, shape (n,).

    Where people are unknown, `left` is None and each pair stands for itself.
    """

    left: Codes | None
    right: Codes | None
    pairs: Float64

    @classmethod
    def of(cls, left: Codes | None, right: Codes | None) -> TailPeople:
        if left is None or right is None:
            return cls(None, None, np.empty(0))
        n = 1 + int(max(left.max(initial=-1), right.max(initial=-1)))
        pairs = np.bincount(left, None, n) + np.bincount(right, None, n)
        return cls(left, right, pairs.astype(np.float64))

    @property
    def effective(self) -> float:
        """So many people with equal numbers of pairs would count as much."""
        return effective(self.pairs)


def effective(amounts: Float64) -> float:
    """Return (sum)² / (sum of squares): how many equal amounts are as even as these.

    Examples
    --------
    >>> effective(np.array([3.0, 1.0, 0.0]))
    1.6
    """
    squares = float((amounts**2).sum())
    return float(amounts.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True)
class Left:
    """Exceedances, summed by what can be left out: person or couple of people, shape (n,)."""

    owners: tuple[Codes, ...]
    n: int

    def sums(self, values: Float64) -> Float64:
        """Return sums (n, m) of values (k, m)."""
        columns = [
            sum(np.bincount(owner, column, self.n) for owner in self.owners) for column in values.T
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Fitted:
    """One law: parameters (2,), those without each person (n, 2), and how well it fits.

    `of_couples` (3, 3) sums, over couples of people, the squares and products of how far the two
    parameters and the log of the share above move without that couple.
    """

    family: Family
    at: Float64
    without_person: Float64
    of_couples: Float64
    p_value: float


@dataclass(frozen=True)
class Rung:
    """What is above one threshold, and both laws fitted to it.

    `share` is the part of all pairs that is above; `person_share` is the same without each one.
    """

    threshold: float
    unit: float
    exceedances: int
    distinct: int
    share: float
    person_share: Float64
    people: float
    independent: bool
    fits: tuple[Fitted, ...]

    @property
    def p_value(self) -> float:
        """That of the law that fits better."""
        return max(fit.p_value for fit in self.fits)

    def values(self, rate: float) -> list[float]:
        """Return the threshold for the rate by each law."""
        return [self._score(self._position(f, f.at, self.share, rate)) for f in self.fits]

    def bound(self, rate: float, confidence: float, *, above: bool) -> float:
        """Return the one-sided bound on the threshold for the rate, the more careful law's."""
        bounds = [self._bound(fit, rate, confidence, above) for fit in self.fits]
        return max(bounds) if above else min(bounds)

    def _bound(self, fit: Fitted, rate: float, confidence: float, above: bool) -> float:
        at = float(self._position(fit, fit.at, self.share, rate))
        off = at - self._position(fit, fit.without_person, self.person_share, rate)
        slopes = self._slopes(fit, rate)
        twice = float(slopes @ fit.of_couples @ slopes)
        squares = float((off**2).sum())
        variance = twice if self.independent else max(squares - twice, twice)
        if not variance:
            return self._score(at)
        # Few people who matter much: the variance itself is uncertain (kurtosis gives its degrees
        # of freedom), and the estimate is too low where those people happen not to be there.
        # Johnson (1978) moves the t interval by its skewness, the jackknife by its bias; we do so
        # only where it widens.
        freedom = min(max(3 * effective(off**2) - 1, _LEAST_FREEDOM), len(off))
        t = float(stats.t.ppf(confidence, freedom))
        if not above:
            return self._score(at - t * variance**0.5)
        skewness = min(max(float((off**3).sum()) / squares**1.5, 0.0), _MOST_SKEWED)
        further = skewness * (1 + 2 * float(stats.norm.ppf(confidence)) ** 2) / 6
        bias = max(float(off.sum()), 0.0)
        return self._score(at + bias + (t + further) * variance**0.5)

    def _position(self, fit: Fitted, at: Float64, share: Float64 | float, rate: float) -> Float64:
        """Return log(1 + excess), in units of the mean excess: evenly spread on both sides."""
        excess = fit.family.excess(at, np.log(np.asarray(share) / rate))
        return np.log1p(np.maximum(excess, -0.9))

    def _slopes(self, fit: Fitted, rate: float) -> Float64:
        """Return how the position moves with both parameters and the log of the share."""
        step = 1e-4
        ahead, back = fit.at + step * np.eye(2), fit.at - step * np.eye(2)
        by_parameter = [self._position(fit, at, self.share, rate) for at in (ahead, back)]
        by_share = [
            self._position(fit, fit.at, self.share * np.exp(off), rate) for off in (step, -step)
        ]
        return np.append(by_parameter[0] - by_parameter[1], by_share[0] - by_share[1]) / (2 * step)

    def _score(self, position: Float64 | float) -> float:
        return self.threshold + self.unit * float(np.expm1(np.minimum(position, 50.0)))


def fit_rung(scores: Float64, people: TailPeople, fraction: float) -> Rung:
    """Return both laws fitted to the highest `fraction` of the imposter scores."""
    n_pairs = len(scores)
    at = n_pairs - int(n_pairs * fraction) - 1
    threshold = float(np.partition(scores, at)[at])
    over = np.flatnonzero(scores > threshold)
    excess = scores[over] - threshold
    k = len(over)
    unit = float(excess.mean()) if k else 1.0
    persons, couples = _leaving(people, over)
    counts = persons.sums(np.ones((k, 1)))[:, 0]
    pairs = people.pairs if people.left is not None else np.ones(k)
    distinct = len(np.unique(excess))
    return Rung(
        threshold=threshold,
        unit=unit,
        exceedances=k,
        distinct=distinct,
        share=k / n_pairs,
        person_share=np.maximum(k - counts, 0.5) / np.maximum(n_pairs - pairs, 1),
        people=effective(counts),
        independent=people.left is None,
        fits=tuple(_fit(f, excess / unit, persons, couples) for f in FAMILIES)
        if distinct > 2
        else (),
    )


def _leaving(people: TailPeople, over: Codes) -> tuple[Left, Left]:
    if people.left is None or people.right is None:
        alone = Left((np.arange(len(over)),), len(over))
        return alone, alone
    left, right = people.left[over], people.right[over]
    n = len(people.pairs)
    _, couple = np.unique(
        np.minimum(left, right) * n + np.maximum(left, right), return_inverse=True
    )
    return Left((left, right), n), Left((couple,), int(couple.max(initial=-1)) + 1)


def _fit(family: Family, excess: Float64, persons: Left, couples: Left) -> Fitted:
    at = family.fit(excess)
    first, second = family.derivatives(at, excess)
    both = np.concatenate([first, second], axis=1)
    moves = _without(at, couples.sums(both), second.sum(0)) - at
    share = -couples.sums(np.ones((len(excess), 1))) / len(excess)
    of_couple = np.concatenate([moves, share], axis=1)
    return Fitted(
        family,
        at,
        _without(at, persons.sums(both), second.sum(0)),
        of_couple.T @ of_couple,
        _p_value(family.log_share(at, excess), first, second, persons, couples),
    )


def _without(at: Float64, sums: Float64, second: Float64) -> Float64:
    """Return the parameters after one Newton step without each one's derivatives, (n, 2)."""
    u, v = -sums[:, 0], -sums[:, 1]
    a, b, c = (second - sums[:, 2:]).T
    step = np.stack([c * u - b * v, a * v - b * u], axis=1) / (a * c - b**2)[:, None]
    return np.asarray(at - step)


def _p_value(
    log_share: Float64, first: Float64, second: Float64, persons: Left, couples: Left
) -> float:
    """Return the p-value of an Anderson-Darling statistic whose spread is that between people.

    Under the law the statistic is a sum of squares of (nearly) Gaussian differences. Their
    covariance, with parameters fitted and people shared, is estimated; a multiple of chi-squared
    with the same mean and variance stands for the sum.
    """
    k = len(log_share)
    below = (-np.expm1(-log_share)[:, None] <= _COMPARED).astype(np.float64)
    off = below.mean(0) - _COMPARED
    a, b, c = -second.mean(0)
    fitted = np.linalg.solve(np.array([[a, b], [b, c]]), first.T @ below / k)
    each = below - _COMPARED - first @ fitted
    person, couple = persons.sums(each), couples.sums(each)
    twice = couple.T @ couple / k**2
    spread = person.T @ person / k**2 - twice
    if len(persons.owners) == 1 or np.trace(spread) < np.trace(twice):
        spread = twice
    weights = 1 / (_COMPARED * (1 - _COMPARED))
    weighted = spread * weights
    mean, variance = float(np.trace(weighted)), 2 * float(np.trace(weighted @ weighted))
    statistic = float((weights * off**2).sum())
    return float(stats.chi2.sf(statistic * 2 * mean / variance, 2 * mean**2 / variance))
