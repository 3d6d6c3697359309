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
    def of(cls, counts: Counts) -> Shares:
        """Work out the shares of one block of counts, and how they vary.

        The two people of a pair were chosen together, of one group often, which sums over buckets
        do not see: of images, pairs of two buckets are taken for what these lack.
        """
        table, pairs = counts.buckets.astype(np.float64), counts.pairs.astype(np.float64)
        if pairs.ndim == 1:  # bins of scores: a pair is one thing, in the buckets of both people
            n = max(float(pairs.sum()), 1.0)
            share = pairs / n
            independent = _scatter(np.diag(pairs), share) / 2
            excess = _scatter(np.diag(table.sum(axis=0) - pairs), share) / 2
        else:  # bins of images: a pair is two
            sides = pairs.sum(axis=(0, 1)) + pairs.sum(axis=(0, 2))
            n = max(float(sides.sum()), 1.0)
            share = sides / n
            joint = _scatter(pairs.sum(axis=0), share)
            independent = _scatter(np.diag(sides), share) / 2 + joint
            excess = -_scatter(pairs[1], share)
        weight = table.sum(axis=1)
        deviations = (table - weight[:, None] * share) / n
        squares = float((weight**2).sum())
        # Kish's effective number of buckets that weigh differently.
        effective = float(weight.sum()) ** 2 / squares if squares else 1.0
        # What buckets have in common, in proportion to their size, does not vary with people.
        if squares:
            deviations -= weight[:, None] * (deviations.sum(axis=0) / float(weight.sum()))
        deviations *= np.sqrt(effective / max(effective - 1, 0.5))
        return cls(share, deviations, excess / n**2, independent / n**2, effective - 1)

    def mixed(self, other: Shares, part: float) -> Shares:
        """Return the shares in a mixture with `part` of `other`, which has the same buckets."""
        rest = 1 - part
        return Shares(
            rest * self.share + part * other.share,
            rest * self.deviations + part * other.deviations,
            rest**2 * self.excess + part**2 * other.excess,
            rest**2 * self.independent + part**2 * other.independent,
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


def _scatter(pairs: Float64, share: Float64) -> Float64:
    """Return the sum over pairs of (e − share)(f − share)ᵀ and its transpose.

    `pairs` are counted by their two bins, (B, B), and e and f are those bins' unit vectors. A thing
    by itself is a pair with itself, and counts twice.
    """
    cross = np.outer(pairs.sum(axis=0) + pairs.sum(axis=1), share)
    square = 2 * pairs.sum() * np.outer(share, share)
    sums: Float64 = pairs + pairs.T - cross - cross.T + square
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
        stratum = np.zeros(len(score), np.int64)  # 0: unknown
        stratum[placed] = population.stratum[region[0, placed], region[1, placed]]
        for h in range(1, len(population.ranked_edges)):
            rows = np.flatnonzero(stratum == h)
            edges = population.ranked_edges[h]
            in_stratum[0, rows] = np.searchsorted(edges, score[rows], side="right")
    in_all = np.searchsorted(population.ranked_edges[0], score, side="right")[None]
    return dict(zip(QUANTITIES, (in_all, in_stratum, region, outside), strict=True))


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
        """Count pairs by quantity, with an axis of blocks before.

        Parameters
        ----------
        codes : dict of str to ndarray of shape (1, n) or (2, n)
            Where pairs, or their two images, are counted (`code_pairs`); −1 is left out.
        bucket : ndarray of shape (2, n)
            Of left and right person.
        block : ndarray of shape (n,)
        blocks : int
        """
        tables = {}
        bins_of = (self.bins, self.bins, self.regions, 2)
        for name, bins in zip(QUANTITIES, bins_of, strict=True):
            rows = np.flatnonzero((codes[name] >= 0).all(axis=0))
            code, sides, at = codes[name][:, rows], bucket[:, rows], block[rows]
            two = sides[0] != sides[1]
            cells = (at * self.buckets + sides) * bins + code
            if len(code) == 1:  # a pair is counted once where both people are of one bucket
                cells = np.concatenate([cells[0], cells[1][two]])
                pairs, shape = at * bins + code[0], [blocks, bins]
            else:
                pairs = ((at * 2 + two) * bins + code[0]) * bins + code[1]
                shape = [blocks, 2, bins, bins]
            by_bucket = [blocks, self.buckets, bins]
            tables[name] = Counts(
                np.bincount(cells.ravel(), minlength=math.prod(by_bucket)).reshape(by_bucket),
                np.bincount(pairs, minlength=math.prod(shape)).reshape(shape),
            )
        return tables

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
