"""How shares vary with who takes part: people dealt to lots, and counts kept by lot.

People (and all pairs of theirs) of one lot are independent of those of another, so sums over lots
tell the variance of any share, whatever a person's images and pairs have in common. Nothing is kept
by person, and counts of the same lots add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Fewer effective lots tell no variance.
FEWEST_LOTS = 6.0


def lots_of(numbers: Int64, lots: int) -> Int64:
    """Return the lot of each number: the same for the same, else as if drawn (splitmix64)."""
    mixed = numbers.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed % np.uint64(lots)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of some things in B bins, and how they vary with people.

    Attributes
    ----------
    share : ndarray of shape (B,)
    moves : ndarray of shape (G, B)
        How far each lot moves the shares: squares, summed over lots, are variances.
    twice : ndarray of shape (B, B)
        What these have too much, of pairs that are counted in two lots; less than nothing where
        they lack something.
    alone : ndarray of shape (B, B)
        Covariance were all pairs independent: less than that is chance.
    freedom : float
        Effective number of lots, less 1.
    """

    share: Float64
    moves: Float64
    twice: Float64
    alone: Float64
    freedom: float

    @classmethod
    def of(cls, lots: NDArray[np.integer], counts: NDArray[np.integer]) -> Shares:
        """Take pairs: counts by lot, (G, B), of both people, and by bin, (B,)."""
        table, single = lots.astype(np.float64), counts.astype(np.float64)
        n = max(float(single.sum()), 1.0)
        share = single / n
        twice = _within(table.sum(axis=0) - single, share) / n**2
        return cls._of(table, share, n, twice, _within(single, share) / n**2)

    @classmethod
    def of_images(cls, lots: NDArray[np.integer], pairs: NDArray[np.integer]) -> Shares:
        """Take images of pairs: counts by lot, (G, B), and pairs by left and right bin, (2, B, B).

        `pairs` are those with one lot, then those with two: the two people of such a pair were
        chosen together, of one group often, which sums over lots do not see.
        """
        table, joint = lots.astype(np.float64), pairs.astype(np.float64)
        sides = joint.sum(axis=(0, 1)) + joint.sum(axis=(0, 2))
        n = max(float(sides.sum()), 1.0)
        share = sides / n
        alone = _within(sides, share) + _between(joint.sum(axis=0), share)
        return cls._of(table, share, n, -_between(joint[1], share) / n**2, alone / n**2)

    @classmethod
    def _of(
        cls, table: Float64, share: Float64, n: float, twice: Float64, alone: Float64
    ) -> Shares:
        weight = table.sum(axis=1)
        moves = (table - weight[:, None] * share) / n
        heavy = float((weight**2).sum())
        effective = float(weight.sum()) ** 2 / heavy if heavy else 1.0
        # What lots have in common, in proportion to their size, does not vary with people.
        if heavy:
            moves -= weight[:, None] * (moves.sum(axis=0) / float(weight.sum()))
        moves *= np.sqrt(effective / max(effective - 1, 0.5))
        return cls(share, moves, twice, alone, effective - 1)

    def mixed(self, other: Shares, part: float) -> Shares:
        """Return the shares in a mixture with `part` of `other`, which has the same lots."""
        mine = 1 - part
        return Shares(
            mine * self.share + part * other.share,
            mine * self.moves + part * other.moves,
            mine**2 * self.twice + part**2 * other.twice,
            mine**2 * self.alone + part**2 * other.alone,
            min(self.freedom, other.freedom) if 0 < part < 1 else (other if part else self).freedom,
        )

    def covariance(self, by: Float64) -> Float64:
        """Return the covariance of ``by @ share``, of shape (m, m) for `by` of shape (m, B)."""
        moved = self.moves @ by.T
        estimate: Float64 = moved.T @ moved - by @ self.twice @ by.T
        least: Float64 = by @ self.alone @ by.T
        # The scale must not fall below that of independent pairs.
        times = np.trace(least) / max(np.trace(estimate), 1e-300)
        return least if times > 1 else estimate


def _within(counts: Float64, share: Float64) -> Float64:
    """Return the sum over things of (e − share)(e − share)ᵀ, e the unit vector of its bin."""
    cross = np.outer(counts, share)
    sums: Float64 = np.diag(counts) - cross - cross.T + counts.sum() * np.outer(share, share)
    return sums


def _between(joint: Float64, share: Float64) -> Float64:
    """Return the sum over pairs of (e − share)(f − share)ᵀ and its transpose, of its two bins."""
    cross = np.outer(joint.sum(axis=0) + joint.sum(axis=1), share)
    square = 2 * joint.sum() * np.outer(share, share)
    sums: Float64 = joint + joint.T - cross - cross.T + square
    return sums


def count_images(
    of: Int64, lots: Int64, bins: Int64, blocks: int, n_lots: int, n_bins: int
) -> tuple[Int64, Int64]:
    """Count images of pairs for `Shares.of_images`, block by block.

    Parameters
    ----------
    of : ndarray of shape (n,)
        The block of each pair.
    lots, bins : ndarray of shape (2, n)
        Of left and right.

    Returns
    -------
    (ndarray of shape (blocks, n_lots, n_bins), ndarray of shape (blocks, 2, n_bins, n_bins))
    """
    two = lots[0] != lots[1]
    cells = ((of * n_lots + lots) * n_bins + bins).ravel()
    by_lot = np.bincount(cells, minlength=blocks * n_lots * n_bins)
    joint = ((of * 2 + two) * n_bins + bins[0]) * n_bins + bins[1]
    pairs = np.bincount(joint, minlength=blocks * 2 * n_bins * n_bins)
    return by_lot.reshape(blocks, n_lots, n_bins), pairs.reshape(blocks, 2, n_bins, n_bins)


def rank_in(edges: Float64, stratum: Int64, score: Float64) -> Int64:
    """Return the bin of each score among the edges, (H, BINS − 1), of its stratum."""
    bins = np.empty(len(score), np.int64)
    for h in np.unique(stratum).tolist():
        rows = np.flatnonzero(stratum == h)
        bins[rows] = np.searchsorted(edges[h], score[rows], side="right")
    return bins
