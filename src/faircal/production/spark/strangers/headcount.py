"""How many pairs of strangers there are between blocks of images, without going through any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from faircal.production.spark.strangers.dealing import cut, deal

Ints = NDArray[np.int64]

#: What the two images of a pair may be.
GROUPS = ("any", "within", "across")
#: Pairs of an item of work: at most, and at least where there are as many.
_ITEM, _LEAST = 10_000_000, 1 << 18
#: Items there are at least, where that makes none too small.
_ITEMS = 64


@dataclass(frozen=True, eq=False)
class Headcount:
    """How many images people have in groups, block by block; `of` makes one.

    Attributes
    ----------
    block, person, group, images : ndarray of shape (n,), int64
        Each line says that a person has so many more images of a group in a block; from 0.
    n_blocks : int
    """

    block: Ints
    person: Ints
    group: Ints
    images: Ints
    n_blocks: int

    @classmethod
    def of(
        cls,
        n_blocks: int,
        block: NDArray[np.integer],
        person: NDArray[np.integer],
        group: NDArray[np.integer] | None = None,
        images: NDArray[np.integer] | None = None,
    ) -> Headcount:
        """Leave out images of nobody known (−1) or of no known group.

        Without `group` all images are of one, without `images` each line is one image.
        """
        cell = np.zeros_like(person) if group is None else group
        number = np.ones_like(person) if images is None else images
        known = (person >= 0) & (cell >= 0)
        block, person, cell, number = (
            array[known].astype(np.int64) for array in (block, person, cell, number)
        )
        return cls(block, person, cell, number, n_blocks)

    def strangers(self, groups: str) -> Ints:
        """Return how many pairs of strangers each tile has, shape (n_blocks, n_blocks).

        Tile (i, j), i < j, is block i with block j, and tile (i, i) block i with itself; what is
        below the diagonal is 0.

        Parameters
        ----------
        groups : str
            The two images are of ``any`` groups, ``within`` one, or ``across`` two.

        Examples
        --------
        >>> block, person = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0, 0])
        >>> Headcount.of(2, block, person).strangers("any")
        array([[2, 3],
               [0, 0]])
        """
        # Pairs of the same person (or group, or both) are a product: images in one block times
        # images in the other, summed over people. Pairs of an image with itself cancel out.
        everybody = np.zeros_like(self.person)
        if groups == "any":
            pairs = self._alike(everybody) - self._alike(self.person)
        elif groups == "within":
            pairs = self._alike(self.group) - self._alike(self._home)
        else:
            pairs = self._alike(everybody) - self._alike(self.group)
            pairs += self._alike(self._home) - self._alike(self.person)
        pairs[np.diag_indices(self.n_blocks)] //= 2
        return np.triu(pairs)

    @property
    def _home(self) -> Ints:
        return self.person * (int(self.group.max(initial=0)) + 1) + self.group

    def _alike(self, code: Ints) -> Ints:
        """Count pairs, one image of each block, whose codes are equal."""
        names, column = np.unique(code, return_inverse=True)
        shape = (self.n_blocks, len(names))
        table = csr_array((self.images, (self.block, column)), shape=shape)
        return np.asarray((table @ table.T).toarray(), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Items:
    """Work to be done, an item an element: tile (i, j), and the pairs `start` … `stop` − 1 of it.

    `take` is how many of these are drawn; where all are taken, as many as there are.
    """

    i: Ints
    j: Ints
    start: Ints
    stop: Ints
    take: Ints

    @classmethod
    def of(cls, strangers: Ints, n: int | None, seed: int) -> Items:
        """Divide the pairs of all tiles, or `n` of them drawn without replacement.

        Depends on nothing but what is asked for: not on machines or cores.

        Parameters
        ----------
        strangers : ndarray of shape (n_blocks, n_blocks)
        n : int or None
            At most all.
        seed : int

        Examples
        --------
        >>> items = Items.of(np.array([[3, 4], [0, 0]]), 5, seed=0)
        >>> items.j.tolist(), items.stop.tolist(), int(items.take.sum())
        ([0, 1], [3, 4], 5)
        """
        i, j = np.nonzero(strangers)
        counts = strangers[i, j]
        total = int(counts.sum())
        wanted = total if n is None else n
        size = min(max(wanted // _ITEMS, _LEAST), _ITEM)
        pieces = np.ceil(counts * (wanted / max(total, 1)) / size).astype(np.int64)
        tile, start, stop = cut(counts, np.minimum(np.maximum(pieces, 1), counts))
        take = (
            stop - start if n is None else deal(n, stop - start, np.random.default_rng([seed, 1]))
        )
        some = take > 0
        return cls(i[tile][some], j[tile][some], start[some], stop[some], take[some])

    def __len__(self) -> int:
        return len(self.take)

    def item(self, number: int) -> tuple[int, int, int, int, int]:
        """Return i, j, start, stop and take of one item."""
        found = (self.i, self.j, self.start, self.stop, self.take)
        i, j, start, stop, take = (int(column[number]) for column in found)
        return i, j, start, stop, take
