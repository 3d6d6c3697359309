"""From Arrow tables to `Images` and `Pairs`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal.data.columns import (
    Column,
    as_arrow,
    as_text,
    first_true,
    parse_fold,
    parse_genuine,
    parse_scores,
)
from faircal.data.tables import require_columns
from faircal.data.types import Images, Pairs
from faircal.errors import DataError

#: A column with more values than this (file names, say) makes no groups unless it is asked for.
MOST_GROUPS = 100


def parse_ids(column: pa.ChunkedArray, name: str, where: str) -> pa.Array:
    """Return a column of ids: int64 where each is a whole number as usually written, else text."""
    array = as_arrow(column, f"{where}, column '{name}'").combine_chunks()
    if array.null_count:
        row = first_true(np.asarray(array.is_null()))
        raise DataError(
            f"{where}, column '{name}', row {row + 1}: empty id ({array.null_count} such rows); "
            "give every row an id"
        )
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    text = as_text(array, f"{where}, column '{name}'")
    try:
        numbers = text.cast(pa.int64())
    except pa.ArrowInvalid:
        return text
    same = pc.all(pc.equal(numbers.cast(pa.string()), text)).as_py()
    return numbers if same is not False else text


def build_images(table: pa.Table, where: str) -> Images:
    """Read the images table: ids (row numbers where there are none), identity, attributes.

    Fractions, lists and bytes (a quality, a box, a thumbnail) make no groups and are passed over;
    so is ``fold``, which is a person's and for making pairs.
    """
    names = table.column_names
    if "image_id" in names:
        ids = parse_ids(table["image_id"], "image_id", where)
        counts = pc.value_counts(ids)
        if len(counts) != len(ids):
            repeated = counts.filter(pc.greater(pc.struct_field(counts, "counts"), 1))
            raise DataError(
                f"{where}, column 'image_id': id {repeated[0]['values'].as_py()!r} is not "
                f"unique ({len(repeated)} such ids); give every image an id of its own"
            )
    else:
        ids = pa.array(np.arange(table.num_rows))
    identity = None
    if "identity" in names:
        identity = Column.of(table["identity"], f"{where}, column 'identity'")
    attributes = {
        name: Column.of(table[name], f"{where}, column '{name}'")
        for name in names
        if name not in ("image_id", "identity", "fold") and makes_groups(table[name])
    }
    require_crossable(attributes, where)
    return Images(ids, identity, attributes, crossable(attributes))


def makes_groups(column: pa.ChunkedArray) -> bool:
    """Whether a column can be an attribute: text, whole numbers (floats, too), true and false."""
    kind = column.type
    if pa.types.is_floating(kind):
        known = column.filter(pc.invert(pc.is_nan(column)))
        whole = pc.and_(pc.equal(pc.round(known), known), pc.less(pc.abs(known), 2.0**53))
        return bool(pc.all(whole, min_count=0).as_py())
    bytes_ = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return not (pa.types.is_nested(kind) or bytes_ or pa.types.is_fixed_size_binary(kind))


def require_crossable(attributes: Iterable[str], where: str) -> None:
    """Raise where an attribute's name holds the sign that crosses two."""
    for name in attributes:
        if "+" in name:
            raise DataError(
                f"{where}, column '{name}': an attribute's name cannot hold '+', which crosses two "
                "attributes; rename it"
            )


def crossable(attributes: dict[str, Column]) -> tuple[str, ...]:
    """Return the attributes that make groups when none is named."""
    return tuple(
        name for name, column in attributes.items() if 0 < len(column.names) <= MOST_GROUPS
    )


def look_up(column: pa.ChunkedArray, name: str, images: Images, where: str) -> NDArray[np.intp]:
    """Return the image row of each id, −1 where there is no such image."""
    ids = parse_ids(column, name, where)
    if ids.type != images.ids.type:
        ids, known = ids.cast(pa.string()), images.ids.cast(pa.string())
    else:
        known = images.ids
    return np.asarray(pc.index_in(ids, value_set=known).fill_null(-1), dtype=np.intp)


def require_known(rows: NDArray[np.intp], column: pa.ChunkedArray, name: str, where: str) -> None:
    """Raise when an id was not found among the images."""
    bad = rows < 0
    if bad.any():
        row = first_true(bad)
        raise DataError(
            f"{where}, column '{name}', row {row + 1}: image {column[row].as_py()!r} is not among "
            f"the images ({int(bad.sum())} such rows); add the image or remove these pairs"
        )


def build_pairs(
    table: pa.Table, images: Images, where: str, score_range: tuple[float, float] | None
) -> tuple[Pairs, NDArray[np.float64] | None]:
    """Read the pairs table; the second value is its ``score`` column, where there is one."""
    require_columns(table, ("left", "right"), where)
    if not table.num_rows:
        raise DataError(f"{where}: expected at least one pair, found none; check the export")
    rows = {}
    for side in ("left", "right"):
        rows[side] = look_up(table[side], side, images, where)
        require_known(rows[side], table[side], side, where)
    names = table.column_names
    genuine = parse_genuine(table["genuine"], where) if "genuine" in names else None
    fold = parse_fold(table["fold"], where) if "fold" in names else None
    scores = parse_scores(table["score"], "score", where, score_range) if "score" in names else None
    return Pairs(rows["left"], rows["right"], genuine, fold), scores
