"""From Arrow tables to `Images` and `Pairs`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import (
    ALL_ROWS,
    Column,
    Index,
    Span,
    as_text,
    first_true,
    parse_fold,
    parse_genuine,
    parse_ids,
    parse_scores,
)
from faircal.data.tables import PEOPLE_COLUMNS, choose, require_columns
from faircal.data.types import Feature, Images, Pairs

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
    return Images(ids, identity, attributes, crossed=crossable(attributes))


def makes_groups(column: pa.ChunkedArray) -> bool:
    """Whether a column can be an attribute: text, whole numbers (floats, too), true and false."""
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = column.filter(pc.invert(pc.is_nan(column)))
        whole_numbers = pc.and_(
            pc.equal(pc.round(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53)
        )
        return bool(pc.all(whole_numbers, min_count=0).as_py())
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


def build_pairs(
    table: pa.Table,
    index: Index,
    where: str,
    score_range: tuple[float, float] | None,
    span: Span = ALL_ROWS,
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
        bad = rows[side] < 0
        if bad.any():
            unknown_id = table[side][first_true(bad)].as_py()
            raise DataError(
                f"{where}, column '{side}', {span.row(bad)}: image {unknown_id!r} is not among "
                f"the images ({span.such(int(bad.sum()))}); add the image or remove these pairs"
            )
    names = table.column_names
    genuine = fold = scores = None
    if "genuine" in names:
        genuine = parse_genuine(table["genuine"], where, span=span)
    if "fold" in names:
        fold = parse_fold(table["fold"], where, span, text_folds)
    if "score" in names:
        scores = parse_scores(table["score"], "score", where, score_range, span)
    return Pairs(rows["left"], rows["right"], genuine, fold), scores


_SIDES = ("left", "right")
#: Columns that are neither scores nor attributes.
_RESERVED = {"genuine", "fold", "left", "right", "probability", *chain(*PEOPLE_COLUMNS)}
#: What ``faircal score --add`` says of images and pairs: groups only where they are asked for.
_SAID = {"cluster", "outside", "decision", "at_bound"}


@dataclass(frozen=True)
class ScoreColumns:
    """What the columns of a score table are, as their names and types tell.

    Attributes
    ----------
    scores : tuple of str
        The columns that are features.
    attributes : mapping from attribute to column
        None where each side has its own: ``left_NAME`` and ``right_NAME``.
    grouping : tuple of str
        The attributes that may make groups when none is named. A whole number by itself (a split,
        a row number) does not unless asked for.
    others : tuple of str
        ``genuine``, and ``fold`` and ``probability`` where they are there.
    people : tuple of str
        The two columns that name people, of `PEOPLE_COLUMNS`; empty where none do.
    """

    scores: tuple[str, ...]
    attributes: Mapping[str, str | None]
    grouping: tuple[str, ...]
    others: tuple[str, ...]
    people: tuple[str, ...]

    @classmethod
    def of(cls, schema: pa.Schema, features: Sequence[str] | None, where: str) -> ScoreColumns:
        """Read the layout off a table's columns; `features` are the score columns wanted."""
        require_columns(schema, ("genuine",), where)
        scores = tuple(_score_columns(schema, features, where))
        attributes: dict[str, str | None] = {}
        grouping = []
        for name in schema.names:
            kind = schema.field(name).type
            if name in _RESERVED or name in scores or not _is_attribute(kind):
                continue
            key = name.removeprefix("left_").removeprefix("right_")
            if key in attributes:
                continue
            attributes[key] = name if key == name else None
            if key != name:
                require_columns(schema, _side_names(key), where)
            if key not in _SAID and (key != name or not pa.types.is_integer(kind)):
                grouping.append(key)
        require_crossable(attributes, where)
        if {"left_identity", "right_identity"} & set(schema.names):
            require_columns(schema, _side_names("identity"), where)
        named = (both for both in PEOPLE_COLUMNS if set(both) <= set(schema.names))
        people: tuple[str, ...] = next(named, ())
        others = tuple(n for n in ("genuine", "fold", "probability") if n in schema.names)
        return cls(scores, attributes, tuple(grouping), others, people)

    def columns(self, names: Collection[str] | None = None) -> list[str]:
        """Return the table's columns for what is in `names` besides scores; None: for everything.

        ``genuine``, ``fold``, ``probability``, ``identity``, and attributes by name.
        """
        columns = list(self.scores)
        columns += [name for name in self.others if names is None or name in names]
        if names is None or "identity" in names:
            columns += self.people
        for key, column in self.attributes.items():
            if names is None or key in names:
                columns += _side_names(key) if column is None else [column]
        return list(dict.fromkeys(columns))

    def attributes_in(self, columns: Collection[str]) -> list[str]:
        """Return the attributes whose columns are among `columns`."""
        present = set(columns)
        return [key for key, name in self.attributes.items() if (name or f"left_{key}") in present]

    def attribute(self, table: pa.Table, key: str, where: str) -> Column:
        """Return an attribute of the left sides of all pairs, then of the right ones."""
        name = self.attributes[key]
        if name is None:
            return _both_sides(table, _side_names(key), where)
        column = Column.of(table[name], f"{where}, column '{name}'")
        return Column(np.concatenate([column.codes, column.codes]), column.names)


