"""The rows of a classifier: class probabilities, labels, features, and who is in which group.

A *row* is one input of a classifier. It has one group, not two sides as a pair of faces has. Rows
lie in a table, an ``.npz`` file, or a folder with matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import digest, existing
from faircal._base.registry import did_you_mean
from faircal.data.build import MOST_GROUPS, makes_groups, require_crossable
from faircal.data.class_probabilities import (
    check_finite,
    checked_probabilities,
    label_codes,
    matrix_of,
    naturally,
    numbers,
)
from faircal.data.columns import Column, is_missing, parse_fold
from faircal.data.dataset_folder import read_about
from faircal.data.tables import (
    check_kind,
    find_table,
    has_table,
    open_npy,
    read_npz,
    read_table,
    require_columns,
    unreadable,
)
from faircal.data.types import cross

LABEL, PROBABILITIES, FEATURES, IDENTITY, FOLD = "label", "p_", "feature_", "identity", "fold"
#: Columns that `faircal classify apply` adds: groups only where they are asked for.
_MADE = ("predicted", "cluster")
#: The table of a folder, and its matrices.
ROWS, MATRICES = "rows", ("probabilities", "features")


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

    def ordered(self, classes: Sequence[str]) -> NDArray[np.float64]:
        """Return the probabilities with their columns in the order of `classes`."""
        if tuple(classes) == self.classes:
            return self.probabilities
        return self.probabilities[:, [self.classes.index(name) for name in classes]]

    def features_as(self, names: Sequence[str], whose: str) -> NDArray[np.float32]:
        """Return the features in the order of `names`; a matrix without names is as it is.

        Parameters
        ----------
        names : sequence of str
            Those that `whose` model was fitted on; empty where it was fitted on a matrix.
        whose : str
            For messages.
        """
        if self.features is None:
            raise DataError(
                f"{self.name}: no features; add columns feature_…, or name them with --features "
                "(an .npy file will do)"
            )
        if not names or not self.feature_names or tuple(names) == self.feature_names:
            return self.features
        for name in names:
            if name not in self.feature_names:
                hint = did_you_mean(name, self.feature_names)
                raise DataError(
                    f"{self.name}: no feature '{name}', which {whose} was fitted on; "
                    f"give the same ones ({hint})"
                )
        return self.features[:, [self.feature_names.index(name) for name in names]]

    def hash(self) -> str:
        """SHA-256 over probabilities, labels, features, folds, units and attributes."""

        def feed(update: Any) -> None:
            update(repr(self.classes).encode())
            for array in (self.probabilities, self.codes, self.features, self.fold):
                if array is not None:
                    update(np.ascontiguousarray(array).view(np.uint8).data)
            units = {} if self.identity is None else {IDENTITY: self.identity}
            for key, column in sorted({**self.attributes, **units}.items()):
                update(f"{key}:{column.names}".encode())
                update(column.codes.tobytes())

        return digest(feed)


def load_classifier_rows(
    path: str | Path,
    *,
    label: str = LABEL,
    probabilities: str = PROBABILITIES,
    features: str = FEATURES,
    identity: str = IDENTITY,
    need_labels: bool = True,
) -> ClassifierRows:
    r"""Read a classifier's rows: a table, an ``.npz`` file, or a folder.

    A folder holds ``rows.csv`` or ``rows.parquet`` and, as matrices of a row per row,
    ``probabilities.npy`` and ``features.npy`` where these are not columns; ``dataset.json`` may say
    ``name`` and ``classes``. An ``.npz`` file holds ``probabilities`` or ``probs``, ``labels`` or
    ``label``, and perhaps ``features`` and ``classes``; its other 1-d arrays are columns.

    Parameters
    ----------
    path : path
    label : str
        The column of true classes.
    probabilities : str
        What the columns of probabilities begin with; the class is what follows.
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
    files = find_rows(Path(path))
    chance, classes, taken = _probabilities(files, probabilities)
    columns = files.table.column_names
    label_name = _label_name(columns, label)
    unit_name = identity if identity in columns or identity != IDENTITY else None
    reserved = {*taken, *filter(None, [label_name, unit_name]), FOLD}
    vectors, used = _features(files, features, reserved)
    labels = codes = None
    if label_name is not None:
        place = f"{files.where}, column '{label_name}'"
        labels = Column.of(files.table[label_name], place)
        if need_labels:
            is_bool = pa.types.is_boolean(files.table[label_name].type)
            codes = label_codes(labels, classes, place, is_bool)
            _check_enough(codes, classes, place)
    elif need_labels:
        require_columns(files.table, (label,), files.where)
    attributes, grouping = _attributes(files, {*reserved, *used})
    return ClassifierRows(
        name=files.name,
        probabilities=chance,
        codes=codes,
        classes=classes,
        features=vectors,
        feature_names=used,
        attributes=attributes,
        grouping=grouping,
        identity=None if unit_name is None else _column(files, unit_name),
        fold=parse_fold(files.table[FOLD], files.where) if FOLD in columns else None,
        label=labels,
    )


