"""From a table of pairs, or a part of one, to a `Dataset`: what streams and clusters share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.build import MOST_GROUPS, ScoreColumns, build_pairs, build_scored
from faircal.data.columns import Column, Span, parse_scores
from faircal.data.dataset import COSINE_RANGE, Dataset, check_vectors, join_scores
from faircal.data.dataset_folder import ImageFolder, read_images
from faircal.data.ids import Index
from faircal.data.long_tables import TableFile, open_table
from faircal.data.tables import find_table, require_columns
from faircal.data.types import Embeddings, Feature, Images, cross

Range = tuple[float, float]


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
        features = {name: Feature(found, scores) for name, found in self.embeddings.items()}
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
        return any(bool(found.unusable.any()) for found in self.embeddings.values())


@dataclass(frozen=True, eq=False)
class TableParts:
    """Pairs of a score table, which knows no images: each part has its own.

    Parameters
    ----------
    layout : Layout
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

    def build(
        self,
        table: pa.Table,
        span: Span,
        text_folds: bool,
        score_range: Range,
        rows: NDArray[np.int64] | None = None,
    ) -> Dataset:
        """Make and check the part `span` of the pairs; `rows` are their numbers, if not of it."""
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


#: About so many scores are looked at to tell how they are spread.
_SEEN = 1 << 18


