"""Probabilities of rows that the estimator was not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from faircal._base.errors import DataError
from faircal.methods.classifier.inputs import class_codes

Float64 = NDArray[np.float64]


def is_frozen(estimator: Any) -> bool:
    """Whether an estimator is fitted already and is to stay as it is."""
    return isinstance(estimator, FrozenEstimator)


def cross_fitted(
    estimator: Any, X: Any, y: NDArray[Any], classes: NDArray[Any], cv: Any
) -> Float64:
    """Return each row's probabilities by a copy of `estimator` that did not see it.

    Parameters
    ----------
    estimator : classifier
        Unfitted; copies of it are fitted.
    X : array of shape (n, d)
    y : ndarray of shape (n,)
    classes : ndarray of shape (n_classes,)
        The order of the columns.
    cv : int, splitter or iterable of splits
        Every row has to be held out once. A number of folds is made less where a class, or the
        data, has fewer rows.
    """
    found = np.full((len(y), len(classes)), np.nan)
    for train, test in _splits(X, y, cv):
        fitted = clone(estimator).fit(_safe_indexing(X, train), y[train])
        found[test] = class_probabilities(fitted, _safe_indexing(X, test), classes)
    if np.isnan(found).any():
        row = int(np.flatnonzero(np.isnan(found).any(axis=1))[0])
        raise DataError(f"cv: expected every row to be held out once; row {row} never is")
    return found


def _splits(X: Any, y: NDArray[Any], cv: Any) -> Any:
    if not isinstance(cv, int):
        return check_cv(cv, y, classifier=True).split(X, y)
    classes, counts = np.unique(y, return_counts=True)
    fewest = int(counts.min())
    if fewest < 2 and len(classes) == 2:
        raise DataError(
            f"y: expected two rows of class {classes[counts.argmin()]!s} at least, found one: "
            "none could be held out"
        )
    if fewest >= 2:
        return StratifiedKFold(min(cv, fewest)).split(X, y)
    # A class with one row: it is unknown to the copy that is asked about it.
    return KFold(min(cv, len(y)), shuffle=True, random_state=0).split(X, y)


def class_probabilities(estimator: Any, X: Any, classes: NDArray[Any]) -> Float64:
    """Return an estimator's probabilities with columns in the order of `classes`.

    An estimator without ``predict_proba`` gives those of its ``decision_function``. A class that it
    does not know has probability 0.
    """
    if not hasattr(estimator, "classes_"):
        raise DataError(
            f"estimator: expected a fitted classifier, found a {type(estimator).__name__} without "
            "classes_; fit it first"
        )
    if hasattr(estimator, "predict_proba"):
        given = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    elif hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if margin.ndim == 1:
            given = np.column_stack([expit(-margin), expit(margin)])
        else:
            given = softmax(margin, axis=1)
    else:
        raise DataError(
            f"estimator: expected predict_proba or decision_function; "
            f"{type(estimator).__name__} has neither"
        )
    found = np.zeros((len(given), len(classes)))
    found[:, class_codes(np.asarray(estimator.classes_), classes)] = given
    return found
