"""Streams of the pairs of a dataset folder and of a score table, and what a part of one becomes.

Spark's workers make their parts as streams do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import existing
from faircal._base.registry import did_you_mean
from faircal.data.build import MOST_GROUPS, ScoreColumns, build_pairs, build_scored
from faircal.data.columns import Column, Index, Span
from faircal.data.dataset import COSINE_RANGE, Dataset, check_range, check_vectors, join_scores
from faircal.data.dataset_folder import read_images
from faircal.data.long_tables import open_table
from faircal.data.stream import BATCH, PairStream, Range
from faircal.data.tables import find_table, is_table, require_columns
from faircal.data.types import Embeddings, Feature, Images, cross

#: A column with the number of each row of a score table, from 0, where its parts come in any order.
ROW = "__row"


@dataclass(frozen=True, eq=False)
class FolderParts:
    """Pairs of known images: all parts share these and their embeddings.

    Parameters
    ----------
    images : Images
    embeddings : mapping from feature to Embeddings
    name, where, provenance
        As a `Dataset` has them.
    table : str
        Where the pairs are, for messages.
    limits : (float, float) or None
        Where ready-made scores must lie; None: anywhere.
    files : mapping from feature to str
        Where the embeddings are, for messages.
    """

    images: Images
    embeddings: Mapping[str, Embeddings]
    name: str
    where: str
    table: str
    limits: Range | None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs."""
        pairs, scores = build_pairs(table, self._index, self.table, self.limits, span, text_folds)
        features = {name: Feature(held, scores) for name, held in self.embeddings.items()}
        data = Dataset.assemble(
            self.name,
            self.images,
            pairs,
            features or {"score": Feature(None, scores)},
            score_range,
            self.provenance,
            self.where,
            seed=None,
        )
        if self._has_unusable:
            check_vectors(data, self.files)
        return data

    @cached_property
    def _index(self) -> Index:
        return Index(self.images.ids)

    @cached_property
    def _has_unusable(self) -> bool:
        """Whether there is a vector at all that no pair may use: all are read, once."""
        return any(bool(held.unusable.any()) for held in self.embeddings.values())


