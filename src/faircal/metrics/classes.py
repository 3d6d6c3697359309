"""Measuring class probabilities: accuracy, NLL, Brier, and calibration of top label and classes.

A row is one input of a classifier: a probability for each of C classes, and the code of the class
that was true. The *top label* is the class with the highest probability; asking whether it is right
makes a binary question of every row, and so does asking of one class whether it is the true one.
Calibration errors are those of `faircal.metrics.calibration`, put to these questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from faircal._base.errors import ParameterError
from faircal._base.registry import Registry
from faircal.data.class_probabilities import as_class_probabilities
from faircal.metrics.calibration import NLL_EPS, ece, ks
from faircal.metrics.ranking import BoolArray, FloatArray, IntArray, Ranking


def top_label(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return the highest probability of each row, and whether its class is the true one.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
    codes : array-like of int, shape (n_rows,)

    Returns
    -------
    confidence : ndarray of float64, shape (n_rows,)
    correct : ndarray of bool, shape (n_rows,)
        Of equal classes the first is the top label.

    Examples
    --------
    >>> top_label([[0.2, 0.8], [0.5, 0.5]], [1, 1])
    (array([0.8, 0.5]), array([ True, False]))
    """
    matrix, labels = as_class_probabilities(probabilities, codes)
    first = np.argmax(matrix, axis=1)
    return np.take_along_axis(matrix, first[:, None], axis=1)[:, 0], first == labels


