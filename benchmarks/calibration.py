"""Beta maps of all clusters at once, against betacal in a loop."""

from __future__ import annotations

import numpy as np
from betacal import BetaCalibration
from numpy.typing import NDArray

import faircal
from benchmarks import data, plain
from benchmarks.figure import Figure, aside, ratio
from benchmarks.timing import race
from faircal.calibrators import Samples
from faircal.compute import CPU

Float64 = NDArray[np.float64]


def figures(quick: bool) -> list[Figure]:
    cal, _ = data.bfw_like(quick).split(1)
    k = data.n_clusters(quick)
    used, vectors = cal.used_images(), data.calibration_vectors(quick)
    cluster = np.zeros(len(cal.images), dtype=np.int32)
    cluster[used] = CPU.assign(vectors, CPU.kmeans(vectors, k).centers)
    left, right = cluster[cal.pairs.left], cluster[cal.pairs.right]
    score, genuine = cal.scores, cal.genuine
    probability: dict[str, list[Float64]] = {}

    def ours() -> list[faircal.BetaCalibrator]:
        samples = Samples.of(score, genuine, left, right, n_sets=k)
        return faircal.BetaCalibrator().fit_sets(samples)

    def theirs() -> list[BetaCalibration]:
        z = plain.onto_unit_interval(score)
        inside = ((left == i) | (right == i) for i in range(k))
        return [BetaCalibration("abm").fit(z[rows], genuine[rows]) for rows in inside]

    took = race({"ours": ours, "theirs": theirs}, also_alone=["theirs"])
    sets = [np.flatnonzero((left == i) | (right == i)) for i in range(k)]
    z = plain.onto_unit_interval(score)
    probability["ours"] = [m.predict(score[r]) for m, r in zip(ours(), sets, strict=False)]
    probability["theirs"] = [m.predict(z[r]) for m, r in zip(theirs(), sets, strict=True)]
    loss = {
        name: sum(
            faircal.metrics.nll(p, genuine[rows]) * len(rows)
            for p, rows in zip(found, sets, strict=True)
        )
        for name, found in probability.items()
    }
    passes = sum(map(len, sets))
    sort = race({"sort": lambda: np.sort(score)})["sort"]
    return [
        ratio(
            "speed-up",
            f"beta maps of {k} clusters: betacal's time / ours",
            took["theirs"] / took["ours"],
        ),
        Figure("loss", "    log-loss, ours / betacal's", loss["ours"] / loss["theirs"], "lower"),
        ratio("sorts", "    ours / one bare sort of all scores", took["ours"] / sort, "lower"),
        aside("pairs", "    pairs in all sets", passes),
        aside("seconds", "    ours", took["ours"], "s"),
    ]
