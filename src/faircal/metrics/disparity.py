"""How far groups are apart: deviations of any metric, and unequal error rates as standards have it.

Deviations (`mean`, `aad`, `mad`, `std`) take one value per group and give a float. A group without
a value (NaN) is left out; without any value left they are NaN.

The measures of unequal error rates, which standards and test laboratories report, take
the groups' rates at one threshold that every group shares, shape (..., n_groups),
and give one number for each set of groups, shape (...): a thousand resamples cost one call. Some
look at one rate (`gap`, `max_min`, `max_geomean`, `gini`), some at both (`fdr`, `ir`, `garbe`). In
those α is the weight of the false positives: a choice of what errors cost, which the data cannot
say; 0.5 takes both alike. Three rules hold for all:

- a group without a rate (NaN) is left out;
- with fewer than two groups left there is nothing to compare: NaN;
- a ratio to a rate of 0 is infinite, and NaN where no group has an error. No error counted is not
  no error to come, so neither may be shown as a number: the measure is undefined, as a group has
  no error. A laboratory collects more pairs or takes a laxer threshold then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import Registry
from faircal.metrics.ranking import FloatArray, IntArray


def deviations(values: npt.ArrayLike) -> dict[str, float]:
    """Return every deviation over groups, named as in `DEVIATIONS`.

    Examples
    --------
    >>> deviations([1.0, float("nan"), 2.0, 6.0])
    {'mean': 3.0, 'aad': 2.0, 'mad': 3.0, 'std': 2.160246899469287}
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DataError(
            f"expected one value per group; found shape {array.shape}; pass one condition at a time"
        )
    defined = array[~np.isnan(array)]
    if not defined.size:
        return dict.fromkeys(DEVIATIONS, float("nan"))
    centre = defined.mean()
    apart = np.abs(defined - centre)
    spread = np.sqrt(np.mean(apart**2))
    by_name = {"mean": centre, "aad": apart.mean(), "mad": apart.max(), "std": spread}
    return {name: float(value) for name, value in by_name.items()}


def mean(values: npt.ArrayLike) -> float:
    """Return the unweighted mean m over groups: every group counts the same.

    Examples
    --------
    >>> mean([0.1, 0.2, float("nan"), 0.6])
    0.3
    """
    return deviations(values)["mean"]


def aad(values: npt.ArrayLike) -> float:
    """Return the average absolute deviation over groups: the mean of |x − m|.

    Examples
    --------
    >>> aad([1.0, 2.0, 6.0])
    2.0
    """
    return deviations(values)["aad"]


def mad(values: npt.ArrayLike) -> float:
    """Return the maximum absolute deviation over groups: the largest |x − m|.

    Examples
    --------
    >>> mad([1.0, 2.0, 6.0])
    3.0
    """
    return deviations(values)["mad"]


def std(values: npt.ArrayLike) -> float:
    """Return the population standard deviation over groups (ddof 0).

    Examples
    --------
    >>> std([1.0, 3.0])
    1.0
    """
    return deviations(values)["std"]


#: What is reported over groups, in the order of the paper's tables.
DEVIATIONS: Registry[Callable[[npt.ArrayLike], float]] = Registry("deviation")
DEVIATIONS.register("mean", mean)
DEVIATIONS.register("aad", aad)
DEVIATIONS.register("mad", mad)
DEVIATIONS.register("std", std)


def gap(rates: npt.ArrayLike) -> FloatArray:
    """Return the highest rate less the lowest.

    Examples
    --------
    >>> gap([[0.01, 0.04, 0.02], [0.01, float("nan"), 0.02]])
    array([0.03, 0.01])
    """
    values = _comparable(rates)
    high = np.fmax.reduce(values, axis=-1, initial=np.nan)
    return np.asarray(high - np.fmin.reduce(values, axis=-1, initial=np.nan))


