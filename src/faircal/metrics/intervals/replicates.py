"""What would have been found with other people: replicates that runs share.

Each person has random numbers of his own, made from his name alone. A replicate of a value is the
value and the sum of what each person moves it by, times his number. Two methods, or two runs on
different machines, thus have the same people more or less often in the same replicates: differences
between them are as sure as people in common make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

#: People whose numbers are drawn at a time.
_BLOCK = 4096


def replicates(
    influence: NDArray[np.float64], names: Sequence[str], n: int, seed: int = 0
) -> NDArray[np.float32]:
    """Return replicates of values, less the values.

    Parameters
    ----------
    influence : ndarray of float64, shape (n_people, n_values)
        What each person moves each value by; see `faircal.metrics.intervals.crowd.Spread`.
    names : sequence of str, of length n_people
    n : int
        The number of replicates.

    Returns
    -------
    ndarray of float32, shape (n, n_values)
    """
    found = np.zeros((n, influence.shape[1]), np.float32)
    moving = np.flatnonzero(influence.any(axis=1))
    for start in range(0, len(moving), _BLOCK):
        rows = moving[start : start + _BLOCK]
        numbers = np.stack([_numbers(names[row], n, seed) for row in rows])
        found += numbers.T @ influence[rows].astype(np.float32)
    return found


def _numbers(name: str, n: int, seed: int) -> NDArray[np.float32]:
    """Return a person's random numbers, of mean 0 and variance 1."""
    key = int.from_bytes(blake2b(f"{seed}/{name}".encode(), digest_size=16).digest())
    return np.random.Generator(np.random.Philox(key=key)).standard_normal(n, dtype=np.float32)
