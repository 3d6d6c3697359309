"""How calibration errors vary with the units: curves whose noise methods and groups share.

Each unit has random numbers of its own, the same for every method, class and group. A replicate is
the sum of what each unit moves a curve by, times its number: so replicates of two methods are of
the same other units, and their difference is as sure as that makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.metrics import Ranking
from faircal.metrics.intervals.crowd import Crowd, Spread
from faircal.metrics.intervals.curve import BinnedCurve, cut, student_over_normal
from faircal.metrics.intervals.sharing import Float64, Int64, unbiased

REPLICATES = 1000

#: More units than this come in so many buckets, drawn at random. What units move a mean by is about
#: 0 on the whole, so buckets vary as units do, but for 3 % of the variance.
_BUCKETS = 2048

#: Parts of what was found for which replicates are kept; between them they are interpolated.
_PARTS = np.concatenate([np.linspace(0, 1, 17), [1.25, 1.5, 2.0, 3.0, 6.0, 12.0]])


@dataclass(frozen=True, eq=False)
class Noise:
    """Random numbers of units, and which rows share them.

    Parameters
    ----------
    bucket : ndarray of int64, shape (n_rows,)
    numbers : ndarray of float32, shape (n_replicates, n_buckets)
    """

    bucket: Int64
    numbers: NDArray[np.float32]

    @classmethod
    def of(cls, units: Int64, replicates: int = REPLICATES, seed: int = 0) -> Noise:
        """Draw numbers for units, which are numbered from 0."""
        rng = np.random.default_rng([seed, len(units)])
        count = int(units.max(initial=-1)) + 1
        bucket = units
        if count > _BUCKETS:
            bucket = (rng.permutation(count) % _BUCKETS)[units]
            count = _BUCKETS
        return cls(bucket, rng.standard_normal((replicates, count), dtype=np.float32))

    def of_sum(self, residuals: Float64, rows: NDArray[np.intp] | slice, spread: Spread) -> Float64:
        """Return replicates of a sum over rows, less the sum, with the variance of `spread`."""
        moved = np.bincount(self.bucket[rows], residuals, self.numbers.shape[1])
        square = float((moved**2).sum())
        if not square > 0:
            return np.zeros(len(self.numbers))
        scale = np.sqrt(spread.variance / square) * student_over_normal(spread.freedom)
        return np.asarray(scale * (self.numbers @ moved.astype(np.float32)), np.float64)

    def curve(self, ranking: Ranking, units: int) -> BinnedCurve:
        """Return the calibration curve of sorted rows of so many units, with its noise."""
        n, buckets = len(ranking), self.numbers.shape[1]
        probability, true = ranking.scores[::-1], ranking.genuine[::-1]
        bucket = self.bucket[ranking.pairs.rows[::-1]]
        bin_of, tens = cut(probability)
        width = len(tens)
        values = (probability - true) / n
        bins = np.bincount(bin_of, values, width).astype(np.float64)
        # What a bucket moves each bin by: what it has, less what as many rows have on average.
        share = np.bincount(bucket, minlength=buckets) / n
        sums = np.bincount(bucket * width + bin_of, values, buckets * width)
        table = sums.reshape(buckets, width) - np.outer(share, bins)
        # How well the variance is known is told where the curve is largest.
        top = int(np.argmax(np.abs(np.cumsum(bins))))
        there = table[share > 0, : top + 1].sum(axis=1)
        some = np.arange(len(there))
        freedom = Crowd(np.ones(len(there), np.bool_), some, some, len(there)).spread(there).freedom
        wide = student_over_normal(freedom) * np.sqrt(unbiased(units, alone=True))
        noise = (self.numbers @ table.astype(np.float32)).astype(np.float64)
        # Rows of all kinds are seen: nothing varies more upwards, as few imposters would make it.
        mass = np.eye(1, width)[0]
        return BinnedCurve(bins, wide * noise, tens, mass)


class ErrorSizes(NamedTuple):
    """Replicates of a calibration error, by the part of what was found that is taken to be true.

    Parameters
    ----------
    table : ndarray of float64, shape (n_parts, n_replicates)
    """

    table: Float64

    @classmethod
    def of(cls, curve: BinnedCurve, metric: str, ratio: float) -> ErrorSizes:
        """Make them of a curve; `ratio` is what single rows show more than bins."""
        return cls(ratio * np.stack([curve.size(metric, part) for part in _PARTS]))

    def at(self, part: float) -> Float64:
        """Return replicates where the truth is that part of what was found, shape (n,)."""
        i = int(np.clip(np.searchsorted(_PARTS, part), 1, len(_PARTS) - 1))
        along = (part - _PARTS[i - 1]) / (_PARTS[i] - _PARTS[i - 1])
        return np.asarray((1 - along) * self.table[i - 1] + along * self.table[i])
