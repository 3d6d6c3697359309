"""K-means where the vectors are: each of Lloyd's iterations is one Spark job.

Centres travel, vectors don't; what comes back are sums (`cloud.py`). The start, the rule to stop
and what becomes of empty clusters are those of one machine (`faircal.compute.kmeans`), with the
same seed; so are the clusters, as far as rounding allows.

Nothing stays on the workers from one iteration to the next, neither bounds on distances nor
vectors: Spark runs a task wherever there is room. Reading a block again from files that are in
the system's memory takes a fifth of the time that its products take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress, silent
from faircal.compute.clustering import Clustering, check_parameters
from faircal.compute.engine import Nearest
from faircal.compute.kmeans import KMeansResult, start_among, sums_of
from faircal.compute.threads import one_blas_thread
from faircal.production.spark.cloud import (
    ROWS,
    Arrays,
    Float32,
    Int64,
    ListedWork,
    SummedWork,
    VectorCloud,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from faircal.production.spark.gallery import SparkGallery

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
            found = _lloyd(cloud, _start(cloud, n_clusters, rng), max_iter, tol, tell)
            if best is None or found.inertia < best.inertia:
                best = found
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
    found = cloud.run(_Step(cloud.mean, centers))
    moved, iteration = np.inf, 1
    while moved > tol * cloud.variance and iteration < max_iter:
        tell(iteration)
        sums, counts = found["sums"], found["counts"]
        if not counts.all():
            sums, counts = _filled(cloud, centers, sums.copy(), counts.copy())
        new = (sums / counts[:, None]).astype(np.float32)
        moved = float(np.square(new - centers, dtype=np.float64).sum())
        centers, before = new, found
        found = cloud.run(_Step(cloud.mean, centers))
        iteration += 1
        # The same points come to the same sums, to the last bit.
        if all(np.array_equal(found[key], before[key]) for key in ("counts", "sums")):
            break
    return KMeansResult(centers, float(found["inertia"][0]), iteration)


def _filled(
    cloud: VectorCloud, centers: Float32, sums: Float64, counts: Int64
) -> tuple[Float64, Int64]:
    """Give each empty cluster the point that is farthest from its centre; change both in place."""
    found = cloud.run(_Farthest(cloud.mean, centers))
    order = np.lexsort((found["rows"], -found["away"]))
    farthest = zip(found["rows"][order].tolist(), found["labels"][order].tolist(), strict=True)
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
        found = [(labels, away) for _, labels, away in self.parts(vectors)]
        if not found:
            return {"rows": rows, "labels": np.zeros(0, np.int32), "away": np.zeros(0, np.float32)}
        labels, away = (np.concatenate(of) for of in zip(*found, strict=True))
        first = np.lexsort((rows, -away))[: len(self.centers)]
        return {"rows": rows[first], "labels": labels[first], "away": away[first]}
