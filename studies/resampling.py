"""Intervals over people: what would be measured had other people been in the test pairs.

The people of a test fold are drawn again with replacement. An imposter pair then counts as often as
its two people were drawn, multiplied; a genuine pair as often as its person. Weights are whole
numbers, so that the library's own metrics of counted pairs serve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal.data import Dataset
from faircal.metrics import (
    Ranking,
    aad,
    fpr_at_threshold,
    ks,
    mean,
    threshold_at_fpr,
)

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Of these, replicates are made.
REPLICATED = ("ks", "ks_mean", "fpr_aad@0.001", "fpr_aad@0.01")
RATES = (0.001, 0.01)
REPLICATES = 300


@dataclass(frozen=True, eq=False)
class People:
    """Who is in the pairs: numbers of people from 0 to `n` - 1, for both sides."""

    left: Int64
    right: Int64
    n: int

    @classmethod
    def of(cls, data: Dataset) -> People:
        """Number the people of `data`, which must know them."""
        identity = data.images.identity
        if identity is None:
            raise ValueError(f"{data.name}: expected identities, found none; drop the intervals")
        sides = np.stack([identity.codes[data.pairs.left], identity.codes[data.pairs.right]])
        names, codes = np.unique(sides, return_inverse=True)
        left, right = codes.reshape(sides.shape)
        return cls(left, right, len(names))

    def weights(self, count: Int64) -> Int64:
        """Return how often each pair counts where person i was drawn ``count[i]`` times."""
        one, two = count[self.left], count[self.right]
        return np.where(self.left == self.right, one, one * two)

    def drawn(self, n: int, seed: int) -> Iterator[Int64]:
        """Draw the people again `n` times; the same seed gives the same people.

        Thus methods that were fitted in different runs are compared on the same people.
        """
        rng = np.random.default_rng([seed, 77])
        for _ in range(n):
            yield np.bincount(rng.integers(self.n, size=self.n), minlength=self.n)


class Sorted:
    """Values sorted once; `ranking` counts pairs by weight."""

    def __init__(self, values: Float64, genuine: NDArray[np.bool_], rows: NDArray[np.intp]) -> None:
        self._distinct, at = np.unique(values[rows], return_inverse=True)
        self._hit, self._miss = rows[genuine[rows]], rows[~genuine[rows]]
        self._hit_at, self._miss_at = at[genuine[rows]], at[~genuine[rows]]

    def ranking(self, weight: Int64) -> Ranking:
        """Return the ranking in which each pair is there ``weight`` times, or not at all."""
        n = len(self._distinct)
        hit = np.bincount(self._hit_at, weight[self._hit], n).astype(np.int64)
        miss = np.bincount(self._miss_at, weight[self._miss], n).astype(np.int64)
        some = hit + miss > 0
        return Ranking.counted(self._distinct[some], hit[some], miss[some])


class Weighted:
    """The metrics of `REPLICATED` for any weights of the pairs.

    Parameters
    ----------
    score, probability : ndarray of shape (n_pairs,)
    genuine : ndarray of shape (n_pairs,), bool
    group : ndarray of shape (n_pairs,), int
        The group of each pair; -1 for none.
    upper : float
        Upper end of the score range.
    """

    def __init__(
        self,
        score: Float64,
        probability: Float64,
        genuine: NDArray[np.bool_],
        group: NDArray[np.integer],
        upper: float = 1.0,
    ) -> None:
        sets = [np.arange(len(genuine))]
        sets += [np.flatnonzero(group == g) for g in range(int(group.max()) + 1)]
        self._scores = [Sorted(score, genuine, rows) for rows in sets]
        self._probabilities = [Sorted(probability, genuine, rows) for rows in sets]
        self._upper = upper

    def measure(self, weight: Int64) -> dict[str, float]:
        """Return the metrics; a group that nobody was drawn of is left out of deviations."""
        calibration = [ks(found.ranking(weight)) for found in self._probabilities]
        overall, *groups = (found.ranking(weight) for found in self._scores)
        at = threshold_at_fpr(overall, RATES, upper=self._upper)
        fpr = np.array([fpr_at_threshold(one, at, upper=self._upper) for one in groups])
        values = {"ks": calibration[0], "ks_mean": mean(calibration[1:])}
        for rate, column in zip(RATES, fpr.T, strict=True):
            values[f"fpr_aad@{rate:g}"] = aad(column)
        return values


def replicate(metrics: Weighted, people: People, n: int, seed: int) -> dict[str, list[float]]:
    """Return `n` replicates of every metric."""
    found = [metrics.measure(people.weights(count)) for count in people.drawn(n, seed)]
    return {name: [values[name] for values in found] for name in REPLICATED}
