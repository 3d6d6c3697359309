"""Class probabilities and labels of a classifier's rows, checked once at the door."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from faircal.errors import DataError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

#: Rows of probabilities may miss 1 by this much: they come rounded, or in single precision.
SUM_TOLERANCE = 1e-3
# Rows that miss 1 by less were normalised before. They stay as they are, as one more division
# would part equal probabilities by their last bit, and KS and ECE take equal ones together.
_ROUNDING = 1e-12


def as_probabilities_matrix(
    probabilities: npt.ArrayLike, where: str = "probabilities"
) -> FloatArray:
    """Return class probabilities as float64 whose rows sum to 1, or say which row is wrong.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
        Each row sums to 1, give or take 0.001; it is divided by its sum.
    where : str, default "probabilities"
        What they are called in messages.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        The array that was given where nothing had to be changed.

    Examples
    --------
    >>> as_probabilities_matrix([[0.2, 0.7999], [0.5, 0.5]]).sum(axis=1)
    array([1., 1.])
    >>> as_probabilities_matrix([[0.2, 0.8], [2.0, -1.0]])
    Traceback (most recent call last):
    ...
    faircal.errors.DataError: probabilities: expected numbers in [0, 1]; found 2 in row 1, \
column 0; turn scores into probabilities first (softmax of logits)
    """
    found = _matrix(probabilities, where)
    # Two passes without a temporary matrix; a NaN passes no comparison.
    if found.size and not (found.min() >= 0 and found.max() <= 1 + SUM_TOLERANCE):
        row, column = np.argwhere(~((found >= 0) & (found <= 1 + SUM_TOLERANCE)))[0]
        value = found[row, column]
        remedy = "turn scores into probabilities first (softmax of logits)"
        if not np.isfinite(value):
            remedy = "drop or repair such rows"
        raise DataError(
            f"{where}: expected numbers in [0, 1]; found {value:g} in row {row}, "
            f"column {column}; {remedy}"
        )
    total = found.sum(axis=1)
    miss = np.abs(total - 1)
    worst = miss.max(initial=0)
    if worst > SUM_TOLERANCE:
        row = int(np.argmax(miss > SUM_TOLERANCE))
        raise DataError(
            f"{where}: expected rows that sum to 1; found {total[row]:g} in row {row}; "
            "pass the probabilities of all classes, one column each"
        )
    if worst <= _ROUNDING:
        return found
    return found / np.where(miss <= _ROUNDING, 1.0, total)[:, None]


def as_codes(codes: npt.ArrayLike, n: int, n_classes: int) -> IntArray:
    """Return labels as whole numbers from 0 to n_classes − 1, or say which row is wrong.

    Parameters
    ----------
    codes : array-like of int, shape (n,)
        The column of the true class; whole numbers of any type.
    n : int
        Rows that there have to be.
    n_classes : int

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> as_codes([0.0, 2.0], 2, 3)
    array([0, 2])
    >>> as_codes([0, 3], 2, 3)
    Traceback (most recent call last):
    ...
    faircal.errors.DataError: codes: expected whole numbers from 0 to 2, one per column of the \
probabilities; found 3 in row 1; number the classes in the order of the columns
    """
    given = np.asarray(codes)
    if given.shape != (n,):
        raise DataError(
            f"codes: expected one label per row of the probabilities, shape ({n},); "
            f"found shape {given.shape}; pass two columns of the same table"
        )
    if not n:
        return np.empty(0, dtype=np.int64)
    known = f"whole numbers from 0 to {n_classes - 1}, one per column of the probabilities"
    remedy = "number the classes in the order of the columns"
    try:
        # Text is refused although "1" could be read: class names are not codes.
        numbers = None if given.dtype.kind not in "biufO" else given.astype(np.float64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise DataError(f"codes: expected {known}; found other values; {remedy}")
    wrong = ~((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"codes: expected {known}; found {numbers[row]:g} in row {row}; {remedy}")
    return numbers.astype(np.int64)


def as_class_probabilities(
    probabilities: npt.ArrayLike, codes: npt.ArrayLike
) -> tuple[FloatArray, IntArray]:
    """Return probabilities and codes checked: the door of every metric of classes.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
        See `as_probabilities_matrix`. No rows are accepted: every metric of none is NaN.
    codes : array-like of int, shape (n_rows,)
        See `as_codes`.

    Returns
    -------
    probabilities : ndarray of float64, shape (n_rows, n_classes)
    codes : ndarray of int64, shape (n_rows,)

    Examples
    --------
    >>> as_class_probabilities([[0.2, 0.8]], [True])
    (array([[0.2, 0.8]]), array([1]))
    """
    matrix = as_probabilities_matrix(probabilities)
    return matrix, as_codes(codes, *matrix.shape)


def _matrix(values: npt.ArrayLike, where: str) -> FloatArray:
    """Return a float64 matrix with a column at least, or say what is wrong."""
    try:
        array = np.asarray(values)
        numbers = None if array.dtype.kind not in "biufO" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise DataError(f"{where}: expected numbers; found other values; pass numeric columns")
    if numbers.ndim != 2 or not numbers.shape[1]:
        raise DataError(
            f"{where}: expected one row per input and one column per class; found shape "
            f"{numbers.shape}; for two classes pass both columns, 1 − p and p"
        )
    return numbers
