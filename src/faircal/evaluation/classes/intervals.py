"""How certain each value of a classifier, and each difference between methods, is.

What varies is which units came: people, patients, machines, or rows where nothing is known of such.
With fewer than four of them nothing is said. Intervals are made

- of means over rows (NLL, Brier) from sums over units, with Student's t, on a logarithmic scale;
- of the accuracy as Wilson's, with as many rows as the units' rows are worth;
- of calibration errors, which noise makes too large, by turning a test around
  (`faircal.metrics.intervals.calibration_error`); of class-wise ones as the mean over classes with
  noise in common;
- of numbers over groups from their groups' (`faircal.metrics.intervals.over_groups`).

Each unit has random numbers of its own, the same for every method, class and group. A replicate is
the sum of what each unit moves a curve by, times its number: so replicates of two methods are of
the same other units, and their difference is as sure as that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from faircal.evaluation.classes.rows import (
    EACH,
    ROW_MEANS,
    TOP,
    ClassRows,
    Rankings,
    class_condition,
    class_rankings,
    top_rankings,
)
from faircal.metrics import DEVIATIONS, Ranking
from faircal.metrics.classes import CLASS_METRICS
from faircal.metrics.intervals import Key
from faircal.metrics.intervals.calibration_error import BinnedCurve, cut, student_over_normal
from faircal.metrics.intervals.dyadic import (
    FEWEST,
    Float64,
    IdentifiedPairs,
    Int64,
    PeopleVariance,
    unbiased,
)
from faircal.metrics.intervals.inversion import lowest_scale, rate_interval
from faircal.metrics.intervals.over_groups import deviation_of, lower_end, upper_end
from faircal.metrics.proportions import combined_reach
from faircal.metrics.results import ALL, GLOBAL

DifferenceInterval = tuple[float, float, float]


class ClassDifference(NamedTuple):
    """The value of a method less that of another, the reference, on the same rows.

    `low` and `high` are NaN where there are too few units, or the metric has no interval.
    """

    method: str
    reference: str
    attribute: str
    group: str
    condition: str
    metric: str
    difference: float
    low: float
    high: float
    level: float


def of_rows(rows: ClassRows, group: str, apart: Float64, level: float) -> DifferenceInterval:
    """Return the difference of two means over rows with its interval, by unit, Student's t.

    Parameters
    ----------
    rows : ClassRows
    group : str
        A set of rows, or ``all`` for the unweighted mean over groups.
    apart : ndarray of float64, shape (n_rows,)
        What the two methods' rows differ by.
    level : float
    """
    if group == ALL:
        return _mean_of_groups(rows, apart, level)
    which, identified = rows.rows[group], rows.identified[group]
    part = apart[which]
    mean = float(part.mean()) if len(part) else float("nan")
    if identified.people < FEWEST:
        return mean, float("nan"), float("nan")
    spread = identified.spread((part - mean) / len(part))
    half = spread.half(level)
    return mean, mean - half, mean + half


def _mean_of_groups(rows: ClassRows, apart: Float64, level: float) -> DifferenceInterval:
    """Each group counts the same; a unit in several of them moves all of these."""
    names = [name for name in rows.group_names if rows.identified[name].people]
    means, moved = [], np.zeros(len(rows))
    for name in names:
        part = apart[rows.rows[name]]
        means.append(float(part.mean()))
        moved[rows.rows[name]] = (part - means[-1]) / (len(part) * len(names))
    mean = float(np.mean(means)) if means else float("nan")
    if len(names) < 2 or any(rows.identified[name].people < FEWEST for name in names):
        return mean, float("nan"), float("nan")
    # Rows without a group move nothing.
    spread = rows.identified[GLOBAL].spread(moved)
    half = spread.half(level)
    return mean, mean - half, mean + half


class ClassEstimate(NamedTuple):
    """A calibration error, or a number over groups, whose difference to another is wanted.

    Parameters
    ----------
    value : float
    likely : float
        What is most likely true: less than `value`, which noise makes too large; with this truth
        the value would be the median.
    low, high : float
    noisy : ndarray of float64, shape (n_replicates,)
        What would be found of other units, were `value` true. Those of another method are of the
        same units.
    apart : float
        How far from 0 it is known to be, from 0 to 1; see `apart_from_0`.
    """

    value: float
    likely: float
    low: float
    high: float
    noisy: Float64
    apart: float


def apart_from_0(value: float, low: float) -> float:
    """Return how far from 0 a value is known to be, from 0 to 1 where its lower end is half of it.

    Near 0 a norm turns around: what moves one method's up may move another's up or down.

    Examples
    --------
    >>> apart_from_0(0.2, 0.0), apart_from_0(0.2, 0.05), apart_from_0(0.2, 0.15)
    (0.0, 0.5, 1.0)
    """
    return min(2 * low / value, 1.0) if value > 0 else 0.0


def of_estimates(one: ClassEstimate | None, other: ClassEstimate | None) -> DifferenceInterval:
    """Return ``one − other`` with its interval, of the level of the two.

    Distances from what is likely to the ends are put together as errors are, after Zou and Donner
    (2008), with the correlation of the replicates. That correlation is that of the values found;
    the less one of them is told from 0, the less it says, and the worst is taken in its place.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.01, 1000)
    >>> a = ClassEstimate(0.20, 0.20, 0.18, 0.22, 0.20 + noise, 1.0)
    >>> b = ClassEstimate(0.25, 0.25, 0.23, 0.27, 0.25 + noise, 1.0)
    >>> [round(end, 3) for end in of_estimates(b, a)]  # all the noise in common
    [0.05, 0.05, 0.05]
    >>> zero = ClassEstimate(0.01, 0.0, 0.0, 0.02, np.abs(noise), 0.0)
    >>> [round(end, 3) for end in of_estimates(a, zero)]
    [0.19, 0.171, 0.22]
    """
    if one is None or other is None:
        return float("nan"), float("nan"), float("nan")
    value, likely = one.value - other.value, one.likely - other.likely
    steady = one.noisy.std() > 0 and other.noisy.std() > 0
    common = float(np.corrcoef(one.noisy, other.noisy)[0, 1]) if steady else 0.0
    low = likely - _reach(one.likely - one.low, other.high - other.likely, common, one.apart)
    high = likely + _reach(other.likely - other.low, one.high - one.likely, common, other.apart)
    return value, min(low, value), max(high, value)


def _reach(below: float, above: float, common: float, apart: float) -> float:
    """Return how far the end is away: the one lower than likely, the other higher."""
    correlation = apart * common - (1 - apart)
    return combined_reach(max(below, 0.0), max(above, 0.0), -correlation)


REPLICATES = 1000

#: More units than this come in so many buckets, drawn at random. What units move a mean by is about
#: 0 on the whole, so buckets vary as units do, but for 3 % of the variance.
_BUCKETS = 2048

#: Parts of what was found for which replicates are kept; between them they are interpolated.
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
        # How well the variance is known is told where the curve is largest.
        top = int(np.argmax(np.abs(np.cumsum(bins))))
        there = table[share > 0, : top + 1].sum(axis=1)
        some = np.arange(len(there))
        freedom = (
            IdentifiedPairs(np.ones(len(there), np.bool_), some, some, len(there))
            .spread(there)
            .freedom
        )
        wide = student_over_normal(freedom) * np.sqrt(unbiased(units, alone=True))
        noise = (self.numbers @ table.astype(np.float32)).astype(np.float64)
        # Rows of all kinds are seen: nothing varies more upwards, as few imposters would make it.
        mass = np.eye(1, width)[0]
        return BinnedCurve(bins, wide * noise, tens, mass)


class ErrorReplicates(NamedTuple):
    """Replicates of a calibration error, by the part of what was found that is taken to be true.

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
        """Return replicates where the truth is that part of what was found, shape (n,)."""
        i = int(np.clip(np.searchsorted(_PARTS, part), 1, len(_PARTS) - 1))
        along = (part - _PARTS[i - 1]) / (_PARTS[i] - _PARTS[i - 1])
        return np.asarray((1 - along) * self.table[i - 1] + along * self.table[i])


