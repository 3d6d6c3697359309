"""Where the rows of a classifier lie: a table, an ``.npz`` file, or a folder with matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.registry import short
from faircal.data.columns import is_missing
from faircal.data.readers import read_about
from faircal.data.tables import (
    UNREADABLE,
    check_kind,
    find_table,
    has_table,
    read_npz,
    read_table,
    unreadable,
)

#: The table of a folder, and its matrices.
ROWS, MATRICES = "rows", ("probabilities", "features")


@dataclass(frozen=True, eq=False)
class Found:
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


def find_rows(path: Path) -> Found:
    """Read a file or folder of rows; `Found.table` and all matrices are as long as each other."""
    source = existing(path)
    if source.is_dir():
        found = _folder(source)
    elif source.suffix == ".npz":
        found = _archive(source)
    else:
        table = read_table(source)
        found = Found(source.stem, str(source), table, {}, table.num_rows)
    for where, array in found.matrices.values():
        found.check_rows(len(array), where)
    return found


def _folder(folder: Path) -> Found:
    if not has_table(folder, ROWS):
        raise DataError(
            f"{folder}: expected {ROWS}.csv or {ROWS}.parquet, found neither; a folder holds that "
            "table, and probabilities.npy and features.npy where they are no columns of it"
        )
    file = find_table(folder, ROWS)
    table = read_table(file)
    files = {name: folder / f"{name}.npy" for name in MATRICES}
    matrices = {n: (str(path), read_array(path)) for n, path in files.items() if path.exists()}
    about = read_about(folder)
    name = str(about.get("name", folder.resolve().name))
    classes = about.get("classes")
    if classes is not None and not isinstance(classes, list):
        raise DataError(f"{folder / 'dataset.json'}: expected a list as classes; correct it")
    known = None if classes is None else tuple(map(str, classes))
    return Found(name, str(file), table, matrices, table.num_rows, known)


def _archive(path: Path) -> Found:
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
    found = Found(path.stem, str(path), pa.table({}), matrices, n_rows, names)
    for name, array in columns.items():
        found.check_rows(len(array), f"{path}, '{name}'")
    with unreadable(path):
        table = pa.table({name: _plain(array) for name, array in columns.items()})
    return Found(path.stem, str(path), table, matrices, n_rows, names)


def _plain(array: NDArray[Any]) -> Any:
    """Return a 1-d array as Arrow takes it."""
    if array.dtype.kind in "OM":
        return [None if is_missing(value) else str(value) for value in array]
    return array


def read_array(path: Path) -> NDArray[Any]:
    """Open an ``.npy`` file; nothing is read yet."""
    existing(path)
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # np.load would take other things, too
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise DataError(
            f"{path}: cannot be read ({short(error)}); save it again with numpy.save"
        ) from error
    return array if array.ndim else array.reshape(1)
