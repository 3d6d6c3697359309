"""The rows of a classifier: class probabilities, labels, features, and who is in which group.

A *row* is one input of a classifier. It has one group, not two sides as a pair of faces has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.build import MOST_GROUPS, makes_groups, require_crossable
from faircal.data.class_probabilities import as_probabilities_matrix, label_codes
from faircal.data.columns import ALL_ROWS, Column, as_floats, first_true, parse_fold
from faircal.data.tables import open_npy, read_table, require_columns
from faircal.data.types import cross

LABEL, PROBABILITIES, FEATURES, IDENTITY, FOLD = "label", "p_", "feature_", "identity", "fold"
#: Columns that `faircal classify apply` adds: groups only where they are asked for.
_MADE = ("predicted", "cluster")


@dataclass(frozen=True, eq=False)
class ClassifierRows:
    """What a classifier said of each row, and what is known of the row.

    Parameters
    ----------
    name : str
        The dataset's name.
    probabilities : ndarray of shape (n, n_classes), float64
        Each row adds up to 1.
    codes : ndarray of shape (n,), int64, or None
        The true class of each row, a column of `probabilities`; None where labels are not needed.
    classes : tuple of str
        The classes' names, in the order of the columns.
    features : ndarray of shape (n, d), float32, or None
    feature_names : tuple of str
        The features' columns; empty where they come as a matrix.
    attributes : mapping from name to Column
        What can make groups.
    grouping : tuple of str
        The attributes that stand for groups where none is named: text, true and false.
    identity : Column or None
        The person, patient or unit that a row comes from: rows of one are not independent.
    fold : ndarray of shape (n,), or None
    label : Column or None
        Labels as they are in the table, where there are any.
    """

    name: str
    probabilities: NDArray[np.float64]
    codes: NDArray[np.int64] | None
    classes: tuple[str, ...]
    features: NDArray[np.float32] | None = None
    feature_names: tuple[str, ...] = ()
    attributes: Mapping[str, Column] = field(default_factory=dict)
    grouping: tuple[str, ...] = ()
    identity: Column | None = None
    fold: NDArray[Any] | None = None
    label: Column | None = None

    def __len__(self) -> int:
        return len(self.probabilities)

    def groups(self, attribute: str) -> Column:
        """Return the group of each row; ``a+b`` crosses two attributes."""
        return cross(self.attributes, attribute, self.name)

    @property
    def units(self) -> NDArray[np.int64] | None:
        """A number for the unit of each row, shape (n,); None where units are not known.

        A row of an unknown unit is one of its own.
        """
        return None if self.identity is None else self.identity.apart

    def hash(self) -> str:
        """SHA-256 over probabilities, labels, features, folds, units and attributes."""
        sha = hashlib.sha256()
        sha.update(repr(self.classes).encode())
        for array in (self.probabilities, self.codes, self.features, self.fold):
            if array is not None:
                sha.update(np.ascontiguousarray(array).view(np.uint8).data)
        units = {} if self.identity is None else {IDENTITY: self.identity}
        for key, column in sorted({**self.attributes, **units}.items()):
            sha.update(f"{key}:{column.names}".encode())
            sha.update(column.codes.tobytes())
        return sha.hexdigest()


def load_classifier_rows(
    path: str | Path,
    *,
    label: str = LABEL,
    probabilities: str = PROBABILITIES,
    features: str = FEATURES,
    identity: str = IDENTITY,
    need_labels: bool = True,
) -> ClassifierRows:
    r"""Read a classifier's rows from a table, and matrices that lie beside it.

    Parameters
    ----------
    path : path
    label : str
        The column of true classes.
    probabilities : str
        What the columns of probabilities begin with; the class is what follows. Or an ``.npy``
        file with a column for each of the classes 0, 1, …
    features : str
        What the feature columns begin with, their names separated by commas, or an ``.npy`` file.
    identity : str
        The column of the person, patient or unit that a row comes from.
    need_labels : bool
        Whether every row must have a label among the classes. Else `codes` is None.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "rows.csv"
    ...     _ = table.write_text("p_no,p_yes,label,sex\n0.9,0.1,no,F\n0.3,0.7,yes,M\n")
    ...     data = load_classifier_rows(table)
    >>> data.classes, data.codes, data.groups("sex").names
    (('no', 'yes'), array([0, 1]), ('F', 'M'))
    """
    rows = _RowTable(str(path), read_table(Path(path)))
    chance, classes, taken = _probabilities(rows, probabilities)
    columns = rows.table.column_names
    names = [name for name in (label, *["labels"] * (label == LABEL)) if name in columns]
    label_name = names[0] if names else None
    unit_name = identity if identity in columns or identity != IDENTITY else None
    reserved = {*taken, *filter(None, [label_name, unit_name]), FOLD}
    vectors, used = _features(rows, features, reserved)
    labels = codes = None
    if label_name is not None:
        labels = rows.column(label_name)
        if need_labels:
            codes = _codes(rows, label_name, labels, classes)
    elif need_labels:
        require_columns(rows.table, (label,), rows.where)
    attributes, grouping = _attributes(rows, {*reserved, *used})
    return ClassifierRows(
        name=Path(path).stem,
        probabilities=chance,
        codes=codes,
        classes=classes,
        features=vectors,
        feature_names=used,
        attributes=attributes,
        grouping=grouping,
        identity=None if unit_name is None else rows.column(unit_name),
        fold=parse_fold(rows.table[FOLD], rows.where) if FOLD in columns else None,
        label=labels,
    )


class _RowTable(NamedTuple):
    """The columns of a file, and where they are from."""

    where: str
    table: pa.Table

    def column(self, name: str) -> Column:
        """Return a column of text, whole numbers, true and false."""
        require_columns(self.table, (name,), self.where)
        return Column.of(self.table[name], f"{self.where}, column '{name}'")

    def numbers(self, names: Sequence[str], kind: Any) -> NDArray[Any]:
        """Return columns of numbers as a matrix, shape (n, len(names)); empty cells are NaN."""
        matrix = np.empty((self.table.num_rows, len(names)), dtype=kind)
        for i, name in enumerate(names):
            column = f"{self.where}, column '{name}'"
            values = as_floats(self.table[name], column, "correct or rename the column")
            with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
                matrix[:, i] = values
        return matrix

    def matrix(self, where: str, kind: Any) -> NDArray[Any]:
        """Return the matrix of an ``.npy`` file, which must have a row per row of the table."""
        array = open_npy(Path(where))
        if len(array) != len(self.table):
            raise DataError(
                f"{where}: expected {len(self.table)} rows as in {self.where}, found {len(array)}; "
                "save one row per row of the table, in its order"
            )
        if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
            raise DataError(
                f"{where}: expected a matrix of numbers with one row per row of the table, found "
                f"{array.dtype} of shape {array.shape}; save it again"
            )
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(array, dtype=kind)

    def listing(self, most: int = 12) -> str:
        """Name the columns, for messages."""
        names = self.table.column_names
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return ", ".join(names[:most]) + more


def _probabilities(
    rows: _RowTable, named: str
) -> tuple[NDArray[np.float64], tuple[str, ...], list[str]]:
    """Return the probabilities, the classes, and the columns that they come from."""
    if named.endswith(".npy"):
        matrix = as_probabilities_matrix(rows.matrix(named, np.float64), named, first=1)
        return matrix, tuple(map(str, range(matrix.shape[1]))), []
    names = [name for name in rows.table.column_names if name.startswith(named) and named]
    if not names:
        raise DataError(
            f"{rows.where}: no columns of probabilities '{named}CLASS'; name what they begin "
            f"with by --probabilities (columns: {rows.listing()})"
        )
    if len(names) < 2:
        raise DataError(
            f"{rows.where}: expected probabilities of two classes or more, found one column "
            f"({names[0]}); add those of the other classes"
        )
    classes = tuple(name.removeprefix(named).strip() for name in names)
    if "" in classes or len(set(classes)) < len(classes):
        raise DataError(
            f"{rows.where}: columns '{named}…' must each name a class of its own, found "
            f"{', '.join(names)}; rename them"
        )
    matrix = rows.numbers(names, np.float64)
    return as_probabilities_matrix(matrix, rows.where, names=names, first=1), classes, names


def _codes(rows: _RowTable, name: str, labels: Column, classes: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows' classes, which must be two at least."""
    where = f"{rows.where}, column '{name}'"
    boolean = pa.types.is_boolean(rows.table[name].type)
    codes = label_codes(labels, classes, where, boolean=boolean)
    if len(codes) < 2:
        raise DataError(f"{where}: expected two labelled rows or more, found one; add rows")
    if (codes == codes[0]).all():
        raise DataError(
            f"{where}: expected labels of two classes or more, found {classes[codes[0]]!r} only; "
            "add rows of other classes"
        )
    return codes