def _side_names(key: str) -> list[str]:
    return [f"{side}_{key}" for side in _SIDES]


def _score_columns(schema: pa.Schema, features: Sequence[str] | None, where: str) -> list[str]:
    if features:
        return choose(schema.names, features, where, "column")
    if "score" in schema.names:
        return ["score"]
    floats = [
        field.name
        for field in schema
        if pa.types.is_floating(field.type) and field.name not in _RESERVED
    ]
    if not floats and "probability" in schema.names:
        return ["probability"]
    if not floats:
        raise DataError(
            f"{where}: no column 'score' and no floating-point column; "
            "name the score columns with --features"
        )
    return floats


def _is_attribute(kind: pa.DataType) -> bool:
    """Whether a column can be an attribute; in a score table, numbers with a point are scores."""
    return makes_groups(pa.chunked_array([], kind)) and not pa.types.is_floating(kind)


def _both_sides(table: pa.Table, names: Sequence[str], where: str) -> Column:
    sides = [as_text(table[name], f"{where}, column '{name}'") for name in names]
    return Column.of(pa.chunked_array([chunk for side in sides for chunk in side.chunks]))


def build_scored(
    table: pa.Table,
    layout: ScoreColumns,
    where: str,
    score_range: tuple[float, float] | None,
    span: Span = ALL_ROWS,
    *,
    text_folds: bool = False,
    crossed: Sequence[str] | None = None,
    n_rows: int | None = None,
    rows: NDArray[np.int64] | None = None,
) -> tuple[Images, Pairs, dict[str, Feature]]:
    """Read a score table, or the part `span` of one that has `n_rows` rows.

    A score table knows no images, so each side of each pair counts as an image of its own: in a
    table of n rows, images 0…n−1 are the left sides, n…2n−1 the right ones. Columns that are not in
    `table` are passed over. `crossed` are the attributes that make groups when none is named; where
    it is not given, `table` tells. `rows` are the numbers of the rows where they are not those of
    `span`.
    """
    names = table.column_names
    genuine = fold = probability = None
    if "genuine" in names:
        genuine = parse_genuine(table["genuine"], where, span=span)
    scores = {
        name: Feature(None, parse_scores(table[name], name, where, score_range, span))
        for name in layout.scores
    }
    attributes = {key: layout.attribute(table, key, where) for key in layout.attributes_in(names)}
    identity = None
    if layout.people and layout.people[0] in names:
        identity = _both_sides(table, layout.people, where)
    if crossed is None:
        crossed = crossable({key: attributes[key] for key in layout.grouping if key in attributes})
    if "fold" in names:
        fold = parse_fold(table["fold"], where, span, text_folds)
    if "probability" in names:
        probability = parse_scores(table["probability"], "probability", where, (0.0, 1.0), span)
    n = table.num_rows
    rows = span.start + np.arange(n) if rows is None else rows
    ids = pa.array(np.concatenate([rows, rows + (n if n_rows is None else n_rows)]))
    images = Images(ids, identity, attributes, tuple(crossed), by_side=True)
    return images, Pairs(np.arange(n), np.arange(n, 2 * n), genuine, fold, probability), scores
