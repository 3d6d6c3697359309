"""What SmoothFairCal costs beside FairCal: both in one run, by turns."""

from __future__ import annotations

import time
from typing import Any

import faircal
from faircal.data import Dataset
from studies.contenders import make
from studies.sets import REAL, Sets

_METHODS = ("faircal", "smooth")
#: Turns; the shortest time counts.
_TURNS = 7


def measured(name: str, sets: Sets, quick: bool) -> dict[str, float]:
    """Return seconds of a fit and nanoseconds a pair of a prediction, for both methods.

    Prediction is timed after a call that does not count, so that both know the images already.
    """
    calibration, test = _data(name, sets, quick)
    calibration.scores  # noqa: B018  both find the cosines ready
    found, models = dict[str, float](), dict[str, Any]()
    for method in _METHODS:
        started = time.perf_counter()
        models[method] = make(method, 0, quick).fit(calibration)
        found[f"{method}_fit_s"] = round(time.perf_counter() - started, 3)
        models[method].predict_proba(test)
    times: dict[str, list[float]] = {method: [] for method in _METHODS}
    for _ in range(_TURNS):
        for method, model in models.items():
            started = time.perf_counter()
            model.predict_proba(test)
            times[method].append(time.perf_counter() - started)
    for method, seconds in times.items():
        found[f"{method}_ns"] = round(1e9 * min(seconds) / len(test), 2)
    return found


def _data(name: str, sets: Sets, quick: bool) -> tuple[Dataset, Dataset]:
    if name == "cost, lfw":
        return sets.split(REAL, 1)
    return faircal.simulate("small" if quick else "bfw-like", seed=0).split(test_fold=1)
