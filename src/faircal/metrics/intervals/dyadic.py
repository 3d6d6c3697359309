"""Variances over people: pairs put together by who is in them, and sums over pairs.

Two pairs are dependent where they have a person in common. The variance of a sum over pairs is that
of dyadic data (Fafchamps and Gubert, 2007; Aronow, Samii and Assenova, 2015): squares of the sums
over each person, less those over each two people, which are counted with both. How alike pairs
behave is estimated in `faircal.metrics.intervals.dependence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from faircal.data import Groups
from faircal.data.columns import UNKNOWN

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: With fewer people nothing can be said of how values vary with them: `unbiased` divides by n − 3.
FEWEST = 4
#: A loss may be off by a factor of e^20 at most; beyond, exp only overflows.
_LARGEST_LOG_RATIO = 20.0
#: People whose random numbers are held in memory at a time (16 MB for 1,000 replicates).
_PEOPLE_AT_A_TIME = 4096


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


class Dyads:
    """Pairs of one class, all genuine or all imposter, sorted by the two people in them.

    A *dyad* is two people, or one person with himself; its pairs differ in the images.

    Parameters
    ----------
    left, right : ndarray of int, shape (n_all,)
        The two people of each pair: any whole numbers from 0.
    rows : ndarray of int64, shape (n_pairs,), optional
        Which of these pairs; all unless given.

    Attributes
    ----------
    pairs, people : int
        How many pairs there are, and people in them.
    order : ndarray of int64, shape (n_pairs,)
        Brings values of the pairs into the order of dyads.
    starts, sizes : ndarrays of int64 and float64, shape (n_dyads,)
        Where each dyad's pairs begin in that order, and how many they are.
    one, two : ndarray of int64, shape (n_dyads,)
        The two people of each dyad, from 0; the same one twice for genuine pairs.
    alone : bool
        Whether every pair shows one person only: genuine pairs.
    effective_people : float
        Effective number of people, (Σ m)² / Σ m² for m pairs of each (Kish).
    same_dyad, one_person : float
        C₂ and C₁: ordered couples of different pairs of the same dyad, and of pairs of different
        dyads that have a person in common.

    Examples
    --------
    >>> dyads = Dyads(np.array([0, 0, 1, 2]), np.array([1, 2, 0, 3]))
    >>> dyads.pairs, dyads.people, dyads.sizes
    (4, 4, array([2., 1., 1.]))
    >>> dyads.same_dyad, dyads.one_person
    (2.0, 6.0)
    """

    def __init__(
        self,
        left: NDArray[np.integer],
        right: NDArray[np.integer],
        rows: Int64 | None = None,
    ) -> None:
        self.rows = np.arange(len(left)) if rows is None else rows
        self.pairs = len(self.rows)
        left, right = left[self.rows], right[self.rows]
        low = np.minimum(left, right).astype(np.int64)
        high = np.maximum(left, right).astype(np.int64)
        key = low * (int(high.max(initial=0)) + 1) + high
        self.order = np.argsort(key, kind="stable")
        self.starts = np.flatnonzero(np.diff(key[self.order], prepend=-1))
        self.sizes = np.diff(self.starts, append=self.pairs).astype(np.float64)
        first = self.order[self.starts]
        names, codes = np.unique(np.concatenate([low[first], high[first]]), return_inverse=True)
        self.people = len(names)
        self.one, self.two = np.split(codes, 2)
        self.alone = bool((self.one == self.two).all())
        each = self.per_person(self.sizes)
        square, of_dyads = float((each**2).sum()), float((self.sizes**2).sum())
        self.effective_people = float(each.sum() ** 2 / square) if self.pairs else 0.0
        self.same_dyad = of_dyads - self.pairs
        # Couples of one dyad are among those of both of its people.
        self.one_person = 0.0 if self.alone else max(square - 2 * of_dyads, 0.0)

    @cached_property
    def dyad_of(self) -> Int64:
        """The dyad of each pair, in the order in which they came."""
        dyad = np.empty(self.pairs, np.int64)
        dyad[self.order] = np.repeat(np.arange(len(self.starts)), self.sizes.astype(np.int64))
        return dyad

    def per_dyad(self, values: NDArray[np.generic]) -> Float64:
        """Sum values of pairs, in the order in which they came, over each dyad."""
        if not self.pairs:
            return np.zeros(0)
        return np.add.reduceat(values[self.order].astype(np.float64), self.starts)

    def per_person(self, of_dyads: Float64) -> Float64:
        """Sum values of dyads over each person; a person alone counts once."""
        total = np.bincount(self.one, of_dyads, self.people).astype(np.float64)
        if not self.alone:
            total += np.bincount(self.two, of_dyads, self.people)
        return total


class PeopleVariance(NamedTuple):
    """How a mean over pairs varies with the people: its variance, and how well that is known.

    `freedom` are the degrees of freedom of `variance`. `influence` is each person's share in it:
    its square sum is `variance`, so that with random numbers of mean 0 and variance 1, one a
    person, it makes replicates of the mean.
    """

    variance: float
    freedom: float
    influence: Float64

    def interval(self, value: float, level: float, *, loss: bool = False) -> tuple[float, float]:
        """Return the interval of a mean, after Student; NaN of a loss that is not above 0.

        That of a mean `loss` is made on the scale of its logarithm: there d log x = dx / x, and no
        loss has a negative lower end.
        """
        half = float(np.sqrt(self.variance) * stdtrit(self.freedom, (1 + level) / 2))
        if not loss:
            return value - half, value + half
        if not value > 0:
            return float("nan"), float("nan")
        times = float(np.exp(min(half / value, _LARGEST_LOG_RATIO)))
        return value / times, value * times


@dataclass(frozen=True, eq=False)
class IdentifiedPairs:
    """Pairs of one set, and who is in them.

    Parameters
    ----------
    genuine : ndarray of bool, shape (n_pairs,)
    left, right : ndarray of int64, shape (n_pairs,)
        People by number.
    n_people : int
        More than the largest number.
    """

    genuine: NDArray[np.bool_]
    left: Int64
    right: Int64
    n_people: int

    @classmethod
    def of(cls, genuine: NDArray[np.bool_], people: Groups | None) -> IdentifiedPairs:
        """Take people as groups of their images; each unknown one counts as a distinct person."""
        if people is None:
            unknown_side = np.full(len(genuine), UNKNOWN, np.int32)
            people = Groups((), unknown_side, unknown_side)
        sides = np.stack([people.left, people.right]).astype(np.int64)
        unknown = sides == UNKNOWN
        names = len(people.names)
        sides[unknown] = names + np.arange(int(unknown.sum()))
        # Of a genuine pair both are one person, also where only one side, or none, is known.
        left = np.where(genuine & unknown[0], sides[1], sides[0])
        right = np.where(genuine, left, sides[1])
        # Labels that contradict the names: of an imposter pair the right side is somebody else.
        count = names + int(unknown.sum())
        wrong = np.flatnonzero(~genuine & (left == right))
        right[wrong] = count + np.arange(len(wrong))
        return cls(genuine, left, right, count + len(wrong))

    def part(self, rows: NDArray[np.integer] | NDArray[np.bool_] | slice) -> IdentifiedPairs:
        """Return the pairs of `rows`; people keep their numbers."""
        return IdentifiedPairs(self.genuine[rows], self.left[rows], self.right[rows], self.n_people)

    @cached_property
    def trials(self) -> dict[str, Dyads]:
        """The pairs that an error rate counts: imposter pairs for ``fpr``, genuine for ``fnr``."""
        rows = {"fnr": np.flatnonzero(self.genuine), "fpr": np.flatnonzero(~self.genuine)}
        return {metric: Dyads(self.left, self.right, of) for metric, of in rows.items()}

    @cached_property
    def people(self) -> Int64:
        """The people who are in a pair of the set, ascending."""
        present = np.zeros(self.n_people, np.bool_)
        present[self.left] = present[self.right] = True
        return np.flatnonzero(present)

    def spread(self, residuals: Float64) -> PeopleVariance:
        """Return how the sum of `residuals`, one a pair and about 0 in all, varies with people.

        A dyad is counted with both of its people, once too often. With no person in common beyond
        the dyad, dyads alone are what is left: less than that is chance.

        Parameters
        ----------
        residuals : ndarray of float64, shape (n_pairs,)
            How each pair moves the mean: (value − mean) / number of pairs.
        """
        total = np.zeros(self.n_people)
        about_mean = dict.fromkeys(self.trials, 0.0)
        for metric, dyads in self.trials.items():
            of_class = residuals[dyads.rows]
            if not of_class.any():  # as those of a rate of the other class
                continue
            sums = dyads.per_dyad(of_class)
            first = dyads.rows[dyads.order[dyads.starts]]
            for side in (self.left,) if metric == "fnr" else (self.left, self.right):
                total += np.bincount(side[first], sums, self.n_people)
            about_mean[metric] = float(((sums - sums.mean()) ** 2).sum())
        # A genuine pair counts with one person and an imposter pair with two, so sums over people
        # need not be about 0; what all have in common does not vary with who they are.
        total[self.people] -= total[self.people].mean()
        n, square = len(self.people), float((total**2).sum())
        if n < FEWEST or square == 0:
            return PeopleVariance(np.nan if n < FEWEST else 0.0, 3.0, total)
        alone, shared = about_mean["fnr"], about_mean["fpr"]
        variance = max((square - shared) * unbiased(n, alone=not shared), alone + shared)
        # A variance of n terms with kurtosis κ has 2 n / (κ − 1) degrees of freedom, that is n for
        # normal ones (κ = 3); 3 is the least at which Student's t has a variance.
        kurtosis = n * float(((total**2 / square) ** 2).sum())  # also where squares are tiny
        freedom = max(2 * n / max(kurtosis - 1, 1.0), 3.0)
        return PeopleVariance(variance, freedom, total * np.sqrt(variance / square))


def replicates(
    influence: Float64, names: Sequence[str], n: int, seed: int = 0
) -> NDArray[np.float32]:
    """Return replicates of values, less the values: what other people would have changed.

    A replicate of a value is the value and the sum of what each person moves it by, times a random
    number of his (a multiplier bootstrap over people). The numbers are made from his name alone:
    two methods, or two runs on different machines, thus have the same people more or less often in
    the same replicates, and differences between them are as sure as people in common make them.

    Parameters
    ----------
    influence : ndarray of float64, shape (n_people, n_values)
        What each person moves each value by; see `PeopleVariance`.
    names : sequence of str, of length n_people
    n : int
        The number of replicates.

    Returns
    -------
    ndarray of float32, shape (n, n_values)
    """
    noise = np.zeros((n, influence.shape[1]), np.float32)
    moving = np.flatnonzero(influence.any(axis=1))
    for start in range(0, len(moving), _PEOPLE_AT_A_TIME):
        rows = moving[start : start + _PEOPLE_AT_A_TIME]
        numbers = np.empty((len(rows), n), np.float32)
        for row, drawn in zip(rows, numbers, strict=True):
            name = f"{seed}/{names[row]}".encode()
            key = int.from_bytes(blake2b(name, digest_size=16).digest())
            np.random.Generator(np.random.Philox(key=key)).standard_normal(
                dtype=np.float32, out=drawn
            )
        noise += numbers.T @ influence[rows].astype(np.float32)
    return noise