def _features(
    rows: _RowTable, named: str, reserved: set[str]
) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
    """Return the features, where there are any, and the columns that they come from."""
    names: list[str] = []
    if named.endswith(".npy"):
        where, vectors = named, rows.matrix(named, np.float32)
    else:
        where, names = rows.where, _feature_names(rows, named, reserved)
        if not names:
            return None, ()
        vectors = rows.numbers(names, np.float32)
    # One number tells of all in most cases, and takes no second matrix.
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        _check_finite(vectors, where, names)
    return vectors, tuple(names)


def _feature_names(rows: _RowTable, named: str, reserved: set[str]) -> list[str]:
    columns = rows.table.column_names
    if "," in named or named in columns:
        names = [name.strip() for name in named.split(",")]
        require_columns(rows.table, names, f"--features, {rows.where}")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DataError(f"--features: '{twice[0]}' is named more than once; name it once")
        return names
    # In an order that is theirs, not the table's: a model must find them in another table.
    names = sorted((n for n in columns if n.startswith(named) and n not in reserved), key=_number)
    if not names and named != FEATURES:
        raise DataError(
            f"{rows.where}: no feature columns '{named}…'; name what they begin with, all of "
            f"them with commas between, or an .npy file (columns: {rows.listing()})"
        )
    return names


