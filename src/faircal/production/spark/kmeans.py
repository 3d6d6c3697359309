"""K-means where the vectors are: each of Lloyd's iterations is one Spark job.

Centres travel, vectors don't; what comes back are sums. A task takes blocks of the gallery, and
results are joined in the order of blocks, so they depend neither on how many images there are nor
on which machine had which of them. The start, the rule to stop and what becomes of empty clusters
are those of one machine (`faircal.compute.kmeans`), with the same seed; so are the clusters, as far
as rounding allows.

Nothing stays on the workers from one iteration to the next, neither bounds on distances nor
vectors: Spark runs a task wherever there is room. Reading a block again from files that are in
the system's memory takes a fifth of the time that its products take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base import container
from faircal._base.jobs import Progress, silent
from faircal.compute.clustering import Clustering, check_parameters
from faircal.compute.engine import Nearest
from faircal.compute.kmeans import KMeansResult, start_among, sums_of
from faircal.compute.threads import one_blas_thread, single
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
        """Return the result for the images `rows` of a block."""

    def join(self, results: Sequence[Arrays]) -> Arrays:
        """Put together the results of blocks, in their order."""


class SummedWork:
    """Work whose results are added up."""

    def join(self, results: Sequence[Arrays]) -> Arrays:
        """Add up."""
        return {key: reduce(np.add, (of[key] for of in results)) for key in results[0]}


class ListedWork:
    """Work whose results are put one after the other."""

    def join(self, results: Sequence[Arrays]) -> Arrays:
        """Put one after the other."""
        return {key: np.concatenate([of[key] for of in results]) for key in results[0]}


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
        blocks = range(gallery.n_blocks)
        groups = [blocks[first : first + size] for first in blocks[::size]]
        cloud = cls(spark, vectors, images, groups, np.zeros(dimension, np.float32), 0.0)
        moments = cloud.run(_Moments())
        sums, n = moments["sums"], len(images)
        mean = (sums / n).astype(np.float32)
        about = moments["squares"][0] - 2 * (sums @ mean) + n * (mean.astype(np.float64) @ mean)
        return cls(spark, vectors, images, groups, mean, float(about) / (n * dimension))

    def run(self, work: BlockWork) -> Arrays:
        """Do `work` with all blocks, in one job."""
        context = self.spark.sparkContext
        shared = context.broadcast(work)
        vectors, groups = self.vectors, self.groups

        def of_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    joined = vectors.value.each(shared.value, groups[number])
                    state = [container.pack({}, joined)]
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
        fetched = self.run(_Fetch(rows))
        return np.asarray(fetched["vectors"][np.argsort(fetched["rows"])] - self.mean)


@dataclass(frozen=True, eq=False)
class _Moments(SummedWork):
    """Sums of vectors and of their squares."""

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:  # noqa: ARG002
        sums, squares = np.zeros(vectors.shape[1]), np.zeros(1)
        for start in range(0, len(vectors), ROWS):
            points = vectors[start : start + ROWS].astype(np.float64)
            sums += points.sum(axis=0)
            squares += np.vdot(points, points)
        return {"sums": sums, "squares": squares}


@dataclass(frozen=True, eq=False)
class _Fetch(ListedWork):
    """The vectors of some images."""

    images: Int64  # ascending

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:
        here = np.isin(rows, self.images, assume_unique=True)
        return {"rows": rows[here], "vectors": vectors[here]}


Float64 = NDArray[np.float64]


def kmeans(
    spark: SparkSession,
    gallery: SparkGallery,
    feature: str,
    images: Int64,
    n_clusters: int,
    *,
    n_init: int = 1,
    random_state: int = 0,
    max_iter: int = 300,
    tol: float = 1e-4,
    progress: Progress = silent,
) -> Clustering:
    """Cluster the vectors of `images`; the best of `n_init` starts.

    Parameters
    ----------
    spark : SparkSession
    gallery : SparkGallery
    feature : str
        Whose vectors.
    images : ndarray of int64, shape (n,)
        Rows of the gallery, ascending.
    n_clusters, n_init, random_state, max_iter, tol
        As for `faircal.compute.clustering.kmeans`, which gives the same clusters.
    progress : callable
        Called before each job.
    """
    check_parameters(len(images), n_clusters, n_init, random_state, max_iter)
    rng, best = np.random.default_rng(random_state), None
    with ExitStack() as stack:
        cloud = VectorCloud.of(spark, gallery, feature, images, n_clusters, stack)
        for start in range(n_init):

            def tell(iteration: int, start: int = start) -> None:
                progress("K-means", start, n_init, f"K = {n_clusters}, iteration {iteration}")

            tell(0)
            result = _lloyd(cloud, _start(cloud, n_clusters, rng), max_iter, tol, tell)
            if best is None or result.inertia < best.inertia:
                best = result
    if best is None:
        raise ValueError("n_init: expected 1 or more")
    return Clustering(best.centers + cloud.mean, best.inertia, best.n_iter)


def _start(cloud: VectorCloud, n_clusters: int, rng: np.random.Generator) -> Float32:
    """Return the points to start with, those that one machine would choose."""
    with one_blas_thread():
        return start_among(len(cloud.images), n_clusters, rng, cloud.look_up)


def _lloyd(
    cloud: VectorCloud, centers: Float32, max_iter: int, tol: float, tell: Callable[[int], None]
) -> KMeansResult:
    """Iterate until nothing changes its cluster, or next to nothing moves."""
    step = cloud.run(_Step(cloud.mean, centers))
    moved, iteration = np.inf, 1
    while moved > tol * cloud.variance and iteration < max_iter:
        tell(iteration)
        sums, counts = step["sums"], step["counts"]
        if not counts.all():
            sums, counts = _filled(cloud, centers, sums.copy(), counts.copy())
        new = (sums / counts[:, None]).astype(np.float32)
        moved = float(np.square(new - centers, dtype=np.float64).sum())
        centers, before = new, step
        step = cloud.run(_Step(cloud.mean, centers))
        iteration += 1
        # The same points come to the same sums, to the last bit.
        if all(np.array_equal(step[key], before[key]) for key in ("counts", "sums")):
            break
    return KMeansResult(centers, float(step["inertia"][0]), iteration)


def _filled(
    cloud: VectorCloud, centers: Float32, sums: Float64, counts: Int64
) -> tuple[Float64, Int64]:
    """Give each empty cluster the point that is farthest from its centre; change both in place."""
    candidates = cloud.run(_Farthest(cloud.mean, centers))
    order = np.lexsort((candidates["rows"], -candidates["away"]))
    farthest = zip(
        candidates["rows"][order].tolist(), candidates["labels"][order].tolist(), strict=True
    )
    taken: dict[int, tuple[int, int]] = {}
    for cluster in np.flatnonzero(counts == 0).tolist():
        # A cluster keeps one point, so that no more than K are passed over.
        row, old = next((row, old) for row, old in farthest if counts[old] > 1)
        counts[old] -= 1
        counts[cluster] = 1
        taken[row] = old, cluster
    rows = np.array(sorted(taken), np.int64)
    for row, point in zip(rows.tolist(), cloud.points(rows), strict=True):
        old, cluster = taken[row]
        sums[old] -= point
        sums[cluster] = point
    return sums, counts


# ------------------------------------------------------------------------ work


@dataclass(frozen=True, eq=False)
class _Nearest:
    """Centres, about the mean, and which of them vectors are nearest to."""

    mean: Float32
    centers: Float32

    def parts(self, vectors: Float32) -> Iterator[tuple[Float32, NDArray[np.int32], Float32]]:
        """Yield points, labels, and squared distances, some vectors at a time."""
        nearest = Nearest.of(self.centers)
        for start in range(0, len(vectors), ROWS):
            points = vectors[start : start + ROWS] - self.mean
            labels = nearest(points)
            away = points - self.centers[labels]
            yield points, labels, np.einsum("ij,ij->i", away, away)


@dataclass(frozen=True, eq=False)
class _Step(_Nearest, SummedWork):
    """Sums, sizes and objective of clusters."""

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:  # noqa: ARG002
        sums = np.zeros(self.centers.shape)
        counts, inertia = np.zeros(len(sums), np.int64), np.zeros(1)
        for points, labels, away in self.parts(vectors):
            sums += sums_of(points, labels, len(sums))
            counts += np.bincount(labels, minlength=len(sums))
            inertia += away.sum(dtype=np.float64)
        return {"sums": sums, "counts": counts, "inertia": inertia}


@dataclass(frozen=True, eq=False)
class _Farthest(_Nearest, ListedWork):
    """The images that are farthest from their centres, K of each block."""

    def __call__(self, rows: Int64, vectors: Float32) -> Arrays:
        parts = [(labels, away) for _, labels, away in self.parts(vectors)]
        if not parts:
            return {"rows": rows, "labels": np.zeros(0, np.int32), "away": np.zeros(0, np.float32)}
        labels, away = (np.concatenate(of) for of in zip(*parts, strict=True))
        first = np.lexsort((rows, -away))[: len(self.centers)]
        return {"rows": rows[first], "labels": labels[first], "away": away[first]}
