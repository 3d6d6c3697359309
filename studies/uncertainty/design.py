"""Who is paired with whom: the same for every draw of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Design:
    """The pairs of one group: all genuine ones, and all imposters or some of them.

    Parameters
    ----------
    owner : ndarray of int64, shape (n_images,)
        The person in each image.
    imposter, genuine : ndarray of int64, shape (2, n_pairs)
        The two images of each pair.

    Examples
    --------
    >>> design = make_design(4, 2)
    >>> design.people, design.imposter.shape[1], design.genuine.shape[1]
    (4, 24, 4)
    """

    owner: Int64
    imposter: Int64
    genuine: Int64

    @property
    def people(self) -> int:
        """The number of people."""
        return int(self.owner[-1]) + 1

    @cached_property
    def pairs(self) -> Int64:
        """The two people of every pair, imposters first, shape (2, n_imposters + n_genuine)."""
        return np.asarray(self.owner[np.concatenate([self.imposter, self.genuine], axis=1)])

    @cached_property
    def couple(self) -> Int64:
        """The number of each imposter pair's two people."""
        left, right = self.owner[self.imposter]
        return np.unique(left * self.people + right, return_inverse=True)[1]

    @property
    def share(self) -> float:
        """The share of genuine pairs."""
        genuine, imposters = self.genuine.shape[1], self.imposter.shape[1]
        return float(genuine / (genuine + imposters))


@lru_cache(maxsize=4)
def make_design(people: int, images: int, imposters: int = 0) -> Design:
    """Return a design.

    Parameters
    ----------
    people : int
    images : int
        Of each person; 0 for 1, 2, … 6 by turns.
    imposters : int
        So many imposter pairs, drawn evenly; 0 for all.
    """
    counts = np.full(people, images) if images else 1 + np.arange(people) % 6
    owner = np.repeat(np.arange(people), counts)
    pairs = np.stack(np.triu_indices(len(owner), 1))
    same = owner[pairs[0]] == owner[pairs[1]]
    imposter = pairs[:, ~same]
    if imposters:
        rng = np.random.default_rng([people, images, imposters])
        imposter = imposter[:, np.sort(rng.choice(imposter.shape[1], imposters, replace=False))]
    return Design(owner, imposter, pairs[:, same])
