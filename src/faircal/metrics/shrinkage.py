"""Error rates of small groups, steadied by what groups have in common.

Crossed attributes make many groups, some of them tiny, and the rate of a tiny one is mostly chance.
If groups are taken as drawn from one population of groups, each can borrow from the others: a large
group keeps its rate, a small one moves towards the rest. How alike groups are is not set, but is
learnt. As few groups tell it badly, every degree of likeness counts as far as the errors allow it.
To take the likeliest alone (a beta-binomial model fitted by maximum likelihood) made 95 % intervals
that held 40 to 92 % of the time in our simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from faircal.errors import DataError, ParameterError
from faircal.metrics.ranking import FloatArray

#: Degrees of likeness that are weighed against each other, as standard deviations of log-odds.
SPREADS = np.geomspace(0.03, 4.0, 24)
_COARSE = SPREADS[::2]  # where there are two to combine
_COMMON = 3.0  # how far off the common log-odds may be beforehand: a factor of 20
_LEAST = 1e-3  # share of the greatest weight under which a combination is left out
_POINTS = np.linspace(-1.0, 1.0, 401)[:, None]  # at which a group's distribution is worked out


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Rates of groups that borrow from each other; see `shrink`.

    Parameters
    ----------
    rate, low, high : ndarray of float64, shape (n_groups,)
        What is believed of each group: the mean, and an interval.
    weight : ndarray of float64, shape (n_groups,)
        How much of a rate is the group's own, from 0 (no trials) to 1; the rest is borrowed.
    spread, spread_low, spread_high : float
        How far groups are apart beyond chance: the standard deviation of their log-odds, as a
        median with an interval; with `parts`, beyond what the attributes alone say. An interval
        from near 0 says that they may all be alike.
    """

    rate: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    spread: float
    spread_low: float
    spread_high: float


def shrink(
    errors: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    parts: Sequence[npt.ArrayLike] = (),
    level: float = 0.95,
) -> Shrunk:
    """Return the rates of groups, each moved towards the others as far as the errors say.

    Errors are binomial, and the log-odds of groups normal around a common value with spread s. With
    `parts`, log-odds are a sum: the common value, a term for each value of each attribute (spread
    t) and what is the crossed group's own (spread s). Women of one ethnicity then borrow most from
    women and from that ethnicity. Each s and t, all the same beforehand, is weighed by how likely
    it makes all errors (Laplace's approximation); given what the other groups say, a group's own
    errors count exactly.

    Parameters
    ----------
    errors, trials : array-like of float, shape (n_groups,)
        Pairs share people, so pass effective trials and the errors that keep the rate; they need
        not be whole. A group without trials gets what the others say.
    parts : sequence of array-like of int, each of shape (n_groups,), optional
        For each attribute that was crossed, the code of its value in each group.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    Shrunk
        All NaN where there is no trial at all.

    Examples
    --------
    >>> found = shrink([40, 60, 50, 1], [4000, 4000, 4000, 20])
    >>> found.rate.round(4)
    array([0.0107, 0.0144, 0.0126, 0.0186])
    >>> found.weight.round(2)
    array([0.81, 0.83, 0.82, 0.14])
    """
    e, n = _counts(errors, trials)
    if not 0 < level < 1:
        raise ParameterError(f"level: expected a number between 0 and 1, found {level!r}")
    if not n.sum() > 0:
        nothing, nan = np.full(len(n), np.nan), float("nan")
        return Shrunk(nothing, nothing, nothing, nothing, nan, nan, nan)
    spread, covariance, before = _likeness(parts, len(n))
    common = float(logit((e.sum() + 0.5) / (n.sum() + 1)))
    fit = _fit(e, n, common, covariance, before)
    tails = (1 - level) / 2, (1 + level) / 2
    # What the others say comes before a group's own errors; the two weigh by their precision.
    weight = fit.chance @ (fit.own * fit.variance)
    reached = np.searchsorted(np.cumsum(fit.chance), np.append(0.5, tails) - 1e-9)
    median, least, most = spread[fit.kept][reached].tolist()
    rate, low, high = _rates(e, n, fit, tails)
    return Shrunk(rate, low, high, weight, median, least, most)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Normal approximations of the groups' log-odds, one for each likeness that was kept."""

    kept: npt.NDArray[np.intp]  # (n_kept,)
    chance: FloatArray  # (n_kept,), of each likeness
    mean: FloatArray  # (n_kept, n_groups), of log-odds
    variance: FloatArray  # (n_kept, n_groups)
    own: FloatArray  # (n_kept, n_groups): precision that a group's own errors bring
    pull: FloatArray  # (n_kept, n_groups): precision times mean of them


