"""People, their images and genuine pairs, and the tools by which pairs are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import UNKNOWN

Ints = NDArray[np.int64]
Vectors = NDArray[np.float32]

#: Pairs of a block.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class PersonImages:
    """The images of known people, those of a person next to each other.

    `image` are rows of images; all other arrays number images by their place in this one. `person`
    is the person in each, 0…n_people−1, ascending. The images of a person begin at `start`, and are
    `count` many.
    """

    image: NDArray[np.intp]
    person: Ints
    start: Ints
    count: Ints

    @classmethod
    def of(cls, codes: NDArray[np.integer]) -> PersonImages:
        """Put the images of known people in order."""
        image = np.argsort(codes, kind="stable")
        image = image[np.searchsorted(codes[image], UNKNOWN, side="right") :]
        if not len(image):
            raise DataError(
                "identities: expected images of known people, found none; "
                "give the images an identity"
            )
        _, start, person, count = np.unique(
            codes[image], return_index=True, return_inverse=True, return_counts=True
        )
        return cls(image, person.astype(np.int64), start.astype(np.int64), count.astype(np.int64))

    def __len__(self) -> int:
        return len(self.count)

    def possible(self) -> Ints:
        """Return the number of genuine pairs that each person could give."""
        return self.count * (self.count - 1) // 2

    def genuine_pairs(self, most: int | None, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return genuine pairs, at most `most` a person, as numbers of images left < right."""
        possible = self.possible()
        many = np.zeros(len(self), dtype=bool) if most is None else possible > most
        person, number = counting(np.where(many, 0, possible))
        if most is not None and many.any():
            drawn = choose(possible[many], most, rng)
            person = np.concatenate([person, np.repeat(np.flatnonzero(many), most)])
            number = np.concatenate([number, drawn.ravel()])
        left, right = triangle(number)
        return self.start[person] + left, self.start[person] + right

    def strata(self, code: NDArray[np.integer]) -> tuple[Ints, int]:
        """Return the most frequent code of each person's images, and how many people have several.

        `code` is in the order of `image`. Between equally frequent codes the smallest is taken.
        """
        values, code = np.unique(code, return_inverse=True)
        cell, times = np.unique(self.person * len(values) + code, return_counts=True)
        person, stratum = divmod(cell, len(values))
        order = np.lexsort((-times, person))  # stable: the smaller code stays in front
        _, first, several = np.unique(person, return_index=True, return_counts=True)
        return stratum[order][first].astype(np.int64), int((several > 1).sum())

    def given_folds(self, code: NDArray[np.integer]) -> Ints:
        """Return each person's fold, all of whose images must be in one."""
        fold = code[self.start].astype(np.int64)
        leaks = len(np.unique(self.person[fold[self.person] != code]))
        if leaks:
            raise DataError(
                f"folds: expected all images of a person in one fold, found {leaks:,} of "
                f"{len(self):,} people in several (leakage); correct the folds, or leave them out "
                "to have them drawn"
            )
        return fold


def how_alike(vectors: Vectors, who: PersonImages, fold: Ints, left: Ints, right: Ints) -> str:
    """Say how alike imposters are, and what that means for probabilities fitted to them.

    `vectors` are of all images, of unit length; `fold` is that of each person, 0, 1, …; `left` and
    `right` are the imposter pairs of all folds, as places in ``who.image``.
    """
    mean = at_random = 0.0
    home = fold[who.person]
    for number, pairs in enumerate(np.bincount(home[left])):
        at_random += float(
            pairs * _mean_of_different_people(vectors, who, np.flatnonzero(home == number))
        )
    for begin in range(0, len(left), _BLOCK):
        one, two = (_rows(vectors, who, side[begin : begin + _BLOCK]) for side in (left, right))
        mean += float(np.einsum("ij,ij->", one, two, dtype=np.float64))
    mean, at_random = mean / len(left), at_random / len(left)
    note = f"likeness: mean cosine {mean:.3f} of imposters, {at_random:.3f} of strangers at random"
    if mean <= at_random:
        return note
    return f"{note}; where use compares anybody, probabilities fitted to these pairs are too low"


def _mean_of_different_people(vectors: Vectors, who: PersonImages, places: Ints) -> float:
    """Return the mean cosine of all pairs of strangers among images, without listing pairs."""
    person = who.person[places]
    start = np.flatnonzero(np.diff(person, prepend=-1))
    images = np.diff(start, append=len(person)).astype(np.float64)
    each = np.add.reduceat(_rows(vectors, who, places), start, axis=0, dtype=np.float64)
    both = each.sum(axis=0)
    number = images.sum() ** 2 - (images**2).sum()
    return float((both @ both - np.einsum("ij,ij->", each, each)) / number)


def _rows(vectors: Vectors, who: PersonImages, places: Ints) -> Vectors:
    return np.asarray(vectors[who.image[places]], dtype=np.float32)


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