def top_label_ranking(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> Ranking:
    """Return the rows sorted by the confidence in their top label; genuine is where it is right.

    Groups are cut out of it without sorting again (`Ranking.split`), and every binary metric takes
    it.

    Examples
    --------
    >>> top_label_ranking([[0.2, 0.8], [0.6, 0.4]], [1, 1])
    <Ranking of 1 genuine and 1 imposter pairs>
    """
    return _ranking(*top_label(probabilities, codes))


def classwise_rankings(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> tuple[Ranking, ...]:
    """Return for each class the rows sorted by its probability; genuine is where it is true.

    Examples
    --------
    >>> classwise_rankings([[0.2, 0.8], [0.6, 0.4]], [1, 1])
    (<Ranking of 0 genuine and 2 imposter pairs>, <Ranking of 2 genuine and 0 imposter pairs>)
    """
    matrix, labels = as_class_probabilities(probabilities, codes)
    return tuple(_ranking(column, labels == code) for code, column in enumerate(matrix.T))


def accuracy(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> float:
    """Return the share of rows whose top label is the true class; of equal classes, the first.

    Examples
    --------
    >>> accuracy([[0.2, 0.8], [0.6, 0.4]], [1, 1])
    0.5
    """
    return _mean(top_label(probabilities, codes)[1])


def multiclass_nll(
    probabilities: npt.ArrayLike, codes: npt.ArrayLike, *, eps: float = NLL_EPS
) -> float:
    """Return the mean negative log-likelihood of the true classes, in nats.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
    codes : array-like of int, shape (n_rows,)
    eps : float, default 2.2e-16
        A true class with less probability is taken to have this much, so that one certain mistake
        costs a finite −log(eps), about 36, rather than everything.

    Returns
    -------
    float
        For two classes the binary `nll`. NaN without rows.

    Examples
    --------
    >>> round(multiclass_nll([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [0, 2]), 4)
    0.6931
    """
    if not 0 < eps < 0.5:
        raise ParameterError(f"expected eps between 0 and 0.5; found {eps!r}")
    matrix, labels = as_class_probabilities(probabilities, codes)
    return _mean(log_losses(matrix, labels, eps))


def log_losses(matrix: FloatArray, codes: IntArray, eps: float = NLL_EPS) -> FloatArray:
    """Return what each checked row adds to `multiclass_nll`, shape (n_rows,)."""
    true = np.take_along_axis(matrix, codes[:, None], axis=1)[:, 0]
    return np.asarray(-np.log(np.maximum(true, eps)))


def multiclass_brier(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> float:
    """Return the Brier score of many classes: the mean over rows of Σ_c (p_c − y_c)².

    It runs from 0 to 2. For two classes it is twice the binary `brier`, as each class counts.

    Examples
    --------
    >>> round(multiclass_brier([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5]], [0, 2]), 3)
    0.22
    """
    matrix, labels = as_class_probabilities(probabilities, codes)
    return _mean(squared_errors(matrix, labels))


def squared_errors(matrix: FloatArray, codes: IntArray) -> FloatArray:
    """Return what each checked row adds to `multiclass_brier`, shape (n_rows,)."""
    true = np.take_along_axis(matrix, codes[:, None], axis=1)[:, 0]
    squares = np.einsum("ij,ij->i", matrix, matrix)
    # The sum over classes of (p − y)²: none below 0 by rounding.
    return np.asarray(np.maximum(squares - 2 * true + 1, 0.0))


def top_label_ks(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> float:
    """Return the KS error of the confidence in the top label.

    Examples
    --------
    >>> top_label_ks([[0.25, 0.75], [0.25, 0.75]], [1, 1])
    0.25
    """
    return ks(top_label_ranking(probabilities, codes))


def top_label_ece(
    probabilities: npt.ArrayLike,
    codes: npt.ArrayLike,
    *,
    n_bins: int = 10,
    binning: Literal["mass", "width"] = "mass",
) -> float:
    """Return the expected calibration error of the top label; bins as in `reliability`.

    Published figures of image classifiers mostly have ``n_bins=15, binning="width"``.

    Examples
    --------
    >>> top_label_ece([[0.25, 0.75], [0.25, 0.75]], [1, 0], n_bins=1)
    0.25
    """
    return ece(top_label_ranking(probabilities, codes), n_bins=n_bins, binning=binning)


def classwise_ks(probabilities: npt.ArrayLike, codes: npt.ArrayLike) -> float:
    """Return the mean over classes of the KS error of that class's probability.

    Each class counts the same, one that is never true among these rows as well: it should have no
    probability there, and what it has is its error.

    Examples
    --------
    >>> round(classwise_ks([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]], [0, 1]), 4)
    0.1667
    """
    return float(np.mean([ks(ranking) for ranking in classwise_rankings(probabilities, codes)]))


def classwise_ece(
    probabilities: npt.ArrayLike,
    codes: npt.ArrayLike,
    *,
    n_bins: int = 10,
    binning: Literal["mass", "width"] = "mass",
) -> float:
    """Return the mean over classes of the expected calibration error of that class's probability.

    Each class counts the same, as in `classwise_ks`; bins are made for each class.

    Examples
    --------
    >>> p = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
    >>> round(classwise_ece(p, [0, 1], n_bins=1), 4)
    0.1667
    """
    rankings = classwise_rankings(probabilities, codes)
    return float(np.mean([ece(each, n_bins=n_bins, binning=binning) for each in rankings]))


@dataclass(frozen=True)
class ClassMetric:
    """A number that is reported of a classifier, over all rows and for each group.

    Parameters
    ----------
    name : str
        As in the ``metric`` column of the results.
    function : callable
        From probabilities (n_rows, n_classes) and codes (n_rows,) to a float; NaN without rows.
    better : {"higher", "lower"}
    title : str
        For tables and figures.
    description : str
        What it is, in a few words.
    losses : callable, optional
        From checked probabilities and codes to what each row adds, shape (n_rows,): the metric is
        their mean, and its interval is made of how they vary with the units. KS and ECE are no
        means and have intervals of their own; any other metric has none.

    Examples
    --------
    >>> CLASS_METRICS["accuracy"].function([[0.2, 0.8]], [1])
    1.0
    """

    name: str
    function: Callable[[npt.ArrayLike, npt.ArrayLike], float]
    better: Literal["higher", "lower"]
    title: str
    description: str
    losses: Callable[[FloatArray, IntArray], FloatArray] | None = None


CLASS_METRICS: Registry[ClassMetric] = Registry("class metric")


def _right(matrix: FloatArray, codes: IntArray) -> FloatArray:
    return top_label(matrix, codes)[1].astype(np.float64)


for _metric in (
    ClassMetric("accuracy", accuracy, "higher", "Accuracy", "share of top labels right", _right),
    ClassMetric("nll", multiclass_nll, "lower", "NLL", "mean −log p of the true class", log_losses),
    ClassMetric(
        "brier",
        multiclass_brier,
        "lower",
        "Brier",
        "squared error, summed over classes",
        squared_errors,
    ),
    ClassMetric(
        "top_ks", top_label_ks, "lower", "Top-label KS", "KS of the confidence in top labels"
    ),
    ClassMetric(
        "top_ece",
        top_label_ece,
        "lower",
        "Top-label ECE",
        "mean gap of confidence and share right",
    ),
    ClassMetric("class_ks", classwise_ks, "lower", "Class-wise KS", "KS of each class, mean"),
    ClassMetric("class_ece", classwise_ece, "lower", "Class-wise ECE", "ECE of each class, mean"),
):
    CLASS_METRICS.register(_metric.name, _metric)


def _ranking(probability: FloatArray, true: BoolArray) -> Ranking:
    if not len(probability):  # a ranking is never made of nothing, only cut down to it
        return Ranking.of([0.0], [False]).subset([False])
    return Ranking.of(probability, true)


def _mean(values: FloatArray | BoolArray) -> float:
    return float(np.mean(values)) if values.size else float("nan")
