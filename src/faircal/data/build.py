"""From Arrow tables to `Images` and `Pairs`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import (
    WHOLE,
    Column,
    Span,
    first_true,
    parse_fold,
    parse_genuine,
    parse_scores,
)
from faircal.data.ids import Index, parse_ids
from faircal.data.tables import require_columns
from faircal.data.types import Images, Pairs

#: A column with more values than this (file names, say) makes no groups unless it is asked for.
MOST_GROUPS = 100


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


def require_known(
    rows: NDArray[np.intp], column: pa.ChunkedArray, name: str, where: str, span: Span = WHOLE
) -> None:
    """Raise when an id was not found among the images."""
    bad = rows < 0
    if bad.any():
        found = column[first_true(bad)].as_py()
        raise DataError(
            f"{where}, column '{name}', {span.row(bad)}: image {found!r} is not among "
            f"the images ({span.such(int(bad.sum()))}); add the image or remove these pairs"
        )


def build_pairs(
    table: pa.Table,
    index: Index,
    where: str,
    score_range: tuple[float, float] | None,
    span: Span = WHOLE,
    text_folds: bool = False,
) -> tuple[Pairs, NDArray[np.float64] | None]:
    """Read the pairs table; the second value is its ``score`` column, where there is one.

    `index` finds the images; `span` and `text_folds` are for a part of a table (`parse_fold`).
    """
    require_columns(table, ("left", "right"), where)
    if not table.num_rows:
        raise DataError(f"{where}: expected at least one pair, found none; check the export")
    rows = {}
    for side in ("left", "right"):
        rows[side] = index.find(table[side], side, where, span)
        require_known(rows[side], table[side], side, where, span)
    names = table.column_names
    genuine = fold = scores = None
    if "genuine" in names:
        genuine = parse_genuine(table["genuine"], where, span=span)
    if "fold" in names:
        fold = parse_fold(table["fold"], where, span, text_folds)
    if "score" in names:
        scores = parse_scores(table["score"], "score", where, score_range, span)
    return Pairs(rows["left"], rows["right"], genuine, fold), scores
