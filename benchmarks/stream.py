"""``faircal score`` on a stream of pairs: time by pair, growth with the number of pairs, memory."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import clustered, write_model, write_pairs
from benchmarks.figure import Figure, aside, ratio
from benchmarks.machine import rates, row_limits
from benchmarks.timing import Used, cores, faircal_command

IMAGES, DIMENSION = 1_000_000, 128
#: Bytes on disk that a pair may need: two ids going in; ids, score, probability coming out, twice
#: while parts are joined.
_A_PAIR = 80


def figures(quick: bool) -> list[Figure]:
    """Score 10⁶ and 10⁷ pairs."""
    return _measure(20_000 if quick else 10**6, 5_000 if quick else IMAGES)


def long_figures(quick: bool) -> list[Figure]:
    """Score 10⁷ and 10⁸ pairs."""
    return _measure(50_000 if quick else 10**7, 5_000 if quick else IMAGES)


def _measure(few: int, images: int) -> list[Figure]:
    many = 10 * few
    with tempfile.TemporaryDirectory(prefix="faircal-bench-") as name:
        folder = Path(name)
        _check_space(folder, many)
        model = _write_images(folder, images)
        used = {n: _score(folder, model, n, images) for n in (few // 10, few, many)}
        read = _row_rate(folder)
    took, rows = used[many].seconds, 2.0 * many * DIMENSION * 4
    proportion = took / (10 * used[few].seconds)
    # Seconds of a further pair, start-up and the images left out.
    slope = (took - used[few].seconds) / (many - few)
    before = (used[few].seconds - used[few // 10].seconds) / (few - few // 10)
    growth = used[many].peak / used[few].peak
    goal = 1.15 if many >= 10**8 else None
    what = f"score {many:,} pairs of {images:,} × {DIMENSION}"
    return [
        ratio("linear", f"{what}: time / 10 × that of {few:,}", proportion, "lower", goal=goal),
        Figure(
            "slope",
            f"{what}: time of a further pair / that from {few // 10:,} to {few:,}",
            slope / before,
            "lower",
            goal=goal,
        ),
        ratio("memory", f"{what}: peak memory / that of {few:,}", growth, "lower"),
        Figure("peak", f"{what}: peak memory", used[many].peak / 1e9, "lower", goal=3, unit="GB"),
        ratio("share", f"{what}: bare reads of the rows / time", rows / read / took),
        aside("a pair", "    a pair, start included", took / many * 1e9, "ns"),
        aside("a further pair", "    a further pair", slope * 1e9, "ns"),
        aside("seconds", f"    {many:,} pairs", took, "s"),
        aside("few seconds", f"    {few:,} pairs", used[few].seconds, "s"),
    ]


def _check_space(folder: Path, pairs: int) -> None:
    free, needed = shutil.disk_usage(folder).free, _A_PAIR * pairs + 2 * IMAGES * DIMENSION * 4
    if free < needed:
        raise RuntimeError(
            f"{folder}: expected {needed / 1e9:.0f} GB of free space, found {free / 1e9:.0f}; "
            "set TMPDIR to a larger disk"
        )


def _write_images(folder: Path, images: int) -> Path:
    """Write embeddings, images and a model fitted on a few of them; return the model."""
    vectors = clustered(images, DIMENSION)
    np.save(folder / "embeddings.npy", vectors)
    pq.write_table(pa.table({"image_id": np.arange(images)}), folder / "images.parquet")
    model = folder / "model.faircal"
    write_model(model, vectors, np.random.default_rng(0))
    return model


def _score(folder: Path, model: Path, n: int, images: int) -> Used:
    """Write `n` pairs, score them with the command, take everything away again."""
    data = folder / str(n)
    data.mkdir()
    for name in ("embeddings.npy", "images.parquet"):
        os.link(folder / name, data / name)
    (data / "dataset.json").write_text(json.dumps({"name": "random pairs"}), encoding="utf-8")
    write_pairs(data / "pairs.parquet", images, n, np.random.default_rng(n))
    out = data / "scored.parquet"
    runs = []
    for _ in range(2 if n <= 10**7 else 1):  # the longest one is its own average
        runs.append(faircal_command("score", model, data, "--out", out))
        if pq.read_metadata(out).num_rows != n:
            raise RuntimeError(f"expected {n:,} scored pairs, found another number")
        out.unlink()
    shutil.rmtree(data)
    return Used(*(min(values) for values in zip(*runs, strict=True)))


def _row_rate(folder: Path) -> float:
    """Return bytes a second of bare reads of random rows, from memory."""
    vectors = np.load(folder / "embeddings.npy")
    rows = np.random.default_rng(0).integers(0, len(vectors), 4 * len(vectors))
    return max(rates(row_limits(vectors, rows, cores()), 3).values())
