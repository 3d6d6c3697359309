"""FairCal on one fold of BFW's size, from arrays to a saved model, against the plain version.

The plain version is timed with all threads and with one; the shorter time counts.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import faircal
from benchmarks import data, plain
from benchmarks.data import Raw
from benchmarks.figure import Figure, aside, ratio
from benchmarks.machine import bare_seconds
from benchmarks.timing import command, once, one_thread
from faircal.compute import CPU

#: Times that the plain version runs, and ours beside each of them.
ROUNDS = 2
OURS_A_ROUND = 3


def dataset(raw: Raw) -> faircal.Dataset:
    """Return arrays as a dataset that knows nothing of them yet."""
    pairs = {"left": raw.left, "right": raw.right, "genuine": raw.genuine}
    one_fold = np.ones(len(raw.left), dtype=np.int8)  # else folds would be drawn
    return faircal.Dataset(embeddings=raw.vectors, pairs=pairs | {"fold": one_fold})


def fit(cal: faircal.Dataset, n_clusters: int, path: Path) -> faircal.FairCal:
    model = faircal.FairCal(n_clusters=n_clusters).fit(cal)
    model.save(path)
    return model


def figures(quick: bool) -> list[Figure]:
    raw, k = data.fold(quick), data.n_clusters(quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        took, ten_starts = _times(raw, k, folder)
        limits = _limit_seconds(raw, fit(dataset(raw), k, folder / "limit.faircal"))
        peak = _peak(raw, k, folder)
    speed_up = took["plain"] / took["ours"]
    share = limits / took["ours"]
    return [
        ratio("speed-up", "arrays to saved model: plain version's time / ours", speed_up, goal=30),
        ratio(
            "speed-up of fit",
            "    the same, our checks of the arrays (Dataset) left out",
            took["plain"] / took["fit"],
        ),
        ratio("share", "    products of the K-means passes and one read of all rows / time", share),
        *_objectives(raw, k, ten_starts),
        *_agreement(quick, k),
        aside("seconds", "    ours", took["ours"], "s"),
        aside("plain seconds", "    plain version", took["plain"], "s"),
        aside("peak", "    peak memory of a process that does ours", peak / 2**30, "GiB"),
    ]


def _times(raw: Raw, k: int, folder: Path) -> tuple[dict[str, float], float]:
    """Time both in turn; return the best of each, and the objective of the ten starts."""
    small = data.fold(quick=True)
    plain.fit(*small, 10, folder / "plain.npz")  # a warm-up at full size would take a minute
    fit(dataset(raw), k, folder / "ours.faircal")
    best = {"ours": np.inf, "fit": np.inf, "plain": np.inf}
    centers: list[NDArray[np.float32]] = []

    def plainly() -> None:
        centers.append(plain.fit(*raw, k, folder / "plain.npz").cluster_centers_)

    for _ in range(ROUNDS):
        for _ in range(OURS_A_ROUND):
            fresh = dataset(raw)
            times = {
                "ours": once(lambda: fit(dataset(raw), k, folder / "ours.faircal")),
                "fit": once(lambda cal=fresh: fit(cal, k, folder / "ours.faircal")),
            }
            best |= {name: min(best[name], time) for name, time in times.items()}
        best["plain"] = min(best["plain"], once(plainly))
    best["plain"] = min(best["plain"], once(one_thread(plainly)))
    used = np.union1d(raw.left, raw.right)
    return best, plain.objective(plain.unit(raw.vectors)[used], centers[0])


def _limit_seconds(raw: Raw, model: faircal.FairCal) -> float:
    """Return how long the machine needs for the bare work: K-means' products, reading the rows."""
    used = len(np.union1d(raw.left, raw.right))
    products = 2.0 * used * raw.vectors.shape[1] * model.n_clusters * model.clustering_.n_iter
    return bare_seconds(products, raw.vectors, np.stack([raw.left, raw.right], axis=1).ravel())


def _objectives(raw: Raw, k: int, ten_starts: float) -> list[Figure]:
    vectors = plain.unit(raw.vectors)[np.union1d(raw.left, raw.right)]
    ours = [
        plain.objective(vectors, CPU.kmeans(vectors, k, random_state=seed).centers) / ten_starts
        for seed in range(5)
    ]
    return [
        Figure(
            "objective",
            "    K-means objective, ours / best of scikit-learn's ten starts",
            ours[0],
            "lower",
            goal=1.005,
        ),
        Figure(
            "worst objective", "    the same, worst of five seeds", max(ours), "lower", goal=1.005
        ),
    ]


def _agreement(quick: bool, k: int) -> list[Figure]:
    """Compare with exact fits on the same clusters and scores; scores with those in float64."""
    cal, test = data.bfw_like(quick).split(1)
    model = faircal.FairCal(n_clusters=k).fit(cal)

    def codes(part: faircal.Dataset) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        images, clusters, _ = model.image_clusters(part)
        cluster = np.zeros(len(part.images), dtype=np.int32)
        cluster[images] = clusters
        return cluster[part.pairs.left], cluster[part.pairs.right]

    exact = plain.exact_maps(cal.scores, cal.genuine, *codes(cal), k)
    away = np.abs(model.predict_proba(test) - exact(test.scores, *codes(test)))
    few = slice(0, 100_000)
    x = cal.embeddings.vectors.astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosine = np.einsum("ij,ij->i", x[cal.pairs.left[few]], x[cal.pairs.right[few]])
    off = np.abs(cal.scores[few] - cosine)
    return [
        Figure(
            "probability",
            "    largest |probability − exact fit's| of the test pairs, same clusters and scores",
            float(away.max()),
            "lower",
            goal=1e-6,
        ),
        aside("score", "    largest |score − cosine in float64|", float(off.max())),
    ]


def _peak(raw: Raw, k: int, folder: Path) -> float:
    for name, array in raw._asdict().items():
        np.save(folder / f"{name}.npy", array)
    return command([sys.executable, "-m", "benchmarks.fit", folder, str(k)]).peak


def main() -> None:
    """Fit on the arrays of a folder: a process whose memory can be measured."""
    folder = Path(sys.argv[1])
    raw = Raw(*(np.load(folder / f"{name}.npy") for name in Raw._fields))
    fit(dataset(raw), int(sys.argv[2]), folder / "ours.faircal")


if __name__ == "__main__":
    main()
