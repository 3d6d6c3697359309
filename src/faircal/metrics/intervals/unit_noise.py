"""Replicates of what other units would have given: of means and calibration curves of rows.

Each unit (person, patient, machine, or single row) has random numbers of its own, the same for
every method, class and group. A replicate is the sum of what each unit moves a value by, times its
number: so replicates of two methods are of the same other units, and their difference is as sure as
that makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.metrics import Ranking
from faircal.metrics.intervals.calibration_error import BinnedCurve, cut, student_over_normal
from faircal.metrics.intervals.dyadic import (
    Float64,
    IdentifiedPairs,
    Int64,
    PeopleVariance,
    unbiased,
)
from faircal.metrics.proportions import combined_reach

REPLICATES = 1000
#: More units than this come in so many buckets, drawn at random. What units move a mean by is about
#: 0 on the whole, so buckets vary as units do, but for 3 % of the variance.
_BUCKETS = 2048
#: Parts of an estimate for which replicates are kept; between them they are interpolated.
_PARTS = np.concatenate([np.linspace(0, 1, 17), [1.25, 1.5, 2.0, 3.0, 6.0, 12.0]])


@dataclass(frozen=True, eq=False)
class UnitNoise:
    """Random numbers of units, and which rows share them.

    Parameters
    ----------
    bucket : ndarray of int64, shape (n_rows,)
    numbers : ndarray of float32, shape (n_replicates, n_buckets)
    """

    bucket: Int64
    numbers: NDArray[np.float32]

    @classmethod
    def of(cls, units: Int64, replicates: int = REPLICATES, seed: int = 0) -> UnitNoise:
        """Draw numbers for units, which are numbered from 0."""
        rng = np.random.default_rng([seed, len(units)])
        count = int(units.max(initial=-1)) + 1
        bucket = units
        if count > _BUCKETS:
            bucket = (rng.permutation(count) % _BUCKETS)[units]
            count = _BUCKETS
        return cls(bucket, rng.standard_normal((replicates, count), dtype=np.float32))

    def of_sum(
        self, residuals: Float64, rows: NDArray[np.intp] | slice, spread: PeopleVariance
    ) -> Float64:
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
        # The degrees of freedom are those of the curve where it is largest.
        top = int(np.argmax(np.abs(np.cumsum(bins))))
        expected = table[share > 0, : top + 1].sum(axis=1)
        every, alone = np.arange(len(expected)), np.ones(len(expected), np.bool_)
        freedom = IdentifiedPairs(alone, every, every, len(expected)).spread(expected).freedom
        wide = student_over_normal(freedom) * np.sqrt(unbiased(units, alone=True))
        noise = (self.numbers @ table.astype(np.float32)).astype(np.float64)
        # Rows of all kinds are counted: nothing varies more upwards, as few imposters would.
        mass = np.eye(1, width)[0]
        return BinnedCurve(bins, wide * noise, bin_of, tens, mass)


class ErrorReplicates(NamedTuple):
    """Replicates of a calibration error, by the part of the estimate that is taken to be true.

    Parameters
    ----------
    table : ndarray of float64, shape (n_parts, n_replicates)
    """

    table: Float64

    @classmethod
    def of(cls, curve: BinnedCurve, metric: str, ratio: float) -> ErrorReplicates:
        """Make them of a curve; `ratio` is what single rows show more than bins."""
        return cls(ratio * np.stack([curve.size(metric, part) for part in _PARTS]))

    def at(self, part: float) -> Float64:
        """Return replicates where the truth is that part of the estimate, shape (n,)."""
        i = int(np.clip(np.searchsorted(_PARTS, part), 1, len(_PARTS) - 1))
        along = (part - _PARTS[i - 1]) / (_PARTS[i] - _PARTS[i - 1])
        return np.asarray((1 - along) * self.table[i - 1] + along * self.table[i])


class NoisyEstimate(NamedTuple):
    """A calibration error, or a number over groups, with what its difference to another's needs.

    Parameters
    ----------
    value : float
    likely : float
        What is most likely true: less than `value`, which noise makes too large; with this truth
        the value would be the median.
    low, high : float
    noisy : ndarray of float64, shape (n_replicates,)
        What other units would give, were `value` true. Those of another method are of the same
        units.
    apart : float
        How far from 0 it certainly is, from 0 to 1; see `apart_from_0`.
    """

    value: float
    likely: float
    low: float
    high: float
    noisy: Float64
    apart: float


def apart_from_0(value: float, low: float) -> float:
    """Return how far from 0 a value certainly is, from 0 to 1 where its lower end is half of it.

    Near 0 a norm turns around: what moves one method's up may move another's up or down.

    Examples
    --------
    >>> apart_from_0(0.2, 0.0), apart_from_0(0.2, 0.05), apart_from_0(0.2, 0.15)
    (0.0, 0.5, 1.0)
    """
    return min(2 * low / value, 1.0) if value > 0 else 0.0


def estimates_apart(one: NoisyEstimate | None, other: NoisyEstimate | None) -> tuple[float, float]:
    """Return the ends of the interval of ``one − other``, of the level of the two; NaN of none.

    Distances from what is likely to the ends are put together as errors are, after Zou and Donner
    (2008), with the correlation of the replicates. That correlation is that of the estimates; the
    less sure one of them is to differ from 0, the less it says, and the worst is taken in its
    place.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.01, 1000)
    >>> a = NoisyEstimate(0.20, 0.20, 0.18, 0.22, 0.20 + noise, 1.0)
    >>> b = NoisyEstimate(0.25, 0.25, 0.23, 0.27, 0.25 + noise, 1.0)
    >>> [round(end, 3) for end in estimates_apart(b, a)]  # all the noise in common
    [0.05, 0.05]
    >>> zero = NoisyEstimate(0.01, 0.0, 0.0, 0.02, np.abs(noise), 0.0)
    >>> [round(end, 3) for end in estimates_apart(a, zero)]
    [0.171, 0.22]
    """
    if one is None or other is None:
        return float("nan"), float("nan")
    value, likely = one.value - other.value, one.likely - other.likely
    steady = one.noisy.std() > 0 and other.noisy.std() > 0
    common = float(np.corrcoef(one.noisy, other.noisy)[0, 1]) if steady else 0.0
    low = likely - _reach(one.likely - one.low, other.high - other.likely, common, one.apart)
    high = likely + _reach(other.likely - other.low, one.high - one.likely, common, other.apart)
    return min(low, value), max(high, value)


def _reach(below: float, above: float, common: float, apart: float) -> float:
    """Return how far the end is away: the one lower than likely, the other higher."""
    correlation = apart * common - (1 - apart)
    return combined_reach(max(below, 0.0), max(above, 0.0), -correlation)


def wider_together(drawn: Float64) -> float:
    """Return how much wider the mean over groups varies than if groups shared no unit.

    `drawn` are replicates of the groups' values, shape (n_replicates, n_groups).
    """
    alone = np.sqrt((drawn.std(axis=0) ** 2).sum()) / drawn.shape[1]
    return max(float(drawn.mean(axis=1).std() / alone), 1.0) if alone > 0 else 1.0


def standardised(values: Float64) -> Float64:
    """Return values with mean 0 and standard deviation 1; zeros where all are equal."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
