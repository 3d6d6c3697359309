"""K-means on embeddings: greedy k-means++ start, Lloyd's iterations, restarts.

Written on matrix products and sparse sums: faster than scikit-learn on float32 embeddings of this
size, and the same result whatever the number of workers (see docs/decisions/0004-kmeans.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from faircal.errors import ParameterError
from faircal.jobs import Progress, silent
from faircal.registry import check_whole

#: Rows a block: the n × K distances of a block stay in the cache.
_BLOCK = 2048

Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Clustering:
    """A fitted K-means.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, d), float32
    inertia : float
        The objective: sum of squared distances to the nearest centre.
    n_iter : int
        Lloyd's iterations of the best start.
    """

    centers: Float32
    inertia: float
    n_iter: int

    def assign(self, vectors: Float32) -> NDArray[np.int32]:
        """Return the nearest centre of each row of `vectors`, shape (n,)."""
        labels = np.empty(len(vectors), dtype=np.int32)
        # As in fitting: far from the origin, float32 products would drown the distances.
        origin = self.centers.mean(axis=0, dtype=np.float64).astype(np.float32)
        for block, distance in _distances(vectors, self.centers - origin, origin):
            labels[block] = distance.argmin(axis=1)
        return labels


def kmeans(
    vectors: Float32,
    n_clusters: int,
    *,
    n_init: int = 1,
    random_state: int = 0,
    max_iter: int = 300,
    tol: float = 1e-4,
    progress: Progress = silent,
) -> Clustering:
    """Cluster the rows of `vectors`; the best of `n_init` starts.

    Parameters
    ----------
    vectors : ndarray of shape (n, d), float32
    n_clusters, n_init, max_iter, tol
        As in scikit-learn's ``KMeans``: an iteration that moves the centres by less than `tol`
        times the mean variance of the columns is the last.
    random_state : int
        Seed; the same seed gives the same centres.
    progress : callable
        Called as each start begins.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], dtype=np.float32)
    >>> found = kmeans(points, 2)
    >>> found.inertia
    1.0
    >>> labels = found.assign(points)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    check_whole("n_clusters", n_clusters, 1)
    check_whole("n_init", n_init, 1)
    check_whole("max_iter", max_iter, 1)
    check_whole("random_state", random_state, 0)
    if n_clusters > len(vectors):
        raise ParameterError(
            f"n_clusters: expected 1 to {len(vectors)} (the number of images), found {n_clusters}; "
            "choose fewer clusters (--clusters)"
        )
    rng = np.random.default_rng(random_state)
    # Distances do not change with the origin; small numbers keep float32 products exact enough.
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    points = vectors - mean
    shift = tol * float(np.square(points, dtype=np.float64).mean(axis=0).mean())
    best: Clustering | None = None
    for start in range(n_init):
        progress("K-means", start, n_init, f"K = {n_clusters}")
        centers = _start(points, n_clusters, rng)
        found = _lloyd(points, centers, max_iter, shift)
        if best is None or found.inertia < best.inertia:
            best = found
    if best is None:  # n_init >= 1
        raise RuntimeError("K-means ran no start")
    return Clustering(best.centers + mean, best.inertia, best.n_iter)


def _squares(vectors: Float32) -> Float32:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), dtype=np.float32)


def _distances(
    vectors: Float32, centers: Float32, origin: Float32 | None = None
) -> Iterator[tuple[slice, Float32]]:
    """Give, block by block, ½|c|² − x·c: the squared distance, halved, less ½|x|².

    Where `origin` is given, it is taken off `vectors` first; `centers` are without it already.
    """
    half = _squares(centers) / 2
    transposed = np.ascontiguousarray(centers.T)
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        points: Float32 = vectors[block] if origin is None else vectors[block] - origin
        yield block, half - points @ transposed


def _start(points: Float32, n_clusters: int, rng: np.random.Generator) -> Float32:
    """Choose starting centres by greedy k-means++ (the best of 2 + log K draws at each step)."""
    n = len(points)
    trials = 2 + int(np.log(n_clusters))
    squares = _squares(points)

    def to(rows: NDArray[np.intp]) -> Float32:
        """Squared distance of every point to the points `rows`, shape (len(rows), n)."""
        products = points[rows] @ points.T
        return np.maximum(squares[rows, None] + squares - 2 * products, 0)

    chosen = np.empty(n_clusters, dtype=np.intp)
    chosen[0] = rng.integers(n)
    nearest = to(chosen[:1])[0]
    nearest[chosen[0]] = 0
    for k in range(1, n_clusters):
        cumulative = np.cumsum(nearest, dtype=np.float64)
        draws = rng.random(trials) * cumulative[-1]
        candidates = np.minimum(np.searchsorted(cumulative, draws), n - 1)
        distance = np.minimum(to(candidates), nearest)
        best = int(distance.sum(axis=1, dtype=np.float64).argmin())
        chosen[k], nearest = candidates[best], distance[best]
        nearest[chosen[k]] = 0
    return points[chosen]


def _lloyd(points: Float32, centers: Float32, max_iter: int, shift: float) -> Clustering:
    """Move each centre to the mean of its points until nothing, or next to nothing, changes."""
    n_clusters, dimension = centers.shape
    squares = _squares(points)
    labels = np.full(len(points), -1, dtype=np.int32)
    inertia, iteration, moved = np.inf, 0, np.inf
    while iteration < max_iter:
        iteration += 1
        before = labels
        labels = np.empty_like(before)
        half = np.empty(len(points), dtype=np.float32)  # halved distance to the nearest centre
        # Sums in float32 within a block, in float64 between blocks: safe for any number of points.
        sums = np.zeros((n_clusters, dimension))
        for block, distance in _distances(points, centers):
            here = labels[block] = distance.argmin(axis=1)
            half[block] = distance[np.arange(len(here)), here]
            one_hot = csr_array(
                (np.ones(len(here), np.float32), here, np.arange(len(here) + 1)),
                shape=(len(here), n_clusters),
            )
            sums += one_hot.T @ points[block]
        to_nearest = np.maximum(2 * half + squares, 0)
        inertia = float(to_nearest.sum(dtype=np.float64))
        if np.array_equal(labels, before) or moved <= shift:
            break
        counts = np.bincount(labels, minlength=n_clusters)
        _fill_empty(points, labels, counts, sums, to_nearest)
        new = (sums / counts[:, None]).astype(np.float32)
        moved = float(np.square(new - centers, dtype=np.float64).sum())
        centers = new
    return Clustering(centers, inertia, iteration)


def _fill_empty(
    points: Float32,
    labels: NDArray[np.int32],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    to_nearest: Float32,
) -> None:
    """Give each empty cluster the point that is farthest from its centre, in place."""
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return
    farthest = np.argsort(-to_nearest, kind="stable")
    candidates = iter(farthest)
    for cluster in empty:
        row = next(row for row in candidates if counts[labels[row]] > 1)
        sums[labels[row]] -= points[row]
        counts[labels[row]] -= 1
        sums[cluster] = points[row]
        counts[cluster] = 1
        labels[row] = cluster
