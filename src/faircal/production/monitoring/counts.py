"""What is counted of pairs, and how shares of it vary with who takes part.

People are put into *buckets*, and counts are kept by bucket. People of one bucket, with all pairs
of theirs, are independent of those of another, so that sums over buckets tell the variance of any
share, whatever a person's images and pairs have in common (the method of random groups). Nothing
is kept by person, and counts of the same buckets add up.

Calibration and use are counted alike, in blocks: of calibration a block is a class, imposter or
genuine; of use it is a stretch of time.
"""

from __future__ import annotations

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


class PairCodes(NamedTuple):
    """Where pairs are counted: n pairs, and −1 for what is unknown of one.

    Attributes
    ----------
    rank : ndarray of shape (2, n)
        Bin of the score: in bins of all pairs, and in those of the pair's stratum.
    region, outside : ndarray of shape (2, n)
        Of left and right image: where it lies, and whether (0 or 1) out of the population.
    identified : ndarray of shape (n,)
        0 where people are identified, 1 where images are, 2 where neither is.
    """

    rank: Int64
    region: Int64
    outside: Int64
    identified: Int64

    @classmethod
    def of(
        cls,
        population: Population,
        score: Float64,
        cluster: Int64,
        outside: Int64,
        identified: Int64,
    ) -> PairCodes:
        """Place pairs by the bins, regions and strata of a population; `cluster` is (2, n)."""
        placed = (cluster >= 0).all(axis=0)
        region = np.full(cluster.shape, -1, np.int64)
        region[:, placed] = population.region[cluster[:, placed]]
        rank = np.full(cluster.shape, -1, np.int64)
        rank[0] = np.searchsorted(population.ranked_edges[0], score, side="right")
        if population.stratified:
            stratum = population.stratum[region[0, placed], region[1, placed]]
            rank[1, placed] = rank_by_stratum(population.ranked_edges, stratum, score[placed])
        return cls(rank, region, outside, identified)


def rank_by_stratum(edges: Float64, stratum: Int64, score: Float64) -> Int64:
    """Return the bin of each score among the edges, (H, S − 1), of its stratum."""
    bins = np.empty(len(score), np.int64)
    for h in np.unique(stratum).tolist():
        rows = np.flatnonzero(stratum == h)
        bins[rows] = np.searchsorted(edges[h], score[rows], side="right")
    return bins


class CountTables(NamedTuple):
    """Counts of pairs: S bins of scores, R regions, G buckets; an axis of blocks may be before.

    Attributes
    ----------
    ranked : ndarray of shape (2, S)
        Pairs by score: in bins of all pairs, and in those of their strata.
    ranked_buckets : ndarray of shape (2, G, S)
        The same, in the buckets of both people.
    place_buckets : ndarray of shape (G, R)
        Images by region.
    place_pairs : ndarray of shape (2, R, R)
        Pairs by the regions of left and right: of one bucket, then of two.
    outside_buckets, outside_pairs : ndarray of shape (G, 2), (2, 2, 2)
        The same by whether images are outside.
    identified : ndarray of shape (3,)
        Pairs of which people, only images, nothing is identified.
    """

    ranked: Int64
    ranked_buckets: Int64
    place_buckets: Int64
    place_pairs: Int64
    outside_buckets: Int64
    outside_pairs: Int64
    identified: Int64

    @classmethod
    def of(
        cls, pairs: PairCodes, bucket: Int64, block: Int64, blocks: int, shape: TableShape
    ) -> CountTables:
        """Count pairs in the `blocks` that `block` (n,) names; `bucket` is (2, n)."""
        ranks = [
            _count_pairs(block[rows], bucket[:, rows], rank[rows], blocks, shape)
            for rank in pairs.rank
            for rows in [np.flatnonzero(rank >= 0)]
        ]
        places, outside = (
            _count_images(block[rows], bucket[:, rows], code[:, rows], blocks, shape.buckets, bins)
            for code, bins in ((pairs.region, shape.regions), (pairs.outside, 2))
            for rows in [np.flatnonzero((code >= 0).all(axis=0))]
        )
        return cls(
            np.stack([counts for counts, _ in ranks], axis=1),
            np.stack([by_bucket for _, by_bucket in ranks], axis=1),
            *places,
            *outside,
            _tally(block * 3 + pairs.identified, blocks, 3),
        )

    @classmethod
    def of_class(cls, population: Population, genuine: int) -> CountTables:
        """Return what was counted of one class of calibration: 0 imposter, 1 genuine."""
        return cls(
            population.ranked_counts[:, genuine],
            population.ranked_buckets[:, genuine],
            population.place_buckets[genuine],
            population.place_pairs[genuine],
            population.outside_buckets[genuine],
            population.outside_pairs[genuine],
            np.zeros(3, np.int64),
        )

    def block(self, number: int) -> CountTables:
        """Return the tables of one block."""
        return CountTables(*(table[number] for table in self))

    def flat(self) -> Int64:
        """Return blocks as rows of numbers, (blocks, size), which `TableShape.cut` undoes."""
        return np.concatenate([table.reshape(len(table), -1) for table in self], axis=1)

    def shares(self, quantity: str) -> Shares:
        """Return the shares in one block of one of `QUANTITIES`."""
        if quantity == "clusters":
            return Shares.of_images(self.place_buckets, self.place_pairs)
        if quantity == "outside":
            return Shares.of_images(self.outside_buckets, self.outside_pairs)
        way = QUANTITIES.index(quantity)
        return Shares.of_pairs(self.ranked_buckets[way], self.ranked[way])


