"""Dealing a sample without replacement over parts of a population, whatever their sizes.

NumPy draws hypergeometric numbers up to a population of 10⁹ only; a gallery of ten million images
has 5 · 10¹³ pairs. Here a binomial number is drawn, and accepted as often as the hypergeometric
distribution has it (at least two times in three).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from faircal.data.pairing.sampling import counting

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def deal(n: int, sizes: ArrayLike, rng: np.random.Generator) -> Ints:
    """Return how many of `n` things, drawn without replacement, are of each part.

    Parameters
    ----------
    n : int
        At most the sum of `sizes`.
    sizes : array of shape (n_parts,), int
        Their sum below 2⁵³.

    Examples
    --------
    >>> deal(5, [3, 0, 2], np.random.default_rng(0))
    array([3, 0, 2])
    >>> dealt = deal(10**9, [10**14, 3 * 10**14], np.random.default_rng(0))
    >>> dealt.sum(), bool(abs(dealt[0] - 250_000_000) < 100_000)
    (np.int64(1000000000), True)
    """
    levels = [np.asarray(sizes, dtype=np.int64)]
    # Halves, quarters, …: what falls to a half is dealt over its halves in turn.
    while len(levels[-1]) > 1:
        level = levels[-1]
        level = np.append(level, np.zeros(len(level) % 2, dtype=np.int64))
        levels.append(level[::2] + level[1::2])
    shares = np.full(len(levels[-1]), n, dtype=np.int64)
    for level in reversed(levels[:-1]):
        one = level[::2]
        two = np.append(level[1::2], np.zeros(len(level) % 2, dtype=np.int64))
        drawn = hypergeometric(one, two, shares, rng)
        shares = np.stack([drawn, shares - drawn], axis=1).ravel()[: len(level)]
    return shares


def hypergeometric(good: Ints, bad: Ints, n: Ints, rng: np.random.Generator) -> Ints:
    """Draw how many of `n` things, taken without replacement from good and bad ones, are good.

    Parameters
    ----------
    good, bad, n : ndarray of one shape, int64
        n ≤ good + bad < 2⁵³. Up to n = 10¹⁰ or so the chance of each number is right to a
        millionth of itself: rounding, nothing else.
    """
    total = good + bad
    # As well the good ones among those that are left: the fewer are drawn the more are accepted.
    rest = n > total - n
    k = np.where(rest, total - n, n)
    drawn = np.where(bad == 0, k, 0)
    left = np.flatnonzero((good > 0) & (bad > 0) & (k > 0))
    share = good / np.maximum(total, 1)
    middle = np.floor(share * (k - 1)).astype(np.int64)
    best = np.max([_log_ratio(good, bad, k, middle + step) for step in range(3)], axis=0)
    while len(left):
        found = rng.binomial(k[left], share[left])
        chance = np.exp(_log_ratio(good[left], bad[left], k[left], found) - best[left])
        taken = rng.random(len(left)) < chance
        drawn[left[taken]] = found[taken]
        left = left[~taken]
    return np.where(rest, good - drawn, drawn)


def _log_ratio(good: Ints, bad: Ints, n: Ints, x: Ints) -> Floats:
    """Return the log of hypergeometric over binomial chance of `x`, but for a constant."""
    return _falling(good, x) + _falling(bad, n - x)


def _falling(m: Ints, k: Ints) -> Floats:
    """Return log(m (m − 1) … (m − k + 1) / mᵏ); −∞ where k is no number of things of m.

    By Stirling's formula, in which the terms as large as m log m have been cancelled by hand.
    """
    within = (k >= 0) & (k <= m)
    size = np.maximum(m, 1).astype(np.float64)
    taken = np.where(within, k, 0).astype(np.float64)
    left = size - taken
    some = np.maximum(left, 1)
    usual = -(left + 0.5) * np.log1p(-np.where(left > 0, taken, 0) / size) - taken - _error(some)
    none_left = 0.5 * np.log(size) - taken + _HALF_LOG_2PI
    found = np.where(left > 0, usual, none_left) + _error(size)
    return np.where(within, np.where(m > 0, found, 0), -np.inf)


def _error(n: Floats) -> Floats:
    """Return how far log n! is above Stirling's formula; n from 1."""
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * n**2)) / n**2) / n**2) / n
    few = np.minimum(n, 16)
    exact = gammaln(few + 1) - ((few + 0.5) * np.log(few) - few + _HALF_LOG_2PI)
    return np.where(n < 16, exact, series)


def ranges(start: int, stop: int, n: int) -> tuple[Ints, Ints]:
    """Divide `start` … `stop` − 1 into `n` ranges of almost equal size; return where each is.

    Examples
    --------
    >>> ranges(10, 20, 3)
    (array([10, 14, 17]), array([14, 17, 20]))
    """
    size, more = divmod(stop - start, max(n, 1))
    number = np.arange(n + 1, dtype=np.int64)
    ends = start + number * size + np.minimum(number, more)
    return ends[:-1], ends[1:]


def cut(counts: Ints, pieces: Ints) -> tuple[Ints, Ints, Ints]:
    """Divide the numbers 0 … counts − 1 of each row into pieces; return row, start and stop.

    Examples
    --------
    >>> cut(np.array([5, 0, 4]), np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 3, 0]), array([3, 5, 4]))
    """
    row, number = counting(pieces)
    size, more = np.divmod(counts, np.maximum(pieces, 1))
    start = number * size[row] + np.minimum(number, more[row])
    return row, start, start + size[row] + (number < more[row])
