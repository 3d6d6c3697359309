"""Embeddings in tiles: memory of the workers for few and for many templates, and where time goes.

python -m benchmarks.spark_tiles [--quick]      print a table
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import faircal
from benchmarks.data import clustered, write_model, write_pairs
from benchmarks.figure import Figure, aside, ratio

DIMENSION = 128
#: Templates (few, many), rows of a block, pairs.
FULL = ((100_000, 1_000_000), 50_000, 10_000_000)
QUICK = ((4_000, 40_000), 2_000, 200_000)
#: Where the time of a task goes, in order.
STEPS = ("input", "parts", "recall", "score")


def figures(quick: bool) -> list[Figure]:
    """Score the same number of pairs of few and of ten times as many templates."""
    measured = measure(quick)
    few, many = (found["score: peak MB of a task"] for found in measured.values())
    names = " / ".join(reversed(measured))
    growth = ratio("memory", f"peak memory of a task: {names}", many / few, "lower", goal=1.1)
    return [
        growth,
        *[
            aside(f"{name} {what}", f"    {name}: {what}", value)
            for name, found in measured.items()
            for what, value in found.items()
        ],
    ]


def measure(quick: bool) -> dict[str, dict[str, float]]:
    """Return what workers needed, by number of templates."""
    sizes, rows, pairs = QUICK if quick else FULL
    found = {}
    for images in sizes:
        with tempfile.TemporaryDirectory(prefix="faircal-bench-") as name:
            folder = Path(name)
            _prepare(folder, images, pairs, rows)
            found[f"{images:,} templates"] = {
                **{f"write: {key}": value for key, value in _step("write", folder).items()},
                **{f"score: {key}": value for key, value in _step("score", folder).items()},
            }
    return found


def _prepare(folder: Path, images: int, pairs: int, rows: int) -> None:
    """Write a dataset folder, and a model fitted on a few of its images."""
    data = folder / "faces"
    data.mkdir()
    vectors = clustered(images, DIMENSION)
    np.save(data / "embeddings.npy", vectors)
    rng = np.random.default_rng(0)
    people, groups = rng.integers(0, images // 4, images), np.array(list("ABCD"))
    table = {
        "image_id": np.arange(images),
        "identity": people,
        "ethnicity": groups[rng.integers(0, 4, images)],
    }
    pq.write_table(pa.table(table), data / "images.parquet")
    write_pairs(data / "pairs.parquet", images, pairs, rng)
    write_model(folder / "model.faircal", vectors, rng)
    (folder / "rows").write_text(str(rows))


def _step(step: str, folder: Path) -> dict[str, float]:
    """Run `write` or `score` in a process and a session of its own."""
    code = f"from benchmarks.spark_tiles import tell; tell({step!r}, {str(folder)!r})"
    root = str(Path(__file__).parent.parent)
    own = {"PYTHONPATH": root, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, env=os.environ | own
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def tell(step: str, folder: str) -> None:
    print(json.dumps({"write": write, "score": score}[step](Path(folder))))


# -------------------------------------------------------------- in their processes


def write(folder: Path) -> dict[str, float]:
    """Write blocks; the peak is that of the Python workers."""
    from faircal.production.spark.blocks.folder import Blocks
    from faircal.production.spark.session import session

    with session("local[2]") as spark:
        start = time.perf_counter()
        rows = int((folder / "rows").read_text())
        made = Blocks.write(spark, folder / "faces", folder / "blocks", rows_per_block=rows)
        took = time.perf_counter() - start
        asked = spark.range(64, numPartitions=64).mapInArrow(_peaks, "peak double")
        peak = max(asked.toArrow()["peak"].to_pylist())
    return {"blocks": made.n_blocks, "seconds": took, "peak MB of a worker": peak}


def _peaks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"peak": [_peak()] * batch.num_rows})


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def score(folder: Path) -> dict[str, float]:
    """Score all pairs; every task tells its peak, and how long it took for what."""
    from faircal.production.spark.blocks.folder import Blocks
    from faircal.production.spark.blocks.tiles import TiledGallery, TiledReader
    from faircal.production.spark.session import session

    gallery = TiledGallery(Blocks.open(folder / "blocks"))
    reader = TiledReader(gallery, (-1.0, 1.0), "embedding", text_folds=False)
    task = Task(reader, str(folder / "model.faircal"))
    with session("local[2]") as spark:
        frame = spark.read.parquet(str(folder / "faces" / "pairs.parquet"))
        pairs = frame.count()
        start = time.perf_counter()
        reader.arrange(frame).write.format("noop").mode("overwrite").save()
        arranged = time.perf_counter() - start
        start = time.perf_counter()
        kept = spark.sparkContext.broadcast(task)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield kept.value(batches)

        told = reader.arrange(frame).mapInArrow(run, Task.columns).toArrow()
        took = time.perf_counter() - start
        kept.destroy()
    if sum(told["pairs"].to_pylist()) != pairs:
        raise RuntimeError(f"expected {pairs:,} pairs, found another number")
    spent = {key: sum(told[key].to_pylist()) / pairs * 1e6 for key in STEPS}
    return {
        "tasks": len(told),
        "parts": sum(told["n_parts"].to_pylist()),
        "seconds": took,
        "seconds to arrange alone": arranged,
        "peak MB of a task": max(told["peak"].to_pylist()),
        "of it, MB of its own": max(told["own"].to_pylist()),
        "of it, MB of mapped files": max(told["mapped"].to_pylist()),
        **{f"µs a pair, {key}": value for key, value in spent.items()},
    }


class Task:
    """Scores the pairs of a task, and gives one row: what it needed."""

    columns = "pairs long, n_parts long, peak double, own double, mapped double, " + ", ".join(
        f"{step} double" for step in STEPS
    )

    def __init__(self, reader: Any, model: str) -> None:
        self._reader, self._path = reader, model

    @cached_property
    def _model(self) -> Any:
        return faircal.load_model(self._path)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
        """Score the pairs in `batches`."""
        from faircal.compute.threads import single
        from faircal.production.scoring import score_part
        from faircal.production.spark.blocks.clusters import recall_clusters

        model, clock = self._model, _Clock()
        pairs = parts = 0
        own = mapped = 0.0
        with single():
            made = clock.each("parts", self._reader.parts(clock.each("input", batches)))
            for part in made:
                clock.at("recall")
                recall_clusters(model, part)
                clock.at("score")
                pairs += score_part(model, part).num_rows
                parts += 1
                now = _resident()
                own, mapped = max(own, now["RssAnon"]), max(mapped, now["RssFile"])
                del part
        row = {"pairs": pairs, "n_parts": parts, "peak": _peak(), "own": own, "mapped": mapped}
        return pa.RecordBatch.from_pylist([row | clock.spent])


class _Clock:
    """Tells how long was spent on what; only one thing is done at a time."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STEPS, 0.0)
        self._now, self._since = "", 0.0

    def at(self, step: str) -> str:
        """Begin `step`; return what was done before."""
        now, before = time.perf_counter(), self._now
        if before:
            self.spent[before] += now - self._since
        self._now, self._since = step, now
        return before

    def each(self, step: str, items: Iterator[Any]) -> Iterator[Any]:
        """Yield `items`; what it takes to make them is `step`."""
        while True:
            before = self.at(step)
            try:
                item = next(items)
            except StopIteration:
                self.at(before)
                return
            self.at(before)
            yield item
            del item


def _resident() -> dict[str, float]:
    """Return the megabytes of this process that are in memory: its own, and of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {key: int(found[key].split()[0]) / 1024 for key in ("RssAnon", "RssFile")}


def main() -> None:
    found = measure("--quick" in sys.argv)
    keys = next(iter(found.values()))
    print(f"{'':34}" + "".join(f"{name:>24}" for name in found))
    for key in keys:
        print(f"{key:34}" + "".join(f"{found[name][key]:24,.2f}" for name in found))


if __name__ == "__main__":
    main()
