"""What is counted of pairs, and how shares of it vary with who takes part.

People are put into *buckets*, and counts are kept by bucket. People of one bucket, with all pairs
of theirs, are independent of those of another, so that sums over buckets tell the variance of any
share, whatever a person's images and pairs have in common (the method of random groups). Nothing
is kept by person, and counts of the same buckets add up.

Calibration and use are counted alike, in blocks: of calibration a block is a class, imposter or
genuine; of use it is a stretch of time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.model import Population

Bool = NDArray[np.bool_]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Buckets for people of calibration, and for those in use.
CALIBRATION_BUCKETS, BUCKETS = 64, 32
#: Fewer effective buckets tell no variance.
FEWEST_BUCKETS = 6.0
#: What is counted: scores in bins of all pairs, and in those of their strata; images in regions of
#: clusters, and images outside of the population.
QUANTITIES = ("all_scores", "scores", "clusters", "outside")


def buckets_of(numbers: Int64, buckets: int) -> Int64:
    """Return the bucket of each number: the same for the same, else as if drawn (splitmix64)."""
    mixed = numbers.astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed % np.uint64(buckets)).astype(np.int64)


# ---------------------------------------------------------------------------- variance


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of some things in B bins, and how they vary with people.

    Attributes
    ----------
    share : ndarray of shape (B,)
    deviations : ndarray of shape (G, B)
        How far each bucket moves the shares: squares, summed over buckets, are variances.
    excess : ndarray of shape (B, B)
        What these have too much, of pairs that are counted in two buckets; less than nothing where
        they lack something.
    independent : ndarray of shape (B, B)
        Covariance were all pairs independent: less than that is chance.
    freedom : float
        Effective number of buckets, less 1.
    """

    share: Float64
    deviations: Float64
    excess: Float64
    independent: Float64
    freedom: float

    @classmethod
    def of_pairs(cls, buckets: NDArray[np.integer], counts: NDArray[np.integer]) -> Shares:
        """Take pairs: counts by bucket, (G, B), of both people, and by bin, (B,)."""
        table, single = buckets.astype(np.float64), counts.astype(np.float64)
        n = max(float(single.sum()), 1.0)
        share = single / n
        excess = _within(table.sum(axis=0) - single, share) / n**2
        return cls._of(table, share, n, excess, _within(single, share) / n**2)

    @classmethod
    def of_images(cls, buckets: NDArray[np.integer], pairs: NDArray[np.integer]) -> Shares:
        """Take images of pairs: counts by bucket, (G, B), pairs by left and right bin, (2, B, B).

        `pairs` are those with one bucket, then those with two: the two people of such a pair were
        chosen together, of one group often, which sums over buckets do not see.
        """
        table, joint = buckets.astype(np.float64), pairs.astype(np.float64)
        sides = joint.sum(axis=(0, 1)) + joint.sum(axis=(0, 2))
        n = max(float(sides.sum()), 1.0)
        share = sides / n
        independent = _within(sides, share) + _between(joint.sum(axis=0), share)
        return cls._of(table, share, n, -_between(joint[1], share) / n**2, independent / n**2)

    @classmethod
    def _of(
        cls, table: Float64, share: Float64, n: float, excess: Float64, independent: Float64
    ) -> Shares:
        weight = table.sum(axis=1)
        deviations = (table - weight[:, None] * share) / n
        squares = float((weight**2).sum())
        # Kish's effective number of buckets that weigh differently.
        effective = float(weight.sum()) ** 2 / squares if squares else 1.0
        # What buckets have in common, in proportion to their size, does not vary with people.
        if squares:
            deviations -= weight[:, None] * (deviations.sum(axis=0) / float(weight.sum()))
        deviations *= np.sqrt(effective / max(effective - 1, 0.5))
        return cls(share, deviations, excess, independent, effective - 1)

    def mixed(self, other: Shares, part: float) -> Shares:
        """Return the shares in a mixture with `part` of `other`, which has the same buckets."""
        mine = 1 - part
        return Shares(
            mine * self.share + part * other.share,
            mine * self.deviations + part * other.deviations,
            mine**2 * self.excess + part**2 * other.excess,
            mine**2 * self.independent + part**2 * other.independent,
            min(self.freedom, other.freedom) if 0 < part < 1 else (other if part else self).freedom,
        )

    def covariance(self, by: Float64) -> Float64:
        """Return the covariance of ``by @ share``, of shape (m, m) for `by` of shape (m, B)."""
        deviations = self.deviations @ by.T
        estimate: Float64 = deviations.T @ deviations - by @ self.excess @ by.T
        least: Float64 = by @ self.independent @ by.T
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


# ---------------------------------------------------------------------------- counting


