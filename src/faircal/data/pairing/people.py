"""People and their images, their genuine pairs, and their folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import UNKNOWN
from faircal.data.folds import deal_people
from faircal.data.pairing.plan import Vectors
from faircal.data.pairing.sampling import Ints, choose, counting, triangle


@dataclass(frozen=True, eq=False)
class PersonImages:
    """The images of known people, those of a person next to each other.

    Attributes
    ----------
    image : ndarray of shape (n,)
        Rows of images; all other arrays number images by their place in this one.
    person : ndarray of shape (n,)
        The person in each image, 0…n_people−1, ascending.
    start, count : ndarray of shape (n_people,)
        Where the images of a person begin, and how many they are.
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

        Parameters
        ----------
        code : ndarray of shape (n,)
            In the order of `image`. Between equally frequent codes the smallest is taken.
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

    def deal(self, stratum: Ints, pairs: Ints, n_folds: int, rng: np.random.Generator) -> Ints:
        """Deal people to folds 1…`n_folds`, evenly within each stratum.

        Parameters
        ----------
        stratum, pairs : ndarray of shape (n_people,)
            The stratum of each person, and the genuine pairs they will give, which are their
            weight (then their images).
        """
        givers = int((pairs > 0).sum())
        if givers < n_folds:
            raise DataError(
                f"folds: expected at least {n_folds} people with two or more images, one for each "
                f"fold, found {givers}; ask for fewer folds (--folds) or add people"
            )
        return deal_people(stratum, pairs, self.count, n_folds=n_folds, rng=rng)


#: Pairs of a block.
_BLOCK = 8192


def how_alike(vectors: Vectors, who: PersonImages, fold: Ints, left: Ints, right: Ints) -> str:
    """Say how alike imposters are, and what that means for probabilities fitted to them.

    Parameters
    ----------
    vectors : ndarray of shape (n_images, d)
        Of unit length.
    fold : ndarray of shape (n_people,)
        The fold of each person, 0, 1, ….
    left, right : ndarray of shape (n_pairs,)
        Imposter pairs of all folds, as places in ``who.image``.
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
