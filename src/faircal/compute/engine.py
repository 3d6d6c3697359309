"""What can be asked of the processor and of a GPU alike, as the processor does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute import kernels
from faircal.compute import kmeans as lloyd
from faircal.compute.logistic import logistic_sums
from faircal.compute.threads import each, one_blas_thread

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

Rows = NDArray[np.intp]

#: Takes a block of pairs and their scores, while these are in the cache.
Then = Callable[[slice, Float64], None]

#: Pairs a block of cosines; vectors a block that `Nearest` looks at.
_BLOCK, NEAREST_BLOCK = 16384, 1024


def follow(scores: Float64, then: Then | None) -> None:
    """Call `then` with each block of `scores`, in several threads."""
    if then is not None:
        each(lambda block: then(block, scores[block]), len(scores), _BLOCK)


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
        then: Then | None = None,
    ) -> Float64:
        """Return the cosines of rows `left` and `right` of `vectors`, clipped to [−1, 1], (m,).

        Parameters
        ----------
        vectors : ndarray of shape (n, d), float16 or float32
        norms : ndarray of shape (n,)
            The lengths of its rows.
        left, right : ndarray of shape (m,), integer
            From 0 to n − 1.
        then : callable, optional
            Called, in several threads, with each block of pairs and their cosines.
        """
        out = np.empty(len(left))
        # The kernels want plain arrays: one that is memory-mapped is a kind of its own to them.
        array = vectors.view(np.ndarray)
        cosines = kernels.cosines if array.flags.c_contiguous else kernels.cosines_of_any

        def work(block: slice) -> None:
            i, j = (_checked(side[block], len(array)) for side in (left, right))
            cosines(array, norms, i, j, out[block])
            if then is not None:
                then(block, out[block])

        each(work, len(left), _BLOCK)
        return out

    def assign(self, vectors: Float32, centers: Float32) -> NDArray[np.int32]:
        """Return the nearest of `centers` (K, d) for each row of `vectors` (n, d), shape (n,)."""
        return Nearest.of(centers)(vectors)

    #: The best of some starts of K-means; see `faircal.compute.kmeans`.
    kmeans = staticmethod(lloyd.kmeans)
    #: What sums the loss of many regressions; see `faircal.compute.logistic`.
    logistic_sums = staticmethod(logistic_sums)


def _checked(rows: Rows, n: int) -> Rows:
    """Return `rows` as the kernels take them; a wrong one would read anything."""
    check_rows(int(rows.min()), int(rows.max()), n)
    return np.ascontiguousarray(rows, dtype=np.intp)


def check_rows(least: int, most: int, n: int) -> None:
    """Raise unless the rows of pairs, from `least` to `most`, are among those of `n` vectors."""
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
            some = vectors[block]
            # x·(c − o) − ½(|c|² − |o|²) is −½|x − c|² but for what is the same for all centres.
            near = some @ self.columns
            near -= self.half
            nearest = near.argmax(axis=1)
            rows = np.arange(len(nearest))
            best = near[rows, nearest]
            near[rows, nearest] = -np.inf
            # Where the second best is within rounding of the best, only double precision can
            # decide.
            lead = best - near.max(axis=1)
            error = rounding * (np.sqrt(np.vecdot(some, some)) * self.reach + self.limit)
            close = np.flatnonzero(lead <= error)
            if len(close):
                nearest[close] = self._in_double(some[close])
            labels[block] = nearest

        with one_blas_thread():
            each(work, len(vectors), NEAREST_BLOCK)
        return labels

    def _in_double(self, vectors: Float32) -> NDArray[np.intp]:
        products = vectors.astype(np.float64) @ self.exact.T
        return np.asarray((products - (self.exact * self.exact).sum(axis=1) / 2).argmax(axis=1))


CPU = Engine()
