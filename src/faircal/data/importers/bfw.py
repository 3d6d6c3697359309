"""BFW, Balanced Faces in the Wild: ``bfw-v0.1.5-datatable.csv`` and the pictures it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.columns import parse_fold, parse_genuine, parse_scores, require_filled
from faircal.data.importers.base import (
    Import,
    drop_absent,
    find_home,
    images_of_pairs,
    range_notes,
)
from faircal.data.tables import read_table, require_columns

#: What the paper's code calls the columns of the owners' table.
_ALIASES = {"path1": "p1", "path2": "p2", "same": "label"}
_ATTRIBUTES = ("att", "e", "g")


def read_bfw(
    source: str | Path,
    *,
    score: str | None = None,
    pictures: bool = True,
    progress: Progress = silent,
) -> Import:
    """Read BFW.

    An image's id is its path, ``asian_females/n000009/0010_01.jpg``; attributes are the owners'
    ``att`` (eight groups, the default), ``e`` (B, A, W, I) and ``g`` (F, M).

    Parameters
    ----------
    source : path
        The table (``.csv``, ``.parquet``), or a folder with it and the pictures.
    score : str, optional
        A column of ready-made scores (``vgg16``, ``resnet50``, ``senet50``) to take over.
    pictures : bool
        Look for the pictures, and drop the pairs of those that are not there.
    """
    given = existing(source)
    path = _find_table(given)
    table = read_table(path)
    names = [_ALIASES.get(name, name) for name in table.column_names]
    where = str(path)
    for old, new in _ALIASES.items():
        if {old, new} <= set(table.column_names):
            raise DataError(f"{where}: both '{old}' and '{new}' are there; remove one of them")
    table = table.rename_columns(names)
    require_columns(table, ("p1", "p2", "label", "id1", "id2", "fold"), where)
    pairs = {
        "left": _filled(table["p1"]),
        "right": _filled(table["p2"]),
        "genuine": parse_genuine(table["label"], where, "label"),
        "fold": _folds(table, where),
    }
    for side, name in (("left", "p1"), ("right", "p2")):
        require_filled(pairs[side], f"{where}, column '{name}'", "correct or remove them")
    if score is not None:
        require_columns(table, (score,), where)
        pairs["score"] = parse_scores(table[score], score, where, None)
    folder = given if given.is_dir() else given.parent
    listed = pa.table(pairs)
    default = "att" if {"att1", "att2"} <= set(table.column_names) else None
    imported = Import("bfw", "BFW", folder, _images(table, where), [listed], attribute=default)
    if imported.attribute is not None:
        _apart(imported, imported.attribute)
    imported.notes += _disagreements(imported, listed)
    if score is not None:
        imported.notes += range_notes(pairs["score"])
    if pictures and score is None:
        imported.home = find_home(folder, _places(folder), imported.images["image_id"].to_pylist())
        drop_absent(imported, progress)
    return imported


def _find_table(given: Path) -> Path:
    """Return the table; a pickle, which can run code, is refused with what to do."""
    if not given.is_dir():
        path = given
    else:
        tables = sorted(
            file
            for file in given.glob("bfw*datatable*")
            if file.suffix in (".csv", ".parquet", ".pkl", ".pickle")
        )
        usable = [file for file in tables if file.suffix in (".csv", ".parquet")]
        if not tables:
            raise DataError(
                f"{given}: expected bfw-v0.1.5-datatable.csv (or .parquet), found none; "
                "give the folder with the owners' table, or the table"
            )
        path = (usable or tables)[-1]  # the newest
    if path.suffix in (".pkl", ".pickle"):
        raise DataError(
            f"{path}: a pickle can run code and is not read; "
            "give the owners' CSV, or convert it with pandas (to_parquet) where you trust it"
        )
    return path


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as text, null where it is empty."""
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _folds(table: pa.Table, where: str) -> NDArray[np.int64]:
    folds = parse_fold(table["fold"], where)
    if folds.dtype.kind != "i":
        row = next(i for i, fold in enumerate(folds) if not str(fold).isdigit())
        raise DataError(
            f"{where}, column 'fold', row {row + 1}: expected a whole number, found "
            f"{str(folds[row])!r}; correct or remove the row"
        )
    return folds


def _apart(imported: Import, column: str) -> None:
    """Keep people apart whose id occurs in several groups: an id is unique in its group only."""
    people, groups = imported.images["identity"], imported.images[column]
    both = pc.binary_join_element_wise(groups.fill_null("?"), people, "/")
    if pc.count_distinct(both).as_py() == pc.count_distinct(people).as_py():
        return
    imported.notes.append("person ids occur in several groups; each counts as a person of its own")
    place = imported.images.column_names.index("identity")
    imported.images = imported.images.set_column(place, "identity", both)


def _disagreements(imported: Import, pairs: pa.Table) -> list[str]:
    """Say how many labels disagree with who is in the images."""
    ids, people = (imported.images[name].combine_chunks() for name in ("image_id", "identity"))
    sides = [
        people.take(pc.index_in(pairs[side].combine_chunks(), value_set=ids))
        for side in ("left", "right")
    ]
    other = pc.sum(pc.not_equal(pc.equal(*sides), pairs["genuine"])).as_py() or 0
    return [f"{other:,} labels disagree with the identities; labels are kept"] if other else []


def _images(table: pa.Table, where: str) -> pa.Table:
    """Gather what the two sides of all pairs say of each image; they must agree."""
    attributes = [
        name for name in _ATTRIBUTES if {f"{name}1", f"{name}2"} <= set(table.column_names)
    ]
    columns = {"identity": ("id1", "id2")} | {name: (f"{name}1", f"{name}2") for name in attributes}
    texts = {
        name: _filled(table[name]) for sides in (("p1", "p2"), *columns.values()) for name in sides
    }
    images = images_of_pairs(
        pa.table(texts), ("p1", "p2"), columns, lambda row: f"{where}, row {row + 1}"
    )
    return images.sort_by("image_id")


def _places(folder: Path) -> list[str]:
    """Return the folders in which pictures may lie: this one, and two levels below."""
    below = [p for p in sorted(folder.glob("*/")) + sorted(folder.glob("*/*/")) if p.is_dir()]
    return [".", *(str(path.relative_to(folder)) for path in below[:200])]
