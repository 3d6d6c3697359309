"""Class probabilities and labels of a classifier's rows, checked once at the door."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.columns import UNKNOWN, WHOLE, Column, as_floats, as_numbers, first_true

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

#: Rows of probabilities may miss 1 by this much: they come rounded, or in single precision.
SUM_TOLERANCE = 1e-3
# Rows that miss 1 by less were normalised before. They stay as they are, as one more division
# would part equal probabilities by their last bit, and KS and ECE take equal ones together.
_ROUNDING = 1e-12


def as_probabilities_matrix(
    probabilities: npt.ArrayLike,
    where: str = "probabilities",
    *,
    names: Sequence[str] = (),
    first: int = 0,
) -> FloatArray:
    """Return class probabilities as float64 whose rows sum to 1, or say which row is wrong.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
        Each row sums to 1, give or take 0.001; it is divided by its sum.
    where : str, default "probabilities"
        What they are called in messages.
    names : sequence of str, optional
        The columns' names, for messages.
    first : int, default 0
        The number of the first row: 1 in tables.

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
    faircal.DataError: probabilities, row 1: expected class probabilities in [0, 1] that \
sum to 1, found 2 (1 such rows); correct or remove them, or give a column for every class
    """
    matrix = _matrix(probabilities, where)
    # Two passes without a temporary matrix; a NaN passes no comparison.
    tidy = not matrix.size or (matrix.min() >= 0 and matrix.max() <= 1 + SUM_TOLERANCE)
    total = matrix.sum(axis=1)
    miss = np.abs(total - 1)
    if not (tidy and miss.max(initial=0) <= SUM_TOLERANCE):
        _refuse(matrix, total, where, names, first)
        matrix = np.clip(matrix, 0.0, 1.0)
        total = matrix.sum(axis=1)
        miss = np.abs(total - 1)
    if miss.max(initial=0) <= _ROUNDING:
        return matrix
    return matrix / np.where(miss <= _ROUNDING, 1.0, total)[:, None]


def _refuse(
    matrix: FloatArray, total: FloatArray, where: str, names: Sequence[str], first: int
) -> None:
    """Raise where a row is too far from the simplex; slightly below 0 or above 1 is rounding."""
    outside = ~((matrix >= -SUM_TOLERANCE) & (matrix <= 1 + SUM_TOLERANCE))
    bad = outside.any(axis=1) | ~(np.abs(total - 1) <= SUM_TOLERANCE)
    if not bad.any():
        return
    row = int(np.argmax(bad))
    fault = f"a sum of {total[row]:.6g}"
    if outside[row].any():
        column = int(np.argmax(outside[row]))
        fault = f"{matrix[row, column]:.6g}"
        fault += f" in column '{names[column]}'" if names else ""
    raise DataError(
        f"{where}, row {first + row}: expected class probabilities in [0, 1] that sum to 1, "
        f"found {fault} ({int(bad.sum())} such rows); {_remedy(matrix, total, outside)}"
    )


def _remedy(matrix: FloatArray, total: FloatArray, outside: npt.NDArray[np.bool_]) -> str:
    """Say what numbers look like, and what makes probabilities of them."""
    if not np.isfinite(total).all():
        return "drop or repair such rows"
    if np.allclose(total, 100, atol=100 * SUM_TOLERANCE):
        return "they look like percent: divide by 100 first"
    if matrix.max() <= 0 and np.allclose(np.exp(matrix).sum(axis=1), 1, atol=SUM_TOLERANCE):
        return "they look like logarithms of probabilities: take the exponential first"
    if 2 * outside.any(axis=1).sum() > len(matrix):
        return "they look like logits: apply a softmax first"
    return "correct or remove them, or give a column for every class"


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
    faircal.DataError: codes: expected whole numbers from 0 to 2, one per column of the \
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
    expected = f"whole numbers from 0 to {n_classes - 1}, one per column of the probabilities"
    remedy = "number the classes in the order of the columns"
    numbers = as_numbers(given)
    if numbers is None:
        raise DataError(f"codes: expected {expected}; found other values; {remedy}")
    wrong = ~((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"codes: expected {expected}; found {numbers[row]:g} in row {row}; {remedy}"
        )
    return numbers.astype(np.int64)


def as_units(units: npt.ArrayLike, n: int) -> IntArray:
    """Return whom rows come from, numbered from 0; any values that can be told apart.

    Examples
    --------
    >>> as_units(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    given = np.asarray(units)
    if given.shape != (n,):
        raise DataError(
            f"units: expected one value per row of the probabilities, shape ({n},); "
            f"found shape {given.shape}; pass columns of the same table"
        )
    try:
        return np.unique(given, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise DataError(
            "units: expected values of one kind, found several, or none; give every row a unit"
        ) from None


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
    numbers = as_numbers(values)
    if numbers is None:
        raise DataError(f"{where}: expected numbers; found other values; pass numeric columns")
    if numbers.ndim != 2 or not numbers.shape[1]:
        raise DataError(
            f"{where}: expected one row per input and one column per class; found shape "
            f"{numbers.shape}; for two classes pass both columns, 1 − p and p"
        )
    return numbers


#: This many class names are listed in a message.
_LISTED = 12


def numbers(table: pa.Table, names: Sequence[str], where: str, kind: Any) -> NDArray[Any]:
    """Return columns of numbers as a matrix, shape (n, len(names)); empty cells are NaN."""
    matrix = np.empty((table.num_rows, len(names)), dtype=kind)
    for i, name in enumerate(names):
        column = f"{where}, column '{name}'"
        values = as_floats(table[name], column, "correct or rename the column")
        with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
            matrix[:, i] = values
    return matrix


def matrix_of(array: NDArray[Any], where: str, kind: Any) -> NDArray[Any]:
    """Return an array that has a row per row of the table as `kind`."""
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise DataError(
            f"{where}: expected a matrix of numbers with one row per row of the table, found "
            f"{array.dtype} of shape {array.shape}; save it again"
        )
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=kind)


def check_finite(matrix: NDArray[Any], where: str, names: Sequence[str] = ()) -> None:
    """Raise where a number is missing or infinite; `names` are those of the columns."""
    # One number tells of all in most cases, and takes no second matrix.
    if np.isfinite(matrix.sum(dtype=np.float64)):
        return
    bad = ~np.isfinite(matrix)
    rows = bad.any(axis=1)
    if not rows.any():
        return
    at = int(np.flatnonzero(bad[first_true(rows)])[0])
    column = f"column '{names[at]}'" if names else f"column {at + 1}"
    raise DataError(
        f"{where}, {column}, {WHOLE.row(rows)}: expected a finite number, found "
        f"{matrix[first_true(rows), at]} ({WHOLE.such(int(rows.sum()))}); correct or remove them"
    )


def checked_probabilities(
    matrix: NDArray[np.float64], where: str, names: Sequence[str] = ()
) -> NDArray[np.float64]:
    """Return class probabilities that add up to 1 in each row; see `as_probabilities_matrix`.

    Examples
    --------
    >>> checked_probabilities(np.array([[0.5, 0.4999], [0.2, 0.8]]), "rows.csv").sum(axis=1)
    array([1., 1.])
    """
    if matrix.shape[1] < 2:
        raise DataError(
            f"{where}: expected probabilities of two classes or more, found one column"
            f"{f' ({names[0]})' if names else ''}; add those of the other classes"
        )
    check_finite(matrix, where, names)
    return as_probabilities_matrix(matrix, where, names=names, first=1)


def label_codes(
    values: Any, classes: Sequence[str], where: str, boolean: bool
) -> NDArray[np.int64]:
    """Return the class of each row as a number, shape (n,); every row must have one.

    `values` is a `Column` as read; `boolean` where it was one of true and false, which then stand
    for classes 1 and 0 as well.

    Examples
    --------
    >>> label_codes(Column.of(["cat", "dog", "cat"]), ["dog", "cat"], "rows.csv", False)
    array([1, 0, 1])
    """
    column: Column = values
    missing = column.codes == UNKNOWN
    if missing.any():
        raise DataError(
            f"{where}, {WHOLE.row(missing)}: expected a label, found none "
            f"({WHOLE.such(int(missing.sum()))}); fill it in or remove these rows"
        )
    code_of = {name: code for code, name in enumerate(classes)}
    if boolean:
        words = {"1": "true", "0": "false"}
        code_of |= {words.get(name, name.lower()): code for name, code in code_of.items()}
    table = np.array([code_of.get(name, UNKNOWN) for name in column.names], dtype=np.int64)
    codes = table[column.codes]
    foreign = codes == UNKNOWN
    if foreign.any():
        name = column.names[column.codes[first_true(foreign)]]
        listed = (
            did_you_mean(name, classes)
            if len(classes) <= _LISTED
            else f"known: {', '.join(classes[:_LISTED])} and {len(classes) - _LISTED} more"
        )
        raise DataError(
            f"{where}, {WHOLE.row(foreign)}: label {name!r} is not among the classes "
            f"({WHOLE.such(int(foreign.sum()))}); correct it or add its probabilities ({listed})"
        )
    return codes


def naturally(name: str) -> list[Any]:
    """Return what sorts names by the numbers in them: x2 before x10.

    Examples
    --------
    >>> sorted(["x10", "x2"], key=naturally)
    ['x2', 'x10']
    """
    parts = re.split(r"(\d+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]
