"""Probabilities, labels and features of a classifier's rows, checked once, at the door.

Rows are counted from 1, the header not included, as everywhere in messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.columns import UNKNOWN, WHOLE, Column, as_arrow, first_true
from faircal.data.simplex import as_probabilities_matrix

#: This many class names are listed in a message.
_LISTED = 12


def numbers(table: pa.Table, names: Sequence[str], where: str, kind: Any) -> NDArray[Any]:
    """Return columns of numbers as a matrix, shape (n, len(names)); empty cells are NaN."""
    matrix = np.empty((table.num_rows, len(names)), dtype=kind)
    for i, name in enumerate(names):
        column = f"{where}, column '{name}'"
        array = as_arrow(table[name], column)
        try:
            values = pc.cast(array, pa.float64()).fill_null(np.nan)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{column}: expected numbers, found {array.type}; correct or rename the column"
            ) from None
        with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
            matrix[:, i] = np.asarray(values)
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
    known = {name: code for code, name in enumerate(classes)}
    if boolean:
        words = {"1": "true", "0": "false"}
        known |= {words.get(name, name.lower()): code for name, code in known.items()}
    table = np.array([known.get(name, UNKNOWN) for name in column.names], dtype=np.int64)
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
