"""How far groups are apart: deviations, rates at a shared threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError
from faircal._base.registry import Registry
from faircal.metrics.error_rates import (
    as_rates,
    fnr_at_threshold,
    fpr_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
)
from faircal.metrics.ranking import FloatArray, IntArray, Ranking


def mean(values: npt.ArrayLike) -> float:
    """Return the unweighted mean m over groups: every group counts the same.

    Here and in the other deviations there is one value per group. A group without one (NaN) is left
    out; without any value left the result is NaN.

    Examples
    --------
    >>> mean([0.1, 0.2, float("nan"), 0.6])
    0.3
    """
    defined = _defined(values)
    return float(defined.mean()) if defined.size else float("nan")


def aad(values: npt.ArrayLike) -> float:
    """Return the average absolute deviation over groups: the mean of |x − m|.

    Examples
    --------
    >>> aad([1.0, 2.0, 6.0])
    2.0
    """
    deviations = _deviations(values)
    return float(deviations.mean()) if deviations.size else float("nan")


def mad(values: npt.ArrayLike) -> float:
    """Return the maximum absolute deviation over groups: the largest |x − m|.

    Examples
    --------
    >>> mad([1.0, 2.0, 6.0])
    3.0
    """
    deviations = _deviations(values)
    return float(deviations.max()) if deviations.size else float("nan")


def std(values: npt.ArrayLike) -> float:
    """Return the population standard deviation over groups (ddof 0).

    Examples
    --------
    >>> std([1.0, 3.0])
    1.0
    """
    deviations = _deviations(values)
    return float(np.sqrt(np.mean(deviations**2))) if deviations.size else float("nan")


#: What is reported over groups, in the order of the paper's tables.
DEVIATIONS: Registry[Callable[[npt.ArrayLike], float]] = Registry("deviation")
DEVIATIONS.register("mean", mean)
DEVIATIONS.register("aad", aad)
DEVIATIONS.register("mad", mad)
DEVIATIONS.register("std", std)


@dataclass(frozen=True, eq=False)
class SharedThresholdRates:
    """Error rates of groups at thresholds that all groups share.

    Parameters
    ----------
    groups : tuple of str
    rates : ndarray of float64, shape (n_rates,)
        The overall rates that were asked for.
    thresholds : ndarray of float64, shape (n_rates,)
        The threshold that each of them needs.
    values : ndarray of float64, shape (n_groups, n_rates)
        The groups' rates there.
    """

    groups: tuple[str, ...]
    rates: FloatArray
    thresholds: FloatArray
    values: FloatArray

    def deviation(self, name: str) -> FloatArray:
        """Return one of `DEVIATIONS` over the groups, shape (n_rates,)."""
        return np.array([DEVIATIONS[name](column) for column in self.values.T])


def predictive_equality(
    overall: Ranking, groups: Mapping[str, Ranking], rates: npt.ArrayLike, *, upper: float = 1.0
) -> SharedThresholdRates:
    """Return each group's FPR, interpolated, at the thresholds of given overall FPRs.

    Parameters
    ----------
    overall : Ranking
        The pairs that set the threshold: all test pairs, as in the paper, or all calibration
        pairs, as in use.
    groups : mapping of str to Ranking
        The test pairs of each group.
    rates : array-like of float, shape (n_rates,)
        Overall false positive rates.
    upper : float, default 1.0
        Upper end of the score range; see `roc`.

    Examples
    --------
    >>> overall = Ranking.of([0.9, 0.8, 0.4, 0.2], [0, 0, 0, 0])
    >>> groups = {"A": overall.subset([True, False, True, False]),
    ...           "B": overall.subset([False, True, False, True])}
    >>> result = predictive_equality(overall, groups, [0.5])
    >>> result.thresholds, result.values.T
    (array([0.8]), array([[0.6, 0.5]]))
    >>> result.deviation("mad").round(3)
    array([0.05])
    """
    return _at_shared_thresholds(overall, groups, rates, upper, threshold_at_fpr, fpr_at_threshold)


def equal_opportunity(
    overall: Ranking, groups: Mapping[str, Ranking], rates: npt.ArrayLike, *, upper: float = 1.0
) -> SharedThresholdRates:
    """Return each group's FNR at the thresholds of given overall FNRs.

    Everything else is as in `predictive_equality`.

    Examples
    --------
    >>> overall = Ranking.of([0.9, 0.8, 0.4, 0.2], [1, 1, 1, 1])
    >>> groups = {"A": overall.subset([True, False, True, False])}
    >>> equal_opportunity(overall, groups, [0.25, 0.5]).values
    array([[0. , 0.4]])
    """
    return _at_shared_thresholds(overall, groups, rates, upper, threshold_at_fnr, fnr_at_threshold)


def _at_shared_thresholds(
    overall: Ranking,
    groups: Mapping[str, Ranking],
    rates: npt.ArrayLike,
    upper: float,
    threshold_at: Callable[..., FloatArray],
    rate_at: Callable[..., FloatArray],
) -> SharedThresholdRates:
    at = np.atleast_1d(as_rates(rates))
    thresholds = threshold_at(overall, at, upper=upper)
    # One threshold for all groups, set by all pairs: what a system in use has.
    values = [rate_at(group, thresholds, upper=upper) for group in groups.values()]
    # Reshaped: no groups give no rows rather than an error.
    rows = np.array(values).reshape(len(values), len(at))
    return SharedThresholdRates(tuple(groups), at, thresholds, rows)


def _defined(values: npt.ArrayLike) -> FloatArray:
    """Return the values that are not NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(
            f"expected one value per group; found shape {array.shape}; pass one condition at a time"
        )
    return array[~np.isnan(array)]


def _deviations(values: npt.ArrayLike) -> FloatArray:
    defined = _defined(values)
    return np.abs(defined - defined.mean()) if defined.size else defined


def cells(left: npt.ArrayLike, right: npt.ArrayLike, n: int) -> IntArray:
    """Return the cell of each pair: a number for the two groups of its images, in either order.

    Parameters
    ----------
    left, right : array-like of int, shape (n_pairs,)
        Groups of the two images, from 0 to n − 1; −1 where unknown.
    n : int
        Number of groups.

    Returns
    -------
    ndarray of int64, shape (n_pairs,)
        From 0 to n (n + 1) / 2 − 1, in the order of ``numpy.triu_indices(n)``: first group 0 with
        0, 1, …, then group 1 with 1, 2, …; −1 where a group is unknown.

    Examples
    --------
    >>> cells([0, 1, 2, 0, -1], [0, 0, 1, 2, 1], 3)
    array([ 0,  1,  4,  2, -1])
    """
    codes = [np.asarray(side) for side in (left, right)]
    for name, side in zip(("left", "right"), codes, strict=True):
        if side.shape != codes[0].shape or side.ndim != 1 or side.dtype.kind not in "iu":
            raise DataError(
                f"expected whole numbers as groups, one per pair; found {side.dtype} of shape "
                f"{side.shape} as {name}"
            )
        if side.size and not (side.min() >= -1 and side.max() < n):
            raise DataError(
                f"expected groups from -1 to {n - 1}; found {side.min()} to {side.max()} as {name}"
            )
    # A table looks a cell up; its last row and column, which −1 points to, are the unknown.
    table = np.full((n + 1, n + 1), -1, dtype=np.int64)
    upper, lower = np.triu_indices(n)
    table[upper, lower] = table[lower, upper] = np.arange(len(upper))
    return np.asarray(table[codes[0], codes[1]])
