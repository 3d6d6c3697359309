"""The data that parts measure on: simulated, BFW's size."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import faircal

#: BFW's size: 890,000 pairs of 20,000 images, 512 numbers each; and small ones to try out.
_SIZES: dict[bool, dict[str, int]] = {False: {}, True: {"people": 80, "pairs": 20_000}}
#: Rows of a group of a file of pairs.
GROUP = 1_000_000


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


def write_pairs(path: Path, images: int, n: int, rng: np.random.Generator) -> None:
    """Write `n` random pairs of `images`, a group of rows after the other."""
    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n, GROUP):
            left, right = rng.integers(0, images, (2, min(GROUP, n - start)))
            writer.write_table(pa.table({"left": left, "right": right}, schema=schema))


def write_model(path: Path, vectors: NDArray[np.float32], rng: np.random.Generator) -> None:
    """Write a model fitted on pairs of a few of the vectors."""
    few = vectors[:5_000]
    left, right = rng.integers(0, len(few), (2, 50_000))
    score = np.einsum("ij,ij->i", few[left], few[right])
    pairs = {
        "left": left,
        "right": right,
        "genuine": rng.random(len(score)) < 1 / (1 + np.exp(-8 * (score - 0.3))),
        "fold": np.arange(len(score)) % 5,
    }
    faircal.FairCal(n_clusters=100).fit(faircal.Dataset(embeddings=few, pairs=pairs)).save(path)