def _number(name: str) -> list[Any]:
    """Return what sorts names by the numbers in them: x2 before x10."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _check_finite(matrix: NDArray[Any], where: str, names: Sequence[str]) -> None:
    """Raise where a number is missing or infinite; `names` are those of the columns."""
    bad = ~np.isfinite(matrix)
    wrong = bad.any(axis=1)
    if not wrong.any():
        return
    row = first_true(wrong)
    at = first_true(bad[row])
    column = f"column '{names[at]}'" if names else f"column {at + 1}"
    raise DataError(
        f"{where}, {column}, {ALL_ROWS.row(wrong)}: expected a finite number, found "
        f"{matrix[row, at]} ({ALL_ROWS.such(int(wrong.sum()))}); correct or remove them"
    )


def _attributes(rows: _RowTable, others: set[str]) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Return what can make groups: text, true and false, and whole numbers of few values."""
    attributes, grouping = {}, []
    for name in rows.table.column_names:
        values = rows.table[name]
        if name in others or not makes_groups(values):
            continue
        number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        if number and pc.count_distinct(values).as_py() > MOST_GROUPS:
            continue  # a row number, an amount
        attributes[name] = rows.column(name)
        if not number and name not in _MADE and 1 < len(attributes[name].names) <= MOST_GROUPS:
            grouping.append(name)
    require_crossable(attributes, rows.where)
    return attributes, tuple(grouping)
