"""The kernels in Numba: each loop runs without the interpreter's lock, on one core.

Threads are the caller's, in blocks that do not depend on their number (`threads.each`). Compiled
once for the machine and kept in Numba's cache. See `kernels` for what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import boolean, float32, float64, int32, int64, types, uint16, void
from numba.extending import intrinsic

#: Sums may be taken in any order, so that they go through vector registers; NaN stays NaN.
_MATH = {"reassoc", "contract", "arcp", "nsz"}


def _array(kind: Any, dimensions: int, *, fixed: bool = True) -> Any:
    """Return the type of an array in C order; one that is fixed may come from a read-only file."""
    return types.Array(kind, dimensions, "C", readonly=fixed)


def _compiled(*signatures: Any) -> Callable[[Any], Any]:
    options: dict[str, Any] = {"nogil": True, "fastmath": _MATH, "error_model": "numpy"}

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(list(signatures), cache=True, **options)(function)
        except RuntimeError:  # nowhere to keep a cache: a read-only place without a home
            return numba.njit(list(signatures), **options)(function)

    return compiled


_VECTOR, _MATRIX = _array(float32, 1), _array(float32, 2)
_ROWS = _array(int64, 1)
_BOUNDS = (
    _array(int32, 1, fixed=False),  # labels
    _array(float32, 1, fixed=False),  # upper
    _array(float32, 1, fixed=False),  # second
    _array(float32, 2, fixed=False),  # lower
)


@_compiled(void(_MATRIX, _VECTOR, _ROWS, _ROWS, _array(float64, 1, fixed=False)))
def cosines(vectors, norms, left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(left)):
        a, b = vectors[left[i]], vectors[right[i]]
        dot = 0.0  # products of singles are exact in double: the sum has no error to speak of
        for j in range(len(a)):
            dot += float64(a[j]) * float64(b[j])
        cosine = dot / (float64(norms[left[i]]) * float64(norms[right[i]]))
        out[i] = min(max(cosine, -1.0), 1.0)


@intrinsic  # type: ignore[untyped-decorator]
def _half(context: Any, bits: Any) -> Any:  # noqa: ARG001
    """Return a float16 as float32, given its bits: one instruction, which Numba has no name for."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return float32(uint16), generate


@_compiled(void(_array(uint16, 2), _VECTOR, _ROWS, _ROWS, _array(float64, 1, fixed=False)))
def half_cosines(bits, norms, left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(left)):
        a, b = bits[left[i]], bits[right[i]]
        dot = 0.0
        for j in range(len(a)):
            dot += float64(_half(a[j])) * float64(_half(b[j]))
        cosine = dot / (float64(norms[left[i]]) * float64(norms[right[i]]))
        out[i] = min(max(cosine, -1.0), 1.0)


@_compiled(void(_MATRIX, _array(float32, 1, fixed=False)))
def lengths(vectors, out):  # type: ignore[no-untyped-def]
    for i in range(len(vectors)):
        square, row = 0.0, vectors[i]
        for j in range(len(row)):
            square += float64(row[j]) * float64(row[j])
        out[i] = sqrt(square)


@_compiled(
    void(
        _array(float64, 2), _array(float64, 2), _ROWS, _ROWS, *2 * [_array(float64, 1, fixed=False)]
    )
)
def tilts(profiles, effects, left, right, shift, tilt):  # type: ignore[no-untyped-def]
    n = effects.shape[1]
    for i in range(len(left)):
        # The lower row first: the same sums to the last digit whichever image is on the left.
        a, b = profiles[min(left[i], right[i])], profiles[max(left[i], right[i])]
        mass, up, steeper = 0.0, 0.0, 0.0
        for j in range(n):
            share = a[2 + j] * b[2 + n + j] + a[2 + n + j] * b[2 + j]
            mass += share
            up += share * effects[0, j]
            steeper += share * effects[1, j]
        if n == 0:
            mass = 1.0
        shift[i] = (a[0] + b[0]) / 2 + up / mass
        tilt[i] = (a[1] + b[1]) / 2 + steeper / mass


@_compiled(void(_ROWS, _MATRIX, _VECTOR, _VECTOR, _VECTOR, *_BOUNDS))
def settle(rows, products, squares, center_squares, travel, labels, upper, second, lower):  # type: ignore[no-untyped-def]
    n_clusters = len(center_squares)
    for i in range(len(rows)):
        row = rows[i]
        product, away, square = products[i], lower[row], squares[row]
        for k in range(n_clusters):
            away[k] = square + center_squares[k] - 2 * product[k]
        nearest, least, next_least = 0, away[0], float32(np.inf)
        for k in range(1, n_clusters):
            if away[k] < least:
                nearest, next_least, least = k, least, away[k]
            elif away[k] < next_least:
                next_least = away[k]
        for k in range(n_clusters):
            away[k] = sqrt(max(away[k], float32(0))) + travel[k]
        away[nearest] = np.inf
        labels[row] = nearest
        upper[row] = sqrt(max(least, float32(0)))
        second[row] = sqrt(max(next_least, float32(0)))


@_compiled(
    _array(boolean, 1, fixed=False)(
        _ROWS, _MATRIX, _VECTOR, _MATRIX, _VECTOR, _VECTOR, float64, *_BOUNDS
    )
)
def doubtful(  # type: ignore[no-untyped-def]
    rows, points, squares, centers, center_squares, travel, slack, labels, upper, second, lower
):
    near = np.zeros(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        row = rows[i]
        bounds, least = lower[row], float32(np.inf)
        for k in range(len(bounds)):
            least = min(least, bounds[k] - travel[k])
        second[row] = least
        if least < upper[row] + slack:
            point, center = points[row], centers[labels[row]]
            dot = float32(0)
            for j in range(len(point)):
                dot += point[j] * center[j]
            square = squares[row] - 2 * dot + center_squares[labels[row]]
            upper[row] = sqrt(max(square, float32(0)))
            near[i] = least < upper[row] + slack
    return near
