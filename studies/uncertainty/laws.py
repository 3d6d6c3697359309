"""Laws of scores: what is true of a population, whoever is drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
_TENS = 10


@dataclass(frozen=True, eq=False)
class Law:
    """How imposter and genuine scores of one group are distributed, on a fine grid.

    Parameters
    ----------
    edges : ndarray of float64, shape (n_cells + 1,)
    imposter, genuine : ndarray of float64, shape (n_cells,)
        How much of each class is in each cell; each adds up to 1.

    Examples
    --------
    >>> law = Law(np.array([0.0, 1.0, 2.0]), np.array([0.9, 0.1]), np.array([0.2, 0.8]))
    >>> law.fpr(1.0), law.fnr(1.0), round(law.auroc, 2)
    (0.1, 0.2, 0.85)
    """

    edges: Float64
    imposter: Float64
    genuine: Float64

    @property
    def scores(self) -> Float64:
        """The middle of each cell."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @cached_property
    def _passing(self) -> Float64:
        """The share of imposters at each edge and above."""
        return np.append(np.cumsum(self.imposter[::-1])[::-1], 0.0)

    @cached_property
    def _falling(self) -> Float64:
        """The share of genuine pairs below each edge."""
        return np.append(0.0, np.cumsum(self.genuine))

    def threshold(self, rate: float) -> float:
        """Return the edge at which the rate of false positives is nearest to `rate`."""
        return float(self.edges[np.argmin(np.abs(self._passing - rate))])

    def fpr(self, threshold: float) -> float:
        """Return the rate of false positives; exact at an edge."""
        return float(np.interp(threshold, self.edges, self._passing))

    def fnr(self, threshold: float) -> float:
        """Return the rate of false negatives; exact at an edge."""
        return float(np.interp(threshold, self.edges, self._falling))

    @cached_property
    def auroc(self) -> float:
        """How often a genuine pair scores higher than an imposter."""
        below = np.cumsum(self.imposter) - self.imposter / 2
        return float(below @ self.genuine)

    def calibration(self, probability: Float64, share: float) -> dict[str, float]:
        """Return KS, ECE (ten bins of equal mass), Brier score and NLL.

        Parameters
        ----------
        probability : ndarray of float64, shape (n_cells,)
            What is said of each cell.
        share : float
            The share of genuine pairs.
        """
        hits, misses = share * self.genuine, (1 - share) * self.imposter
        order = np.argsort(probability, kind="stable")
        off = np.append(0.0, np.cumsum((probability * (hits + misses) - hits)[order]))
        mass = np.append(0.0, np.cumsum((hits + misses)[order]))
        cuts = np.interp(np.linspace(0, mass[-1], _TENS + 1), mass, off)
        loss = -hits @ np.log(probability) - misses @ np.log1p(-probability)
        return {
            "ks": float(np.abs(off).max()),
            "ece": float(np.abs(np.diff(cuts)).sum()),
            "brier": float(hits @ (1 - probability) ** 2 + misses @ probability**2),
            "nll": float(loss),
        }


def together(laws: list[Law], imposters: list[int], genuine: list[int]) -> Law:
    """Return the law of all groups' pairs, each group by its number of pairs."""
    both = [
        sum(n * mass for n, mass in zip(counts, masses, strict=True)) / max(sum(counts), 1)
        for counts, masses in (
            (imposters, [law.imposter for law in laws]),
            (genuine, [law.genuine for law in laws]),
        )
    ]
    return Law(laws[0].edges, *(np.asarray(mass) for mass in both))
