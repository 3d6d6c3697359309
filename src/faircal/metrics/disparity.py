"""How far groups are apart: deviations over groups, and error rates at a shared threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError
from faircal._base.registry import Registry
from faircal.metrics.accuracy import as_rates
from faircal.metrics.operating import (
    fnr_at_threshold,
    fpr_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
)
from faircal.metrics.ranking import FloatArray, Ranking


def mean(values: npt.ArrayLike) -> float:
    """Return the unweighted mean m over groups: every group counts the same.

    Parameters
    ----------
    values : array-like of float, shape (n_groups,)
        One value per group. Here and in the other deviations, a group without a value (NaN) is
        left out; without any value left the result is NaN.

    Returns
    -------
    float

    Examples
    --------
    >>> mean([0.1, 0.2, float("nan"), 0.6])
    0.3
    """
    known = _known(values)
    return float(known.mean()) if known.size else float("nan")


def aad(values: npt.ArrayLike) -> float:
    """Return the average absolute deviation over groups: the mean of |x − m|.

    Parameters
    ----------
    values : array-like of float, shape (n_groups,)

    Returns
    -------
    float

    Examples
    --------
    >>> aad([1.0, 2.0, 6.0])
    2.0
    """
    deviations = _deviations(values)
    return float(deviations.mean()) if deviations.size else float("nan")


def mad(values: npt.ArrayLike) -> float:
    """Return the maximum absolute deviation over groups: the largest |x − m|.

    Parameters
    ----------
    values : array-like of float, shape (n_groups,)

    Returns
    -------
    float

    Examples
    --------
    >>> mad([1.0, 2.0, 6.0])
    3.0
    """
    deviations = _deviations(values)
    return float(deviations.max()) if deviations.size else float("nan")


def std(values: npt.ArrayLike) -> float:
    """Return the population standard deviation over groups (ddof 0).

    Parameters
    ----------
    values : array-like of float, shape (n_groups,)

    Returns
    -------
    float

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
    """Return each group's FPR at the thresholds of given overall FPRs.

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

    Returns
    -------
    GroupRates
        Interpolated, as in `fpr_at_threshold`.

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
    at = np.atleast_1d(as_rates(rates))
    thresholds = threshold_at_fpr(overall, at, upper=upper)
    values = [fpr_at_threshold(group, thresholds, upper=upper) for group in groups.values()]
    return SharedThresholdRates(tuple(groups), at, thresholds, _rows(values, at))


def equal_opportunity(
    overall: Ranking, groups: Mapping[str, Ranking], rates: npt.ArrayLike, *, upper: float = 1.0
) -> SharedThresholdRates:
    """Return each group's FNR at the thresholds of given overall FNRs.

    Parameters
    ----------
    overall : Ranking
        The pairs that set the threshold; see `predictive_equality`.
    groups : mapping of str to Ranking
        The test pairs of each group.
    rates : array-like of float, shape (n_rates,)
        Overall false negative rates.
    upper : float, default 1.0
        Upper end of the score range; see `roc`.

    Returns
    -------
    GroupRates
        Interpolated, as in `fnr_at_threshold`.

    Examples
    --------
    >>> overall = Ranking.of([0.9, 0.8, 0.4, 0.2], [1, 1, 1, 1])
    >>> groups = {"A": overall.subset([True, False, True, False])}
    >>> equal_opportunity(overall, groups, [0.25, 0.5]).values
    array([[0. , 0.4]])
    """
    at = np.atleast_1d(as_rates(rates))
    thresholds = threshold_at_fnr(overall, at, upper=upper)
    values = [fnr_at_threshold(group, thresholds, upper=upper) for group in groups.values()]
    return SharedThresholdRates(tuple(groups), at, thresholds, _rows(values, at))


def _rows(values: list[FloatArray], at: FloatArray) -> FloatArray:
    """Stack one row per group; no groups give no rows rather than an error."""
    return np.array(values).reshape(len(values), len(at))


def _known(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(
            f"expected one value per group; found shape {array.shape}; pass one condition at a time"
        )
    return array[~np.isnan(array)]


def _deviations(values: npt.ArrayLike) -> FloatArray:
    known = _known(values)
    return np.abs(known - known.mean()) if known.size else known
