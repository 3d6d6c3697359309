"""The data that parts measure on: simulated, BFW's size."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import faircal

#: BFW's size: 890,000 pairs of 20,000 images, 512 numbers each; and small ones to try out.
_SIZES: dict[bool, dict[str, int]] = {False: {}, True: {"people": 80, "pairs": 20_000}}


class Raw(NamedTuple):
    """Arrays as a user has them: nothing of them was looked at before."""

    vectors: NDArray[np.float32]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_]


@cache
def bfw_like(quick: bool) -> faircal.Dataset:
    """Return the simulated set; its scores are not worked out."""
    return faircal.simulate("bfw-like", seed=0, **_SIZES[quick])


def n_clusters(quick: bool) -> int:
    """Return K: 100, or few enough for the small set."""
    return 10 if quick else 100


def fold(quick: bool) -> Raw:
    """Return the calibration arrays of the first fold."""
    cal, _ = bfw_like(quick).split(1)
    pairs = cal.pairs
    return Raw(np.array(cal.embeddings.vectors), pairs.left, pairs.right, cal.genuine)


def calibration_vectors(quick: bool) -> NDArray[np.float32]:
    """Return the embeddings of the calibration images of the first fold, of unit length."""
    cal, _ = bfw_like(quick).split(1)
    return cal.embeddings.rows(cal.used_images())


def clustered(n: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Return `n` vectors of unit length around 200 directions, in bounded memory."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((200, dimension), dtype=np.float32)
    vectors = np.empty((n, dimension), dtype=np.float32)
    for start in range(0, n, 65_536):
        part = vectors[start : start + 65_536]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centers[rng.integers(200, size=len(part))]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors
