"""Tiles: two blocks of images that a worker holds at a time, and the pairs that are sorted to them.

Spark works out from ids alone which block an image is in, and so which tile a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data import Dataset
from faircal.data.build import require_known
from faircal.data.columns import SOMEWHERE
from faircal.data.dataset import COSINE_RANGE
from faircal.data.pair_sources import FolderParts
from faircal.data.types import Embeddings, Images
from faircal.production.spark.blocks.block import Block, images_at, merged_images
from faircal.production.spark.blocks.folder import Blocks
from faircal.production.spark.gallery import SparkGallery, Tile
from faircal.production.spark.parts import PART, PartReader, Range

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


#: The two types that ids are kept in.
NUMBERS, TEXT = "int64", "string"
#: The column with the number of a pair's tile: first block × number of blocks + second block.
TILE = "__tile"

#: Of a tile with more images than that for each pair, only those in pairs are read.
FEW = 4
#: Shares of a partition, at least, where tiles are dealt out together: it is even on average only.
SHARES = 4
#: Partitions of a shuffle where the session leaves their number to a service.
_USUAL = 200
_WHOLE = ("byte", "short", "integer", "long")
_LETTERS = ("string", "varchar", "char")


def id_kind(frame: DataFrame, name: str, where: str) -> str:
    """Return in which type the ids of a column are kept."""
    kind = frame.schema[name].dataType
    _check(kind, name, where)
    return NUMBERS if kind.typeName() in _WHOLE else TEXT


def as_id(frame: DataFrame, name: str, ids: str, where: str) -> Column:
    """Return a column of ids as the type that the images' are kept in.

    Two ids are the same where they are written the same, whatever their types: what `Index` finds
    must have the same hash. What can be no id among `ids` becomes null.
    """
    kind, column = frame.schema[name].dataType, frame[name]
    _check(kind, name, where)
    if ids == TEXT:
        return column.cast("string")
    if kind.typeName() in _WHOLE:
        return column.cast("bigint")
    from pyspark.sql import functions as F  # noqa: N812

    number = column.try_cast("bigint")
    # "007" is not 7.
    return F.when(number.cast("string") == column.cast("string"), number)


def _check(kind: Any, name: str, where: str) -> None:
    typename = kind.typeName()
    if typename in _WHOLE or typename in _LETTERS or (typename == "decimal" and kind.scale == 0):
        return
    raise DataError(
        f"{where}, column '{name}': expected ids that are whole numbers or text, found "
        f"{kind.simpleString()}; cast the column"
    )


def block_of(ids: Column, n_blocks: int) -> Column:
    """Return the block of each image: a hash deals them out evenly, in whatever order they are."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.pmod(F.xxhash64(ids), F.lit(n_blocks))


def with_tiles(frame: DataFrame, ids: str, n_blocks: int, where: str) -> DataFrame:
    """Return pairs with the number of their tile, column `TILE`."""
    from pyspark.sql import functions as F  # noqa: N812

    left, right = (block_of(as_id(frame, of, ids, where), n_blocks) for of in ("left", "right"))
    number = F.least(left, right) * F.lit(n_blocks) + F.greatest(left, right)
    return frame.withColumn(TILE, number)


