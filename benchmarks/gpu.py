"""The GPU against its own limits, the plain PyTorch way and the CPU, in one run.

python -m benchmarks.gpu --out docs/benchmarks-gpu.json     what docs/ keeps
python -m benchmarks.gpu --device cpu --quick               whether it runs at all
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import faircal
from faircal.compute import CPU, Engine, _torch_kernels
from faircal.compute.device import TorchEngine
from faircal.compute.kmeans import KMeansResult

Row = tuple[str, str]
TOL = 1e-4  # of the K-means that the methods run


@dataclass(frozen=True)
class Size:
    """How much of what."""

    images: int = 1_000_000
    dimension: int = 512
    pairs: int = 4_000_000
    preset: str = "bfw-like"
    clusters: int = 100
    memberships: int = 1_400_000
    repeat: int = 20


QUICK = Size(20_000, 64, 50_000, "small", 10, 20_000, 2)


@dataclass
class Bench:
    """One device, what was measured on it, and how it is said."""

    engine: TorchEngine
    size: Size
    raw: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def seconds(self, work: Callable[[], Any], repeat: int | None = None) -> float:
        """Return the median time of `work` until the device is done, after two runs to warm up."""
        times = []
        for turn in range(2 + (repeat or self.size.repeat)):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            if turn > 1:
                times.append(time.perf_counter() - start)
        return statistics.median(times)

    def wait(self) -> None:
        """Wait until the device is done."""
        if self.engine.device.type == "cuda":
            torch.cuda.synchronize(self.engine.device)

    def say(self, key: str, what: str, value: float, form: str) -> None:
        """Keep a figure and print it."""
        self.raw[key] = value
        self.rows.append((what, format(value, form)))
        print(f"{what:<84}{format(value, form):>14}", flush=True)


def bench_limits(bench: Bench) -> None:
    numbers = bench.size.images * bench.size.dimension
    source = torch.randn(numbers, device=bench.engine.device)
    target = torch.empty_like(source)
    moved = 2 * source.nbytes
    rate = moved / bench.seconds(lambda: target.copy_(source))
    bench.say("copy_bandwidth", "device copy, bytes read and written: GB/s", rate / 1e9, ",.0f")
    a = torch.randn((min(8192, bench.size.images // 10),) * 2, device=bench.engine.device)
    rate = 2 * len(a) ** 3 / bench.seconds(lambda: a @ a, 5)
    bench.say("sgemm", "float32 product (no TF32): TFLOP/s", rate / 1e12, ",.1f")


def bench_pairs(bench: Bench) -> None:
    size, engine = bench.size, bench.engine
    rng = np.random.default_rng(0)
    rows = rng.integers(size.images, size=(2, size.pairs))
    base = rng.standard_normal((size.images, size.dimension), dtype=np.float32)
    few = slice(0, 10_000)
    for dtype in (np.float32, np.float16):
        name, vectors = np.dtype(dtype).name, base.astype(dtype)
        there, (left, right) = engine.put(vectors), torch.from_numpy(rows).to(engine.device)
        read = 2 * size.pairs * size.dimension * vectors.itemsize
        fused = bench.seconds(lambda t=there, a=left, b=right: _torch_kernels.dots(t, a, b))
        plain = bench.seconds(
            lambda t=there, a=left, b=right: _torch_kernels.gathered_dots(t, a, b)
        )
        whole = bench.seconds(lambda v=vectors: engine.pair_dots(v, *rows), 5)
        what = f"pair scores, {size.images:,} × {size.dimension} {name}"
        exact = vectors[rows[0, few]].astype(np.float64) * vectors[rows[1, few]]
        off = np.abs(engine.pair_dots(vectors, *rows[:, few]) - exact.sum(axis=1)).max()
        rate, millions = read / fused / 1e9, size.pairs / 1e6
        for key, text, value, form in (
            ("", f"{what}: rows read, GB/s", rate, ",.0f"),
            ("_of_copy", "    of the copy's", rate / bench.raw["copy_bandwidth"], ".2f"),
            ("_plain", "    time of gather and multiply / ours", plain / fused, ".1f"),
            ("_rate", "    million pairs/s, on the device", millions / fused, ",.0f"),
            ("_host", "    million pairs/s, NumPy in, NumPy out", millions / whole, ",.0f"),
            ("_off", "    largest difference from float64", float(off), ".1e"),
        ):
            bench.say(f"pairs_{name}{key}", text, value, form)


def calibration_images(preset: str) -> NDArray[np.float32]:
    """Return the vectors of one fold's calibration images, as FairCal clusters them."""
    data, _ = faircal.simulate(preset, seed=0).split(1)
    if data.embeddings is None:
        raise ValueError(f"{preset} has no embeddings")
    return data.embeddings.rows(data.used_images())


