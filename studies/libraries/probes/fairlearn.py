"""What Fairlearn does, run; and its side of what is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlearn.metrics import MetricFrame, false_positive_rate
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

_ENDS = [0.025, 0.975]


def four_times_the_rows_halve_the_interval() -> bool:
    """Bootstrap intervals of a table, and of the same table four times over."""
    rng = np.random.default_rng(0)
    true, said = rng.random((2, 300)) < 0.3
    widths = [
        np.ptp(_interval(np.tile(true, times), np.tile(said, times), 100)) for times in (1, 4)
    ]
    return bool(0.35 < widths[1] / widths[0] < 0.65)


class First(ClassifierMixin, BaseEstimator):
    """Its score is the first number of an input."""

    def fit(self, _: Any, y: Any) -> First:
        """Learn which classes there are."""
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: Any) -> Any:
        """Return the scores: decisions are made from them."""
        return x[:, 0]


def threshold_optimizer() -> dict[str, bool]:
    """It has no ``predict_proba``; some inputs are decided by lot."""
    rng = np.random.default_rng(0)
    group, score = rng.integers(2, size=600), rng.random((600, 1))
    label = (rng.random(600) < score[:, 0] ** (1 + group)).astype(int)
    made = ThresholdOptimizer(
        estimator=First().fit(score, label),
        constraints="equalized_odds",
        prefit=True,
        predict_method="predict",
    ).fit(score, label, sensitive_features=group)
    drawn = [made.predict(score, sensitive_features=group, random_state=seed) for seed in range(5)]
    by_lot = any(not np.array_equal(drawn[0], other) for other in drawn[1:])
    return {"probabilities": hasattr(made, "predict_proba"), "by_lot": by_lot}


def rates(told: dict[str, str]) -> dict[str, float]:
    """FPR of every group at a threshold."""
    data = np.load(told["data"])
    frame = MetricFrame(
        metrics=false_positive_rate,
        y_true=data["genuine"],
        y_pred=data["score"] >= data["threshold"],
        sensitive_features=data["group"],
    )
    return {str(group): float(rate) for group, rate in frame.by_group.items()}


def coverage(told: dict[str, Any]) -> list[list[float]]:
    """Bootstrap intervals of the FPR, one for each drawn set of people."""
    data = np.load(told["data"])
    labels = data["genuine"]
    return [_interval(labels, said, told["times"]) for said in data["score"] >= data["threshold"]]


def _interval(true: np.ndarray, said: np.ndarray, times: int) -> list[float]:
    frame = MetricFrame(
        metrics=false_positive_rate,
        y_true=true,
        y_pred=said,
        sensitive_features=np.zeros(len(true), dtype=int),
        n_boot=times,
        ci_quantiles=_ENDS,
        random_state=0,
    )
    return [float(end) for end in frame.overall_ci]
