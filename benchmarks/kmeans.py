"""K-means: ours, scikit-learn's and FAISS's, one start each, float32."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, kmeans_plusplus

from benchmarks import data, plain
from benchmarks.figure import Figure, aside, ratio
from benchmarks.machine import multiplying
from benchmarks.timing import cores, race
from faircal.compute import CPU

Float32 = NDArray[np.float32]

#: FAISS's ways to begin.
_STARTS = {
    "FAISS": faiss.ClusteringInitMethod_RANDOM,
    "FAISS with k-means++": faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS,
}
#: Iterations after which FAISS has come as far as it will.
_MOST = 200
#: Its objective has settled when it is within this share of where it ends.
_SETTLED = 1e-4


def with_faiss(vectors: Float32, k: int, iterations: int, start: int) -> Any:
    """Run FAISS's K-means on all points, for a number of iterations."""
    found = faiss.Kmeans(
        vectors.shape[1],
        k,
        niter=iterations,
        nredo=1,
        seed=1,
        init_method=start,
        max_points_per_centroid=len(vectors),
        min_points_per_centroid=1,
    )
    found.train(vectors)
    return found


def enough(vectors: Float32, k: int, start: int, wanted: float) -> int:
    """Return the iterations after which FAISS has reached `wanted`, or else its own best."""
    reached = np.asarray(with_faiss(vectors, k, _MOST, start).obj)
    target = max(wanted, reached.min() * (1 + _SETTLED))
    return int(np.argmax(reached <= target)) + 1


def figures(quick: bool) -> list[Figure]:
    vectors, k = data.calibration_vectors(quick), data.n_clusters(quick)
    ours = CPU.kmeans(vectors, k)
    reached = plain.objective(vectors, ours.centers)
    iterations = {name: enough(vectors, k, start, reached) for name, start in _STARTS.items()}
    centers: dict[str, Float32] = {}

    def sklearn() -> None:
        centers["scikit-learn"] = KMeans(k, n_init=1, random_state=0).fit(vectors).cluster_centers_

    def of_faiss(name: str) -> None:
        centers[name] = with_faiss(vectors, k, iterations[name], _STARTS[name]).centroids

    limit = multiplying(cores(), 512 if quick else 2048)
    works = {
        "ours": lambda: CPU.kmeans(vectors, k),
        "scikit-learn": sklearn,
        **{name: lambda name=name: of_faiss(name) for name in _STARTS},
        "our start": lambda: CPU.kmeans(vectors, k, max_iter=1),
        "their start": lambda: kmeans_plusplus(vectors, k, random_state=0),
        "limit": limit.work,
    }
    took = race(works, rounds=3, also_alone=["scikit-learn", *_STARTS, "their start"])
    flops = 2.0 * len(vectors) * vectors.shape[1] * k * ours.n_iter
    made = []
    for name in ("scikit-learn", *_STARTS):
        made += [
            ratio(
                f"{name} speed-up", f"one start: {name}'s time / ours", took[name] / took["ours"]
            ),
            Figure(
                f"{name} objective",
                f"    objective, ours / {name}'s"
                + (f" after {iterations[name]} iterations" if name in iterations else ""),
                reached / plain.objective(vectors, centers[name]),
                "lower",
            ),
        ]
    share = flops / took["ours"] * took["limit"] / limit.amount
    return [
        *made,
        ratio(
            "start",
            "start alone: scikit-learn's time / ours and one pass",
            took["their start"] / took["our start"],
        ),
        ratio("share", "operations of plain passes a second / SGEMM, all threads", share),
        aside("passes", "    passes", ours.n_iter),
        aside("seconds", "    ours", took["ours"], "s"),
        aside("start seconds", "    our start and one pass", took["our start"], "s"),
    ]
