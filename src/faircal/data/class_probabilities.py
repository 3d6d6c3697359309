"""Class probabilities and labels of a classifier's rows, checked once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.columns import ALL_ROWS, UNKNOWN, Column, as_numbers, first_true

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

#: Rows of probabilities may miss 1 by this much: they come rounded, or in single precision.
SUM_TOLERANCE = 1e-3
# Rows that miss 1 by less were normalised before. They stay as they are, as one more division
# would part equal probabilities by their last bit, and KS and ECE take equal ones together.
_ROUNDING = 1e-12
#: This many class names are listed in a message.
_LISTED = 12


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
    matrix = as_numbers(probabilities)
    if matrix is None:
        raise DataError(f"{where}: expected numbers; found other values; pass numeric columns")
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise DataError(
            f"{where}: expected one row per input and one column per class; found shape "
            f"{matrix.shape}; for two classes pass both columns, 1 − p and p"
        )
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
    numbers = as_numbers(given)
    fault = "other values"
    if numbers is not None:
        wrong = ~((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers)))
        if not wrong.any():
            return numbers.astype(np.int64)
        fault = f"{numbers[first_true(wrong)]:g} in row {first_true(wrong)}"
    raise DataError(
        f"codes: expected whole numbers from 0 to {n_classes - 1}, one per column of the "
        f"probabilities; found {fault}; number the classes in the order of the columns"
    )


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

    No rows are accepted: every metric of none is NaN.

    Examples
    --------
    >>> as_class_probabilities([[0.2, 0.8]], [True])
    (array([[0.2, 0.8]]), array([1]))
    """
    matrix = as_probabilities_matrix(probabilities)
    return matrix, as_codes(codes, *matrix.shape)


def label_codes(
    labels: Column, classes: Sequence[str], where: str = "labels", *, boolean: bool = False
) -> IntArray:
    """Return the class of each row as a number, shape (n,); every row must have one.

    `boolean` where labels were true and false, which then stand for classes 1 and 0 as well.

    Examples
    --------
    >>> label_codes(Column.of(["cat", "dog", "cat"]), ["dog", "cat"])
    array([1, 0, 1])
    """
    missing = labels.codes == UNKNOWN
    if missing.any():
        raise DataError(
            f"{where}, {ALL_ROWS.row(missing)}: expected a label, found none "
            f"({ALL_ROWS.such(int(missing.sum()))}); fill it in or remove these rows"
        )
    code_of = {name: code for code, name in enumerate(classes)}
    if boolean:
        words = {"1": "true", "0": "false"}
        code_of |= {words.get(name, name.lower()): code for name, code in code_of.items()}
    places = np.array([code_of.get(name, UNKNOWN) for name in labels.names], dtype=np.int64)
    codes = places[labels.codes]
    foreign = codes == UNKNOWN
    if foreign.any():
        name = labels.names[labels.codes[first_true(foreign)]]
        hint = f"known: {', '.join(classes[:_LISTED])} and {len(classes) - _LISTED} more"
        hint = did_you_mean(name, classes) if len(classes) <= _LISTED else hint
        raise DataError(
            f"{where}, {ALL_ROWS.row(foreign)}: label {name!r} is not among the classes "
            f"({ALL_ROWS.such(int(foreign.sum()))}); correct it or add its probabilities ({hint})"
        )
    return codes
