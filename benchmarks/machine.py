"""The machine's own limits, measured: copying, reading rows here and there, matrix products."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.data import clustered
from benchmarks.figure import Figure, aside
from benchmarks.timing import Work, cores, race

#: Rows that are read into the same small piece of memory, which stays in the cache.
_BLOCK = 512


class Limit(NamedTuple):
    """Work that does one thing as fast as the machine can, and how much of it a call does."""

    work: Work
    amount: float


def copying(threads: int = 1, size: int = 2**28) -> Limit:
    """Copy `size` bytes; counted once, as they are read."""
    source, target = np.ones(size // 4, np.float32), np.ones(size // 4, np.float32)
    return Limit(
        lambda: _split(threads, len(source), lambda part: np.copyto(target[part], source[part])),
        source.nbytes,
    )


def taking_rows(vectors: NDArray[Any], rows: NDArray[np.intp], threads: int) -> Limit:
    """Read rows with NumPy's ``take``, over and over into a block that stays in the cache."""

    def work(part: slice) -> None:
        block = np.empty((_BLOCK, vectors.shape[1]), vectors.dtype)
        for start in range(part.start, part.stop - _BLOCK + 1, _BLOCK):
            # Without "clip" NumPy reads into a buffer first.
            np.take(vectors, rows[start : start + _BLOCK], 0, out=block, mode="clip")

    return Limit(lambda: _split(threads, len(rows), work), _bytes(vectors, rows))


def touching_rows(vectors: NDArray[Any], rows: NDArray[np.intp], threads: int) -> Limit | None:
    """Read rows with a compiled loop that asks for each cache line once; None without Numba."""
    touch = _touch()
    if touch is None:
        return None
    flat = vectors.reshape(-1).view(np.uint32)
    width = vectors.shape[1] * vectors.itemsize // 4

    def work(part: slice) -> None:
        touch(flat, width, rows[part])

    return Limit(lambda: _split(threads, len(rows), work), _bytes(vectors, rows))


def multiplying(threads: int, side: int = 2048) -> Limit:
    """Multiply two square matrices of float32; counted in floating-point operations."""
    a = np.random.default_rng(0).random((side, side), dtype=np.float32)
    out = np.empty_like(a)

    def work() -> None:
        with threadpool_limits(threads, "blas"):
            np.matmul(a, a, out=out)

    return Limit(work, 2.0 * side**3)


def rates(limits: dict[str, Limit | None], rounds: int = 5) -> dict[str, float]:
    """Return bytes or operations a second of each limit."""
    there = {name: limit for name, limit in limits.items() if limit is not None}
    best = race({name: limit.work for name, limit in there.items()}, rounds)
    return {name: limit.amount / best[name] for name, limit in there.items()}


def copy_bandwidth(threads: int = 1) -> float:
    """Bytes a second that a plain copy of 256 MB reads."""
    return rates({"copy": copying(threads)})["copy"]


def sgemm_rate(threads: int | None = None) -> float:
    """Floating-point operations per second of a float32 matrix product, all threads."""
    return rates({"sgemm": multiplying(threads or cores())}, 3)["sgemm"]


def row_limits(
    vectors: NDArray[Any], rows: NDArray[np.intp], threads: int
) -> dict[str, Limit | None]:
    """Return the ways to read `rows`, fastest unknown: the best of them is the limit."""
    return {
        f"take, {threads}": taking_rows(vectors, rows, threads),
        f"touch, {threads}": touching_rows(vectors, rows, threads),
    }


def bare_seconds(products: float, vectors: NDArray[Any], rows: NDArray[np.intp]) -> float:
    """Return how long the machine needs for `products` operations and for reading `rows`."""
    sgemm = multiplying(cores())
    ways = {name: way for name, way in row_limits(vectors, rows, cores()).items() if way}
    took = race({"sgemm": sgemm.work} | {name: way.work for name, way in ways.items()}, 5)
    return products * took["sgemm"] / sgemm.amount + min(took[name] for name in ways)


def _bytes(vectors: NDArray[Any], rows: NDArray[np.intp]) -> float:
    return float(len(rows)) * vectors.shape[1] * vectors.itemsize


def _split(threads: int, n: int, work: Callable[[slice], object]) -> None:
    """Call `work` on equal parts of `n`, a thread each."""
    ends = np.linspace(0, n, threads + 1).astype(int).tolist()
    parts = [slice(a, b) for a, b in pairwise(ends)]
    if threads == 1:
        work(parts[0])
    else:
        list(_pool(threads).map(work, parts))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


@cache
def _touch() -> Callable[..., int] | None:
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(nogil=True)
    def touch(flat, width, rows):  # type: ignore[no-untyped-def]
        total = np.uint32(0)
        for row in rows:
            start = row * width
            for i in range(start, start + width, 16):  # 64 bytes a cache line
                total += flat[i]
        return total

    return touch


def figures(quick: bool) -> list[Figure]:
    """What the machine can do; nothing of ours."""
    n, reads, size = (20_000, 100_000, 2**24) if quick else (1_000_000, 4_000_000, 2**28)
    vectors, many = clustered(n, 128), cores()
    rows = np.random.default_rng(0).integers(0, n, reads)
    limits: dict[str, Limit | None] = {}
    for threads in {1, many}:
        limits[f"copy, {threads}"] = copying(threads, size)
        limits |= row_limits(vectors, rows, threads)
        limits[f"sgemm, {threads}"] = multiplying(threads, 512 if quick else 2048)
    found = rates(limits)

    def best_rows(threads: int) -> float:
        return max(found.get(f"{how}, {threads}", 0.0) for how in ("take", "touch"))

    made: list[Figure] = []
    for name, what, unit, rate in (
        ("copy", "copy, bytes read", "GB/s", lambda n: found[f"copy, {n}"]),
        ("rows", f"random rows of {n:,} × 128 float32", "GB/s", best_rows),
        ("sgemm", "SGEMM", "GFLOP/s", lambda n: found[f"sgemm, {n}"]),
    ):
        one, all_ = rate(1), rate(many)
        made += [
            aside(f"{name} 1", f"{what}, one thread", one / 1e9, unit),
            aside(f"{name} all", f"{what}, {many} threads", all_ / 1e9, unit),
            aside(f"{name} scaling", f"{what}, {many} threads / one", all_ / one),
        ]
    return made
