"""Small vectorised tools: sharing out, choosing without repeats, counting in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def share(n: int, weight: NDArray[np.integer], most: Ints) -> Ints:
    """Divide `n` things in proportion to `weight`, part i getting `most[i]` at most.

    What a part can't take goes to the others, in proportion again. `weight` is above 0 wherever
    `most` is.

    Examples
    --------
    >>> share(10, np.array([3, 1, 1]), np.array([9, 9, 1]))
    array([7, 2, 1])
    """
    given = np.zeros(len(most), dtype=np.int64)
    left = min(n, int(most.sum()))
    free = most > 0
    while free.any():
        ideal = left * (weight * free / (weight * free).sum())
        full = free & (ideal >= most)
        if not full.any():
            shares = np.floor(ideal).astype(np.int64)
            by_remainder = np.argsort(shares - ideal, kind="stable")
            shares[by_remainder[: left - int(shares.sum())]] += 1
            given += shares
            break
        given[full] = most[full]
        left -= int(most[full].sum())
        free &= ~full
    return given


def choose(n: Ints, k: int, rng: np.random.Generator) -> Ints:
    """Choose for each row `k` of the numbers 0…n−1 without repeats, every set equally likely.

    Parameters
    ----------
    n : ndarray of shape (n_rows,)
        How many numbers each row has to choose from, at least `k`.

    Returns
    -------
    chosen : ndarray of shape (n_rows, k)
        In no meaningful order.

    Examples
    --------
    >>> chosen = choose(np.array([3, 10**12]), 3, np.random.default_rng(0))
    >>> sorted(chosen[0].tolist())
    [0, 1, 2]
    """
    chosen = np.empty((len(n), k), dtype=np.int64)
    near = np.flatnonzero(n <= 2 * k)  # drawing again could take long: order all instead
    if len(near):
        key = rng.random((len(near), int(n[near].max())))
        key[np.arange(key.shape[1]) >= n[near, None]] = np.inf
        chosen[near] = np.argsort(key, axis=1)[:, :k]
    rows = np.flatnonzero(n > 2 * k)
    chosen[rows] = rng.integers(n[rows, None], size=(len(rows), k))
    while len(rows):
        # The first k different numbers of an endless draw: all sets of k are equally likely.
        drawn = np.sort(chosen[rows], axis=1)
        again = np.zeros(drawn.shape, dtype=bool)
        again[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
        drawn[again] = rng.integers(np.repeat(n[rows], again.sum(axis=1)))
        chosen[rows] = drawn
        rows = rows[again.any(axis=1)]
    return chosen


def counting(width: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Count 0…width−1 for each row, one row after the other; returns row and number.

    Examples
    --------
    >>> counting(np.array([2, 0, 3]))
    (array([0, 0, 2, 2, 2]), array([0, 1, 0, 1, 2]))
    """
    row = np.repeat(np.arange(len(width), dtype=np.int64), width)
    before = np.cumsum(width) - width
    return row, np.arange(len(row), dtype=np.int64) - before[row]


def occurrence(code: Ints) -> Ints:
    """Return how often each value has come up before, in the order given.

    Examples
    --------
    >>> occurrence(np.array([7, 5, 7, 7]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(code, kind="stable")
    ascending = code[order]
    position = np.arange(len(code), dtype=np.int64)
    new = np.ones(len(code), dtype=bool)
    new[1:] = ascending[1:] != ascending[:-1]
    times = np.empty_like(position)
    times[order] = position - np.maximum.accumulate(np.where(new, position, 0))
    return times


def under_cap(code: Ints, person: Ints, cap: int) -> Ints:
    """Go through pairs in order; leave out repeats, and people who were paired `cap` times.

    Parameters
    ----------
    code : ndarray of shape (n_pairs,)
        left · n + right, where left < right are numbers of images below n.
    person : ndarray of shape (n,)
        The person in each image, not negative.

    Examples
    --------
    >>> person = np.array([0, 0, 1])
    >>> under_cap(np.array([1 * 3 + 2, 1 * 3 + 2, 0 * 3 + 2]), person, 1)
    array([5])
    """
    code = code[occurrence(code) == 0]
    left, right = divmod(code, len(person))
    return code[occurrence(couple(person[left], person[right], person)) < cap]


def couple(one: Ints, two: Ints, person: Ints) -> Ints:
    """Return a number for two people, the same for (one, two) and (two, one)."""
    return np.minimum(one, two) * (int(person.max()) + 1) + np.maximum(one, two)


def triangle(number: Ints) -> tuple[Ints, Ints]:
    """Return pair `number` in the list (0, 1), (0, 2), (1, 2), (0, 3) ….

    Examples
    --------
    >>> triangle(np.array([0, 1, 2, 3]))
    (array([0, 0, 1, 0]), array([1, 2, 2, 3]))
    """
    high = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # The root may be off by a rounding error.
    high -= high * (high - 1) // 2 > number
    high += high * (high + 1) // 2 <= number
    return number - high * (high - 1) // 2, high
