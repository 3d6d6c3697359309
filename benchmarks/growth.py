"""Growth of K-means, pair scoring and a whole fit over pairs, images, dimension and K."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

import faircal
from benchmarks.data import clustered
from benchmarks.figure import Figure
from benchmarks.timing import Work, race
from faircal.compute import CPU
from faircal.data.types import Embeddings


class Size(NamedTuple):
    """How large the data is."""

    pairs: int = 400_000
    images: int = 16_000
    dimension: int = 256
    clusters: int = 100


#: Passes of K-means: how many it takes to settle would blur the curve.
PASSES = 10

#: What grows, and the sizes in turn; all else as `Size` has it.
CURVES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    f"K-means, {PASSES} passes": {
        "images": (4_000, 8_000, 16_000, 32_000, 64_000),
        "dimension": (64, 128, 256, 512, 1024),
        "clusters": (25, 50, 100, 200, 400),
    },
    "pair scores": {
        "pairs": (50_000, 200_000, 800_000, 3_200_000),
        "images": (1_000, 8_000, 64_000, 512_000),
        "dimension": (64, 128, 256, 512, 1024),
    },
    "fit": {
        "pairs": (50_000, 200_000, 800_000, 3_200_000),
        "images": (4_000, 8_000, 16_000, 32_000, 64_000),
        "dimension": (64, 128, 256, 512, 1024),
        "clusters": (25, 50, 100, 200, 400),
    },
}


def of_kmeans(size: Size) -> Work:
    vectors = clustered(size.images, size.dimension)
    return lambda: CPU.kmeans(vectors, size.clusters, max_iter=PASSES)


def of_scores(size: Size) -> Work:
    embeddings = Embeddings(clustered(size.images, size.dimension))
    left, right = _pairs(size)
    return lambda: embeddings.cosine(left, right)


def of_fit(size: Size) -> Work:
    vectors, (left, right) = clustered(size.images, size.dimension), _pairs(size)
    genuine = _genuine(vectors, left, right)
    pairs = {"left": left, "right": right, "genuine": genuine, "fold": np.ones(len(left), np.int8)}

    def work() -> None:
        cal = faircal.Dataset(embeddings=vectors, pairs=pairs)
        faircal.FairCal(n_clusters=size.clusters).fit(cal)

    return work


WORKS: Mapping[str, Callable[[Size], Work]] = {
    f"K-means, {PASSES} passes": of_kmeans,
    "pair scores": of_scores,
    "fit": of_fit,
}


def figures(quick: bool) -> list[Figure]:
    made = []
    for what, curves in CURVES.items():
        for over, sizes in curves.items():
            points = [(n, _seconds(what, over, n, quick)) for n in (sizes[:2] if quick else sizes)]
            made.append(_curve(what, over, tuple(points)))
    return made


def _seconds(what: str, over: str, n: int, quick: bool) -> float:
    usual = Size(20_000, 2_000, 64, 10) if quick else Size()
    return race({what: WORKS[what](usual._replace(**{over: n}))}, rounds=2)[what]


def _curve(what: str, over: str, points: tuple[tuple[float, float], ...]) -> Figure:
    sizes, seconds = np.log(np.array(points)).T
    slope = float(np.polyfit(sizes, seconds, 1)[0])
    span = f"{points[0][0]:,} to {points[-1][0]:,}"
    title = f"{what} over {over}, {span}: exponent ({points[-1][1]:.2g} s at the end)"
    return Figure(f"{what} over {over}", title, slope, "lower", points=points)


def _pairs(size: Size) -> np.ndarray:
    return np.random.default_rng(0).integers(0, size.images, (2, size.pairs))


def _genuine(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Draw labels that scores tell something of."""
    score = Embeddings(vectors).cosine(left, right)
    chance = 1 / (1 + np.exp(-8 * (score - 0.3)))
    return np.random.default_rng(1).random(len(score)) < chance
