"""Spark against one machine: what the same pairs cost, by stage; growth with their number.

CPU seconds, of Java and of its Python workers together, because a cluster is paid by them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import faircal
from benchmarks.data import GROUP, clustered, write_model, write_pairs
from benchmarks.figure import Figure, aside, ratio
from benchmarks.timing import cores
from faircal.data import open_stream
from faircal.production.scoring import score_part
from faircal.production.spark import open_pairs, score
from faircal.production.spark.session import SparkEngine

IMAGES = 100_000


def figures(quick: bool) -> list[Figure]:
    """Score 2·10⁷ pairs on Spark and on one machine; the growth from 10⁵ to 10⁷."""
    n, images = (200_000, 5_000) if quick else (20_000_000, IMAGES)
    found: list[Figure] = []
    for dimension in (128, 512):
        with tempfile.TemporaryDirectory(prefix="faircal-bench-") as name, _spark() as spark:
            folder = _folder(Path(name), images, dimension, n)
            found += _overhead(spark, folder, n, images, dimension)
    return found


def growth_figures(quick: bool) -> list[Figure]:
    """Score 10⁶, 10⁷ and 10⁸ pairs on Spark: CPU seconds a pair."""
    sizes = (20_000, 60_000, 200_000) if quick else (10**6, 10**7, 10**8)
    images = 5_000 if quick else IMAGES
    used: list[float] = []
    with tempfile.TemporaryDirectory(prefix="faircal-bench-") as name, _spark() as spark:
        for n in sizes:
            folder = _folder(Path(name) / str(n), images, 128, n)
            model = faircal.load_model(folder / "model.faircal")
            pairs = open_pairs(spark, folder)
            if not used:
                _away(score(model, pairs))  # starts the workers
            used.append(min(_cpu(lambda p=pairs, m=model: _away(score(m, p))) for _ in range(2)))
    slope, _ = np.polyfit(np.log(sizes), np.log(used), 1)
    last = (used[2] - used[1]) / (sizes[2] - sizes[1])
    first = (used[1] - used[0]) / (sizes[1] - sizes[0])
    what = f"{sizes[0]:,} to {sizes[2]:,} pairs on Spark"
    points = tuple(zip(map(float, sizes), used, strict=True))
    return [
        Figure("growth", f"{what}: exponent of CPU time", slope, "lower", points=points),
        Figure("slope", f"{what}: CPU of a further pair, late / early", last / first, "lower"),
        aside("a further pair", "    CPU of a further pair", last * 1e9, "ns"),
        *[
            aside(f"{n:,}", f"    {n:,} pairs", cpu, "s")
            for n, cpu in zip(sizes, used, strict=True)
        ],
    ]


def rate_figures(quick: bool) -> list[Figure]:
    """Return CPU seconds for a million pairs read, scored and written, in 128 and 512 numbers."""
    n, images = (100_000, 5_000) if quick else (8_000_000, 400_000)
    found: list[Figure] = []
    for dimension in (128, 512):
        with tempfile.TemporaryDirectory(prefix="faircal-bench-") as name, _spark() as spark:
            folder = _folder(Path(name), images, dimension, n)
            model = faircal.load_model(folder / "model.faircal")
            scored = score(model, open_pairs(spark, folder))
            out = (folder / "scored").as_uri()

            def work(scored: Any = scored, out: str = out) -> None:
                scored.write.mode("overwrite").parquet(out)

            work()  # starts the workers
            seconds = _cpu(work) / n * 1e6
            what = f"    map: read, score, write, {images:,} × {dimension}"
            found.append(aside(f"map ({dimension})", what, seconds, "CPU s a million"))
    return found


def _overhead(spark: Any, folder: Path, n: int, images: int, dimension: int) -> list[Figure]:
    model = faircal.load_model(folder / "model.faircal")
    pairs = open_pairs(spark, folder)
    start = _cpu(lambda: _away(score(model, pairs)))  # with it the workers start
    reading = min(_cpu(lambda: _away(pairs.needed(()))) for _ in range(2))
    scoring = min(_cpu(lambda: _away(score(model, pairs))) for _ in range(2)) - reading
    out = folder / "scored"
    written = _cpu(lambda: score(model, pairs).write.mode("overwrite").parquet(out.as_uri()))
    rows = sum(pq.read_metadata(file).num_rows for file in out.glob("*.parquet"))
    if rows != n:
        raise RuntimeError(f"expected {n:,} scored pairs, found {rows:,}")
    here = _here(model, folder)
    what = f"{n:,} pairs of {images:,} × {dimension}"
    at = f" ({dimension})"
    return [
        ratio(f"overhead{at}", f"{what}: scoring on Spark / here, CPU", scoring / here, "lower", 4),
        aside(f"here{at}", "    here", here, "CPU s"),
        aside(f"scoring{at}", "    scoring on Spark, Arrow both ways included", scoring, "CPU s"),
        aside(f"reading{at}", "    reading Parquet", reading, "CPU s"),
        aside(f"writing{at}", "    writing Parquet", written - scoring - reading, "CPU s"),
        aside(
            f"start{at}",
            "    more in the first run (imports, compiling)",
            start - scoring - reading,
            "CPU s",
        ),
        aside(f"rate{at}", "    scored a second and core", n / (scoring + reading), "pairs"),
    ]


def _here(model: Any, folder: Path) -> float:
    """Return the CPU seconds of scoring on this machine: reading is left out."""

    def seconds() -> float:
        used = os.times()
        return used.user + used.system

    total = 0.0
    for part in open_stream(folder, batch=GROUP).parts():
        before = seconds()
        score_part(model, part)
        total += seconds() - before
    return total


def _spark() -> Any:
    return SparkEngine(f"local[{cores()}]", {"spark.driver.memory": "3g"}).session()


def _away(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _cpu(work: Callable[[], None]) -> float:
    """Return the CPU seconds that Java and its Python workers use for `work`."""
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _folder(folder: Path, images: int, dimension: int, n: int) -> Path:
    """Write embeddings, images, pairs, and a model fitted on a few of them."""
    folder.mkdir(exist_ok=True)
    vectors = clustered(images, dimension)
    np.save(folder / "embeddings.npy", vectors)
    pq.write_table(
        pa.table({"image_id": np.arange(images), "identity": np.arange(images)}),
        folder / "images.parquet",
    )
    rng = np.random.default_rng(n)
    write_pairs(folder / "pairs.parquet", images, n, rng)
    write_model(folder / "model.faircal", vectors, rng)
    return folder