class PairSource(ABC):
    """Pairs on disk, and how a part of their table becomes a `Dataset`.

    Attributes
    ----------
    name, where, provenance
        As a `Dataset` has them.
    table : TableFile
        The pairs.
    files : tuple of Path
        All that is read.
    features : mapping from name to Feature
        Without scores: ready-made ones come with the parts.
    images : Images or None
    attributes : tuple of str
    """

    name: str
    where: str
    provenance: Mapping[str, Any]
    table: TableFile
    files: tuple[Path, ...]
    features: Mapping[str, Feature]
    images: Images | None
    attributes: tuple[str, ...]
    limits: Range | None
    batch: int

    @abstractmethod
    def columns(self, wanted: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is `wanted`."""

    @abstractmethod
    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs."""

    @property
    @abstractmethod
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named."""

    @abstractmethod
    def group_names(self, attribute: str) -> tuple[str, ...]:
        """Return the groups of `attribute` that occur, in the order a `Dataset` has them."""

    @property
    @abstractmethod
    def _score_columns(self) -> list[str]: ...

    @cached_property
    def score_range(self) -> Range:
        """The range of scores; where any is taken, that found (all scores are then read once)."""
        names = self._score_columns
        if not names:
            return COSINE_RANGE
        if self.limits is not None:
            return self.limits
        ends = [end for seen in self.seen.values() for end in (seen.least, seen.greatest)]
        return min(COSINE_RANGE[0], *ends), max(COSINE_RANGE[1], *ends)

    @cached_property
    def seen(self) -> dict[str, ScoreSummary]:
        """What ready-made scores look like, by column: all are read once."""
        names, where = self._score_columns, str(self.table.path)
        every = max(1, self.table.n_rows // _SEEN)
        least, greatest = dict.fromkeys(names, np.inf), dict.fromkeys(names, -np.inf)
        some: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        for span, table in self.read(names) if names else ():
            for name in names:
                scores = parse_scores(table[name], name, where, self.limits, span)
                least[name] = min(least[name], float(scores.min()))
                greatest[name] = max(greatest[name], float(scores.max()))
                some[name].append(scores[-span.start % every :: every])
        return {
            name: ScoreSummary(least[name], greatest[name], np.concatenate(some[name]))
            for name in names
        }

    def read(self, columns: Sequence[str], start: int = 0) -> Iterator[tuple[Span, pa.Table]]:
        """Yield the table batch by batch from row `start` on, with the rows each one is."""
        for table in self.table.read(columns, start, self.batch):
            stop = start + len(table)
            yield Span(start, stop if stop < self.table.n_rows else None), table
            start = stop


class ScoreSummary(NamedTuple):
    """What the scores of a column look like."""

    least: float
    greatest: float
    sample: NDArray[np.float64]  # evenly picked


class FolderPairs(PairSource):
    """The pairs of a dataset folder; all parts share its images and embeddings."""

    def __init__(
        self,
        folder: Path,
        features: Sequence[str] | None,
        normalize: bool,
        device: str,
        score_range: Range | None,
        batch: int,
    ) -> None:
        gallery: ImageFolder = read_images(folder, features, normalize, device)
        self.limits, self.batch = score_range, batch
        self.name = str(gallery.about.get("name", folder.resolve().name))
        self.where, self.provenance = str(folder), gallery.about
        self.images: Images = gallery.images
        self.attributes = tuple(self.images.attributes)
        self.table = open_table(find_table(folder, "pairs"))
        require_columns(self.table.schema, ("left", "right"), str(self.table.path))
        matrices = {name: matrix for name, (_, matrix) in gallery.embeddings.items()}
        none = np.empty(0) if "score" in self.table.schema.names else None
        joined = join_scores(matrices, none, str(self.table.path))
        self.features = {name: Feature(made.embeddings) for name, made in joined.items()}
        stored = [file for file, _ in gallery.embeddings.values()]
        about = (self.table.path, find_table(folder, "images"), folder / "dataset.json", *stored)
        self.files = tuple(path for path in about if path.exists())
        self._parts = FolderParts(
            self.images,
            matrices,
            self.name,
            self.where,
            str(self.table.path),
            score_range,
            self.provenance,
            {name: str(file) for name, (file, _) in gallery.embeddings.items()},
        )

    def columns(self, wanted: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is `wanted`; attributes are in the images."""
        there = self.table.schema.names
        optional = [name for name in ("genuine", "fold") if wanted is None or name in wanted]
        return [name for name in ("left", "right", *optional, "score") if name in there]

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs."""
        return self._parts.build(table, span, text_folds, score_range)

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named."""
        return self.images.crossed

    def group_names(self, attribute: str) -> tuple[str, ...]:
        """Return the groups of `attribute`, of all images."""
        return cross(self.images.attributes, attribute, self.where).names

    @property
    def _score_columns(self) -> list[str]:
        return [name for name in ("score",) if name in self.table.schema.names]


class TablePairs(PairSource):
    """The pairs of a score table, which knows no images."""

    images = None

    def __init__(
        self,
        path: Path,
        features: Sequence[str] | None,
        score_range: Range | None,
        batch: int,
    ) -> None:
        self.limits, self.batch = score_range, batch
        self.name, self.where, self.provenance = path.stem, str(path), {}
        self.table = open_table(path)
        self.files = (path,)
        self._layout = ScoreColumns.of(self.table.schema, features, self.where)
        self.features = {name: Feature() for name in self._layout.scores}
        self.attributes = tuple(self._layout.attributes)

    def columns(self, wanted: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is `wanted`."""
        return self._layout.columns(wanted)

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs."""
        # Where no attribute was read, nobody needs to know which of them make groups.
        crossed = self.crossed if self._layout.attributes_in(table) else ()
        parts = TableParts(
            self._layout, self.name, self.where, self.limits, crossed, self.table.n_rows
        )
        return parts.build(table, span, text_folds, score_range)

    @cached_property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named: the table is read once to tell."""
        names: dict[str, set[str]] = {key: set() for key in self._layout.grouping}
        for _, columns in self._attributes(self._layout.grouping):
            for key, column in columns.items():
                if len(names[key]) <= MOST_GROUPS:
                    names[key].update(column.names)
        return tuple(key for key, found in names.items() if 0 < len(found) <= MOST_GROUPS)

    def group_names(self, attribute: str) -> tuple[str, ...]:
        """Return the groups of `attribute`; the table is read once to tell."""
        parts = attribute.split("+")
        for part in parts:
            if part not in self.attributes:
                hint = did_you_mean(part, self.attributes)
                raise DataError(f"{self.where}: attribute '{part}' is not in the data; {hint}")
        found: set[tuple[str, ...]] = set()
        for _, columns in self._attributes(parts):
            found |= combinations([columns[part] for part in parts])
        return tuple(" ".join(names) for names in sorted(found))

    def _attributes(self, keys: Sequence[str]) -> Iterator[tuple[Span, dict[str, Column]]]:
        wanted = [name for name in self.columns(keys) if name not in self._layout.scores]
        if not keys:
            return
        for span, table in self.read(wanted):
            yield span, {key: self._layout.attribute(table, key, self.where) for key in keys}

    @property
    def _score_columns(self) -> list[str]:
        return list(self._layout.scores)


def combinations(columns: Sequence[Column]) -> set[tuple[str, ...]]:
    """Return the combinations of names that occur in columns side by side."""
    known = np.logical_and.reduce([column.codes >= 0 for column in columns])
    if not known.any():
        return set()
    shape = [len(column.names) for column in columns]
    flat = np.ravel_multi_index([column.codes[known] for column in columns], shape)
    codes = np.unravel_index(np.unique(flat), shape)
    return {
        tuple(column.names[code] for column, code in zip(columns, each, strict=True))
        for each in zip(*codes, strict=True)
    }
