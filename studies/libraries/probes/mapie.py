"""What MAPIE does, run; and its side of what is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from mapie.metrics.calibration import kolmogorov_smirnov_statistic, length_scale
from mapie.risk_control import BinaryClassificationController


def _threshold(score: np.ndarray, label: np.ndarray, told: dict[str, Any]) -> float | None:
    """The lowest threshold of a grid that passes; None where none does."""
    controller = BinaryClassificationController(
        predict_function=lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]),
        risk="fpr",
        target_level=told["fpr"],
        confidence_level=told["confidence"],
        list_predict_params=np.asarray(told["grid"]),
        fwer_method=told["procedure"],
    )
    controller.calibrate(score[:, None], label.astype(int))
    passed = np.asarray(controller.valid_predict_params, dtype=float).reshape(-1)
    return float(passed.min()) if len(passed) else None


def four_times_the_rows_lower_the_threshold() -> bool:
    """Thresholds for a table, and for the same table four times over."""
    rng = np.random.default_rng(0)
    score, label = rng.random(400), rng.random(400) < 0.2
    told = {
        "fpr": 0.1,
        "confidence": 0.95,
        "grid": np.linspace(0, 0.99, 100),
        "procedure": "bonferroni_holm",
    }
    once, four = (_threshold(np.tile(score, n), np.tile(label, n), told) for n in (1, 4))
    return bool(once is not None and four is not None and four < once)


def thresholds(told: dict[str, Any]) -> list[float | None]:
    """Promised thresholds, one for each drawn set of people."""
    data = np.load(told["data"])
    return [_threshold(score, data["genuine"], told) for score in data["score"]]


def ks(told: dict[str, str]) -> float:
    """The largest gap of cumulated probabilities and labels, before it is scaled to a test."""
    data = np.load(told["data"])
    p = data["probability"]
    return float(kolmogorov_smirnov_statistic(data["genuine"], p) * length_scale(p))
