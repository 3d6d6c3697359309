"""What can be asked of the processor and of a GPU alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress, silent
from faircal.compute import kernels
from faircal.compute import kmeans as lloyd
from faircal.compute.kmeans import Found
from faircal.compute.logistic import Sums, logistic_sums
from faircal.compute.nearest import Nearest
from faircal.compute.threads import each

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Takes a block of pairs and their scores, while these are in the cache.
Then = Callable[[slice, Float64], None]

#: Pairs a block.
_BLOCK = 16384


def follow(scores: Float64, then: Then | None) -> None:
    """Call `then` with each block of `scores`, in several threads."""
    if then is not None:
        each(lambda block: then(block, scores[block]), len(scores), _BLOCK)


class Engine(Protocol):
    """Does the heavy work; NumPy arrays in and out."""

    def cosines(
        self,
        vectors: NDArray[Any],
        norms: Float32,
        left: Rows,
        right: Rows,
        then: Then | None = None,
    ) -> Float64:
        """Return the cosine of rows `left` and `right` of `vectors`, clipped to [−1, 1].

        `then` is called, in several threads, with each block of pairs and their cosines.
        """

    def assign(self, vectors: Float32, centers: Float32) -> NDArray[np.int32]:
        """Return the nearest of `centers` for each row of `vectors`."""

    def logistic_sums(
        self, features: Float64, target: Float64, mass: Float64, starts: NDArray[np.int64]
    ) -> Sums:
        """Return what sums the loss of many regressions; see `faircal.compute.logistic`."""

    def kmeans(
        self,
        points: Float32,
        n_clusters: int,
        *,
        n_init: int,
        rng: np.random.Generator,
        max_iter: int,
        shift: float,
        progress: Progress = silent,
    ) -> Found:
        """Return the best of `n_init` starts of K-means; see `faircal.compute.kmeans`."""


class _Processor:
    def cosines(
        self,
        vectors: NDArray[Any],
        norms: Float32,
        left: Rows,
        right: Rows,
        then: Then | None = None,
    ) -> Float64:
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
        return Nearest.of(centers)(vectors)

    def logistic_sums(
        self, features: Float64, target: Float64, mass: Float64, starts: NDArray[np.int64]
    ) -> Sums:
        return logistic_sums(features, target, mass, starts)

    def kmeans(self, points: Float32, n_clusters: int, **options: Any) -> Found:
        return lloyd.kmeans(points, n_clusters, **options)


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


CPU: Engine = _Processor()
