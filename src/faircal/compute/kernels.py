"""The inner loops: in Numba where it is installed (extra ``fast``), else in NumPy.

Both give the same up to rounding, work on one core and leave threads to the caller.

``cosines(vectors, norms, left, right, out)``
    Gather and multiply: ``out[i]`` becomes the cosine of rows ``left[i]`` and ``right[i]``, from
    float32 or float16 `vectors` (n, d) in C order, with no copy of the rows. (``cosines_of_any``
    takes vectors in any order, and copies.) Summed in double, in which products of singles are
    exact: so whoever sums in another order, as an exported graph may, has the same cosine.

``lengths(vectors, out)``
    ``out[i]`` becomes the length of row i of float32 `vectors` (n, d), summed in double.

``tilts(profiles, effects, left, right, shift, tilt)``
    SmoothFairCal: ``shift[i]`` and ``tilt[i]`` become those of the pair ``left[i]``, ``right[i]``,
    from the rows of `profiles` (n, 2 + 2J) and the `effects` of components (2, J): the mean of the
    two rows' first two numbers, and effects weighted by the pair's components.

``settle(rows, products, squares, center_squares, travel, labels, upper, second, lower)``
    K-means, after the products of the points `rows` with all centres: their nearest centres
    and the bounds on their distances (`kmeans`). `products` may be written over.

``doubtful(rows, points, squares, centers, center_squares, travel, slack, labels, upper, second,
lower) -> bool array``
    K-means, after the centres moved: which of the points `rows` may have changed their clusters,
    by their bounds and, where those leave it open, by the distance to their own centre.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.compute import _numpy

#: Pairs whose rows are copied at a time.
_GATHERED = 256


def _load() -> ModuleType:
    try:
        from faircal.compute import _numba
    except ImportError:  # not there, or not made for the NumPy that is
        return _numpy
    return _numba


_kernels = _load()
cosines, lengths, tilts = _kernels.cosines, _kernels.lengths, _kernels.tilts
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
        cosines(np.ascontiguousarray(vectors[rows]), norms[rows], i, j, out[part])