def max_min(rates: npt.ArrayLike) -> FloatArray:
    """Return the highest rate over the lowest: how many times as often the worst group errs.

    NIST's reports give it for false matches and false non-matches.

    Examples
    --------
    >>> max_min([[0.01, 0.04, 0.02], [0.0, 0.04, 0.02]])
    array([ 4., inf])
    """
    values = _comparable(rates)
    high = np.fmax.reduce(values, axis=-1, initial=np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(high / np.fmin.reduce(values, axis=-1, initial=np.nan))


def max_geomean(rates: npt.ArrayLike) -> FloatArray:
    """Return the highest rate over the geometric mean of all.

    NIST's summary (IR 8429, 2022). One group with a very low rate, as chance makes of a small one,
    moves the mean of many groups less than it moves their minimum.

    Examples
    --------
    >>> max_geomean([[0.01, 0.04, 0.02]]).round(6)
    array([2.])
    """
    values = _comparable(rates)
    has_rate = ~np.isnan(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A rate of 0 makes the mean 0 and the ratio infinite, as the rules above ask.
        logs = np.log(values, where=has_rate, out=np.zeros_like(values))
        geomean = np.exp(logs.sum(axis=-1) / has_rate.sum(axis=-1))
        return np.asarray(np.fmax.reduce(values, axis=-1, initial=np.nan) / geomean)


def gini(rates: npt.ArrayLike) -> FloatArray:
    """Return the Gini coefficient, scaled to reach 1 where one group has all the errors.

    With rates x_i of n groups and their mean m,
    ``G = n / (n − 1) · Σ_i Σ_j |x_i − x_j| / (2 n² m)`` (Howard et al., 2022).

    It is NaN where no group has an error: there is nothing to share out.

    Examples
    --------
    >>> gini([[0.01, 0.04, 0.01], [0.0, 0.0, 0.3], [0.2, 0.2, 0.2]]).round(6)
    array([0.5, 1. , 0. ])
    """
    values = np.sort(_comparable(rates), axis=-1)  # NaN come last
    has_rate = ~np.isnan(values)
    n = has_rate.sum(axis=-1)
    total = np.where(has_rate, values, 0.0).sum(axis=-1)
    # In ascending order Σ_i Σ_j |x_i − x_j| is 2 Σ_i (2 i − n − 1) x_i, with i from 1.
    place = 2 * np.arange(1, values.shape[-1] + 1) - n[..., None] - 1
    apart = np.where(has_rate, place * values, 0.0).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.maximum(apart, 0.0) / ((n - 1) * total))


def fdr(fpr: npt.ArrayLike, fnr: npt.ArrayLike, alpha: float = 0.5) -> FloatArray:
    """Return the fairness discrepancy rate; 1 is fair. Not to be taken for false discoveries.

    ``FDR = 1 − (α A + (1 − α) B)``, A and B being the `gap` of false positive and false negative
    rates (de Freitas Pereira and Marcel, 2021). As false positive rates are set low, α = 0.5 makes
    it a matter of false negatives almost alone; it hardly leaves 1.

    Examples
    --------
    >>> fdr([[0.01, 0.03]], [[0.2, 0.1]]).round(6)
    array([0.94])
    """
    return 1 - _weighted(alpha, gap(fpr), 1 - alpha, gap(fnr))


def ir(
    fpr: npt.ArrayLike, fnr: npt.ArrayLike, alpha: float = 0.5, beta: float | None = None
) -> FloatArray:
    """Return NIST's inequity rate; 1 is fair.

    ``IR = A^α · B^β``, A and B being `max_min` of false positive and false negative rates (Grother,
    2021); β is 1 − α by default.

    Examples
    --------
    >>> ir([[0.01, 0.04]], [[0.1, 0.9]]).round(6)
    array([6.])
    """
    beta = 1 - alpha if beta is None else beta
    with np.errstate(divide="ignore"):
        logs = np.log(max_min(fpr)), np.log(max_min(fnr))
    return np.exp(_weighted(alpha, logs[0], beta, logs[1]))


def garbe(fpr: npt.ArrayLike, fnr: npt.ArrayLike, alpha: float = 0.5) -> FloatArray:
    """Return the Gini aggregation rate for biometric equitability; 0 is fair, 1 most unfair.

    ``GARBE = α A + (1 − α) B``, A and B being the `gini` of false positive and false negative rates
    (Howard et al., 2022). It keeps to [0, 1] and bears rates of 0 in some groups.

    Examples
    --------
    >>> garbe([[0.01, 0.04, 0.01]], [[0.1, 0.1, 0.1]]).round(6)
    array([0.25])
    """
    return _weighted(alpha, gini(fpr), 1 - alpha, gini(fnr))


@dataclass(frozen=True)
class Fairness:
    """A measure of how unequal groups are.

    Parameters
    ----------
    name : str
    function : callable
        Of one rate, or of false positive and false negative rates.
    of : {"rate", "both"}
        Which of the two.
    fair : float
        Its value where all groups are equal.
    better : {"higher", "lower"}
    title : str
        For tables and figures.
    """

    name: str
    function: Callable[..., FloatArray]
    of: Literal["rate", "both"]
    fair: float
    better: Literal["higher", "lower"]
    title: str


#: What is reported over groups at one threshold beside the deviations, in the order of the tables.
FAIRNESS: Registry[Fairness] = Registry("fairness measure")

for _measure in (
    Fairness("gap", gap, "rate", 0.0, "lower", "max − min"),
    Fairness("max_min", max_min, "rate", 1.0, "lower", "max / min"),
    Fairness("max_geomean", max_geomean, "rate", 1.0, "lower", "max / geometric mean"),
    Fairness("gini", gini, "rate", 0.0, "lower", "Gini"),
    Fairness("fdr", fdr, "both", 1.0, "higher", "FDR"),
    Fairness("ir", ir, "both", 1.0, "lower", "Inequity rate"),
    Fairness("garbe", garbe, "both", 0.0, "lower", "GARBE"),
):
    FAIRNESS.register(_measure.name, _measure)


def unfairness(fpr: npt.ArrayLike, fnr: npt.ArrayLike, alpha: float = 0.5) -> dict[str, FloatArray]:
    """Return every measure of `FAIRNESS`, named as in the ``metric`` column of the results.

    First those of each rate (``fpr_gap``, …, ``fnr_gap``, …), then those of both.

    Examples
    --------
    >>> measures = unfairness([0.01, 0.04], [0.1, 0.9])
    >>> {name: round(float(value), 3) for name, value in measures.items()}
    {'fpr_gap': 0.03, 'fpr_max_min': 4.0, 'fpr_max_geomean': 2.0, 'fpr_gini': 0.6,
     'fnr_gap': 0.8, 'fnr_max_min': 9.0, 'fnr_max_geomean': 3.0, 'fnr_gini': 0.8,
     'fdr': 0.585, 'ir': 6.0, 'garbe': 0.7}
    """
    single = {
        f"{rate}_{name}": measure.function(values)
        for rate, values in (("fpr", fpr), ("fnr", fnr))
        for name, measure in FAIRNESS.items()
        if measure.of == "rate"
    }
    both = {
        name: measure.function(fpr, fnr, alpha=alpha)
        for name, measure in FAIRNESS.items()
        if measure.of == "both"
    }
    return single | both


def _comparable(rates: npt.ArrayLike) -> FloatArray:
    """Return rates, checked, with NaN for all of a set where fewer than two groups have one."""
    values = np.asarray(rates, dtype=np.float64)
    if values.ndim == 0:
        raise DataError("expected one rate per group; found a single number; pass a list of rates")
    bad = (values < 0) | (values > 1)
    if bad.any():
        raise DataError(
            f"expected error rates in [0, 1]; found {values[bad][0]:g}; write 1 % as 0.01"
        )
    few = (~np.isnan(values)).sum(axis=-1, keepdims=True) < 2
    return np.where(few, np.nan, values)


def _weighted(alpha: float, a: FloatArray, beta: float, b: FloatArray) -> FloatArray:
    """Return α a + β b, where what weighs nothing may be undefined."""
    for name, weight in (("alpha", alpha), ("beta", beta)):
        if not 0 <= weight <= 1:
            raise ParameterError(f"{name}: expected a weight in [0, 1], found {weight!r}")
    return (alpha * a if alpha else 0.0) + (beta * b if beta else np.zeros_like(b))


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
