"""Differences between methods on the same rows: paired, as if the same other units had come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faircal.evaluation.classes.rows import ClassRows
from faircal.metrics.intervals.sharing import FEWEST, Float64
from faircal.metrics.proportions import combined_reach
from faircal.metrics.results import ALL, GLOBAL

Paired = tuple[float, float, float]


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


def of_rows(rows: ClassRows, group: str, apart: Float64, level: float) -> Paired:
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
    which, crowd = rows.rows[group], rows.crowds[group]
    part = apart[which]
    mean = float(part.mean()) if len(part) else float("nan")
    if crowd.people < FEWEST:
        return mean, float("nan"), float("nan")
    spread = crowd.spread((part - mean) / len(part))
    half = spread.half(level)
    return mean, mean - half, mean + half


def _mean_of_groups(rows: ClassRows, apart: Float64, level: float) -> Paired:
    """Each group counts the same; a unit in several of them moves all of these."""
    names = [name for name in rows.group_names if rows.crowds[name].people]
    found, moved = [], np.zeros(len(rows))
    for name in names:
        part = apart[rows.rows[name]]
        found.append(float(part.mean()))
        moved[rows.rows[name]] = (part - found[-1]) / (len(part) * len(names))
    mean = float(np.mean(found)) if found else float("nan")
    if len(names) < 2 or any(rows.crowds[name].people < FEWEST for name in names):
        return mean, float("nan"), float("nan")
    # Rows without a group move nothing.
    spread = rows.crowds[GLOBAL].spread(moved)
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


def of_estimates(one: ClassEstimate | None, other: ClassEstimate | None) -> Paired:
    """Return ``one − other`` with its interval, of the level of the two.

    Distances from what is likely to the ends are put together as errors are, after Zou and Donner
    (2008), with the correlation of the replicates. That correlation is that of the values found;
    the less one of them is told from 0, the less it says, and the worst is taken in its place.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.01, 1000)
    >>> a = Estimate(0.20, 0.20, 0.18, 0.22, 0.20 + noise, 1.0)
    >>> b = Estimate(0.25, 0.25, 0.23, 0.27, 0.25 + noise, 1.0)
    >>> [round(end, 3) for end in of_estimates(b, a)]  # all the noise in common
    [0.05, 0.05, 0.05]
    >>> zero = Estimate(0.01, 0.0, 0.0, 0.02, np.abs(noise), 0.0)
    >>> [round(end, 3) for end in of_estimates(a, zero)]
    [0.19, 0.171, 0.22]
    """
    if one is None or other is None:
        return float("nan"), float("nan"), float("nan")
    found, likely = one.value - other.value, one.likely - other.likely
    steady = one.noisy.std() > 0 and other.noisy.std() > 0
    common = float(np.corrcoef(one.noisy, other.noisy)[0, 1]) if steady else 0.0
    low = likely - _reach(one.likely - one.low, other.high - other.likely, common, one.apart)
    high = likely + _reach(other.likely - other.low, one.high - one.likely, common, other.apart)
    return found, min(low, found), max(high, found)


def _reach(below: float, above: float, common: float, apart: float) -> float:
    """Return how far the end is away: the one lower than likely, the other higher."""
    together = apart * common - (1 - apart)
    return combined_reach(max(below, 0.0), max(above, 0.0), -together)
