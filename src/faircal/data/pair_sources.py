"""What parts of pairs are made of: the images of a folder, or the columns of a score table.

Streams and the workers of Spark make their parts alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from faircal.data.build import ScoreColumns, build_pairs, build_scored
from faircal.data.cohort import Cohort
from faircal.data.columns import Index, Span
from faircal.data.dataset import Dataset, check_vectors
from faircal.data.dataset_folder import read_images
from faircal.data.types import Embeddings, Feature, Images

Range = tuple[float, float]

#: A column with the number of each row of a score table, from 0, where its parts come in any order.
ROW = "__row"


@dataclass(frozen=True, eq=False)
class FolderParts:
    """Pairs of known images: all parts share these and their embeddings.

    Parameters
    ----------
    images : Images
    embeddings : mapping from feature to Embeddings
    name, where, provenance, cohort
        As a `Dataset` has them.
    table : str
        Where the pairs are, for messages.
    limits : (float, float) or None
        Where ready-made scores must lie; None: anywhere.
    """

    images: Images
    embeddings: Mapping[str, Embeddings]
    name: str
    where: str
    table: str
    limits: Range | None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    cohort: Cohort | None = None

    @classmethod
    def read(
        cls,
        folder: Path,
        features: Sequence[str] | None,
        normalize: bool,
        limits: Range | None,
        table: str,
        device: str = "cpu",
    ) -> Self:
        """Read all of a dataset folder but its pairs."""
        read = read_images(folder, features, normalize, device)
        return cls(
            read.images,
            read.embeddings,
            str(read.about.get("name", folder.resolve().name)),
            str(folder),
            table,
            limits,
            read.about,
        )

    @property
    def features(self) -> Mapping[str, Embeddings | None]:
        """The embeddings of each feature; None where there are only scores."""
        return dict(self.embeddings) or {"score": None}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self.images.attributes)

    def columns(self, needed: Collection[str] | None, present: Collection[str]) -> list[str]:
        """Return which columns, of those that are `present`, hold what is `needed`; None: all.

        Attributes and people are in the images.
        """
        optional = [name for name in ("genuine", "fold") if needed is None or name in needed]
        return [name for name in ("left", "right", *optional, "score") if name in present]

    def score_columns(self, present: Collection[str]) -> list[str]:
        """Return the columns of ready-made scores, of those that are `present`."""
        return [name for name in ("score",) if name in present]

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs."""
        pairs, scores = build_pairs(table, self._index, self.table, self.limits, span, text_folds)
        data = Dataset.assemble(
            self.name,
            self.images,
            pairs,
            {name: Feature(held, scores) for name, held in self.features.items()},
            score_range,
            self.provenance,
            self.where,
            seed=None,
            cohort=self.cohort,
        )
        if self._has_unusable:
            check_vectors(data)
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
    n_rows : int
        Of the whole table.
    crossed : tuple of str, optional
        The attributes that make groups when none is named, where it is known.
    """

    layout: ScoreColumns
    name: str
    where: str
    limits: Range | None
    n_rows: int
    crossed: tuple[str, ...] | None = None
    images: None = None
    cohort: Cohort | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """Where the pairs are, for messages."""
        return self.where

    @property
    def features(self) -> Mapping[str, Embeddings | None]:
        """The score columns, none of which has embeddings."""
        return dict.fromkeys(self.layout.scores)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self.layout.attributes)

    def columns(self, needed: Collection[str] | None, present: Collection[str]) -> list[str]:
        """Return the columns for what is `needed`; None: all but `ROW`."""
        numbered = needed is not None and "row" in needed and ROW in present
        return [*self.layout.columns(needed), *([ROW] if numbered else [])]

    def score_columns(self, present: Collection[str]) -> list[str]:  # noqa: ARG002
        """Return the columns of ready-made scores."""
        return list(self.layout.scores)

    def build(self, table: pa.Table, span: Span, text_folds: bool, score_range: Range) -> Dataset:
        """Make and check the part `span` of the pairs, or those that `ROW` numbers."""
        rows = None
        if ROW in table.column_names:
            rows = np.asarray(table[ROW], np.int64)
            table = table.drop_columns([ROW])
        present = set(self.layout.attributes_in(table.column_names))
        images, pairs, scores = build_scored(
            table,
            self.layout,
            self.where,
            self.limits,
            span,
            text_folds=text_folds,
            crossed=[key for key in self.crossed or () if key in present],
            n_rows=self.n_rows,
            rows=rows,
        )
        return Dataset.assemble(
            self.name, images, pairs, scores, score_range, {}, self.where, seed=None
        )
