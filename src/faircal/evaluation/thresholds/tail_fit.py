"""Two laws for what is above a high threshold, fitted there, with what people do to them.

The tails of scores tend to lie between the two. With x the excess over the threshold and L = -log
of the share of exceedances that go beyond x:

- `PARETO`, generalised Pareto: L = log(1 + shape x / scale) / shape. The law that extreme-value
  theory leads to in the limit. Tails like the Gaussian's get there so slowly that, fitted at 1 %,
  it ends too early: at a rate of 1e-5 its thresholds are too low.
- `LINEAR`, linear hazard: L = b x + c x²/2 with c >= 0. All but exact for a Gaussian; for cosines,
  which end at 1, its thresholds are too high.

Both are fitted by maximum likelihood. How certain a fit is comes from leaving out one person at a
time (a jackknife in one Newton step, from sums of each exceedance's derivatives by person): pairs
that share a person are not independent. Leaving out people counts what two people have between them
twice, so that is taken off once, as measured by leaving out one couple of people at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar

Float64 = NDArray[np.float64]
#: Closer to 0 a shape is taken as this: derivatives divide by its third power.
_FLAT = 1e-3


class TailLaw(ABC):
    """A law of excesses with two parameters; excesses come in units of their mean."""

    name: str

    @abstractmethod
    def fit(self, excess: Float64) -> Float64:
        """Return the most likely parameters, shape (2,), of excesses of shape (k,)."""

    @abstractmethod
    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        """Return first (k, 2) and second (k, 3) derivatives of each log-likelihood."""

    @abstractmethod
    def excess(self, at: Float64, log_share: Float64) -> Float64:
        """Return the excess beyond which a share exp(-log_share) lies, for parameters (…, 2)."""

    @abstractmethod
    def log_share(self, at: Float64, excess: Float64) -> Float64:
        """Return -log of the share that lies beyond `excess`."""


class _Pareto(TailLaw):
    """Parameters: log of the scale, and the shape."""

    name = "generalised Pareto"

    def fit(self, excess: Float64) -> Float64:
        """Search along shape / scale; given that, the best shape is a mean (Grimshaw 1993)."""

        def cost(slope: float) -> float:
            if abs(slope) < 1e-9:
                return float(np.log(excess.mean())) + 1
            shape = float(np.log1p(slope * excess).mean())
            return float(np.log(shape / slope)) + shape + 1

        # The end of the range may not be below the largest excess seen.
        first = -(1 - 1e-6) / float(excess.max())
        mean = float(excess.mean())
        slopes = np.concatenate([np.linspace(first, 0, 15), np.linspace(0, 3 / mean, 15)[1:]])
        slope = _lowest(cost, slopes, 1e-9 / mean)
        shape = float(np.log1p(slope * excess).mean())
        scale = shape / slope if abs(slope) >= 1e-9 else mean
        return np.array([np.log(scale), shape])

    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        shape = _not_flat(at[1], _FLAT)
        w = excess / np.exp(at[0])
        log = np.log1p(shape * w)
        r = w / (1 + shape * w)
        first = np.stack([(1 + shape) * r - 1, log / shape**2 - (1 + 1 / shape) * r], axis=1)
        second = np.stack(
            [
                -(1 + shape) * r / (1 + shape * w),
                r - (1 + shape) * r**2,
                -2 * log / shape**3 + 2 * r / shape**2 + (1 + 1 / shape) * r**2,
            ],
            axis=1,
        )
        return first, second

    def excess(self, at: Float64, log_share: Float64) -> Float64:
        # Without one person a shape can come out absurd; it is then merely very uncertain.
        shape = _not_flat(np.clip(at[..., 1], -1, 1), 1e-9)
        return np.exp(np.clip(at[..., 0], -5, 5)) * np.expm1(shape * log_share) / shape

    def log_share(self, at: Float64, excess: Float64) -> Float64:
        shape = _not_flat(at[1], 1e-9)
        return np.asarray(np.log1p(shape * excess / np.exp(at[0])) / shape)


class _LinearHazard(TailLaw):
    """Parameters: the hazard at the threshold, b, and by how much it grows, c."""

    name = "linear hazard"

    def fit(self, excess: Float64) -> Float64:
        """Search along c / b; given that, the best b is in closed form."""
        mean, square = float(excess.mean()), float((excess**2).mean())

        def cost(ratio: float) -> float:
            return float(np.log(mean + ratio * square / 2) - np.log1p(ratio * excess).mean())

        steps = np.concatenate([[0.0], np.geomspace(0.01, 100, 15)]) / mean
        ratio = _lowest(cost, steps, 1e-7 / mean)
        b = 1 / (mean + ratio * square / 2)
        return np.array([b, b * ratio])

    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        hazard = at[0] + at[1] * excess
        first = np.stack([1 / hazard - excess, excess / hazard - excess**2 / 2], axis=1)
        second = -np.stack([np.ones_like(excess), excess, excess**2], axis=1)
        return first, second / hazard[:, None] ** 2

    def excess(self, at: Float64, log_share: Float64) -> Float64:
        b, c = np.maximum(at[..., 0], 1e-3), at[..., 1]
        # A falling hazard (c < 0, without one person) is not let fall to 0.
        root = np.sqrt(np.maximum(b**2 + 2 * c * log_share, (0.2 * b) ** 2))
        return np.asarray(2 * log_share / (b + root))

    def log_share(self, at: Float64, excess: Float64) -> Float64:
        return np.asarray(at[0] * excess + at[1] * excess**2 / 2)


def _lowest(cost: Callable[[float], float], grid: Float64, tolerance: float) -> float:
    """Return where `cost` is lowest: the best of the grid, then between its neighbours."""
    costs = [cost(float(g)) for g in grid]
    at = int(np.argmin(costs))
    ends = (float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)]))
    minimum = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": tolerance})
    return float(minimum.x) if minimum.fun < costs[at] else float(grid[at])


def _not_flat(shape: Float64, least: float) -> Float64:
    return np.where(np.abs(shape) < least, least, shape)


PARETO, LINEAR = _Pareto(), _LinearHazard()
LAWS: tuple[TailLaw, ...] = (PARETO, LINEAR)


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
        """Count the pairs of each person."""
        if left is None or right is None:
            return cls(None, None, np.empty(0))
        n = 1 + int(max(left.max(initial=-1), right.max(initial=-1)))
        pairs = np.bincount(left, None, n) + np.bincount(right, None, n)
        return cls(left, right, pairs.astype(np.float64))


def effective(amounts: Float64) -> float:
    """Return (sum)² / (sum of squares): how many equal amounts are as even as these.

    Of the pairs of each person: so many people with equal numbers of pairs would count as much.

    Examples
    --------
    >>> effective(np.array([3.0, 1.0, 0.0]))
    1.6
    """
    squares = float((amounts**2).sum())
    return float(amounts.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True)
class LeaveOut:
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
class FittedLaw:
    """One law: parameters (2,), those without each person (n, 2), and how well it fits.

    `of_couples` (3, 3) sums, over couples of people, the squares and products of how far the two
    parameters and the log of the share above move without that couple.
    """

    family: TailLaw
    at: Float64
    without_person: Float64
    of_couples: Float64
    p_value: float


@dataclass(frozen=True)
class TailFit:
    """What is above one threshold, and both laws fitted to it.

    `share` is the part of all pairs that is above; `person_share` is the same without each one.
    `largest` is the part of these pairs that the one person is in who is in most.
    """

    threshold: float
    unit: float
    exceedances: int
    distinct: int
    share: float
    person_share: Float64
    people: float
    largest: float
    independent: bool
    fits: tuple[FittedLaw, ...]

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

    def _bound(self, fit: FittedLaw, rate: float, confidence: float, above: bool) -> float:
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

    def _position(
        self, fit: FittedLaw, at: Float64, share: Float64 | float, rate: float
    ) -> Float64:
        """Return log(1 + excess), in units of the mean excess: evenly spread on both sides."""
        excess = fit.family.excess(at, np.log(np.asarray(share) / rate))
        return np.log1p(np.maximum(excess, -0.9))

    def _slopes(self, fit: FittedLaw, rate: float) -> Float64:
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


def fit_above(scores: Float64, people: TailPeople, fraction: float) -> TailFit:
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
    return TailFit(
        threshold=threshold,
        unit=unit,
        exceedances=k,
        distinct=distinct,
        share=k / n_pairs,
        person_share=np.maximum(k - counts, 0.5) / np.maximum(n_pairs - pairs, 1),
        people=effective(counts),
        largest=float(counts.max(initial=0)) / max(k, 1),
        independent=people.left is None,
        fits=tuple(_fit(f, excess / unit, persons, couples) for f in LAWS) if distinct > 2 else (),
    )


def _leaving(people: TailPeople, over: Codes) -> tuple[LeaveOut, LeaveOut]:
    if people.left is None or people.right is None:
        alone = LeaveOut((np.arange(len(over)),), len(over))
        return alone, alone
    left, right = people.left[over], people.right[over]
    n = len(people.pairs)
    _, couple = np.unique(
        np.minimum(left, right) * n + np.maximum(left, right), return_inverse=True
    )
    return LeaveOut((left, right), n), LeaveOut((couple,), int(couple.max(initial=-1)) + 1)


def _fit(family: TailLaw, excess: Float64, persons: LeaveOut, couples: LeaveOut) -> FittedLaw:
    at = family.fit(excess)
    first, second = family.derivatives(at, excess)
    both = np.concatenate([first, second], axis=1)
    moves = _without(at, couples.sums(both), second.sum(0)) - at
    share = -couples.sums(np.ones((len(excess), 1))) / len(excess)
    of_couple = np.concatenate([moves, share], axis=1)
    return FittedLaw(
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
    determinant, (p, q, r) = a * c - b**2, second
    # Nearly all may be one person's; what is left without him is then merely very uncertain.
    least = 1e-9 * abs(float(p * r - q**2)) + 1e-300
    determinant = np.where(np.abs(determinant) < least, least, determinant)
    step = np.stack([c * u - b * v, a * v - b * u], axis=1) / determinant[:, None]
    return np.asarray(at - step)


def _p_value(
    log_share: Float64, first: Float64, second: Float64, persons: LeaveOut, couples: LeaveOut
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
