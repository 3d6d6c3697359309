"""Pair scores: gather two rows and multiply; against copying, reading rows, NumPy and FAISS."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.figure import Figure, aside, ratio
from benchmarks.machine import Limit, copying, row_limits
from benchmarks.timing import Work, cores, our_threads, race
from faircal.data.types import Embeddings

Rows = NDArray[np.intp]

#: Pairs that NumPy scores at once; more would only take more memory.
_FEW = 100_000


class Case(NamedTuple):
    """Vectors and pairs of them."""

    name: str
    vectors: NDArray[Any]
    left: Rows
    right: Rows

    @property
    def read(self) -> float:
        """Bytes of the rows that all pairs have."""
        return 2.0 * len(self.left) * self.vectors.shape[1] * self.vectors.itemsize

    @property
    def rows(self) -> Rows:
        """The rows in the order in which pairs want them."""
        return np.stack([self.left, self.right], axis=1).ravel()


def bfw_size(quick: bool) -> Case:
    found = data.bfw_like(quick)
    vectors = np.array(found.embeddings.vectors)
    return Case(
        f"BFW size, pairs in order, {_size(vectors)}", vectors, found.pairs.left, found.pairs.right
    )


def large(quick: bool) -> Case:
    n, m = (20_000, 100_000) if quick else (200_000, 1_000_000)
    return _random(data.clustered(n, 512), m)


def million(quick: bool) -> Case:
    n, m = (20_000, 100_000) if quick else (1_000_000, 4_000_000)
    return _random(data.clustered(n, 128), m)


def _random(vectors: NDArray[np.float32], m: int) -> Case:
    left, right = np.random.default_rng(1).integers(0, len(vectors), (2, m))
    return Case(f"random pairs, {_size(vectors)}", vectors, left, right)


def _size(vectors: NDArray[Any]) -> str:
    return f"{len(vectors):,} × {vectors.shape[1]}"


def ours(embeddings: Embeddings, case: Case, threads: int) -> None:
    with our_threads(threads):
        embeddings.cosine(case.left, case.right)


def with_numpy(case: Case) -> None:
    few = slice(0, _FEW)
    np.sum(case.vectors[case.left[few]] * case.vectors[case.right[few]], axis=1)


def with_faiss(case: Case) -> NDArray[np.float32]:
    found = np.empty(len(case.left), dtype=np.float32)
    x, out = faiss.swig_ptr(case.vectors), faiss.swig_ptr(found)
    left, right = faiss.swig_ptr(case.left), faiss.swig_ptr(case.right)
    d, n = case.vectors.shape[1], len(case.left)
    faiss.pairwise_indexed_inner_product(d, n, x, left, x, right, out)
    return found


def check(case: Case, embeddings: Embeddings) -> None:
    """Raise unless FAISS and we work out the same: else they could not be compared."""
    lengths = embeddings.norms.astype(np.float64)
    theirs = with_faiss(case) / (lengths[case.left] * lengths[case.right])
    away = np.abs(theirs - embeddings.cosine(case.left, case.right)).max()
    if away > 1e-5:
        raise RuntimeError(f"{case.name}: FAISS's scores and ours differ by {away}")


def figures(quick: bool) -> list[Figure]:
    """Measure where goals mean something, and at BFW's size.

    The pairs of BFW's size come in the order of people, and rows from the cache, several times as
    fast as any copy: no share of a limit is told by that, so the goals at 512 are those of random
    pairs of more images than a cache holds.
    """
    return [
        *_measure(large(quick), "large", quick, copy_goal=0.6, scaling_goal=0.85),
        *_measure(million(quick), "million", quick, rows_goal=0.6, scaling_goal=0.85),
        *_measure(bfw_size(quick), "bfw", quick),
    ]


def _measure(
    case: Case,
    key: str,
    quick: bool,
    copy_goal: float | None = None,
    rows_goal: float | None = None,
    scaling_goal: float | None = None,
) -> list[Figure]:
    many = cores()
    embeddings, half = Embeddings(case.vectors), Embeddings(case.vectors.astype(np.float16))
    check(case, embeddings)
    limits: dict[str, Limit | None] = {}
    for threads in {1, many}:
        limits[f"copy, {threads}"] = copying(threads, 2**24 if quick else 2**28)
        limits |= row_limits(case.vectors, case.rows, threads)
    works: dict[str, Work] = {f"ours, {n}": partial(ours, embeddings, case, n) for n in {1, many}}
    works |= {
        "half": partial(ours, half, case, many),
        "NumPy": partial(with_numpy, case),
        "FAISS": partial(with_faiss, case),
    }
    there = {name: limit for name, limit in limits.items() if limit is not None}
    took = race(
        works | {name: limit.work for name, limit in there.items()}, 5, also_alone=["FAISS"]
    )
    rate = {name: limit.amount / took[name] for name, limit in there.items()}

    def reading(threads: int) -> float:
        return max(rate.get(f"{how}, {threads}", 0.0) for how in ("take", "touch"))

    one, best = took["ours, 1"], took[f"ours, {many}"]
    speed, copy = case.read / best, rate[f"copy, {many}"]
    scaling, copy_scaling = one / best, copy / rate["copy, 1"]
    numpy_seconds = took["NumPy"] * len(case.left) / min(_FEW, len(case.left))
    name = case.name
    return [
        ratio(f"{key} copy", f"{name}: rows read a second / copy", speed / copy, goal=copy_goal),
        Figure(
            f"{key} traffic",
            f"{name}: rows read a second / what a copy reads and writes",
            speed / copy / 2,
            "higher",
        ),
        ratio(
            f"{key} rows",
            f"{name}: rows read a second / bare reads of the same rows",
            speed / reading(many),
            goal=rows_goal,
        ),
        ratio(
            f"{key} scaling",
            f"{name}: gain from 1 to {many} threads / that of the copy",
            scaling / copy_scaling,
            goal=scaling_goal,
        ),
        aside(f"{key} gain", f"    gain from 1 to {many} threads", scaling),
        aside(f"{key} gain of rows", "    that of bare reads", reading(many) / reading(1)),
        ratio(f"{key} numpy", f"{name}: NumPy's time / ours", numpy_seconds / best),
        ratio(f"{key} faiss", f"{name}: FAISS's time / ours", took["FAISS"] / best),
        ratio(f"{key} half", f"{name}: time of float32 / float16", best / took["half"]),
        aside(f"{key} rate", "    rows read", speed / 1e9, "GB/s"),
        aside(f"{key} pairs", "    pairs", len(case.left) / best / 1e6, "million/s"),
    ]
