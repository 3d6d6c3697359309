"""Intervals by turning a test around: rates, and what cannot be negative.

The interval of an error rate holds the rates that the counted one does not contradict. KS, ECE and
the deviations over groups are norms of something that varies about as normal: a curve, the gaps of
bins, the rates of groups. A norm of an estimate is too large on average, and where the truth is 0
it is never 0. So the truth is taken to be a part of the estimate, the noise is put on top, and the
least part stays with which the estimate is not unusual.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainc, ndtri, stdtrit

from faircal.metrics.intervals.dyadic import Float64

_STEPS = 20  # of bisection: to a millionth
#: As near as rates come to 0 and 1.
_EDGE = 1e-15
#: With fewer errors than this the lower end is that of a binomial distribution.
_FEW_ERRORS = 5


def lowest_scale(
    replicates: Callable[[float], Float64], estimate: float, level: float = 0.95
) -> float:
    """Return the lowest part of an estimate, from 0 to 1, that the estimate does not contradict.

    Parameters
    ----------
    replicates : callable
        From a part to replicates of the estimate where the truth is that part of it; they must
        grow with it and use the same noise every time.
    estimate : float
    level : float
        Of an interval with two ends: half of the rest is for this one.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=10_000)
    >>> round(10 * lowest_scale(lambda part: np.abs(10 * part + noise), 10.0), 1)
    8.0
    >>> lowest_scale(lambda part: np.abs(1 * part + noise), 1.0)
    0.0
    """
    tail = (1 - level) / 2
    if np.mean(replicates(0.0) >= estimate) >= tail:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if np.mean(replicates(middle) >= estimate) < tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rate_interval(
    rate: float,
    trials: float,
    design_effect: Callable[[npt.ArrayLike], Float64],
    *,
    level: float = 0.95,
    freedom: float = np.inf,
) -> tuple[float, float]:
    """Return the interval of a rate: the rates that the counted one does not contradict.

    A rate p is contradicted where the counted one is further from it than z standard errors of p,
    as in Wilson's interval (1927); the standard error counts effective trials, N over the design
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

    def excess(p: float) -> float:
        error = float(np.sqrt(p * (1 - p) / trials * float(design_effect(p))))
        return abs(p - rate) - z * error

    def unlikely(p: float) -> float:
        """Few errors are not normal: mid-P, after Clopper and Pearson with half of k counted."""
        n = trials / float(design_effect(p))
        k = rate * n
        # P(K ≥ k) is the incomplete beta function I_p(k, n − k + 1), for fractions k as well.
        more = betainc([k, k + 1], [n - k + 1, max(n - k, 1e-9)], p)
        return (1 - level) / 2 - float(more.mean())

    tests = [(excess, 0.0), (excess, 1.0)]
    if 0 < rate * trials < _FEW_ERRORS:
        tests.append((unlikely, 0.0))
    inside, ends = min(max(rate, _EDGE), 1 - _EDGE), []
    for test, end in tests:  # between the counted rate, which is inside, and an end of the range
        edge = end + (_EDGE if end == 0 else -_EDGE)
        if test(edge) <= 0:
            ends.append(end)
        elif test(inside) >= 0:
            ends.append(inside)
        else:
            ends.append(float(brentq(test, inside, edge, xtol=_EDGE, rtol=1e-10)))
    low, high, *of_few = ends
    return min([low, *of_few]), high
