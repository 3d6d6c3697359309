"""The kernels in NumPy, for where Numba is not installed. See `kernels` for what they do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Pairs whose rows are gathered at a time: two blocks of 512-d float32 rows stay in the cache.
_GATHERED = 256


def cosines(
    vectors: NDArray[Any], norms: Float32, left: Rows, right: Rows, out: NDArray[np.float64]
) -> None:
    for start in range(0, len(left), _GATHERED):
        i, j = left[start : start + _GATHERED], right[start : start + _GATHERED]
        a, b = (np.ascontiguousarray(vectors[rows], dtype=np.float32) for rows in (i, j))
        dot = np.einsum("ij,ij->i", a, b, dtype=np.float64)
        cosine = dot / (norms[i].astype(np.float64) * norms[j])
        np.clip(cosine, -1.0, 1.0, out=out[start : start + _GATHERED])


def lengths(vectors: Float32, out: Float32) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        out[:] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))


def tilts(
    profiles: Float64, effects: Float64, left: Rows, right: Rows, shift: Float64, tilt: Float64
) -> None:
    n = effects.shape[1]
    for start in range(0, len(left), _GATHERED):
        part = slice(start, start + _GATHERED)
        a = profiles[np.minimum(left[part], right[part])]
        b = profiles[np.maximum(left[part], right[part])]
        share = a[:, 2 : 2 + n] * b[:, 2 + n :] + a[:, 2 + n :] * b[:, 2 : 2 + n]
        sums = share @ effects.T / (share.sum(axis=1, keepdims=True) if n else 1.0)
        shift[part] = (a[:, 0] + b[:, 0]) / 2 + sums[:, 0]
        tilt[part] = (a[:, 1] + b[:, 1]) / 2 + sums[:, 1]


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
    distance = products
    distance *= -2
    distance += center_squares
    nearest = distance.argmin(axis=1)
    distance += squares[rows, None]
    np.sqrt(np.maximum(distance, 0, out=distance), out=distance)
    own = np.arange(len(rows)), nearest
    labels[rows], upper[rows] = nearest, distance[own]
    distance[own] = np.inf
    second[rows] = distance.min(axis=1)
    distance += travel
    lower[rows] = distance


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
    second[rows] = (lower[rows] - travel).min(axis=1)
    near: NDArray[np.bool_] = second[rows] < upper[rows] + slack
    here = rows[near]
    own = np.einsum("ij,ij->i", points[here], centers[labels[here]])
    own = squares[here] - 2 * own + center_squares[labels[here]]
    upper[here] = np.sqrt(np.maximum(own, 0))
    near[near] = second[here] < upper[here] + slack
    return near
