"""From a table of pairs, or a part of one, to a `Dataset`: what streams and clusters share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.data.build import build_pairs
from faircal.data.columns import Span
from faircal.data.dataset import Dataset, check_vectors
from faircal.data.ids import Index
from faircal.data.scored import Layout, build_scored
from faircal.data.types import Embeddings, Feature, Images

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

    layout: Layout
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
