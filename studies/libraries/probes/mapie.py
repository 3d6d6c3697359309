"""What MAPIE does, run; and its side of what is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from mapie.metrics.calibration import kolmogorov_smirnov_statistic, length_scale
from mapie.metrics.conditional import coverage_gap
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


def gap_is_from_the_target() -> float:
    """Two groups of equal coverage, 0.5, where 0.8 was asked for: their gap is not nothing."""
    ends = np.array([[0.0, 1.0], [5.0, 6.0]] * 4)
    groups = np.repeat([0, 1], 4)
    return round(coverage_gap(np.full(8, 0.5), groups, 0.8, y_intervals=ends), 12)


def thresholds_differ_by_input() -> bool:
    """What is learned is a threshold for each input, within what was asked for."""
    import torch
    from mapie.risk_control import ConditionalExpectedRiskController

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = rng.random((40, 4, 4)) * np.linspace(0.5, 1, 40)[:, None, None]

    def predict(x: Any, at: Any = None) -> Any:
        return x if at is None else np.asarray(x) >= np.reshape(at, (-1, 1, 1))

    made = ConditionalExpectedRiskController(
        predict, lambda x: np.asarray(x).reshape(-1, 16), 0.1, "recall", learning_rate=0.01
    )
    made.conformalize(x, (x > 0.4).astype(float), n_epochs=20)
    made.predict(x[::10], n_epochs=2)
    return bool(np.ptp(made.best_predict_params_) > 1e-3)


def thresholds(told: dict[str, Any]) -> list[float | None]:
    """Promised thresholds, one for each drawn set of people."""
    data = np.load(told["data"])
    return [_threshold(score, data["genuine"], told) for score in data["score"]]


def ks(told: dict[str, str]) -> float:
    """The largest gap of cumulated probabilities and labels, before it is scaled to a test."""
    data = np.load(told["data"])
    p = data["probability"]
    return float(kolmogorov_smirnov_statistic(data["genuine"], p) * length_scale(p))
