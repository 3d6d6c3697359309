"""What netcal does, run; and its side of what is measured."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import torch
from netcal.binning import IsotonicRegression
from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

MAPS = {"beta": BetaCalibration, "isotonic": IsotonicRegression}


def _drawn(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return p, (rng.random(n) < p).astype(int)


def maps_depend_on_given_numbers() -> bool:
    """One confidence, two values of a further number: two probabilities."""
    rng = np.random.default_rng(0)
    p, where = rng.uniform(0.05, 0.95, (2, 400))
    label = (rng.random(400) < p * where).astype(int)
    fitted = LogisticCalibration(detection=True).fit(np.column_stack([p, where]), label)
    low, high = fitted.transform(np.array([[0.5, 0.1], [0.5, 0.9]]))
    return bool(abs(high - low) > 0.05)


def variational_fits_give_draws() -> bool:
    """A fit by variational inference gives several values for each confidence."""
    torch.manual_seed(0)
    p, label = _drawn()
    fitted = LogisticCalibration(method="variational", vi_epochs=20)
    fitted.fit(p, label, random_state=0)
    given = np.asarray(fitted.transform(p[:5], num_samples=30))
    return bool(given.shape[0] == 30 and given.std(axis=0).max() > 0)


def scaling_takes_a_gpu() -> bool:
    """Scaling methods have ``use_cuda``."""
    above = inspect.getmro(TemperatureScaling)
    return any("use_cuda" in inspect.signature(kind.__init__).parameters for kind in above)


def calibrate(told: dict[str, Any]) -> dict[str, float]:
    """Fit maps on scores in (0, 1), write the probabilities; return seconds of each fit."""
    data, given, seconds = np.load(told["data"]), {}, {}
    for name, kind in MAPS.items():
        times = []
        for _ in range(told["times"]):
            fitted = kind()
            start = time.process_time()
            fitted.fit(data["score"], data["genuine"].astype(int))
            times.append(time.process_time() - start)
        seconds[name] = min(times)
        given[name] = np.asarray(fitted.transform(data["new"])).reshape(-1)
    np.savez(told["out"], **given)
    return seconds
