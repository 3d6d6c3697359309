"""What can be asked of the processor and of a GPU alike, as the processor does it.

How K-means is done: docs/decisions/0004-kmeans.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_integer
from faircal.compute import kernels
from faircal.compute import kmeans as lloyd
from faircal.compute.kmeans import Clustering
from faircal.compute.logistic import logistic_sums
from faircal.compute.threads import each, one_blas_thread

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

Rows = NDArray[np.intp]

#: Pairs a block of cosines; vectors a block that `Nearest` looks at.
_BLOCK, NEAREST_BLOCK = 16384, 1024


class Engine:
    """Does the heavy work on the processor; `TorchEngine` does the same on a GPU.

    NumPy arrays go in and come out.
    """

    def cosines(
        self,
        vectors: NDArray[Any],
        norms: Float32,
        left: Rows,
        right: Rows,
    ) -> Float64:
        """Return the cosines of rows `left` and `right` of `vectors`, clipped to [−1, 1], (m,).

        Parameters
        ----------
        vectors : ndarray of shape (n, d), float16 or float32
        norms : ndarray of shape (n,)
            The lengths of its rows.
        left, right : ndarray of shape (m,), integer
            From 0 to n − 1.
        """
        out = np.empty(len(left))
        # The kernels want plain arrays: one that is memory-mapped is a kind of its own to them.
        array = vectors.view(np.ndarray)
        cosines = kernels.cosines if array.flags.c_contiguous else kernels.cosines_of_any
        if array.flags.c_contiguous and array.dtype == np.float16:
            cosines, array = kernels.half_cosines, array.view(np.uint16)
        for side in (left, right) if len(left) else ():
            check_rows(int(side.min()), int(side.max()), len(array))

        def work(block: slice) -> None:
            i, j = (np.ascontiguousarray(side[block], dtype=np.intp) for side in (left, right))
            cosines(array, norms, i, j, out[block])

        each(work, len(left), _BLOCK)
        return out

    def assign(self, vectors: Float32, centers: Float32) -> NDArray[np.int32]:
        """Return the nearest of `centers` (K, d) for each row of `vectors` (n, d), shape (n,)."""
        return Nearest.of(centers)(vectors)

    def kmeans(
        self,
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
            times the mean variance of the columns is the last. `max_iter` counts passes over the
            vectors, the first of which only assigns them to the starting centres.
        random_state : int
            Seed; the same seed gives the same centres.
        progress : callable
            Called as each start begins.

        Examples
        --------
        >>> points = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], dtype=np.float32)
        >>> clustering = CPU.kmeans(points, 2)
        >>> clustering.inertia
        1.0
        >>> labels = CPU.assign(points, clustering.centers)
        >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
        True
        """
        counts = {"n_clusters": n_clusters, "n_init": n_init, "max_iter": max_iter}
        for name, value in counts.items():
            check_integer(name, value, 1)
        check_integer("random_state", random_state, 0)
        if n_clusters > len(vectors):
            raise ParameterError(
                f"n_clusters: expected 1 to {len(vectors)} (the number of images), found "
                f"{n_clusters}; choose fewer clusters (--clusters)"
            )
        # Distances do not change with the origin; small numbers keep float32 products exact enough.
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        points = np.subtract(vectors, mean, order="C", dtype=np.float32)
        squares = np.einsum("ij,ij->i", points, points)
        # Of centred points the mean square is the variance: `tol` is relative to it, as in
        # scikit-learn.
        variance = float(squares.mean(dtype=np.float64)) / points.shape[1]
        best = self.best_start(
            points,
            n_clusters,
            n_init=n_init,
            rng=np.random.default_rng(random_state),
            max_iter=max_iter,
            shift=tol * variance,
            progress=progress,
        )
        return best._replace(centers=best.centers + mean)

    #: The best of some starts of K-means on centred points; see `faircal.compute.kmeans`.
    best_start = staticmethod(lloyd.kmeans)
    #: What sums the loss of many regressions; see `faircal.compute.logistic`.
    logistic_sums = staticmethod(logistic_sums)


def check_rows(least: int, most: int, n: int) -> None:
    """Raise unless the rows of pairs, from `least` to `most`, are among those of `n` vectors.

    The kernels check nothing: a wrong row would read anything.
    """
    if least < 0 or most >= n:
        raise DataError(
            f"rows: expected numbers from 0 to {n - 1}, found {least} to {most}; "
            "pairs and vectors do not belong together"
        )


@dataclass(frozen=True, eq=False)
class Nearest:
    """Finds the nearest of some centres, by double precision where single can't decide.

    So whoever works in double comes to the same centre, and it does not matter which vectors are
    looked at together.

    Attributes
    ----------
    exact : ndarray of float64, shape (n_centers, d)
        The centres c.
    columns : ndarray of float32, shape (d, n_centers)
        c − o, with o their mean: shorter than the centres, and so are the errors of products.
    half : ndarray of float32, shape (n_centers,)
        ½(|c|² − |o|²): x·(c − o) less this is largest for the nearest.
    reach, limit : float
        The longest of `columns`, the largest of `half`.

    Examples
    --------
    >>> nearest = Nearest.of(np.array([[0, 0], [4, 0]], dtype=np.float32))
    >>> nearest(np.array([[1, 1], [3, 1]], dtype=np.float32))
    array([0, 1], dtype=int32)
    """

    exact: Float64
    columns: Float32
    half: Float32
    reach: float
    limit: float

    @classmethod
    def of(cls, centers: Float32) -> Nearest:
        """Take centres, shape (n_centers, d)."""
        exact = centers.astype(np.float64)
        origin = exact.mean(axis=0)
        away = exact - origin
        half = (((exact + origin) * away).sum(axis=1) / 2).astype(np.float32)
        return cls(
            exact,
            np.ascontiguousarray(away.T, dtype=np.float32),
            half,
            float(np.sqrt((away * away).sum(axis=1).max())),
            float(np.abs(half).max()),
        )

    def __call__(self, vectors: Float32) -> NDArray[np.int32]:
        """Return the nearest centre of each row of `vectors`, shape (n,)."""
        labels = np.empty(len(vectors), dtype=np.int32)
        # A sum of d products is off by no more than d roundings of the size of both vectors, in
        # whatever order it is taken; twice that for a difference, and a few for the rest.
        rounding = 2 * (vectors.shape[1] + 4) * float(np.finfo(np.float32).epsneg)

        def work(block: slice) -> None:
            points = vectors[block]
            # x·(c − o) − ½(|c|² − |o|²) is −½|x − c|² but for what is the same for all centres.
            near = points @ self.columns
            near -= self.half
            nearest = near.argmax(axis=1)
            rows = np.arange(len(nearest))
            best = near[rows, nearest]
            near[rows, nearest] = -np.inf
            # Where the second best is within rounding of the best, only double precision can
            # decide.
            lead = best - near.max(axis=1)
            error = rounding * (np.sqrt(np.vecdot(points, points)) * self.reach + self.limit)
            close = np.flatnonzero(lead <= error)
            if len(close):
                products = points[close].astype(np.float64) @ self.exact.T
                squares = (self.exact * self.exact).sum(axis=1)
                nearest[close] = (products - squares / 2).argmax(axis=1)
            labels[block] = nearest

        with one_blas_thread():
            each(work, len(vectors), NEAREST_BLOCK)
        return labels


CPU = Engine()
