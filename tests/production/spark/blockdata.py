"""Small dataset folders for the tests of blocks and tiles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N = 90


def write_folder(path, ids, *, two=False, bad=(), pairs=400, seed=0):
    """Write a dataset folder of `ids`; the vectors of rows `bad` are NaN."""
    rng = np.random.default_rng(seed)
    path.mkdir()
    n = len(ids)
    ethnicity = np.array(["Asian", "Black", "White", None], dtype=object)[rng.integers(0, 4, n)]
    images = {
        "image_id": pa.array(ids),
        "identity": [f"p{k}" if k else None for k in rng.integers(0, n // 3, n)],
        "ethnicity": list(ethnicity),
        "age": rng.integers(20, 23, n),
        "file name": [f"{k}.jpg" for k in range(n)],
        "quality": rng.random(n),
    }
    pq.write_table(pa.table(images), path / "images.parquet")
    vectors = rng.standard_normal((n, 12)).astype(np.float32)
    vectors[list(bad)] = np.nan
    if two:
        (path / "embeddings").mkdir()
        np.save(path / "embeddings" / "alpha.npy", vectors)
        np.save(path / "embeddings" / "beta.npy", rng.standard_normal((n, 5)).astype(np.float16))
    else:
        np.save(path / "embeddings.npy", vectors)
    good = np.setdiff1d(np.arange(n), bad)
    left, right = rng.choice(good, pairs), rng.choice(good, pairs)
    table = {
        "left": pa.array(ids).take(pa.array(left)),
        "right": pa.array(ids).take(pa.array(right)),
        "genuine": rng.random(pairs) < 0.4,
        "fold": rng.integers(1, 4, pairs),
    }
    pq.write_table(pa.table(table), path / "pairs.parquet")
    return path


def texts(n=N):
    return [f"{k:03d}/é{k % 7}.jpg" for k in range(n)]


def numbers(n=N):
    return [int(k) * 10**12 - 7 for k in np.random.default_rng(5).permutation(n)]


def same_column(one, two):
    """Whether two columns say the same of each row, whatever their codes."""
    spelt = [[None if c < 0 else of.names[c] for c in of.codes] for of in (one, two)]
    return spelt[0] == spelt[1]