@dataclass(frozen=True, eq=False)
class TableParts:
    """Pairs of a score table, which knows no images: each part has its own.

    Parameters
    ----------
    layout : ScoreColumns
    name, where
        As a `Dataset` has them.
    limits : (float, float) or None
        Where scores must lie; None: anywhere.
    crossed : tuple of str
        The attributes that make groups when none is named.
    n_rows : int
        Of the whole table.
    """

    layout: ScoreColumns
    name: str
    where: str
    limits: Range | None
    crossed: tuple[str, ...]
    n_rows: int

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs, or those that `ROW` numbers."""
        rows = None
        if ROW in table.column_names:
            rows = np.asarray(table[ROW], np.int64)
            table = table.drop_columns([ROW])
        there = set(self.layout.attributes_in(table))
        images, pairs, scores = build_scored(
            table,
            self.layout,
            self.where,
            self.limits,
            span,
            text_folds=text_folds,
            crossed=[key for key in self.crossed if key in there],
            n_rows=self.n_rows,
            rows=rows,
        )
        return Dataset.assemble(
            self.name, images, pairs, scores, score_range, {}, self.where, seed=None
        )


class FolderPairs(PairStream):
    """The pairs of a dataset folder; all parts share its images and embeddings."""

    def __init__(
        self,
        folder: Path,
        features: Sequence[str] | None,
        normalize: bool,
        device: str,
        limits: Range | None,
        batch: int,
    ) -> None:
        super().__init__(limits, batch)
        without_pairs = read_images(folder, features, normalize, device)
        images, about = without_pairs.images, without_pairs.about
        self.name = str(about.get("name", folder.resolve().name))
        self.where, self.provenance = str(folder), about
        self.images, self.attributes = images, tuple(images.attributes)
        self.table = open_table(find_table(folder, "pairs"))
        where = str(self.table.path)
        require_columns(self.table.schema, ("left", "right"), where)
        files = {name: file for name, (file, _) in without_pairs.embeddings.items()}
        matrices = {name: matrix for name, (_, matrix) in without_pairs.embeddings.items()}
        none = np.empty(0) if self._score_columns() else None
        joined = join_scores(matrices, none, where)
        self.features = {name: Feature(made.embeddings) for name, made in joined.items()}
        self.feature = next(iter(self.features))
        read = (self.table.path, find_table(folder, "images"), folder / "dataset.json")
        self.files = tuple(path for path in (*read, *files.values()) if path.exists())
        self._parts_of = FolderParts(
            images,
            matrices,
            self.name,
            self.where,
            where,
            limits,
            about,
            {name: str(file) for name, file in files.items()},
        )

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named."""
        return self._parts_of.images.crossed

    def columns(self, names: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is in `names`; attributes are in the images."""
        optional = [name for name in ("genuine", "fold") if names is None or name in names]
        columns = self.table.schema.names
        return [name for name in ("left", "right", *optional, "score") if name in columns]

    def build(self, table: pa.Table, span: Span, text_folds: bool) -> Dataset:
        """Make and check the part `span` of the pairs."""
        return self._parts_of.build(table, span, text_folds, self.score_range)

    def _group_names(self, attribute: str) -> tuple[str, ...]:
        return cross(self._parts_of.images.attributes, attribute, self.where).names

    def _score_columns(self) -> list[str]:
        return [name for name in ("score",) if name in self.table.schema.names]


class TablePairs(PairStream):
    """The pairs of a score table, which knows no images."""

    images = None

    def __init__(
        self, path: Path, features: Sequence[str] | None, limits: Range | None, batch: int
    ) -> None:
        super().__init__(limits, batch)
        self.name, self.where, self.provenance = path.stem, str(path), {}
        self.table = open_table(path)
        self.files = (path,)
        self._layout = ScoreColumns.of(self.table.schema, features, self.where)
        self.features = {name: Feature() for name in self._layout.scores}
        self.feature = self._layout.scores[0]
        self.attributes = tuple(self._layout.attributes)

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named: the table is read once to tell."""
        return self._memo("crossed", self._crossable)

    def columns(self, names: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is in `names`."""
        return self._layout.columns(names)

    def build(self, table: pa.Table, span: Span, text_folds: bool) -> Dataset:
        """Make and check the part `span` of the pairs."""
        # Where no attribute was read, nobody needs to know which of them make groups.
        crossed = self.crossed if self._layout.attributes_in(table) else ()
        parts = TableParts(
            self._layout, self.name, self.where, self.limits, crossed, self.table.n_rows
        )
        return parts.build(table, span, text_folds, self.score_range)

    def _crossable(self) -> tuple[str, ...]:
        values: dict[str, set[str]] = {key: set() for key in self._layout.grouping}
        for columns in self._attributes(self._layout.grouping):
            for key, column in columns.items():
                if len(values[key]) <= MOST_GROUPS:
                    values[key].update(column.names)
        return tuple(key for key, names in values.items() if 0 < len(names) <= MOST_GROUPS)

    def _group_names(self, attribute: str) -> tuple[str, ...]:
        parts = attribute.split("+")
        for part in parts:
            if part not in self.attributes:
                hint = did_you_mean(part, self.attributes)
                raise DataError(f"{self.where}: attribute '{part}' is not in the data; {hint}")
        groups: set[tuple[str, ...]] = set()
        for columns in self._attributes(parts):
            groups |= combinations([columns[part] for part in parts])
        return tuple(" ".join(names) for names in sorted(groups))

    def _attributes(self, keys: Sequence[str]) -> Iterator[dict[str, Column]]:
        names = [name for name in self.columns(keys) if name not in self._layout.scores]
        for _, table in self.read(names) if keys else ():
            yield {key: self._layout.attribute(table, key, self.where) for key in keys}

    def _score_columns(self) -> list[str]:
        return list(self._layout.scores)


def combinations(columns: Sequence[Column]) -> set[tuple[str, ...]]:
    """Return the combinations of names that occur in columns side by side."""
    every = np.logical_and.reduce([column.codes >= 0 for column in columns])
    if not every.any():
        return set()
    shape = [len(column.names) for column in columns]
    flat = np.ravel_multi_index([column.codes[every] for column in columns], shape)
    codes = np.unravel_index(np.unique(flat), shape)
    return {
        tuple(column.names[code] for column, code in zip(columns, each, strict=True))
        for each in zip(*codes, strict=True)
    }


def open_stream(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    device: str = "cpu",
    score_range: tuple[float, float] | None = COSINE_RANGE,
    batch: int = BATCH,
    fold: Any = None,
    leave_out: Any = None,
) -> PairStream:
    r"""Open a dataset folder or a score table, to go through its pairs part by part.

    What `load` refuses is refused here too, part by part, with rows counted in the whole file. A
    CSV file is gone through once on opening, to find the types of its columns.

    Parameters
    ----------
    path, features, normalize, device, score_range
        As for `load`.
    batch : int
        The most pairs in a part: memory is a multiple of it, whatever the number of pairs.
    fold, leave_out : optional
        Keep only the pairs of this fold, or those of all others; the pairs need a column ``fold``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "scores.csv"
    ...     _ = table.write_text("genuine,score\n1,0.9\n0,0.2\n1,0.7\n")
    ...     [part.scores.tolist() for part in open_stream(table, batch=2).parts()]
    [[0.9, 0.2], [0.7]]
    """
    source = existing(path)
    if batch < 1:
        raise ParameterError(f"batch: expected at least 1 pair, found {batch}")
    if fold is not None and leave_out is not None:
        raise ParameterError("fold and leave_out: expected one of them, found both")
    limits = None if score_range is None else check_range(score_range)
    stream: PairStream
    if is_table(source):
        stream = TablePairs(source, features, limits, batch)
    else:
        stream = FolderPairs(source, features, normalize, device, limits, batch)
    if fold is not None:
        return stream.only(fold)
    return stream if leave_out is None else stream.without(leave_out)
