"""Intervals of error rates whose pairs share people."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainc, ndtri, stdtrit

from faircal.metrics.intervals.sharing import Float64

#: As near as rates come to 0 and 1.
_EDGE = 1e-15

#: With so few errors the lower end is that of a binomial distribution.
_FEW = 5


def rate_interval(
    rate: float,
    trials: float,
    design_effect: Callable[[npt.ArrayLike], Float64],
    *,
    level: float = 0.95,
    freedom: float = np.inf,
) -> tuple[float, float]:
    """Return the interval of a rate: the rates that the counted one does not contradict.

    A rate p is contradicted where the counted one is further from it than its own standard error
    allows, as in Wilson's interval; the standard error counts effective trials, N over the design
    effect at p. With independent pairs this is Wilson's interval.

    Parameters
    ----------
    rate : float
        The counted rate.
    trials : float
        The pairs N that it counts.
    design_effect : callable
        By what factor sharing people widens the variance of a rate; see `Dependence`.
    level : float
    freedom : float
        How well the design effect is known, as degrees of freedom (Student's t).
    """
    tail = (1 + level) / 2
    z = float(stdtrit(freedom, tail)) if freedom < np.inf else float(ndtri(tail))

    def apart(p: float) -> float:
        error = float(np.sqrt(p * (1 - p) / trials * float(design_effect(p))))
        return abs(p - rate) - z * error

    def likely(p: float) -> float:
        """Fewer errors than `_FEW` are not normal: how likely so many are, half of them counted."""
        n = trials / float(design_effect(p))
        k = rate * n
        more = betainc([k, k + 1], [n - k + 1, max(n - k, 1e-9)], p)
        return (1 - level) / 2 - float(more.mean())

    low = _solve(apart, rate, 0.0)
    if 0 < rate * trials < _FEW:
        low = min(low, _solve(likely, rate, 0.0))
    high = _solve(apart, rate, 1.0)
    return low, high


def _solve(apart: Callable[[float], float], inside: float, outside: float) -> float:
    """Return the end of the interval between a rate inside it and an end of the range."""
    edge = outside + (_EDGE if outside == 0 else -_EDGE)
    inside = min(max(inside, _EDGE), 1 - _EDGE)
    if apart(edge) <= 0:
        return outside
    if apart(inside) >= 0:
        return inside
    return float(brentq(apart, inside, edge, xtol=_EDGE, rtol=1e-10))
