"""Metrics by group: one sort for all, against scikit-learn group by group."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks import data
from benchmarks.figure import Figure, aside, ratio
from benchmarks.timing import race
from faircal.metrics import Ranking, auroc, tpr_at_fpr


def figures(quick: bool) -> list[Figure]:
    found = data.bfw_like(quick)
    scores, genuine, groups = found.scores, found.genuine, found.groups()

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

    took = race({"ours": ours, "theirs": theirs, "sort": lambda: np.sort(scores)}, rounds=5)
    return [
        ratio(
            "speed-up",
            "AUROC and TPR of eight groups: scikit-learn's time / ours",
            took["theirs"] / took["ours"],
        ),
        ratio(
            "sorts", "    ours / one bare sort of all scores", took["ours"] / took["sort"], "lower"
        ),
        aside("seconds", "    ours", took["ours"], "s"),
    ]