def _probabilities(
    files: RowFiles, prefix: str
) -> tuple[NDArray[np.float64], tuple[str, ...], list[str]]:
    """Return the probabilities, the classes, and the columns that they come from."""
    names = [name for name in files.table.column_names if name.startswith(prefix) and prefix]
    usual = ("probabilities", "probs") if prefix == PROBABILITIES else (prefix,)
    several = [key for key in usual if key in files.matrices]
    if names and several:
        raise DataError(
            f"{files.where}: probabilities are both in columns '{prefix}…' and in '{several[0]}'; "
            "remove one of them"
        )
    if several:
        where, array = files.matrices[several[0]]
        chance = checked_probabilities(matrix_of(array, where, np.float64), where)
        return chance, files.classes_of(chance.shape[1]), []
    if not names:
        raise DataError(
            f"{files.where}: no columns of probabilities '{prefix}CLASS'; name what they begin "
            f"with by --probabilities (columns: {_listing(files)})"
        )
    classes = tuple(name.removeprefix(prefix).strip() for name in names)
    if "" in classes or len(set(classes)) < len(classes):
        raise DataError(
            f"{files.where}: columns '{prefix}…' must each name a class of its own, found "
            f"{', '.join(names)}; rename them"
        )
    matrix = numbers(files.table, names, files.where, np.float64)
    return checked_probabilities(matrix, files.where, names), classes, names


