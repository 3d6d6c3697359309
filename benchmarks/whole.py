"""Whole benchmarks: five methods on bfw-like; the paper's experiment on rfw-like, which is long.

python -m benchmarks.whole OUT [--quick]     the first alone: a process whose memory is measured
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.figure import Figure, aside, ratio
from benchmarks.machine import bare_seconds, multiplying
from benchmarks.timing import command, cores, faircal_command, once, race
from faircal.data.dataset_folder import save_dataset
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.benchmark.experiments import CLUSTERS

METHODS = ("baseline", "gst", "fsn", "faircal", "oracle")
FOLDS = 5
#: Passes of K-means that the limit counts for a start.
PASSES = 50


def settings(quick: bool) -> BenchmarkSettings:
    return BenchmarkSettings(methods=METHODS, clusters=(data.n_clusters(quick),))


def figures(quick: bool) -> list[Figure]:
    limit = _limit_seconds(quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [sys.executable, "-m", "benchmarks.whole", folder / "out"]
        used = command([*words, *(["--quick"] if quick else [])])
        took = json.loads((folder / "out" / "took.json").read_text("utf-8"))
        save_dataset(data.bfw_like(quick), folder / "data")
        asked = ["--methods", ",".join(METHODS), "--clusters", str(data.n_clusters(quick))]
        whole = faircal_command(
            "benchmark", folder / "data", *asked, "--out", folder / "results"
        ).seconds
        demo = [] if quick else [faircal_command("demo", "--out", folder / "demo").seconds]
    limit = min(limit, _limit_seconds(quick))
    what = "bfw-like, five methods, five folds, all metrics"
    return [
        Figure("seconds", what, took, "lower", goal=25, unit="s"),
        ratio(
            "share",
            f"    {PASSES} passes of K-means a fold, a read of all pairs' rows, a sort a fold and "
            "method / time",
            limit / took,
        ),
        aside("command", "    as a command: files read, report written", whole, "s"),
        *(Figure("demo", "faircal demo", seconds, "lower", goal=40, unit="s") for seconds in demo),
        aside("peak", "    peak memory of the process", used.peak / 2**30, "GiB"),
    ]


def _limit_seconds(quick: bool) -> float:
    """Return how long the machine needs for the bare work, one thing after the other."""
    found, k = data.bfw_like(quick), data.n_clusters(quick)
    n, d = found.embeddings.vectors.shape
    score = np.random.default_rng(0).random(len(found) // FOLDS)
    rows = np.stack([found.pairs.left, found.pairs.right], axis=1).ravel()
    products = FOLDS * PASSES * 2.0 * n * (FOLDS - 1) / FOLDS * d * k
    sort = race({"sort": lambda: np.sort(score)}, 5)["sort"]
    return (
        bare_seconds(products, found.embeddings.vectors, rows)
        + len(METHODS) * FOLDS * sort / cores()
    )


def reproduction(quick: bool) -> list[Figure]:
    """``faircal reproduce`` on rfw-like without the trained methods, K-means with ten starts."""
    few = ["--clusters", "1,10", "--n-init", "2"] if quick else []
    sizes = ["--people", "200"] if quick else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        faircal_command("simulate", "rfw-like", folder / "data", *sizes)
        used = faircal_command(
            "reproduce", "rfw", folder / "data", "--no-training", *few, "--out", folder / "out"
        )
        vectors = np.load(folder / "data" / "embeddings.npy", mmap_mode="r")
    n, d = vectors.shape
    clusters = sum((1, 10) if quick else CLUSTERS)
    starts = 2 if quick else 10
    products = FOLDS * starts * PASSES * 2.0 * n * (FOLDS - 1) / FOLDS * d * clusters
    sgemm = multiplying(cores())
    limit = products * race({"sgemm": sgemm.work}, 5)["sgemm"] / sgemm.amount
    return [
        Figure(
            "seconds",
            "faircal reproduce rfw on rfw-like, without the trained methods",
            used.seconds,
            "lower",
            goal=600,
            unit="s",
        ),
        ratio(
            "share",
            f"    products of {PASSES} passes of each start of K-means / time",
            limit / used.seconds,
        ),
        aside("peak", "    peak memory of the process", used.peak / 2**30, "GiB"),
    ]


def main() -> None:
    """Run the benchmark of five methods and write how long it took."""
    out, quick = Path(sys.argv[1]), "--quick" in sys.argv
    found = data.bfw_like(quick)
    took = once(lambda: run_benchmark(found, out, settings(quick)))
    (out / "took.json").write_text(json.dumps(took), encoding="utf-8")


if __name__ == "__main__":
    main()