def _fit(
    e: FloatArray, n: FloatArray, common: float, covariance: FloatArray, before: FloatArray
) -> _Fit:
    """Find the likeliest log-odds for each covariance K, shape (n_likeness, n_groups, n_groups)."""
    identity = np.eye(len(n))
    off = np.zeros(covariance.shape[:2])  # log-odds less the common ones
    for _ in range(100):
        own, slope = _curve(common + off, e, n)
        # Newton's (K⁻¹ + W)⁻¹ r as K (I + W K)⁻¹ r, which needs no inverse of K.
        inner = identity + own[..., None] * covariance
        step = (covariance @ np.linalg.solve(inner, (own * off + slope)[..., None]))[..., 0] - off
        longest = np.abs(step).max()
        off = off + step * min(1.0, 1.5 / max(longest, 1e-12))
        if longest < 1e-8:
            break
    own, slope = _curve(common + off, e, n)
    inner = identity + own[..., None] * covariance
    variance = np.diagonal(covariance @ np.linalg.inv(inner), axis1=1, axis2=2)
    # At the top K⁻¹ off is the slope.
    chance = _log_likelihood(common + off, e, n).sum(axis=1) - (off * slope).sum(axis=1) / 2
    chance = chance - np.linalg.slogdet(inner)[1] / 2 + before
    chance = np.exp(chance - chance.max())
    kept = np.flatnonzero(chance > _LEAST)
    mean, pull = common + off, own * (common + off) + slope
    return _Fit(
        kept,
        chance[kept] / chance[kept].sum(),
        mean[kept],
        variance[kept],
        own[kept],
        pull[kept],
    )


def _rates(
    e: FloatArray, n: FloatArray, fit: _Fit, tails: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and two quantiles of each group's rate, over all kinds of likeness."""
    # What the others say of a group: its distribution without its own, approximate, part.
    others = 1 / np.maximum(1 / fit.variance - fit.own, 1e-9)
    centre = others * (fit.mean / fit.variance - fit.pull)
    # Points are dense around the top and reach as far as the others alone would.
    middle = fit.chance @ fit.mean
    narrow = np.sqrt(fit.variance.min(axis=0))
    reach = np.abs(centre - middle).max(axis=0) + 8 * np.sqrt(others.max(axis=0))
    wide = np.arcsinh(reach / narrow)
    x = middle + narrow * np.sinh(wide * _POINTS)  # (n_points, n_groups)
    cell = np.cosh(wide * _POINTS)
    own = _log_likelihood(x, e, n)
    density = np.zeros_like(x)
    for chance, mean, variance in zip(fit.chance, centre, others, strict=True):
        height = own - (x - mean) ** 2 / (2 * variance)
        mass = np.exp(height - height.max(axis=0)) * cell
        density += chance * mass / mass.sum(axis=0)
    below = np.cumsum(density, axis=0) - density / 2
    ends = [[np.interp(tail, *of) for of in zip(below.T, x.T, strict=True)] for tail in tails]
    return (density * expit(x)).sum(axis=0), expit(ends[0]), expit(ends[1])


def _likeness(
    parts: Sequence[npt.ArrayLike], n_groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return spreads s, ascending, covariances of log-odds, and the logarithm of prior chances."""
    alike = np.zeros((n_groups, n_groups))
    for part in parts:
        codes = np.asarray(part)
        if codes.shape != (n_groups,):
            raise DataError(
                f"expected one code per group ({n_groups}) for each attribute; "
                f"found shape {codes.shape}"
            )
        alike += codes[:, None] == codes
    if len(parts):
        s, t = np.repeat(_COARSE, len(_COARSE)), np.tile(_COARSE, len(_COARSE))
    else:
        s, t = SPREADS, np.ones(1)
    own, shared = (spread[:, None, None] ** 2 for spread in (s, t))
    covariance = _COMMON**2 + own * np.eye(n_groups) + shared * alike
    # Every spread is as likely as any other beforehand, and the grid has equal steps of logarithms.
    return s, covariance, np.log(s) + np.log(t)


def _curve(x: FloatArray, e: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return curvature and slope of the log-likelihood at log-odds x."""
    p = expit(x)
    return n * p * (1 - p), e - n * p


def _log_likelihood(x: FloatArray, e: FloatArray, n: FloatArray) -> FloatArray:
    return e * x - n * np.logaddexp(0, x)


def _counts(errors: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    e, n = (np.asarray(of, dtype=np.float64) for of in (errors, trials))
    if e.ndim != 1 or e.shape != n.shape:
        raise DataError(
            f"expected errors and trials of each group; found shapes {e.shape} and {n.shape}"
        )
    bad = ~((e >= 0) & (e <= n) & np.isfinite(n))
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"expected errors from 0 to the trials; found {e[at]:g} of {n[at]:g} in group {at}; "
            "pass 0 of 0 for a group without any"
        )
    return e, n
