"""K-means on embeddings: the best of some starts, and the nearest centre of any vector.

The work is done in `faircal.compute.kmeans`, or on a device: see docs/decisions/0004-kmeans.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_whole
from faircal.compute import CPU, Engine

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

    def assign(self, vectors: Float32, engine: Engine = CPU) -> NDArray[np.int32]:
        """Return the nearest centre of each row of `vectors`, shape (n,)."""
        return engine.assign(vectors, self.centers)


def kmeans(
    vectors: Float32,
    n_clusters: int,
    *,
    n_init: int = 1,
    random_state: int = 0,
    max_iter: int = 300,
    tol: float = 1e-4,
    progress: Progress = silent,
    engine: Engine = CPU,
) -> Clustering:
    """Cluster the rows of `vectors`; the best of `n_init` starts.

    Parameters
    ----------
    vectors : ndarray of shape (n, d), float32
    n_clusters, n_init, max_iter, tol
        As in scikit-learn's ``KMeans``: an iteration that moves the centres by less than `tol`
        times the mean variance of the columns is the last. `max_iter` counts passes over the
        vectors, the first of which only assigns them to the starting centres.
    random_state : int
        Seed; the same seed gives the same centres.
    progress : callable
        Called as each start begins.
    engine : Engine
        Where to do the work.

    Examples
    --------
    >>> points = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], dtype=np.float32)
    >>> clustering = kmeans(points, 2)
    >>> clustering.inertia
    1.0
    >>> labels = clustering.assign(points)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    check_parameters(len(vectors), n_clusters, n_init, random_state, max_iter)
    # Distances do not change with the origin; small numbers keep float32 products exact enough.
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    points = np.subtract(vectors, mean, order="C", dtype=np.float32)
    squares = np.einsum("ij,ij->i", points, points)
    # Of centred points the mean square is the variance: `tol` is relative to it, as in scikit-
    # learn.
    variance = float(squares.mean(dtype=np.float64)) / points.shape[1]
    result = engine.kmeans(
        points,
        n_clusters,
        n_init=n_init,
        rng=np.random.default_rng(random_state),
        max_iter=max_iter,
        shift=tol * variance,
        progress=progress,
    )
    return Clustering(result.centers + mean, result.inertia, result.n_iter)


def check_parameters(
    n: int, n_clusters: int, n_init: int, random_state: int, max_iter: int
) -> None:
    """Raise where `n` vectors cannot be clustered so."""
    check_whole("n_clusters", n_clusters, 1)
    check_whole("n_init", n_init, 1)
    check_whole("max_iter", max_iter, 1)
    check_whole("random_state", random_state, 0)
    if n_clusters > n:
        raise ParameterError(
            f"n_clusters: expected 1 to {n} (the number of images), found {n_clusters}; "
            "choose fewer clusters (--clusters)"
        )
