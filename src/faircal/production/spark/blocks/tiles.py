"""Images in blocks, of which a worker holds two at a time; pairs come sorted to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.data import Dataset
from faircal.data.build import require_known
from faircal.data.columns import SOMEWHERE
from faircal.data.dataset import COSINE_RANGE
from faircal.data.pair_sources import FolderParts
from faircal.data.types import Embeddings, Images
from faircal.production.spark.blocks.block import Block, images_at, merged_images
from faircal.production.spark.blocks.folder import Blocks
from faircal.production.spark.blocks.tiling import FEW, TILE, arranged, runs
from faircal.production.spark.gallery import SparkGallery, Tile
from faircal.production.spark.parts import PART, PartReader, Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SIDES = ("left", "right")


@dataclass(frozen=True, eq=False)
class TiledGallery(SparkGallery):
    """Images in block files; a worker holds two blocks, however many there are.

    Parameters
    ----------
    blocks : Blocks
    table : str
        Where the pairs are, for messages.
    limits : (float, float) or None
        Where ready-made scores must lie.
    """

    blocks: Blocks
    table: str = "pairs"
    limits: Range | None = COSINE_RANGE

    def __reduce__(self) -> tuple[Any, ...]:
        # Where to read travels; what was read stays.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Shown in tables and reports."""
        return self.blocks.name

    @property
    def where(self) -> str:  # type: ignore[override]
        """Where the images came from, for messages."""
        return self.blocks.where

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` said."""
        return self.blocks.provenance

    @cached_property
    def images(self) -> Images:
        """What is known of all images: every block is read, but for its vectors."""
        return self.blocks.images()

    @cached_property
    def features(self) -> Mapping[str, Embeddings]:
        """Embeddings of no rows: what their dimension is, and how they are used."""
        return {name: self.blocks.no_embeddings(name) for name in self.blocks.features}

    @property
    def block_sizes(self) -> NDArray[np.int64]:
        """Images of each block, shape (n_blocks,)."""
        return self.blocks.sizes

    def tile(self, i: int, j: int) -> Tile:
        """Return blocks `i` and `j`; vectors of two are copied to one array, when asked for."""
        return self._shelf.tile(i, j)

    def held(self, i: int, j: int) -> Sequence[Block]:
        """Return blocks `i` and `j` by themselves; no others are kept."""
        return self._shelf.blocks(i, j)

    def let_go(self) -> None:
        """Keep no block and no tile any longer."""
        self._shelf.clear()

    @cached_property
    def _shelf(self) -> _Shelf:
        return _Shelf(self.blocks)


class _Shelf:
    """Room for two blocks, and for the tile that they make."""

    def __init__(self, source: Blocks) -> None:
        self._source = source
        self._blocks: dict[int, Block] = {}
        self._tile: tuple[tuple[int, int], Tile] | None = None

    def clear(self) -> None:
        self._blocks, self._tile = {}, None

    def blocks(self, i: int, j: int) -> list[Block]:
        wanted = list(dict.fromkeys((i, j)))
        # What is not wanted goes before anything else comes.
        self._blocks = {k: block for k, block in self._blocks.items() if k in wanted}
        if self._tile is not None and self._tile[0] != (i, j):
            self._tile = None
        for k in wanted:
            if k not in self._blocks:
                self._blocks[k] = self._source.read(k)
        return [self._blocks[k] for k in wanted]

    def tile(self, i: int, j: int) -> Tile:
        blocks = self.blocks(i, j)
        if self._tile is None:
            images = merged_images([block.images for block in blocks])
            rows = np.concatenate([block.rows for block in blocks])
            features = _Joined(self._source, blocks)
            self._tile = (i, j), Tile(rows, images, features)
        return self._tile[1]


class _Joined(Mapping[str, Embeddings]):
    """The embeddings of blocks one after the other; each feature when it is asked for."""

    def __init__(self, source: Blocks, blocks: Sequence[Block]) -> None:
        self._source, self._blocks = source, blocks
        self._made: dict[str, Embeddings] = {}

    def __getitem__(self, name: str) -> Embeddings:
        if name not in self._made:
            every = [(block, slice(None)) for block in self._blocks]
            self._made[name] = self._source.embeddings(name, every)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._source.features)

    def __len__(self) -> int:
        return len(self._source.features)


@dataclass(frozen=True, eq=False)
class TiledReader(PartReader):
    """Pairs that come sorted by tile; of each tile the two blocks are read.

    Parameters
    ----------
    gallery : TiledGallery
    score_range : (float, float)
    feature : str
        The one in use; vectors of others are not read.
    text_folds : bool
        Whether folds are text.
    """

    gallery: TiledGallery
    score_range: Range
    feature: str
    text_folds: bool

    def arrange(self, frame: DataFrame) -> DataFrame:
        """Return `frame` with the pairs of a tile together."""
        return arranged(frame, self.gallery.blocks.ids, self.gallery.n_blocks, self.gallery.table)

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of `batches`; each part is of one tile, and has its images alone."""
        at, made = -1, None
        try:
            for number, table in runs(batches, TILE, PART):
                if number != at:
                    made = None  # before the next one is made
                i, j = divmod(number, self.gallery.n_blocks)
                if made is None and self._are_few(table, i, j):
                    yield self._built(self._used(table, self.gallery.held(i, j)), table)
                    continue
                if made is None:
                    tile = self.gallery.tile(i, j)
                    where = f"{self.gallery.blocks.place}, blocks {i} and {j}"
                    at, made = number, self._of(tile.images, tile.features[self.feature], where)
                    del tile
                yield self._built(made, table)
        finally:
            self.gallery.let_go()

    def _are_few(self, table: pa.Table, i: int, j: int) -> bool:
        """Whether it is better to read the images of these pairs alone than both blocks."""
        images = sum(self.gallery.block_sizes[k] for k in {i, j})
        return bool(table.num_rows < PART and FEW * table.num_rows < images) or not images

    def local(self, table: pa.Table) -> Dataset:
        """Make one dataset of pairs, with the images that they use: block after block is looked at.

        Where the table has a column `TILE`, only blocks that it tells of.
        """
        n = self.gallery.n_blocks
        numbers: Iterable[int] = range(n)
        if TILE in table.column_names:
            tiles = np.unique(np.asarray(table[TILE]))
            numbers = np.unique(np.concatenate(np.divmod(tiles, n))).tolist()
            table = table.drop_columns([TILE])
        blocks = (self.gallery.blocks.read(number) for number in numbers)
        return self._built(self._used(table, blocks), table)

    def _used(self, table: pa.Table, blocks: Iterable[Block]) -> FolderParts:
        """Return the images of `blocks` that are in the pairs of `table`."""
        source, held, rows = self.gallery.blocks, [], []
        for block in blocks:
            if not len(block.rows):
                continue
            used = np.zeros(len(block.rows), dtype=bool)
            for side in _SIDES:
                found = block.index.find(table[side], side, self.gallery.table, SOMEWHERE)
                used[found[found >= 0]] = True
            if used.any():
                held.append(block)
                rows.append(np.flatnonzero(used))
        if not held:
            none = np.full(table.num_rows, -1)
            require_known(none, table["left"], "left", self.gallery.table, SOMEWHERE)
        images = merged_images(
            [images_at(block.images, of) for block, of in zip(held, rows, strict=True)]
        )
        embeddings = source.embeddings(self.feature, list(zip(held, rows, strict=True)))
        return self._of(images, embeddings, f"{source.place}, images of some pairs")

    def _of(self, images: Images, embeddings: Embeddings, where: str) -> FolderParts:
        gallery = self.gallery
        return FolderParts(
            images,
            {self.feature: embeddings},
            gallery.name,
            gallery.where,
            gallery.table,
            gallery.limits,
            gallery.provenance,
            {self.feature: f"{where}, embeddings '{self.feature}'"},
        )

    def _built(self, parts: FolderParts, table: pa.Table) -> Dataset:
        return parts.build(table, SOMEWHERE, self.text_folds, self.score_range)