def _listing(files: RowFiles, most: int = 12) -> str:
    names = [*files.matrices, *files.table.column_names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _label_name(columns: Sequence[str], label: str) -> str | None:
    """Return the column of labels; ``labels`` will do where nobody named another."""
    names = [name for name in (label, *["labels"] * (label == LABEL)) if name in columns]
    return names[0] if names else None


def _check_enough(codes: NDArray[np.int64], classes: Sequence[str], where: str) -> None:
    if len(codes) < 2:
        raise DataError(f"{where}: expected two labelled rows or more, found one; add rows")
    if (codes == codes[0]).all():
        raise DataError(
            f"{where}: expected labels of two classes or more, found {classes[codes[0]]!r} only; "
            "add rows of other classes"
        )


def _features(
    files: RowFiles, named: str, reserved: set[str]
) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
    """Return the features, where there are any, and the columns that they come from."""
    key = "features" if named == FEATURES else named
    if named.endswith(".npy"):
        where, array = named, open_npy(Path(named))
        files.check_rows(len(array), where)
    elif key in files.matrices:
        where, array = files.matrices[key]
    else:
        return _feature_columns(files, named, reserved)
    vectors = matrix_of(array, where, np.float32)
    check_finite(vectors, where)
    return vectors, ()


def _feature_columns(
    files: RowFiles, named: str, reserved: set[str]
) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
    columns = files.table.column_names
    if "," in named or named in columns:
        names = [name.strip() for name in named.split(",")]
        require_columns(files.table, names, f"--features, {files.where}")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DataError(f"--features: '{twice[0]}' is named more than once; name it once")
    else:
        # In an order that is theirs, not the table's: a model must find them in another table.
        names = sorted(
            (n for n in columns if n.startswith(named) and n not in reserved), key=naturally
        )
    if not names and named == FEATURES:
        return None, ()
    if not names:
        raise DataError(
            f"{files.where}: no feature columns '{named}…'; name what they begin with, all of "
            f"them with commas between, or an .npy file (columns: {_listing(files)})"
        )
    vectors = numbers(files.table, names, files.where, np.float32)
    check_finite(vectors, files.where, names)
    return vectors, tuple(names)


def _attributes(files: RowFiles, others: set[str]) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Return what can make groups: text, true and false, and whole numbers of few values."""
    attributes, grouping = {}, []
    for name in files.table.column_names:
        values = files.table[name]
        if name in others or not makes_groups(values):
            continue
        number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        if number and pc.count_distinct(values).as_py() > MOST_GROUPS:
            continue  # a row number, an amount
        attributes[name] = _column(files, name)
        if not number and name not in _MADE and 1 < len(attributes[name].names) <= MOST_GROUPS:
            grouping.append(name)
    require_crossable(attributes, files.where)
    return attributes, tuple(grouping)


def _column(files: RowFiles, name: str) -> Column:
    require_columns(files.table, (name,), files.where)
    return Column.of(files.table[name], f"{files.where}, column '{name}'")


# -------------------------------------------------------------------- files


@dataclass(frozen=True, eq=False)
class RowFiles:
    """Columns and matrices of a file or folder.

    Attributes
    ----------
    name : str
        The dataset's name.
    where : str
        The file with the columns, for messages.
    table : pyarrow.Table
        Columns, of which there may be none.
    matrices : mapping from name to the file it is from and its array
    n_rows : int
    classes : tuple of str, or None
        The classes' names, where they are said beside a matrix.
    """

    name: str
    where: str
    table: pa.Table
    matrices: Mapping[str, tuple[str, NDArray[Any]]]
    n_rows: int
    classes: tuple[str, ...] | None = None

    def check_rows(self, count: int, where: str) -> None:
        """Raise unless a matrix has as many rows as the table."""
        if count != self.n_rows:
            raise DataError(
                f"{where}: expected {self.n_rows} rows as in {self.where}, found {count}; "
                "save one row per row of the table, in its order"
            )

    def classes_of(self, count: int) -> tuple[str, ...]:
        """Return the names of the `count` columns of a matrix: 0, 1, … unless they are said."""
        if self.classes is None:
            return tuple(map(str, range(count)))
        if len(self.classes) != count or len(set(self.classes)) < count:
            raise DataError(
                f"{self.where}: expected {count} different class names, one per column of the "
                f"probabilities, found {len(self.classes)} ({', '.join(self.classes[:12])}); "
                "correct classes"
            )
        return self.classes


def find_rows(path: Path) -> RowFiles:
    """Read a file or folder of rows; its table and all matrices are as long as each other."""
    source = existing(path)
    if source.is_dir():
        files = _folder(source)
    elif source.suffix == ".npz":
        files = _archive(source)
    else:
        table = read_table(source)
        files = RowFiles(source.stem, str(source), table, {}, table.num_rows)
    for where, array in files.matrices.values():
        files.check_rows(len(array), where)
    return files


def _folder(folder: Path) -> RowFiles:
    if not has_table(folder, ROWS):
        raise DataError(
            f"{folder}: expected {ROWS}.csv or {ROWS}.parquet, found neither; a folder holds that "
            "table, and probabilities.npy and features.npy where they are no columns of it"
        )
    file = find_table(folder, ROWS)
    table = read_table(file)
    files = {name: folder / f"{name}.npy" for name in MATRICES}
    matrices = {n: (str(path), open_npy(path)) for n, path in files.items() if path.exists()}
    about = read_about(folder)
    name = str(about.get("name", folder.resolve().name))
    classes = about.get("classes")
    if classes is not None and not isinstance(classes, list):
        raise DataError(f"{folder / 'dataset.json'}: expected a list as classes; correct it")
    names = None if classes is None else tuple(map(str, classes))
    return RowFiles(name, str(file), table, matrices, table.num_rows, names)


def _archive(path: Path) -> RowFiles:
    check_kind(path)
    with unreadable(path):
        arrays = read_npz(path)
    classes = arrays.pop("classes", None)
    matrices = {n: (f"{path}, '{n}'", a) for n, a in arrays.items() if a.ndim == 2}
    columns = {n: a for n, a in arrays.items() if a.ndim == 1}
    n_rows = next((len(array) for _, array in matrices.values()), None)
    n_rows = len(next(iter(columns.values()), ())) if n_rows is None else n_rows
    if not n_rows:
        raise DataError(f"{path}: expected arrays with a row per row, found none; check the export")
    names = None if classes is None else tuple(map(str, np.ravel(classes).tolist()))
    files = RowFiles(path.stem, str(path), pa.table({}), matrices, n_rows, names)
    for name, array in columns.items():
        files.check_rows(len(array), f"{path}, '{name}'")
    with unreadable(path):
        table = pa.table({name: _plain(array) for name, array in columns.items()})
    return replace(files, table=table)


def _plain(array: NDArray[Any]) -> Any:
    """Return a 1-d array as Arrow takes it."""
    if array.dtype.kind in "OM":
        return [None if is_missing(value) else str(value) for value in array]
    return array
