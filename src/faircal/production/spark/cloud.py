"""Work on vectors that stay where they are: what is found of blocks comes back, and is joined.

A task takes blocks of the gallery, so what comes back depends neither on how many images there
are nor on which machine had which of them: blocks are joined in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base import container
from faircal.compute.threads import single
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from faircal.production.spark.gallery import SparkGallery

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

#: Vectors looked at together: they stay in the cache.
ROWS = 1024
#: Bytes of sums that a job sends to the driver, at most: beyond, tasks add up more blocks.
_SENT = 1 << 28
#: Tasks for each core, where there are blocks enough: a slow one then holds nobody up for long.
_TASKS = 2


class BlockWork(Protocol):
    """What a task does with each block; it travels."""

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:
        """Return what is found of the images `rows` of a block."""

    def join(self, found: Sequence[Arrays]) -> Arrays:
        """Put together what was found of blocks, in their order."""


class SummedWork:
    """Work whose results are added up."""

    def join(self, found: Sequence[Arrays]) -> Arrays:
        """Add up."""
        return {key: reduce(np.add, (of[key] for of in found)) for key in found[0]}


class ListedWork:
    """Work whose results are put one after the other."""

    def join(self, found: Sequence[Arrays]) -> Arrays:
        """Put one after the other."""
        return {key: np.concatenate([of[key] for of in found]) for key in found[0]}


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors in use, block by block: what a worker process holds of them."""

    gallery: SparkGallery
    feature: str
    used: NDArray[np.uint8]  # a bit an image

    def block(self, number: int) -> tuple[Int64, Float32]:
        """Return the rows of a block's images in use, and their vectors."""
        tile = self.gallery.tile(number, number)
        bit = self.used[tile.rows >> 3] >> (tile.rows & 7).astype(np.uint8)
        here = np.flatnonzero(bit & 1)
        return tile.rows[here], tile.features[self.feature].rows(here)

    def each(self, work: BlockWork, blocks: range) -> Arrays:
        """Do some work with each of `blocks`, and join what comes of it."""
        with single():
            return work.join([work(*self.block(number)) for number in blocks])


@dataclass(frozen=True, eq=False)
class VectorCloud:
    """All vectors, as the driver sees them: `run` has work done where they are."""

    spark: SparkSession
    vectors: Any  # a broadcast of `Vectors`
    images: Int64
    groups: list[range]  # of blocks, whose results are joined by a task
    mean: Float32
    variance: float

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        gallery: SparkGallery,
        feature: str,
        images: Int64,
        n_clusters: int,
        stack: ExitStack,
    ) -> VectorCloud:
        """Find mean and variance; the broadcast lives as long as `stack` does."""
        used = np.zeros(int(gallery.block_sizes.sum()), bool)
        used[images] = True
        bits = np.packbits(used, bitorder="little")
        vectors = spark.sparkContext.broadcast(Vectors(gallery, feature, bits))
        stack.callback(vectors.destroy)
        dimension = gallery.features[feature].dimension
        # Groups hang on sizes alone: the number of cores must not change the order of a sum.
        most = max(1, _SENT // (8 * n_clusters * (dimension + 2)))
        size = -(-gallery.n_blocks // most)
        every = range(gallery.n_blocks)
        groups = [every[first : first + size] for first in every[::size]]
        cloud = cls(spark, vectors, images, groups, np.zeros(dimension, np.float32), 0.0)
        found = cloud.run(_Moments())
        sums, n = found["sums"], len(images)
        mean = (sums / n).astype(np.float32)
        about = found["squares"][0] - 2 * (sums @ mean) + n * (mean.astype(np.float64) @ mean)
        return cls(spark, vectors, images, groups, mean, float(about) / (n * dimension))

    def run(self, work: BlockWork) -> Arrays:
        """Do `work` with all blocks, in one job."""
        context = self.spark.sparkContext
        shared = context.broadcast(work)
        vectors, groups = self.vectors, self.groups

        def of_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    found = vectors.value.each(shared.value, groups[number])
                    state = [container.pack({}, found)]
                    yield pa.RecordBatch.from_pydict({"number": [number], "state": state})

        tasks = min(len(groups), _TASKS * context.defaultParallelism)
        try:
            numbers = self.spark.range(0, len(groups), 1, tasks)
            with errors_in_one_line():
                rows = numbers.mapInArrow(of_groups, "number long, state binary").collect()
        finally:
            shared.destroy()
        return work.join([container.arrays_of(bytes(row.state)) for row in sorted(rows)])

    def look_up(self, places: NDArray[np.intp] | slice) -> tuple[Float32, Float32]:
        """Return some of the points, of `places` ascending, and their squares."""
        points = self.points(self.images[places])
        return points, np.einsum("ij,ij->i", points, points)

    def points(self, rows: Int64) -> Float32:
        """Return the points of images `rows`, ascending: their vectors, less the mean."""
        found = self.run(_Fetch(rows))
        return np.asarray(found["vectors"][np.argsort(found["rows"])] - self.mean)


@dataclass(frozen=True, eq=False)
class _Moments(SummedWork):
    """Sums of vectors and of their squares."""

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:  # noqa: ARG002
        sums, squares = np.zeros(vectors.shape[1]), np.zeros(1)
        for start in range(0, len(vectors), ROWS):
            some = vectors[start : start + ROWS].astype(np.float64)
            sums += some.sum(axis=0)
            squares += np.vdot(some, some)
        return {"sums": sums, "squares": squares}


@dataclass(frozen=True, eq=False)
class _Fetch(ListedWork):
    """The vectors of some images."""

    wanted: Int64  # ascending

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:
        there = np.isin(rows, self.wanted, assume_unique=True)
        return {"rows": rows[there], "vectors": vectors[there]}
