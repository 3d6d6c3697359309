"""Embeddings in block files, for galleries that are too large for a worker's memory.

A folder of blocks has one Arrow file a block, uncompressed, so that it can be mapped into memory:

``row``
    Number of the image in the whole gallery; ascending.
``image_id``, ``identity``, ``attribute:NAME``
    As in a dataset folder; the latter two, where there are such, as codes and sorted names.
``vector:FEATURE``, ``norm:FEATURE``
    The embeddings as stored, and their lengths.

``blocks.json`` says what is in them. It is written last: a folder without it is none of blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import short
from faircal.data.tables import choose
from faircal.data.types import Embeddings, Images
from faircal.production.spark.blocks.block import (
    ATTRIBUTE,
    NORM,
    VECTOR,
    Block,
    BlockEmbeddings,
    BlockOrigin,
    BlockRows,
    LazyColumn,
    VectorKind,
    block_name,
    column_of,
    images_at,
    merged_images,
    stacked,
)
from faircal.production.spark.blocks.places import SharedFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADER = "blocks.json"
_FORMAT, _VERSION = "faircal blocks", 1

#: Path, size in bytes and time of change in nanoseconds of what a source was read from.
Stamps = Mapping[str, tuple[str, int, int] | None]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A folder of block files; `write` makes one, `open` finds it again.

    Attributes
    ----------
    place : SharedFolder
        Where it is; all workers must see it.
    sizes : ndarray of shape (n_blocks,), int64
        Images of each block.
    ids : {"int64", "string"}
        The type of image ids.
    features : mapping from name to VectorKind
    normalize : bool
        As of `Embeddings`; the vectors are kept as they came.
    people : bool
        Whether the images tell who is in them.
    attributes, crossed : tuple of str
        All of them, and those that make groups when none is named.
    name, where, provenance
        As a `Dataset` has them.
    stamps : mapping or None
        What tells whether the source has changed; None where it was a frame.
    reused : bool
        Whether `write` found the blocks there already.
    """

    place: SharedFolder
    sizes: NDArray[np.int64]
    ids: str
    features: Mapping[str, VectorKind]
    normalize: bool
    people: bool
    attributes: tuple[str, ...]
    crossed: tuple[str, ...]
    name: str
    where: str
    provenance: Mapping[str, Any]
    stamps: Stamps | None
    reused: bool = False

    # ------------------------------------------------------------------ making

    @classmethod
    def write(
        cls,
        spark: SparkSession,
        source: str | Path | DataFrame,
        path: str | Path,
        *,
        rows_per_block: int | None = None,
        features: Sequence[str] | None = None,
        normalize: bool = True,
        progress: Progress = silent,
    ) -> Blocks:
        """Write the images and vectors of `source` as blocks; what is there already is used again.

        Parameters
        ----------
        spark : SparkSession
        source : path or pyspark.sql.DataFrame
            A dataset folder that all workers see (its pairs are not read), or a frame of templates:
            ``image_id``, one or more columns of vectors (arrays of float or double), ``identity``
            where it is known; other columns are attributes.
        path : path
            A folder on storage that all workers see, or an address that Arrow knows. It may hold
            blocks of the same source, which has not changed meanwhile.
        rows_per_block : int, optional
            Images in a block, about; as many as have 128 MB of vectors unless told. A worker holds
            two blocks.
        features : sequence of str, optional
            Which networks to take; all unless told.
        normalize : bool
            As for `faircal.load`.
        progress : callable
        """
        from faircal.production.spark.blocks.writing import write_blocks

        return write_blocks(spark, source, path, rows_per_block, features, normalize, progress)

    @classmethod
    def open(cls, path: str | Path) -> Blocks:
        """Open a folder of blocks."""
        place = SharedFolder(str(path))
        content = place.read(HEADER)
        if content is None:
            raise DataError(
                f"{path}: expected a folder of blocks, found no {HEADER} in it; write the blocks "
                "(again) with Blocks.write"
            )
        return cls._parsed(place, content)

    @classmethod
    def _parsed(cls, place: SharedFolder, content: bytes) -> Blocks:
        try:
            header = json.loads(content)
            _check_format(header["format"], header["version"])
            stamps = header["stamps"]
            return cls(
                place,
                np.array(header["sizes"], np.int64),
                str(header["ids"]),
                {name: VectorKind(**kind) for name, kind in header["features"].items()},
                bool(header["normalize"]),
                bool(header["people"]),
                tuple(header["attributes"]),
                tuple(header["crossed"]),
                str(header["name"]),
                str(header["where"]),
                dict(header["provenance"]),
                stamps and {key: of and (of[0], of[1], of[2]) for key, of in stamps.items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(
                f"{place}/{HEADER}: not the description of blocks that this faircal writes "
                f"({short(error)}); write the blocks again"
            ) from error

    def save(self) -> None:
        """Write ``blocks.json``."""
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "where": self.where,
            "images": int(self.sizes.sum()),
            "ids": self.ids,
            "features": {name: asdict(kind) for name, kind in self.features.items()},
            "normalize": self.normalize,
            "people": self.people,
            "attributes": self.attributes,
            "crossed": self.crossed,
            "stamps": self.stamps,
            "provenance": self.provenance,
            "sizes": self.sizes.tolist(),
        }
        text = json.dumps(header, indent=1) + "\n"
        self.place.write(HEADER, lambda stream: stream.write(text.encode()))

    def using(self, features: Sequence[str] | None, normalize: bool) -> Blocks:
        """Return the blocks with some of their features, used with `normalize`."""
        chosen = choose(self.features, features, str(self.place), "embeddings")
        kinds = {name: self.features[name] for name in chosen}
        return replace(self, features=kinds, normalize=normalize)

    # ----------------------------------------------------------------- reading

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.sizes)

    def no_embeddings(self, feature: str) -> Embeddings:
        """Return embeddings of no rows: what their dimension is, and how they are used."""
        kind = self.features[feature]
        return Embeddings(np.empty((0, kind.dimension), kind.dtype), self.normalize)

    def embeddings(self, feature: str, pieces: Sequence[BlockRows]) -> BlockEmbeddings:
        """Return the embeddings of some rows of blocks, one block after the other.

        Those of all rows of one block are not copied.
        """
        vectors, norms = stacked(feature, pieces)
        origin = BlockOrigin(self, feature, tuple((block.number, rows) for block, rows in pieces))
        return BlockEmbeddings.of_blocks(vectors, self.normalize, norms, origin)

    def read(self, number: int) -> Block:
        """Read a block; its vectors are not."""
        batch = self._batch(number)
        identity = LazyColumn(lambda: column_of(batch["identity"])) if self.people else None
        attributes = {name: column_of(batch[ATTRIBUTE + name]) for name in self.attributes}
        rows = np.array(batch["row"], np.int64)
        images = Images(batch["image_id"], identity, attributes, self.crossed, rows=rows)
        norms = {name: np.array(batch[NORM + name], np.float32) for name in self.features}
        # A mapped file is mapped anew for its vectors: pages that were read do not stay.
        local = self.place.local is not None
        again = (lambda: self._batch(number)) if local else (lambda: batch)
        return Block(number, rows, images, norms, again)

    def _batch(self, number: int) -> pa.RecordBatch:
        batch = self.place.read_batch(block_name(number))
        there = all(name in batch.schema.names for name in self._columns())
        if batch.num_rows != self.sizes[number] or not there:
            raise DataError(
                f"{self.place}/{block_name(number)}: expected {self.sizes[number]} images with "
                f"{', '.join(self._columns())}, found another file; write the blocks again"
            )
        return batch

    def _columns(self) -> Iterator[str]:
        yield from ("row", "image_id")
        if self.people:
            yield "identity"
        yield from (ATTRIBUTE + name for name in self.attributes)
        for name in self.features:
            yield from (NORM + name, VECTOR + name)

    def images(self) -> Images:
        """Read what is known of all images, in the order of their rows."""
        blocks = [self.read(number) for number in range(self.n_blocks)]
        order = np.argsort(np.concatenate([block.rows for block in blocks]))
        return replace(
            images_at(merged_images([block.images for block in blocks]), order), rows=None
        )


def _check_format(name: object, version: object) -> None:
    if (name, version) != (_FORMAT, _VERSION):
        raise ValueError(f"format {name!r}, version {version!r}")
