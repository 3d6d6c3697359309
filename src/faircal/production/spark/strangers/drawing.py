"""Pairs of strangers among the images of a tile: all of them, or some, drawn evenly.

Images are put in order of group and person. What an image may not be paired with (its person, its
group) then lies in runs, so that all allowed pairs can be numbered without going through them:
those of the first image on the left come first, each with the images on the right that are left
over when the runs are jumped over. Drawing pairs is drawing numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal.production.spark.strangers.dealing import deal, ranges
from faircal.production.spark.strangers.homes import Across, Homes, Within

Ints = NDArray[np.int64]
Pairs = tuple[Ints, Ints]

#: Pairs made at a time, about.
PART = 1 << 18
#: Listed pairs are of so many images on the left and on the right at a time: both stay in the cache
#: while they are compared.
_EDGE = 512
#: Where there are more places than that for each allowed pair, they are not gone through.
_SPARSE = 8


@dataclass(frozen=True, eq=False)
class Strangers:
    """All allowed pairs of a tile, numbered from 0; `of` makes one.

    Attributes
    ----------
    left, right : ndarray of shape (n_left,), (n_right,)
        Places in the tile, in order of group and person; the same in a tile of one block.
    home : ndarray of shape (n_left,)
        Of the images on the left.
    before : ndarray of shape (n_left + 1,)
        How many pairs the images further left have.
    homes : Homes
        Who may be paired with whom.
    """

    left: Ints
    right: Ints
    home: Ints
    before: Ints
    homes: Homes

    @classmethod
    def of(
        cls,
        person: NDArray[np.integer],
        group: NDArray[np.integer] | None = None,
        first: int | None = None,
        across: bool = False,
    ) -> Strangers:
        """Number the pairs of images of different people.

        Parameters
        ----------
        person : ndarray of shape (n,), int
            The person in each image; one of nobody known (−1) is in no pair.
        group : ndarray of shape (n,), int, optional
            Both images of a pair are of one group; one of none known (−1) is in no pair.
        first : int, optional
            Images of the first block; they meet those of the second. None: there is one block,
            whose images meet each other.
        across : bool
            The images of a pair are of two groups instead.

        Examples
        --------
        >>> pairs = Strangers.of(np.array([0, 1, 1, 2]))
        >>> len(pairs), [side.tolist() for side in pairs.numbered(np.arange(5))]
        (5, [[0, 0, 0, 1, 2], [1, 2, 3, 3, 3]])
        """
        cell = np.zeros(len(person), dtype=np.int64) if group is None else group
        known = np.flatnonzero((person >= 0) & (cell >= 0)).astype(np.int64)
        order = known[np.lexsort((person[known], cell[known]))]
        person, cell = person[order], cell[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (person[1:] != person[:-1]) | (cell[1:] != cell[:-1])
        home = np.cumsum(new, dtype=np.int64) - 1
        left = np.ones(len(order), dtype=bool) if first is None else order < first
        right = left if first is None else ~left
        kind = Across if across else Within
        homes = kind(person[new], cell[new], home[right], first is None)
        before = np.zeros(int(left.sum()) + 1, dtype=np.int64)
        np.cumsum(homes.allowed[home[left]], out=before[1:])
        return cls(order[left], order[right], home[left], before, homes)

    def __len__(self) -> int:
        return int(self.before[-1])

    def numbered(self, numbers: Ints) -> Pairs:
        """Return the pairs of these numbers, as places in the tile."""
        at = np.searchsorted(self.before, numbers, side="right") - 1
        right = self.homes.place(self.home[at], numbers - self.before[at])
        return self.left[at], self.right[right]

    def listed(self, start: int, stop: int) -> Iterator[Pairs]:
        """Yield all pairs of the images on the left whose pairs begin at `start` … `stop` − 1.

        So each pair comes once where ranges divide all numbers; a range may have up to an image's
        pairs more or less than numbers.
        """
        rows = np.searchsorted(self.before[:-1], [start, stop], side="left")
        for begin in range(int(rows[0]), int(rows[1]), _EDGE):
            end = min(begin + _EDGE, int(rows[1]))
            homes, pairs = self.home[begin:end], int(self.before[end] - self.before[begin])
            low, high = self.homes.reach(int(homes[0]), int(homes[-1]))
            if (end - begin) * (high - low) > _SPARSE * pairs:
                yield from self._in_turn(int(self.before[begin]), int(self.before[end]))
                continue
            for near in range(low, high, _EDGE):
                at, by = np.nonzero(self.homes.meet(homes, near, min(near + _EDGE, high)))
                if len(at):
                    yield self.left[begin + at], self.right[near + by]

    def _in_turn(self, start: int, stop: int) -> Iterator[Pairs]:
        for begin in range(start, stop, PART):
            yield self.numbered(np.arange(begin, min(begin + PART, stop)))

    def drawn(self, start: int, stop: int, n: int, rng: np.random.Generator) -> Iterator[Pairs]:
        """Yield `n` of the pairs `start` … `stop` − 1, every set of them equally likely."""
        begin, end = ranges(start, stop, -(-n // PART))
        for low, high, some in zip(begin, end, deal(n, end - begin, rng), strict=True):
            if some:
                yield self.numbered(low + some_of(int(high - low), int(some), rng))


def some_of(n: int, k: int, rng: np.random.Generator) -> Ints:
    """Choose `k` of the numbers 0 … n − 1 without repeats, every set equally likely; ascending.

    Examples
    --------
    >>> some_of(5, 5, np.random.default_rng(0))
    array([0, 1, 2, 3, 4])
    """
    if n <= 2 * k:  # drawing again could take long: leave some out instead
        left = np.ones(n, dtype=bool)
        left[rng.permutation(n)[k:]] = False
        return np.flatnonzero(left).astype(np.int64)
    # The first k different numbers of an endless draw: all sets of k are equally likely.
    chosen = np.sort(rng.integers(n, size=k))
    while True:
        repeated = np.flatnonzero(chosen[1:] == chosen[:-1])
        if not len(repeated):
            return chosen
        chosen[repeated] = rng.integers(n, size=len(repeated))
        chosen.sort(kind="stable")  # which is quick where nearly all are in order
