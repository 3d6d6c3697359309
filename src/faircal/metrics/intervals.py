"""Confidence intervals for counted error rates."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from faircal.errors import DataError, ParameterError
from faircal.metrics.ranking import FloatArray


def wilson(
    errors: npt.ArrayLike, trials: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson score interval of an error rate.

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
    z = NormalDist().inv_cdf((1 + level) / 2)
    some = np.where(n > 0, n, np.nan)
    centre = (k + z**2 / 2) / (some + z**2)
    half = z / (some + z**2) * np.sqrt(k * (n - k) / some + z**2 / 4)
    # The bounds at no error and at nothing but errors are 0 and 1; rounding would blur them.
    low = np.where((k == 0) & (n > 0), 0.0, centre - half)
    high = np.where((k == n) & (n > 0), 1.0, centre + half)
    return low, high
