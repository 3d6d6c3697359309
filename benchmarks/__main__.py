"""``make bench``: print each figure as a ratio measured in one run, never as a bare time.

python -m benchmarks            every benchmark
python -m benchmarks kmeans     the ones whose name contains the word
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from betacal import BetaCalibration
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score, roc_curve
from threadpoolctl import threadpool_limits

import faircal
from benchmarks import embedding, training
from benchmarks.machine import copy_bandwidth, sgemm_rate
from faircal.benchmark import Settings, run_benchmark
from faircal.clustering import kmeans
from faircal.methods.clusters import members
from faircal.metrics import Ranking, auroc, tpr_at_fpr


@cache
def bfw_like() -> faircal.Dataset:
    data = faircal.simulate("bfw-like", seed=0)
    data.scores  # noqa: B018  (not part of what is timed)
    return data


def seconds(work: Callable[[], Any], repeat: int = 3) -> float:
    """Return the shortest of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def bench_kmeans() -> list[tuple[str, str]]:
    data = bfw_like()
    cal, _ = data.split(1)
    vectors = cal.embeddings.rows(cal.used_images())
    found: dict[str, float] = {}

    def ours() -> None:
        found["ours"] = kmeans(vectors, 100).inertia

    def theirs() -> None:
        found["sklearn"] = float(KMeans(100, n_init=1, random_state=0).fit(vectors).inertia_)

    with threadpool_limits(1):
        a, b = seconds(ours, 2), seconds(theirs, 2)
    return [
        ("K-means, one start, one thread: scikit-learn's time / ours", f"{b / a:.2f}"),
        ("    objective, ours / scikit-learn's", f"{found['ours'] / found['sklearn']:.4f}"),
    ]


def bench_scores() -> list[tuple[str, str]]:
    data = bfw_like()
    vectors, pairs = data.embeddings.vectors, data.pairs
    few = slice(0, 200_000)

    def plain() -> None:
        np.sum(vectors[pairs.left[few]] * vectors[pairs.right[few]], axis=1)

    ours = seconds(lambda: data.embeddings.cosine(pairs.left[few], pairs.right[few]))
    read = 2 * 200_000 * vectors.shape[1] * vectors.itemsize / ours
    return [
        (
            "pair scores: time of gather-and-multiply in NumPy / ours",
            f"{seconds(plain) / ours:.2f}",
        ),
        ("    bytes read per second / copy bandwidth", f"{read / copy_bandwidth():.2f}"),
    ]


def bench_beta() -> list[tuple[str, str]]:
    data = bfw_like()
    cal, _ = data.split(1)
    model = faircal.FairCal().fit(cal)
    assigned = model.clustering_.assign(data.embeddings.rows(np.arange(len(data.images))))
    sets = members(assigned[cal.pairs.left], assigned[cal.pairs.right], 100)[:20]
    loss: dict[str, float] = {}

    def total(probabilities: list[Any]) -> float:
        return sum(
            faircal.metrics.nll(p, cal.genuine[rows]) * len(rows)
            for p, rows in zip(probabilities, sets, strict=True)
        )

    def ours() -> None:
        loss["ours"] = total(
            [
                faircal.BetaCalibrator().fit(cal.scores[r], cal.genuine[r]).predict(cal.scores[r])
                for r in sets
            ]
        )

    def theirs() -> None:
        z = np.clip((cal.scores + 1) / 2, 1e-9, 1 - 1e-9)
        loss["betacal"] = total(
            [BetaCalibration("abm").fit(z[r], cal.genuine[r]).predict(z[r]) for r in sets]
        )

    a, b = seconds(ours, 2), seconds(theirs, 2)
    return [
        ("beta calibration of 20 clusters: betacal's time / ours", f"{b / a:.2f}"),
        ("    log-loss, ours / betacal's", f"{loss['ours'] / loss['betacal']:.6f}"),
    ]


def bench_metrics() -> list[tuple[str, str]]:
    data = bfw_like()
    scores, genuine = data.scores, data.genuine
    groups = data.groups()

    def ours() -> None:
        ranking = Ranking.of(scores, genuine)
        for code in range(len(groups.names)):
            part = ranking.subset(groups.pair == code)
            auroc(part), tpr_at_fpr(part, [1e-3, 1e-2])

    def theirs() -> None:
        for code in range(len(groups.names)):
            inside = groups.pair == code
            roc_auc_score(genuine[inside], scores[inside])
            roc_curve(genuine[inside], scores[inside])

    sort = seconds(lambda: np.sort(scores))
    a, b = seconds(ours), seconds(theirs)
    return [
        ("AUROC and TPR of eight groups: scikit-learn's time / ours", f"{b / a:.2f}"),
        ("    ours / one bare sort of all scores", f"{a / sort:.2f}"),
    ]


def bench_whole() -> list[tuple[str, str]]:
    data = bfw_like()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run_benchmark(
            data, folder, Settings(methods=("baseline", "gst", "fsn", "faircal", "oracle"))
        )
        took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    vectors = data.embeddings.vectors
    flops = 5 * 50 * 2 * 0.8 * vectors.shape[0] * vectors.shape[1] * 100
    return [
        ("bfw-like, five methods, five folds, all metrics: seconds", f"{took:.1f}"),
        (
            "    time / bare products of 50 K-means passes a fold",
            f"{took * sgemm_rate() / flops:.1f}",
        ),
        ("    peak memory of this process, GiB", f"{peak:.2f}"),
    ]


@cache
def rfw_like() -> training.PairData:
    return training.rfw_like()


def bench_training_limit() -> list[tuple[str, str]]:
    return training.share_of_limit(rfw_like(), "cpu", {})


def bench_training_ftc() -> list[tuple[str, str]]:
    return training.ftc_rows(rfw_like(), "cpu", {})


def bench_training_agenda() -> list[tuple[str, str]]:
    return training.agenda_rows(training.bfw_like(), "cpu", {})


def bench_embed() -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        return embedding.rows(Path(folder))


BENCHES = (
    bench_kmeans,
    bench_scores,
    bench_beta,
    bench_metrics,
    bench_whole,
    bench_embed,
    bench_training_limit,
    bench_training_ftc,
    bench_training_agenda,
)


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    table = Table("what (bfw-like, FTC on rfw-like; simulated)", "figure")
    for bench in BENCHES:
        if wanted in bench.__name__:
            for what, figure in bench():
                table.add_row(what, figure)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