def bench_kmeans(bench: Bench) -> None:
    size, engine = bench.size, bench.engine
    vectors = calibration_images(size.preset)
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    points = vectors - mean
    shift = TOL * float(np.square(points, dtype=np.float64).mean())
    engine.put(points)  # not part of what is timed

    def run(seed: int, n_init: int, where: Engine = engine) -> KMeansResult:
        rng = np.random.default_rng(seed)
        return where.kmeans(
            points, size.clusters, n_init=n_init, rng=rng, max_iter=300, shift=shift
        )

    n, d = points.shape
    what = f"K-means, {size.preset}, {n:,} × {d}, K = {size.clusters}"
    seeds = itertools.count()
    for n_init, cpu_seeds in ((1, 10), (10, 2)):
        key = f"kmeans_{n_init}"
        took = bench.seconds(lambda m=n_init: run(next(seeds), m))
        found = [run(seed, n_init) for seed in range(10)]
        bench.say(f"{key}_ms", f"{what}, {n_init} start(s): ms", took * 1e3, ".1f")
        n_iter = statistics.mean(one.n_iter for one in found)
        bench.say(f"{key}_n_iter", "    iterations of the best start, mean", n_iter, ".0f")
        begun = time.perf_counter()
        cpu = [run(seed, n_init, CPU) for seed in range(cpu_seeds)]
        cpu_took = (time.perf_counter() - begun) / cpu_seeds
        bench.raw[f"{key}_cpu_ms"] = cpu_took * 1e3
        what_cpu = f"    time of faircal's own on {os.cpu_count()} cores / ours"
        bench.say(f"{key}_cpu", what_cpu, cpu_took / took, ".0f")
        same_seeds = list(zip(found, cpu, strict=False))
        ratio = statistics.mean(a.inertia / b.inertia for a, b in same_seeds)
        bench.say(f"{key}_objective", "    objective / that one's, mean", ratio, ".7f")
        off = [float(np.abs(a.centers - b.centers).max()) for a, b in same_seeds]
        what_off = f"    largest difference of centres from that one's, {cpu_seeds} seeds"
        bench.say(f"{key}_off", what_off, max(off), ".1e")
        bench.raw[f"{key}_off_each"] = off
    same = run(3, 1).centers.tobytes() == run(3, 1).centers.tobytes()
    bench.say("kmeans_repeatable", "    the same bytes twice (1: yes)", same, "d")
    labels, centers = engine.assign(vectors, found[0].centers + mean), found[0].centers
    distance = np.square(centers, dtype=np.float64).sum(axis=1)
    distance = distance - 2 * points.astype(np.float64) @ centers.T.astype(np.float64)
    other = float((labels != distance.argmin(axis=1)).mean())
    bench.say("assign_other", "    part of images that float64 puts elsewhere", other, ".1e")


def bench_calibration(bench: Bench) -> None:
    size, engine = bench.size, bench.engine
    rng = np.random.default_rng(0)
    n, k = size.memberships, size.clusters
    starts = np.concatenate([[0], np.sort(rng.integers(n, size=k - 1)), [n]])
    features, mass = rng.standard_normal((2, n)), np.ones(n)
    target = (rng.random(n) < 0.3).astype(np.float64)
    theta, which = rng.standard_normal((k, 3)), np.arange(k)
    sums = engine.logistic_sums(features, target, mass, starts)
    what = f"logistic sums of {n:,} points in {k} sets"
    bench.say(
        "logistic_ms",
        f"{what}, one pass: ms",
        bench.seconds(lambda: sums(theta, which)) * 1e3,
        ".2f",
    )
    on_cpu = TorchEngine("cpu").logistic_sums(features, target, mass, starts)(theta, which)
    off = max(
        float((np.abs(a - b) / np.abs(b).max()).max())
        for a, b in zip(sums(theta, which), on_cpu, strict=True)
    )
    bench.say("logistic_off", "    largest difference from the CPU / largest value", off, ".1e")


def machine(device: torch.device) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    found = {"device": name, "python": platform.python_version(), "torch": torch.__version__}
    for package in ("numpy", "triton"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="file that what was measured is written to, JSON")
    options = parser.parse_args()
    bench = Bench(TorchEngine(options.device), QUICK if options.quick else Size())
    for part in (bench_limits, bench_pairs, bench_kmeans, bench_calibration):
        part(bench)
        if options.out is not None:
            found = {
                "command": f"python -m benchmarks.gpu --device {options.device}",
                "machine": machine(bench.engine.device),
                "sizes": vars(bench.size),
                "rows": bench.rows,
                "raw": bench.raw,
            }
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
