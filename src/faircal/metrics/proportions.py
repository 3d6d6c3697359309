"""Confidence intervals for counted error rates of independent trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError, ParameterError
from faircal.metrics.ranking import FloatArray


def wilson(
    errors: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the score interval of an error rate (Wilson, 1927).

    It stays inside [0, 1] and keeps a sensible width at 0 errors, the usual case at low error
    rates in a small group.

    Parameters
    ----------
    errors, trials : array-like of int
        Counts, of shapes that broadcast.
    level : float, default 0.95
        Probability that the interval is meant to cover, in (0, 1).

    Returns
    -------
    low, high : ndarray of float64, of the broadcast shape
        NaN where there are no trials.

    Examples
    --------
    >>> low, high = wilson([0, 5], [10, 10])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.237]), array([0.278, 0.763]))
    """
    if not 0 < level < 1:
        raise ParameterError(f"expected level between 0 and 1; found {level!r}; write 95 % as 0.95")
    k, n = np.broadcast_arrays(np.asarray(errors, np.float64), np.asarray(trials, np.float64))
    if not ((k >= 0) & (k <= n)).all():
        raise DataError(
            "expected 0 <= errors <= trials; found counts outside; pass counts, not rates"
        )
    # By hand: SciPy's `binomtest(k, n).proportion_ci(method="wilson")` takes one count at a time,
    # and whole ones only; effective trials are fractions.
    z = NormalDist().inv_cdf((1 + level) / 2)
    positive = np.where(n > 0, n, np.nan)
    centre = (k + z**2 / 2) / (positive + z**2)
    half = z / (positive + z**2) * np.sqrt(k * (n - k) / positive + z**2 / 4)
    # The bounds at no error and at nothing but errors are 0 and 1; rounding would blur them.
    low = np.where((k == 0) & (n > 0), 0.0, centre - half)
    high = np.where((k == n) & (n > 0), 1.0, centre + half)
    return low, high


def combined_reach(one: float, other: float, correlation: float = 0.0) -> float:
    """Return how far the end of the interval of ``x + y`` is away, given those of x and y.

    Distances to the ends are put together as errors are: √(a² + b² + 2 r a b) (MOVER: Zou and
    Donner, 2008). Of a difference, the other's opposite end counts and r has the other sign.

    Parameters
    ----------
    one, other : float
        How far the ends of x and y are away, 0 or more.
    correlation : float, default 0
        r, that of the noise of x and y.

    Examples
    --------
    >>> combined_reach(3.0, 4.0), combined_reach(3.0, 4.0, 1.0), combined_reach(3.0, 4.0, -1.0)
    (5.0, 7.0, 1.0)
    """
    return math.sqrt(max(one**2 + other**2 + 2 * correlation * one * other, 0.0))


def joint_level(groups: int, level: float = 0.95) -> float:
    """Return the level at which intervals of so many groups hold at once with `level` (Bonferroni).

    The worst and the best of many groups are chosen after looking, so their ordinary intervals part
    by chance too often. Where intervals of this level part, the groups differ.

    Examples
    --------
    >>> round(joint_level(1), 6), round(joint_level(8), 6)
    (0.95, 0.99375)
    """
    return 1 - (1 - level) / max(groups, 1)


def gap_by_chance(trials: Sequence[int], rate: float, *, draws: int = 2000, seed: int = 0) -> float:
    """Return the largest deviation from the groups' mean that groups of equal rate would show.

    The mean, over draws, of `faircal.metrics.mad` of counted rates: a floor under which the gap
    between groups cannot be expected to fall.

    Parameters
    ----------
    trials : sequence of int
        Trials of each group; groups without any are left out.
    rate : float
        The rate of every group.

    Examples
    --------
    >>> round(gap_by_chance([600] * 4, 0.01), 4)
    0.0049
    """
    counted = np.array([n for n in trials if n > 0], dtype=np.int64)
    if not len(counted):
        return float("nan")
    # Independent trials: pairs that share people would make a larger gap by chance.
    rates = np.random.default_rng(seed).binomial(counted, rate, (draws, len(counted))) / counted
    return float(np.abs(rates - rates.mean(axis=1, keepdims=True)).max(axis=1).mean())
