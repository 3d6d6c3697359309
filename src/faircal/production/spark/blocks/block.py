"""Images and vectors of one block, or of several as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal.data.columns import UNKNOWN, Column
from faircal.data.ids import Index
from faircal.data.types import Embeddings, Images

if TYPE_CHECKING:
    from faircal.production.spark.blocks.folder import Blocks


ATTRIBUTE, NORM, VECTOR = "attribute:", "norm:", "vector:"


def block_name(number: int) -> str:
    """Return the name of a block's file."""
    return f"block-{number:06d}.arrow"


@dataclass(frozen=True)
class VectorKind:
    """What the vectors of a feature are like."""

    dimension: int
    dtype: str


@dataclass(frozen=True, eq=False)
class Block:
    """The images of one block.

    Vectors are read when they are asked for; of a local file only those rows that are used.

    Attributes
    ----------
    number : int
    rows : ndarray of shape (n,), int64
        Numbers of the images in the whole gallery.
    images : Images
    norms : mapping from feature to ndarray of shape (n,), float32
    batch : callable
        Gives all that is in the file.
    """

    number: int
    rows: NDArray[np.int64]
    images: Images
    norms: Mapping[str, NDArray[np.float32]]
    batch: Callable[[], pa.RecordBatch]

    @cached_property
    def index(self) -> Index:
        """Finds images by their ids."""
        return Index(self.images.ids)

    def vectors(self, feature: str) -> NDArray[Any]:
        """Return the vectors of `feature`, shape (n, d); what maps them goes with the array."""
        column = self.batch()[VECTOR + feature]
        return np.asarray(column.values).reshape(-1, column.type.list_size)


#: Some rows of a block.
BlockRows = tuple[Block, NDArray[np.intp] | slice]


class BlockOrigin(NamedTuple):
    """The blocks that embeddings were taken from: their numbers and rows, in order."""

    source: Blocks
    feature: str
    pieces: tuple[tuple[int, NDArray[np.intp] | slice], ...]


@dataclass(frozen=True, eq=False)
class BlockEmbeddings(Embeddings):
    """Embeddings that know the blocks they are of."""

    @classmethod
    def of_blocks(
        cls, vectors: NDArray[Any], normalize: bool, norms: NDArray[np.float32], origin: BlockOrigin
    ) -> BlockEmbeddings:
        """Take vectors with their lengths."""
        made = cls(vectors, normalize)
        # Beside what makes embeddings: who derives others from them starts anew.
        vars(made).update(norms=norms, origin=origin)
        return made

    @property
    def origin(self) -> BlockOrigin | None:
        """Where the rows come from; None where nobody said."""
        return vars(self).get("origin")


def stacked(feature: str, pieces: Sequence[BlockRows]) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return the vectors of all pieces and their lengths; those of one block are not copied."""
    norms = [block.norms[feature][rows] for block, rows in pieces]
    if len(pieces) == 1:
        block, rows = pieces[0]
        return block.vectors(feature)[rows], norms[0]
    vectors: NDArray[Any] | None = None
    stop = 0
    for (block, rows), own in zip(pieces, norms, strict=True):
        start, stop = stop, stop + len(own)
        there = block.vectors(feature)
        if vectors is None:
            vectors = np.empty((sum(map(len, norms)), there.shape[1]), there.dtype)
        vectors[start:stop] = there[rows]
        del there  # one file is mapped at a time
    return np.asarray(vectors), np.concatenate(norms)


def column_of(array: pa.DictionaryArray) -> Column:
    """Return a column of codes and names as ours."""
    codes = np.array(array.indices.fill_null(UNKNOWN), np.int32)
    return Column(codes, tuple(array.dictionary.to_pylist()))


Rows = NDArray[np.intp]


def merged_images(images: Sequence[Images]) -> Images:
    """Return the images of all, one after the other; codes mean the same throughout."""
    first = images[0]
    if len(images) == 1:
        return first
    identities = [of.identity for of in images if of.identity is not None]
    return replace(
        first,
        ids=pa.concat_arrays([of.ids for of in images]),
        identity=LazyColumn(lambda: joined_column(identities)) if identities else None,
        attributes={
            name: joined_column([of.attributes[name] for of in images]) for name in first.attributes
        },
        rows=None if first.rows is None else np.concatenate([of.rows for of in images]),
    )


def joined_column(columns: Sequence[Column]) -> Column:
    """Return columns one after the other, with the names of all, sorted.

    Examples
    --------
    >>> joined_column([Column.of(["b", "a"]), Column.of(["c", "b", ""])])
    Column(codes=array([ 1,  0,  2,  1, -1], dtype=int32), names=('a', 'b', 'c'))
    """
    names = [pa.array(column.names, pa.string()) for column in columns]
    if all(of.names == columns[0].names for of in columns):
        return Column(np.concatenate([of.codes for of in columns]), columns[0].names)
    joined = pc.unique(pa.concat_arrays(names))
    joined = joined.take(pc.sort_indices(joined))
    codes = []
    for column, own in zip(columns, names, strict=True):
        new = np.asarray(pc.index_in(own, value_set=joined), dtype=np.int32)
        codes.append(np.append(new, np.int32(UNKNOWN))[column.codes])
    return Column(np.concatenate(codes), tuple(joined.to_pylist()))


class LazyColumn(Column):
    """A column that is made when it is asked for: who only scores needs no people."""

    def __init__(self, make: Callable[[], Column]) -> None:
        vars(self)["_make"] = make

    @cached_property
    def _made(self) -> Column:
        column: Column = vars(self)["_make"]()
        return column

    @property
    def codes(self) -> NDArray[np.int32]:
        """The code of each row."""
        return self._made.codes

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return self._made.names


def images_at(images: Images, rows: Rows) -> Images:
    """Return what is known of some images."""

    def picked(column: Column) -> Column:
        return Column(column.codes[rows], column.names)

    identity = images.identity
    return replace(
        images,
        ids=images.ids.take(pa.array(rows)),
        identity=None if identity is None else LazyColumn(lambda: picked(identity)),
        attributes={name: picked(column) for name, column in images.attributes.items()},
        rows=np.asarray(rows, np.int64) if images.rows is None else images.rows[rows],
    )
