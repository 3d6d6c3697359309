"""The nearest of centres that stay the same: what depends on them alone is worked out once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal.compute.threads import each, one_blas_thread

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

#: Vectors a block.
BLOCK = 1024


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
            near = some @ self.columns
            near -= self.half
            found = near.argmax(axis=1)
            rows = np.arange(len(found))
            best = near[rows, found]
            near[rows, found] = -np.inf
            lead = best - near.max(axis=1)
            error = rounding * (np.sqrt(np.vecdot(some, some)) * self.reach + self.limit)
            close = np.flatnonzero(lead <= error)
            if len(close):
                found[close] = self._in_double(some[close])
            labels[block] = found

        with one_blas_thread():
            each(work, len(vectors), BLOCK)
        return labels

    def _in_double(self, vectors: Float32) -> NDArray[np.intp]:
        products = vectors.astype(np.float64) @ self.exact.T
        return np.asarray((products - (self.exact * self.exact).sum(axis=1) / 2).argmax(axis=1))