def arranged(frame: DataFrame, ids: str, n_blocks: int, where: str) -> DataFrame:
    """Return pairs with the number of their tile, those of a tile one after the other.

    Spark deals tiles out to as many partitions as the session has (adaptive execution may put
    small ones together). Where there are fewer tiles, a hash of the two ids cuts each into several
    shares, so that no worker is left waiting; it is no random number: a task that is repeated finds
    the same pairs. Where there are many more, tiles with the same first block stay together, so
    that it is read once for several.
    """
    from pyspark.sql import functions as F  # noqa: N812

    partitions, n_tiles = _partitions(frame), n_blocks * (n_blocks + 1) // 2
    tiled = with_tiles(frame, ids, n_blocks, where)
    tile = F.col(TILE)
    if n_tiles < partitions:
        share = F.pmod(F.xxhash64("left", "right"), F.lit(-(-partitions // n_tiles)))
        dealt = tiled.repartition(tile, share)
    else:
        tiles_together = max(1, n_tiles // (SHARES * partitions))
        first, second = F.floor(tile / n_blocks), F.pmod(tile, F.lit(n_blocks))
        dealt = tiled.repartition(first, F.floor(second / tiles_together))
    return dealt.sortWithinPartitions(TILE)


def _partitions(frame: DataFrame) -> int:
    """Return how many partitions a shuffle of the session has."""
    setting = str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return int(setting) if setting.isdecimal() and int(setting) else _USUAL


def runs(
    batches: Iterable[pa.RecordBatch], name: str, most: int | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Put together the rows that follow each other with the same number in column `name`.

    Yields the number and the rows, less that column. A run of more than `most` rows comes in
    several tables of about as many.

    Examples
    --------
    >>> batches = [pa.record_batch({"tile": [1, 1], "left": [7, 8]})] * 2
    >>> batches += [pa.record_batch({"tile": [1, 3], "left": [9, 7]})]
    >>> [(tile, table["left"].to_pylist()) for tile, table in runs(batches, "tile")]
    [(1, [7, 8, 7, 8, 9]), (3, [7])]
    """
    held: list[pa.RecordBatch] = []
    count = last = 0
    for batch in batches:
        for value, piece in _pieces(batch, name):
            if held and (value != last or (most is not None and count >= most)):
                yield last, pa.Table.from_batches(held)
                held, count = [], 0
            held.append(piece)
            last, count = value, count + piece.num_rows
    if held:
        yield last, pa.Table.from_batches(held)


def _pieces(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    values = np.asarray(batch.column(name))
    rest = batch.drop_columns([name])
    cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield int(values[start]), rest.slice(start, stop - start)


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
        return self._two_blocks.tile(i, j)

    def held(self, i: int, j: int) -> Sequence[Block]:
        """Return blocks `i` and `j` by themselves; no others are kept."""
        return self._two_blocks.blocks(i, j)

    def let_go(self) -> None:
        """Keep no block and no tile any longer."""
        self._two_blocks.clear()

    @cached_property
    def _two_blocks(self) -> _TwoBlocks:
        return _TwoBlocks(self.blocks)


class _TwoBlocks:
    """Room for two blocks, and for the tile that they make."""

    def __init__(self, source: Blocks) -> None:
        self._source = source
        self._blocks: dict[int, Block] = {}
        self._tile: tuple[tuple[int, int], Tile] | None = None

    def clear(self) -> None:
        self._blocks, self._tile = {}, None

    def blocks(self, i: int, j: int) -> list[Block]:
        numbers = list(dict.fromkeys((i, j)))
        # Other blocks go before anything else comes.
        self._blocks = {k: block for k, block in self._blocks.items() if k in numbers}
        if self._tile is not None and self._tile[0] != (i, j):
            self._tile = None
        for k in numbers:
            if k not in self._blocks:
                self._blocks[k] = self._source.read(k)
        return [self._blocks[k] for k in numbers]

    def tile(self, i: int, j: int) -> Tile:
        blocks = self.blocks(i, j)
        if self._tile is None:
            images = merged_images([block.images for block in blocks])
            rows = np.concatenate([block.rows for block in blocks])
            features = _JoinedEmbeddings(self._source, blocks)
            self._tile = (i, j), Tile(rows, images, features)
        return self._tile[1]


class _JoinedEmbeddings(Mapping[str, Embeddings]):
    """The embeddings of blocks one after the other; each feature when it is asked for."""

    def __init__(self, source: Blocks, blocks: Sequence[Block]) -> None:
        self._source, self._blocks = source, blocks
        self._made: dict[str, Embeddings] = {}

    def __getitem__(self, name: str) -> Embeddings:
        if name not in self._made:
            pieces = [(block, slice(None)) for block in self._blocks]
            self._made[name] = self._source.embeddings(name, pieces)
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
                places = block.index.find(table[side], side, self.gallery.table, SOMEWHERE)
                used[places[places >= 0]] = True
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
