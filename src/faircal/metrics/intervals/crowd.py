"""The pairs of one set with the people in them, and how sums over pairs vary with the people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.metrics.intervals.sharing import FEWEST, Float64, Int64, PeopleSharing, unbiased

#: Beyond so many factors of e from a value nothing is known of it.
_FAR = 20.0


class Spread(NamedTuple):
    """How a mean over pairs varies with the people: its variance, and how well that is known.

    `influence` is each person's share in it: its square sum is `variance`, so that with random
    numbers of mean 0 and variance 1, one a person, it makes replicates of the mean.
    """

    variance: float
    freedom: float
    influence: Float64

    def half(self, level: float) -> float:
        """Return half the width of the mean's interval, after Student."""
        return float(np.sqrt(self.variance) * stdtrit(self.freedom, (1 + level) / 2))

    def scaled(self, value: float, level: float) -> tuple[float, float]:
        """Return the interval of a mean loss, on the scale of its logarithm; NaN of none."""
        if not value > 0:
            return float("nan"), float("nan")
        times = float(np.exp(min(self.half(level) / value, _FAR)))
        return value / times, value * times


@dataclass(frozen=True, eq=False)
class Crowd:
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
    def of(cls, genuine: NDArray[np.bool_], people: Groups | None) -> Crowd:
        """Take people as groups of their images; one who is not known is nobody else."""
        if people is None:
            nobody = np.full(len(genuine), UNKNOWN, np.int32)
            people = Groups((), nobody, nobody)
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

    def part(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Crowd:
        """Return the pairs of `rows`; people keep their numbers."""
        return Crowd(self.genuine[rows], self.left[rows], self.right[rows], self.n_people)

    @cached_property
    def hits(self) -> Int64:
        """The rows of genuine pairs."""
        return np.flatnonzero(self.genuine)

    @cached_property
    def misses(self) -> Int64:
        """The rows of imposter pairs."""
        return np.flatnonzero(~self.genuine)

    @cached_property
    def hit_sharing(self) -> PeopleSharing:
        """Genuine pairs, by person."""
        return PeopleSharing.of(self.left[self.hits], self.right[self.hits])

    @cached_property
    def miss_sharing(self) -> PeopleSharing:
        """Imposter pairs, by the two people."""
        return PeopleSharing.of(self.left[self.misses], self.right[self.misses])

    @cached_property
    def _present(self) -> Int64:
        """The people of the set, as `spread` numbers them."""
        seen = np.zeros(self.n_people, np.bool_)
        seen[self.left] = seen[self.right] = True
        return np.flatnonzero(seen)

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self._present)

    def named(self, names: int) -> int:
        """Return the number of people who have one of the first `names` numbers."""
        return int((self._present < names).sum())

    def spread(self, residuals: Float64) -> Spread:
        """Return how the sum of `residuals`, one a pair and about 0 in all, varies with people.

        Parameters
        ----------
        residuals : ndarray of float64, shape (n_pairs,)
            How each pair moves the mean: (value − mean) / number of pairs.
        """
        total = np.zeros(self.n_people)
        hits, misses = self.hit_sharing, self.miss_sharing
        own = np.zeros(0)
        if hits.pairs:
            own = hits.per_dyad(residuals[self.hits])
            total += np.bincount(self.left[self.hits][hits.order[hits.starts]], own, self.n_people)
        dyads = np.zeros(0)
        if misses.pairs:
            dyads = misses.per_dyad(residuals[self.misses])
            first = self.misses[misses.order[misses.starts]]
            total += np.bincount(self.left[first], dyads, self.n_people)
            total += np.bincount(self.right[first], dyads, self.n_people)
        # A genuine pair counts with one person and an imposter pair with two, so sums over people
        # need not be about 0; what all have in common does not vary with who they are.
        total[self._present] -= total[self._present].mean()
        return self._spread(total, _squares(own), _squares(dyads))

    def _spread(self, total: Float64, own: float, dyads: float) -> Spread:
        """Turn sums over people into a variance.

        A dyad is counted with both of its people, once too often. With no person in common beyond
        the dyad, own and dyads are what is left: less than that is chance.
        """
        n, square = self.people, float((total**2).sum())
        if n < FEWEST or square == 0:
            return Spread(np.nan if n < FEWEST else 0.0, 3.0, total)
        variance = max((square - dyads) * unbiased(n, alone=not dyads), own + dyads)
        kurtosis = n * float(((total**2 / square) ** 2).sum())  # also where squares are tiny
        freedom = max(2 * n / max(kurtosis - 1, 1.0), 3.0)
        return Spread(variance, freedom, total * np.sqrt(variance / square))


def _squares(values: Float64) -> float:
    """Return the sum of squares about the mean."""
    return float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0
