"""Who shares whom: pairs of one class, put together by the people in them.

Two pairs are dependent where they have a person in common. How many such couples there are follows
from the counts here; how alike they behave is estimated in `faircal.metrics.intervals.dependence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: With fewer people nothing can be said of how values vary with them.
FEWEST = 4


def unbiased(people: int, *, alone: bool) -> float:
    """Return what to multiply a variance over people by: their mean was estimated from them, too.

    `alone` is for sums over people; else it is for sums over two people each, less those of the
    couples (a U-statistic). There must be `FEWEST` people.

    Examples
    --------
    >>> unbiased(4, alone=True), unbiased(4, alone=False)
    (1.3333333333333333, 6.0)
    """
    n = people
    return n / (n - 1) if alone else n * (n - 1) / ((n - 2) * (n - 3))


@dataclass(frozen=True, eq=False)
class PeopleSharing:
    """Pairs of one class, all genuine or all imposter, sorted by the two people in them.

    Build it with `PeopleSharing.of`. A *dyad* is two people, or one person with himself; its pairs
    differ in the images.

    Parameters
    ----------
    order : ndarray of int64, shape (n_pairs,)
        Brings what is known of the pairs into the order of dyads.
    starts : ndarray of int64, shape (n_dyads,)
        Where each dyad's pairs begin in that order.
    one, two : ndarray of int64, shape (n_dyads,)
        The two people of each dyad, from 0; the same one twice for genuine pairs.

    Examples
    --------
    >>> shared = Sharing.of(np.array([0, 0, 1, 2]), np.array([1, 2, 0, 3]))
    >>> shared.pairs, shared.people, shared.sizes
    (4, 4, array([2., 1., 1.]))
    >>> shared.same_dyad, shared.one_person  # ordered couples of pairs
    (2.0, 6.0)
    """

    order: Int64
    starts: Int64
    one: Int64
    two: Int64

    @classmethod
    def of(cls, left: NDArray[np.integer], right: NDArray[np.integer]) -> PeopleSharing:
        """Put pairs together; people are any whole numbers from 0."""
        low = np.minimum(left, right).astype(np.int64)
        high = np.maximum(left, right).astype(np.int64)
        key = low * (int(high.max(initial=0)) + 1) + high
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        first = order[starts]
        codes = np.unique(np.concatenate([low[first], high[first]]), return_inverse=True)[1]
        one, two = np.split(codes, 2)
        return cls(order, starts, one, two)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.order)

    @cached_property
    def people(self) -> int:
        """The number of people."""
        return int(max(self.one.max(initial=-1), self.two.max(initial=-1))) + 1

    @cached_property
    def alone(self) -> bool:
        """Whether every pair shows one person only: genuine pairs."""
        return bool((self.one == self.two).all())

    @cached_property
    def sizes(self) -> Float64:
        """The number of pairs of each dyad."""
        return np.diff(self.starts, append=self.pairs).astype(np.float64)

    @cached_property
    def effective_people(self) -> float:
        """How many people who are each in equally many pairs tell as much: (Σ m)² / Σ m²."""
        m = self.per_person(self.sizes)
        return float(m.sum() ** 2 / (m**2).sum()) if self.pairs else 0.0

    @cached_property
    def same_dyad(self) -> float:
        """Ordered couples of different pairs of the same dyad."""
        return float((self.sizes**2).sum()) - self.pairs

    @cached_property
    def one_person(self) -> float:
        """Ordered couples of pairs of different dyads that have a person in common."""
        if self.alone:
            return 0.0
        m = self.per_person(self.sizes)
        return max(float((m**2).sum() - 2 * (self.sizes**2).sum()), 0.0)

    def per_dyad(self, values: NDArray[np.generic]) -> Float64:
        """Sum what is known of pairs, in the order in which they came, over each dyad."""
        if not self.pairs:
            return np.zeros(0)
        return np.add.reduceat(values[self.order].astype(np.float64), self.starts)

    def per_person(self, of_dyads: Float64) -> Float64:
        """Sum what is known of dyads over each person; a person alone counts once."""
        total = np.bincount(self.one, of_dyads, self.people).astype(np.float64)
        if not self.alone:
            total += np.bincount(self.two, of_dyads, self.people)
        return total