Ends: TypeAlias = tuple[float, float]

_UNDEFINED = (float("nan"), float("nan"))

#: How intervals are made, said wherever they are shown.
BY_UNITS = "by unit (what other units would have given; rows of one unit are not independent)"
BY_ROWS = (
    "by row (which rows belong together is not known, so they are taken as independent: too narrow "
    "where several come from one person, patient or machine)"
)


def has_interval(metric: str) -> bool:
    """Whether values of a metric have intervals at all; the parts of the Brier score do not."""
    return metric in CLASS_METRICS or metric.rpartition("_")[2] in DEVIATIONS


class ClassIntervals:
    """Intervals of everything that was measured of one method, and replicates for differences.

    Parameters
    ----------
    rows : ClassRows
    method : str
    values : dict from (group, condition, metric) to float
        What `measure_method` found.
    noise : Noise
        The same for all methods that are to be compared.
    level : float
    """

    def __init__(
        self, rows: ClassRows, method: str, values: dict[Key, float], noise: UnitNoise, level: float
    ) -> None:
        self._rows, self._values, self._noise, self._level = rows, values, noise, level
        self._ends: dict[Key, Ends] = {}
        #: Noise of row means, and sizes of calibration errors, by group and metric.
        self._moves: dict[tuple[str, str], Float64] = {}
        self._sizes: dict[tuple[str, str], ErrorReplicates] = {}
        #: How many independent rows would tell the accuracy as well, by group.
        self.effective: dict[str, float] = {}
        self._row_means(method)
        self._top_label(top_rankings(rows, method))
        self._classes(method)
        self._estimates: dict[Key, ClassEstimate] = {}
        if len(rows.group_names) > 1:
            self._over_groups()

    def interval(self, key: Key) -> Ends:
        """Return (low, high) of a value; NaN where there are too few units or no interval."""
        return self._ends.get(key, _UNDEFINED)

    def estimate(self, key: Key) -> ClassEstimate | None:
        """Return a value with what its difference to another method's needs.

        None for values that have no interval, or no need for this.
        """
        group, condition, metric = key
        if key not in self._estimates and not condition and (group, metric) in self._sizes:
            sizes, value = self._sizes[group, metric], self._values[key]
            likely = value * lowest_scale(sizes.at, value, level=0.0)
            low, high = self._ends[key]
            apart = apart_from_0(value, low)
            self._estimates[key] = ClassEstimate(value, likely, low, high, sizes.at(1.0), apart)
        return self._estimates.get(key)

    # ------------------------------------------------------------- of one group

    def _too_few(self, group: str) -> bool:
        return self._rows.identified[group].people < FEWEST

    def _row_means(self, method: str) -> None:
        for metric, loss in self._rows.losses(method).items():
            for group, which in self._rows.rows.items():
                if self._too_few(group):
                    continue
                value, part = self._values[group, "", metric], loss[which]
                residuals = (part - value) / len(part)
                spread = self._rows.identified[group].spread(residuals)
                if metric == "accuracy":
                    ends = self._accuracy(group, value, spread)
                else:
                    ends = spread.scaled(value, self._level)
                self._ends[group, "", metric] = ends
                self._moves[group, metric] = self._noise.of_sum(residuals, which, spread)

    def _accuracy(self, group: str, value: float, spread: PeopleVariance) -> Ends:
        """Return Wilson's interval with as many rows as the units' rows are worth."""
        identified = self._rows.identified[group]
        n, alone = len(identified.genuine), identified.people == len(identified.genuine)
        effect, freedom = 1.0, np.inf
        if not alone and 0 < value < 1:
            effect, freedom = max(spread.variance * n / (value * (1 - value)), 1.0), spread.freedom
        elif not alone:
            # Without an error, or without a hit, rows of a unit may all be alike.
            effect = n / identified.genuine_dyads.effective_people
        self.effective[group] = n / effect
        return rate_interval(
            value, n, lambda _: np.asarray(effect), level=self._level, freedom=freedom
        )

    def _top_label(self, rankings: Rankings) -> None:
        for group, ranking in rankings.items():
            if self._too_few(group):
                continue
            curve = self._noise.curve(ranking, self._rows.identified[group].people)
            for kind, metric in TOP.items():
                self._sizes[group, metric] = self._of_curve(curve, kind, (group, "", metric))

    def _of_curve(self, curve: BinnedCurve, kind: str, key: Key) -> ErrorReplicates:
        """Keep the interval of a calibration error; return replicates of its size."""
        value, binned = self._values[key], curve.estimate(kind)
        ratio = value / binned if binned > 0 else 1.0
        low, high = curve.interval(kind, self._level)
        self._ends[key] = low * ratio, min(high * ratio, 1.0)
        return ErrorReplicates.of(curve, kind, ratio)

    def _classes(self, method: str) -> None:
        """Return intervals of each class, and of the mean over classes.

        The upper end of a mean: distances to the classes' upper ends are put together as far as the
        classes move together.
        """
        count = len(self._rows.classes)
        above: dict[tuple[str, str], Float64] = {}
        for name, rankings in class_rankings(self._rows, method):
            for group, ranking in rankings.items():
                if self._too_few(group):
                    continue
                curve = self._noise.curve(ranking, self._rows.identified[group].people)
                for kind, metric in EACH.items():
                    key = group, class_condition(name), metric
                    sizes = self._of_curve(curve, kind, key).table / count
                    here = group, metric
                    before = self._sizes.get(here)
                    self._sizes[here] = ErrorReplicates(
                        sizes if before is None else before.table + sizes
                    )
                    reach = max(self._ends[key][1] - self._values[key], 0.0) / count
                    above[here] = above.get(here, 0.0) + reach * _standardised(
                        curve.size(kind, 1.0)
                    )
        for (group, metric), moved in above.items():
            key = group, "", metric
            value = self._values[key]
            low = value * lowest_scale(self._sizes[group, metric].at, value, self._level)
            self._ends[key] = low, min(value + float(moved.std()), 1.0)

    # ------------------------------------------------------------- over groups

    def _over_groups(self) -> None:
        for metric in CLASS_METRICS:
            keys = [
                (group, "", metric)
                for group in self._rows.group_names
                if not np.isnan(self._values[group, "", metric])
            ]
            if len(keys) < 2 or any(np.isnan(self.interval(key)[0]) for key in keys):
                continue
            values = np.array([self._values[key] for key in keys])
            low, high = np.array([self.interval(key) for key in keys]).T
            simulate = self._simulate(keys, values)
            drawn = simulate(values)
            steady = 1.0
            if metric not in ROW_MEANS:
                steady = float(np.mean([apart_from_0(*of) for of in zip(values, low, strict=True)]))
            wider = _together(drawn) if self._rows.mixed else 1.0
            for name in DEVIATIONS:
                over = ALL, "", f"{metric}_{name}"
                value = self._values[over]
                upper = upper_end(name, values, low, high)
                if name == "mean":
                    upper = value + wider * (upper - value)
                if name == "mean" and metric in ROW_MEANS:
                    lower = value - wider * (value + upper_end(name, -values, -high, -low))
                else:
                    lower = lower_end(name, values, simulate, self._level)
                self._ends[over] = lower, upper
                likely = lower_end(name, values, simulate, level=0.0)
                noisy = deviation_of(name, drawn)
                # A sum of norms turns around as far as they do, also where it is far from 0.
                apart = min(apart_from_0(value, lower), steady)
                self._estimates[over] = ClassEstimate(value, likely, lower, upper, noisy, apart)

    def _simulate(self, keys: Sequence[Key], values: Float64) -> Callable[[Float64], Float64]:
        """Return what finds the groups' values again, with the noise of other units."""
        metric = keys[0][2]
        if metric in ROW_MEANS:
            moves = np.stack([self._moves[group, metric] for group, _, _ in keys], axis=-1)
            return lambda truth: truth + moves
        sizes = [self._sizes[group, metric] for group, _, _ in keys]

        def again(truth: Float64) -> Float64:
            parts = np.divide(truth, values, out=np.zeros_like(truth), where=values > 1e-9)
            return np.stack([of.at(part) for of, part in zip(sizes, parts, strict=True)], axis=-1)

        return again


def _together(drawn: Float64) -> float:
    """Return how much wider the mean over groups varies than if groups shared no unit."""
    alone = np.sqrt((drawn.std(axis=0) ** 2).sum()) / drawn.shape[1]
    return max(float(drawn.mean(axis=1).std() / alone), 1.0) if alone > 0 else 1.0


def _standardised(values: Float64) -> Float64:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
