"""Score tables: pairs with scores and labels, and no images."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.build import crossable, makes_groups, require_crossable
from faircal.data.columns import (
    WHOLE,
    Column,
    Span,
    as_text,
    parse_fold,
    parse_genuine,
    parse_scores,
)
from faircal.data.tables import choose, require_columns
from faircal.data.types import Feature, Images, Pairs

_SIDES = ("left", "right")
#: Columns that are neither scores nor attributes.
_RESERVED = {"genuine", "fold", "left", "right", "left_identity", "right_identity", "probability"}
#: What ``faircal score --add`` says of images and pairs: groups only where they are asked for.
_SAID = {"cluster", "outside", "decision"}


@dataclass(frozen=True)
class Layout:
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
    identity : bool
        Whether people are named.
    """

    scores: tuple[str, ...]
    attributes: Mapping[str, str | None]
    grouping: tuple[str, ...]
    others: tuple[str, ...]
    identity: bool

    @classmethod
    def of(cls, schema: pa.Schema, features: Sequence[str] | None, where: str) -> Layout:
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
        identity = bool({"left_identity", "right_identity"} & set(schema.names))
        if identity:
            require_columns(schema, _side_names("identity"), where)
        others = tuple(n for n in ("genuine", "fold", "probability") if n in schema.names)
        return cls(scores, attributes, tuple(grouping), others, identity)

    def columns(self, wanted: Collection[str] | None = None) -> list[str]:
        """Return the table's columns for what is `wanted` besides scores; None: for everything.

        ``genuine``, ``fold``, ``probability``, ``identity``, and attributes by name.
        """
        found = list(self.scores)
        found += [name for name in self.others if wanted is None or name in wanted]
        if self.identity and (wanted is None or "identity" in wanted):
            found += _side_names("identity")
        for key, column in self.attributes.items():
            if wanted is None or key in wanted:
                found += _side_names(key) if column is None else [column]
        return list(dict.fromkeys(found))

    def attributes_in(self, table: pa.Table) -> list[str]:
        """Return the attributes whose columns are in `table`."""
        there = set(table.column_names)
        return [key for key, name in self.attributes.items() if (name or f"left_{key}") in there]

    def attribute(self, table: pa.Table, key: str, where: str) -> Column:
        """Return an attribute of the left sides of all pairs, then of the right ones."""
        name = self.attributes[key]
        if name is None:
            return _both_sides(table, key, where)
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


def _both_sides(table: pa.Table, key: str, where: str) -> Column:
    sides = [as_text(table[name], f"{where}, column '{name}'") for name in _side_names(key)]
    return Column.of(pa.chunked_array([chunk for side in sides for chunk in side.chunks]))


def build_scored(
    table: pa.Table,
    layout: Layout,
    where: str,
    score_range: tuple[float, float] | None,
    span: Span = WHOLE,
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
    attributes = {key: layout.attribute(table, key, where) for key in layout.attributes_in(table)}
    identity = _both_sides(table, "identity", where) if "left_identity" in names else None
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