class Counts(NamedTuple):
    """Counts of one quantity in B bins; an axis of blocks may be before.

    Attributes
    ----------
    buckets : ndarray of shape (G, B)
        By bucket: of scores pairs, in the buckets of both people; of images images.
    pairs : ndarray of shape (B,) or (2, B, B)
        Of scores pairs by bin; of images pairs by the bins of left and right: those of one bucket,
        then those of two.
    """

    buckets: Int64
    pairs: Int64

    @classmethod
    def of(cls, code: Int64, bucket: Int64, block: Int64, shape: tuple[int, int, int]) -> Counts:
        """Count pairs by `block` (n,), `bucket` (2, n) and `code`; −1 is left out.

        Codes are bins of scores, (1, n), or of both images, (2, n). `shape` is how many blocks,
        buckets and bins there are.
        """
        blocks, buckets, bins = shape
        rows = np.flatnonzero((code >= 0).all(axis=0))
        code, bucket, block = code[:, rows], bucket[:, rows], block[rows]
        two = bucket[0] != bucket[1]
        cells = (block * buckets + bucket) * bins + code
        if len(code) == 1:  # a pair is counted once where both people are of one bucket
            touched = np.concatenate([cells[0], cells[1][two]])
            pairs = _tally(block * bins + code[0], blocks, bins)
        else:
            touched = cells.ravel()
            joint = ((block * 2 + two) * bins + code[0]) * bins + code[1]
            pairs = _tally(joint, blocks, 2, bins, bins)
        return cls(_tally(touched, blocks, buckets, bins), pairs)

    def block(self, number: int) -> Counts:
        """Return those of one block."""
        return Counts(self.buckets[number], self.pairs[number])

    def shares(self) -> Shares:
        """Return the shares of bins, and how they vary."""
        of = Shares.of_pairs if self.pairs.ndim == 1 else Shares.of_images
        return of(self.buckets, self.pairs)


def _tally(cells: Int64, blocks: int, *shape: int) -> Int64:
    size = blocks * int(np.prod(shape))
    return np.bincount(cells, minlength=size).reshape(blocks, *shape)


def code_pairs(
    population: Population, score: Float64, cluster: Int64, outside: Int64
) -> dict[str, Int64]:
    """Return by quantity where pairs are counted, (1, n) or (2, n); −1 where that is unknown.

    Parameters
    ----------
    population : Population
        Whose bins, regions and strata those are.
    score : ndarray of shape (n,)
    cluster, outside : ndarray of shape (2, n)
        Of left and right image; −1 where unknown.
    """
    placed = (cluster >= 0).all(axis=0)
    region, in_stratum = np.full(cluster.shape, -1), np.full((1, len(score)), -1)
    region[:, placed] = population.region[cluster[:, placed]]
    if population.stratified:
        stratum = population.stratum[region[0, placed], region[1, placed]]
        in_stratum[0, placed] = rank_by_stratum(population.ranked_edges, stratum, score[placed])
    in_all = np.searchsorted(population.ranked_edges[0], score, side="right")[None]
    return dict(zip(QUANTITIES, (in_all, in_stratum, region, outside), strict=True))


def rank_by_stratum(edges: Float64, stratum: Int64, score: Float64) -> Int64:
    """Return the bin of each score among the edges, (H, S − 1), of its stratum."""
    bins = np.empty(len(score), np.int64)
    for h in np.unique(stratum).tolist():
        rows = np.flatnonzero(stratum == h)
        bins[rows] = np.searchsorted(edges[h], score[rows], side="right")
    return bins


Tables = dict[str, Counts]


class Layout(NamedTuple):
    """How many bins of scores, regions and buckets there are: where counts of a block stand."""

    bins: int
    regions: int
    buckets: int = BUCKETS

    @classmethod
    def in_use(cls, population: Population) -> Layout:
        """Return that of pairs in use."""
        return cls(population.ranked_counts.shape[2], len(population.stratum))

    def tables(self, codes: dict[str, Int64], bucket: Int64, block: Int64, blocks: int) -> Tables:
        """Count pairs by quantity; see `Counts.of`."""
        bins = (self.bins, self.bins, self.regions, 2)
        return {
            name: Counts.of(codes[name], bucket, block, (blocks, self.buckets, b))
            for name, b in zip(QUANTITIES, bins, strict=True)
        }

    @property
    def _shapes(self) -> list[tuple[int, ...]]:
        by_bucket = [(self.buckets, b) for b in (self.bins, self.bins, self.regions, 2)]
        pairs = [(self.bins,)] * 2 + [(2, b, b) for b in (self.regions, 2)]
        return [shape for both in zip(by_bucket, pairs, strict=True) for shape in both]

    @property
    def size(self) -> int:
        """Numbers in a block, with the three of `identified`."""
        return sum(map(math.prod, self._shapes)) + 3

    def flat(self, tables: Tables, identified: Int64) -> Int64:
        """Return counts of blocks as rows, (blocks, size), which `cut` undoes."""
        every = [each for counts in tables.values() for each in counts] + [identified]
        return np.concatenate([each.reshape(len(each), -1) for each in every], axis=1)

    def cut(self, row: Int64) -> tuple[Tables, Int64]:
        """Return the counts of a block, and pairs by who is identified."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        *parts, identified = np.split(row, ends)
        every = [part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]
        tables = map(Counts, every[::2], every[1::2])
        return dict(zip(QUANTITIES, tables, strict=True)), identified


def class_tables(population: Population, genuine: int) -> Tables:
    """Return what was counted of one class of calibration: 0 imposter, 1 genuine."""
    of = population
    return {
        "all_scores": Counts(of.ranked_buckets[0, genuine], of.ranked_counts[0, genuine]),
        "scores": Counts(of.ranked_buckets[1, genuine], of.ranked_counts[1, genuine]),
        "clusters": Counts(of.place_buckets[genuine], of.place_pairs[genuine]),
        "outside": Counts(of.outside_buckets[genuine], of.outside_pairs[genuine]),
    }
