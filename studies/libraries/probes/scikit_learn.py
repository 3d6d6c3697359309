"""What scikit-learn does, run; and its side of what is measured."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression


class First(ClassifierMixin, BaseEstimator):
    """Its score is the first number of an input."""

    def fit(self, _: Any, y: Any) -> First:
        """Learn which classes there are."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x: Any) -> Any:
        """Return the scores."""
        return x[:, 0]

    def predict(self, x: Any) -> Any:
        """Return the class that the sign of the score says."""
        return self.classes_[(x[:, 0] > 0).astype(int)]


def _drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    return x, rng.random(400) < 1 / (1 + np.exp(-x.sum(axis=1)))


def calibration_methods() -> list[str]:
    """Which of some well-known maps there are."""
    x, y = _drawn()
    found = []
    for method in ("beta", "histogram", "isotonic", "sigmoid", "spline", "temperature"):
        try:
            CalibratedClassifierCV(LogisticRegression(), method=method).fit(x, y)
        except ValueError:
            continue
        found.append(method)
    return found


def calibrates_three_classes() -> bool:
    """Three classes, probabilities that add up to one, by all maps."""
    x, y = load_iris(return_X_y=True)
    given = [
        CalibratedClassifierCV(LogisticRegression(), method=method).fit(x, y).predict_proba(x)
        for method in ("sigmoid", "isotonic", "temperature")
    ]
    return all(p.shape == (150, 3) and np.allclose(p.sum(axis=1), 1) for p in given)


def equal_scores_have_equal_probabilities() -> bool:
    """Inputs with one score and different other numbers."""
    x, y = _drawn()
    fitted = CalibratedClassifierCV(FrozenEstimator(First().fit(x, y))).fit(x, y)
    p = fitted.predict_proba(np.array([[0.3, -2.0], [0.3, 2.0]]))
    return bool(np.array_equal(p[0], p[1]))


def calibrate(told: dict[str, Any]) -> dict[str, float]:
    """Fit maps on scores, write the probabilities; return seconds of each fit."""
    data, given, seconds = np.load(told["data"]), {}, {}
    for name, kind in MAPS.items():
        times = []
        for _ in range(told["times"]):
            fitted = kind()
            start = time.process_time()
            fitted.fit(data["score"], data["genuine"])
            times.append(time.process_time() - start)
        seconds[name] = min(times)
        given[name] = fitted.predict(data["new"])
    np.savez(told["out"], **given)
    return seconds


class Sigmoid:
    """`CalibratedClassifierCV`'s sigmoid, around a score."""

    def fit(self, score: Any, genuine: Any) -> Sigmoid:
        """Fit it, by cross-fitting."""
        x = score[:, None]
        frozen = FrozenEstimator(First().fit(x, genuine))
        self._fitted = CalibratedClassifierCV(frozen, method="sigmoid").fit(x, genuine)
        return self

    def predict(self, score: Any) -> Any:
        """Return probabilities."""
        return self._fitted.predict_proba(score[:, None])[:, 1]


MAPS = {"platt": Sigmoid, "isotonic": lambda: IsotonicRegression(out_of_bounds="clip")}
