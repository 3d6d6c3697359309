"""What faircal does, run."""

from __future__ import annotations

import inspect

import numpy as np

import faircal


def unnamed_people_narrow_the_interval() -> bool:
    """The interval is that of people where they are named: wider than that of the same pairs."""
    data = faircal.simulate("small", seed=0)
    people = data.people
    told = {"score": data.scores, "genuine": data.genuine, "threshold": 0.5}
    named = faircal.audit(**told, left_identity=people.left, right_identity=people.right)
    width = np.diff(named.interval("fpr"))
    return bool(width > 1.2 * np.diff(faircal.audit(**told).interval("fpr")))


def promises_take_no_other_risk() -> bool:
    """A promise is asked for by its FPR; there is no parameter for another rate."""
    from faircal.evaluation.thresholds.guarantee import guarantee

    asked = set(inspect.signature(guarantee).parameters)
    return "fpr" in asked and not asked & {"fnr", "risk", "recall", "precision", "metric"}


def networks() -> list[str]:
    """The networks by name."""
    from faircal.embedding.networks import NETWORKS

    return sorted(NETWORKS)
