"""The inner loops: in Numba where it is installed (extra ``fast``), else in NumPy.

Both give the same up to rounding, work on one core and leave threads to the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Pairs whose rows are gathered at a time: two blocks of 512-d float32 rows stay in the cache.
_GATHERED = 256


class NumPyKernels:
    """The kernels in NumPy, for where Numba is not installed."""

    @staticmethod
    def cosines(
        vectors: NDArray[Any], norms: Float32, left: Rows, right: Rows, out: NDArray[np.float64]
    ) -> None:
        """Set ``out[i]`` to the cosine of rows ``left[i]`` and ``right[i]`` of `vectors` (n, d).

        Vectors are float32 in C order; rows are not copied. Sums are in double, in
        which products of singles are exact: so whoever sums in another order, as an exported graph
        may, has the same cosine.
        """
        for start in range(0, len(left), _GATHERED):
            i, j = left[start : start + _GATHERED], right[start : start + _GATHERED]
            a, b = (np.ascontiguousarray(vectors[rows], dtype=np.float32) for rows in (i, j))
            dot = np.einsum("ij,ij->i", a, b, dtype=np.float64)
            cosine = dot / (norms[i].astype(np.float64) * norms[j])
            np.clip(cosine, -1.0, 1.0, out=out[start : start + _GATHERED])

    @staticmethod
    def half_cosines(
        bits: NDArray[np.uint16], norms: Float32, left: Rows, right: Rows, out: NDArray[np.float64]
    ) -> None:
        """Do what `cosines` does for float16 vectors, given their `bits`."""
        NumPyKernels.cosines(bits.view(np.float16), norms, left, right, out)

    @staticmethod
    def lengths(vectors: Float32, out: Float32) -> None:
        """Set ``out[i]`` to the length of row i of `vectors` (n, d), summed in double."""
        with np.errstate(over="ignore", invalid="ignore"):
            out[:] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))

    @staticmethod
    def tilts(
        profiles: Float64, effects: Float64, left: Rows, right: Rows, shift: Float64, tilt: Float64
    ) -> None:
        """Set shift and tilt of the pairs ``left[i]``, ``right[i]``, for SmoothFairCal.

        From the rows of `profiles` (n, 2 + 2J) and the `effects` of components (2, J): the mean of
        the two rows' first two numbers, and effects weighted by the pair's components.
        """
        n = effects.shape[1]
        for start in range(0, len(left), _GATHERED):
            part = slice(start, start + _GATHERED)
            a = profiles[np.minimum(left[part], right[part])]
            b = profiles[np.maximum(left[part], right[part])]
            share = a[:, 2 : 2 + n] * b[:, 2 + n :] + a[:, 2 + n :] * b[:, 2 : 2 + n]
            sums = share @ effects.T / (share.sum(axis=1, keepdims=True) if n else 1.0)
            shift[part] = (a[:, 0] + b[:, 0]) / 2 + sums[:, 0]
            tilt[part] = (a[:, 1] + b[:, 1]) / 2 + sums[:, 1]

    @staticmethod
    def settle(
        rows: Rows,
        products: Float32,
        squares: Float32,
        center_squares: Float32,
        travel: Float32,
        labels: NDArray[np.int32],
        upper: Float32,
        second: Float32,
        lower: Float32,
    ) -> None:
        """Find the nearest centres of the points `rows` by their `products` with all, for K-means.

        Sets their bounds, too (`kmeans`); `products` may be written over.
        """
        distance = products
        distance *= -2
        distance += center_squares
        nearest = distance.argmin(axis=1)
        distance += squares[rows, None]
        np.sqrt(np.maximum(distance, 0, out=distance), out=distance)
        to_nearest = np.arange(len(rows)), nearest
        labels[rows], upper[rows] = nearest, distance[to_nearest]
        distance[to_nearest] = np.inf
        second[rows] = distance.min(axis=1)
        distance += travel
        lower[rows] = distance

    @staticmethod
    def doubtful(
        rows: Rows,
        points: Float32,
        squares: Float32,
        centers: Float32,
        center_squares: Float32,
        travel: Float32,
        slack: float,
        labels: NDArray[np.int32],
        upper: Float32,
        second: Float32,
        lower: Float32,
    ) -> NDArray[np.bool_]:
        """Return which of the points `rows` may have changed their clusters, after centres moved.

        By their bounds and, where those leave it open, by the distance to their own centre.
        """
        second[rows] = (lower[rows] - travel).min(axis=1)
        near: NDArray[np.bool_] = second[rows] < upper[rows] + slack
        close = rows[near]
        square = np.einsum("ij,ij->i", points[close], centers[labels[close]])
        square = squares[close] - 2 * square + center_squares[labels[close]]
        upper[close] = np.sqrt(np.maximum(square, 0))
        near[near] = second[close] < upper[close] + slack
        return near


def _load() -> Any:
    try:
        from faircal.compute import _numba
    except ImportError:  # not there, or not made for the NumPy that is
        return NumPyKernels
    return _numba


_kernels = _load()
cosines, half_cosines = _kernels.cosines, _kernels.half_cosines
lengths, tilts = _kernels.lengths, _kernels.tilts
settle, doubtful = _kernels.settle, _kernels.doubtful


def cosines_of_any(
    vectors: NDArray[Any],
    norms: NDArray[np.float32],
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    out: NDArray[np.float64],
) -> None:
    """Do what `cosines` does, to the last digit, for vectors in any order; copies their rows."""
    for start in range(0, len(left), _GATHERED):
        part = slice(start, start + _GATHERED)
        rows = np.concatenate([left[part], right[part]])
        i, j = np.arange(len(rows)).reshape(2, -1)
        taken = np.ascontiguousarray(vectors[rows])
        if taken.dtype == np.float16:
            half_cosines(taken.view(np.uint16), norms[rows], i, j, out[part])
        else:
            cosines(taken, norms[rows], i, j, out[part])
