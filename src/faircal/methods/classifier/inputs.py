"""What a classifier is given, checked once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean, short
from faircal.data.class_probabilities import as_probabilities_matrix

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Floats = npt.NDArray[np.floating[Any]]


def two_columns(probabilities: npt.ArrayLike) -> Float64:
    """Return checked probabilities; one column only is that of the second of two classes."""
    given = np.asarray(probabilities)
    if given.ndim == 1 and given.dtype.kind in "biuf":
        given = np.column_stack([1.0 - given, given])
    return as_probabilities_matrix(given)


def column_classes(
    labels: npt.NDArray[Any], n_classes: int, given: npt.ArrayLike | None
) -> npt.NDArray[Any]:
    """Return the class of each column."""
    if given is not None:
        classes = np.asarray(given)
        if classes.shape != (n_classes,) or len(np.unique(classes)) < n_classes:
            raise DataError(f"classes: expected {n_classes} different ones, one for each column")
        return classes
    values = different(labels)
    if len(values) == n_classes:
        return values
    # Without a 0 they may as well be numbered from 1.
    if values.dtype.kind in "iu" and len(values) and values[0] == 0 and values[-1] < n_classes:
        return np.arange(n_classes)
    raise DataError(
        f"y: expected {n_classes} classes, one for each column of the probabilities, "
        f"found {len(values)}; give classes=, one for each column"
    )


def different(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the different labels, sorted."""
    try:
        return np.unique(labels)
    except TypeError:
        raise DataError(
            "y: expected labels of one kind, found several, or none; give every row a label"
        ) from None


def feature_matrix(features: Any, n: int | None, width: int | None = None) -> Floats:
    """Return features as a finite matrix, float32 or float64, or say what is wrong."""
    if issparse(features):
        raise DataError(
            "features: expected a dense matrix, found a sparse one; give features=, a function of "
            "the estimator and X that makes a dense one (a reduction to some dozens of columns)"
        )
    kinds = [np.float32, np.float64]
    try:
        matrix = check_array(features, dtype=kinds, input_name="features", ensure_min_samples=0)
    except (TypeError, ValueError) as error:
        raise DataError(f"features: {short(error)}") from error
    if n is not None and len(matrix) != n:
        raise DataError(
            f"features: expected {n} rows, one for each row of the probabilities, "
            f"found {len(matrix)}"
        )
    if width is not None and matrix.shape[1] != width:
        raise DataError(
            f"features: expected {width} columns, as in calibration, found {matrix.shape[1]}"
        )
    return np.asarray(matrix)


def class_codes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the column of each label, or say which label is no class.

    Examples
    --------
    >>> class_codes(np.array(["b", "a"]), np.array(["b", "a", "c"]))
    array([0, 1])
    """
    if labels.dtype.kind == "O" or classes.dtype.kind == "O":
        different(labels)  # what can't be sorted is said here
    order = np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=order)
    codes = order[np.minimum(place, len(classes) - 1)]
    foreign = classes[codes] != labels
    if foreign.any():
        row = int(np.argmax(foreign))
        raise DataError(
            f"y: expected one of the {len(classes)} classes of the probabilities, found "
            f"{labels[row]!s} in row {row}; give the classes of all columns (classes=), or leave "
            "such rows out"
        )
    return codes.astype(np.int64)


def column_names(features: Any) -> tuple[str, ...]:
    """Return what a data frame calls its columns; nothing of an array."""
    names = getattr(features, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


def same_columns(features: Any, given: Sequence[str], names: tuple[str, ...]) -> Any:
    """Return the columns `names` of features whose columns are `given`, or a data frame's own.

    Where either has no names, features are as they are.
    """
    present = tuple(given) or column_names(features)
    if not names or not present or present == names:
        return features
    for name in names:
        if name not in present:
            raise DataError(
                f"features: no column '{name}', as in calibration; {did_you_mean(name, present)}"
            )
    return np.asarray(features)[:, [present.index(name) for name in names]]


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
    splits: Any
    if isinstance(cv, int):
        different_labels, counts = np.unique(y, return_counts=True)
        fewest = int(counts.min())
        if fewest < 2 and len(different_labels) == 2:
            raise DataError(
                f"y: expected two rows of class {different_labels[counts.argmin()]!s} at least, "
                "found one: none could be held out"
            )
        # A class with one row is unknown to the copy that is asked about it.
        alone = KFold(min(cv, len(y)), shuffle=True, random_state=0)
        splits = (StratifiedKFold(min(cv, fewest)) if fewest >= 2 else alone).split(X, y)
    else:
        splits = check_cv(cv, y, classifier=True).split(X, y)
    given = np.full((len(y), len(classes)), np.nan)
    for train, test in splits:
        fitted = clone(estimator).fit(_safe_indexing(X, train), y[train])
        given[test] = class_probabilities(fitted, _safe_indexing(X, test), classes)
    without = np.isnan(given).any(axis=1)
    if without.any():
        row = int(np.argmax(without))
        raise DataError(f"cv: expected every row to be held out once; row {row} never is")
    return given


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
    ordered = np.zeros((len(given), len(classes)))
    ordered[:, class_codes(np.asarray(estimator.classes_), classes)] = given
    return ordered