class TableShape(NamedTuple):
    """How many bins of scores, regions and buckets there are."""

    bins: int
    regions: int
    buckets: int = BUCKETS

    @classmethod
    def in_use(cls, population: Population) -> TableShape:
        """Return that of pairs in use."""
        return cls(population.ranked_counts.shape[2], len(population.stratum))

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each of `CountTables`."""
        bins, regions, buckets = self
        return (
            (2, bins),
            (2, buckets, bins),
            (buckets, regions),
            (2, regions, regions),
            (buckets, 2),
            (2, 2, 2),
            (3,),
        )

    @property
    def size(self) -> int:
        """Counts in a block."""
        return sum(int(np.prod(shape)) for shape in self.tables)

    def cut(self, counts: Int64) -> CountTables:
        """Cut the numbers of a block, of shape (size,), into tables."""
        ends = np.cumsum([np.prod(shape) for shape in self.tables])[:-1]
        parts = np.split(counts, ends)
        return CountTables(
            *(part.reshape(shape) for part, shape in zip(parts, self.tables, strict=True))
        )


def _tally(cells: Int64, blocks: int, *shape: int) -> Int64:
    size = blocks * int(np.prod(shape))
    return np.bincount(cells, minlength=size).reshape(blocks, *shape)


def _count_pairs(
    block: Int64, bucket: Int64, rank: Int64, blocks: int, shape: TableShape
) -> tuple[Int64, Int64]:
    """Count pairs by bin, and by bucket and bin: in the buckets of both people."""
    two = bucket[0] != bucket[1]
    cells = (block * shape.buckets + bucket) * shape.bins + rank
    touched = np.concatenate([cells[0], cells[1][two]])
    counts = _tally(block * shape.bins + rank, blocks, shape.bins)
    return counts, _tally(touched, blocks, shape.buckets, shape.bins)


def _count_images(
    block: Int64, bucket: Int64, code: Int64, blocks: int, buckets: int, bins: int
) -> tuple[Int64, Int64]:
    """Count images by bucket and bin, and pairs by one bucket or two and both bins."""
    two = bucket[0] != bucket[1]
    joint = ((block * 2 + two) * bins + code[0]) * bins + code[1]
    return (
        _tally(((block * buckets + bucket) * bins + code).ravel(), blocks, buckets, bins),
        _tally(joint, blocks, 2, bins, bins),
    )
