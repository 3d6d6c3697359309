"""The lower end of what cannot be negative: calibration errors and deviations over groups.

KS, ECE and the deviations are norms of something that varies about as normal: a curve, the gaps of
bins, the rates of groups. A norm of an estimate is too large on average, and where the truth is 0
it is never 0. So a test is turned around: the truth is taken to be a part of what was found, the
noise is put on top, and the least part stays with which what was found is not unusual.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

_STEPS = 20  # of bisection: to a millionth


def lowest(replicates: Callable[[float], Float64], found: float, level: float = 0.95) -> float:
    """Return the lowest part, from 0 to 1, that what was found does not contradict.

    Parameters
    ----------
    replicates : callable
        From a part to replicates of the estimate where the truth is that part of what was found;
        they must grow with it and use the same noise every time.
    found : float
        The estimate.
    level : float
        Of an interval with two ends: half of the rest is for this one.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=10_000)
    >>> round(10 * lowest(lambda part: np.abs(10 * part + noise), 10.0), 1)
    8.0
    >>> lowest(lambda part: np.abs(1 * part + noise), 1.0)
    0.0
    """
    tail = (1 - level) / 2

    def unusual(part: float) -> bool:
        return bool(np.mean(replicates(part) >= found) < tail)

    if not unusual(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if unusual(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2
