"""Many calibrators side by side, one per set of pairs (cluster or group)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators import Calibrator, make_calibrator
from faircal.errors import DataError

Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]


class CalibratorBank:
    """One calibrator per set, and a global one for sets too small for their own.

    Parameters
    ----------
    calibrator : str or Calibrator
        What to fit on each set.
    score_range : (float, float)
    min_pairs : int
        A set with fewer pairs, or with one class only, uses the global calibrator.

    Attributes
    ----------
    own : ndarray of shape (n_sets,), bool
        Which sets have a calibrator of their own.
    """

    def __init__(
        self, calibrator: str | Calibrator, score_range: tuple[float, float], min_pairs: int = 10
    ) -> None:
        self._new: Callable[[], Calibrator] = lambda: make_calibrator(calibrator, score_range)
        self.min_pairs = min_pairs

    def fit(self, score: Float64, genuine: NDArray[np.bool_], sets: Sequence[Rows]) -> Self:
        """Fit the global calibrator on all pairs, and one on the pairs ``sets[k]`` for each k."""
        self.fallback = self._new().fit(score, genuine)
        self.maps: list[Calibrator | None] = []
        for rows in sets:
            labels = genuine[rows]
            usable = len(rows) >= self.min_pairs and labels.any() and not labels.all()
            self.maps.append(self._new().fit(score[rows], labels) if usable else None)
        return self

    @property
    def own(self) -> NDArray[np.bool_]:
        """Which sets have a calibrator of their own, shape (n_sets,)."""
        return np.array([fitted is not None for fitted in self.maps], dtype=bool)

    def predict(self, score: Float64, which: NDArray[np.integer]) -> Float64:
        """Return the probability of each score under the calibrator of its set.

        A negative number in `which` asks for the global calibrator.
        """
        known = np.where(np.append(self.own, False), np.arange(len(self.maps) + 1), -1)
        use = known[np.maximum(which, -1)]
        order = np.argsort(use, kind="stable")
        ends = np.searchsorted(use[order], np.arange(-1, len(self.maps) + 1))
        probability = np.empty(len(score))
        for k, fitted in enumerate([self.fallback, *self.maps]):
            rows = order[ends[k] : ends[k + 1]]
            if fitted is not None and len(rows):
                probability[rows] = fitted.predict(score[rows])
        return probability

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state as arrays: values of all maps in a row, with their lengths."""
        state: dict[str, Any] = {"own": self.own}
        fitted = [self.fallback, *(m for m in self.maps if m is not None)]
        states = [calibrator.get_state() for calibrator in fitted]
        for key in states[0]:
            state[f"{key}_values"] = np.concatenate([np.atleast_1d(s[key]) for s in states])
            state[f"{key}_lengths"] = np.array([np.size(s[key]) for s in states], dtype=np.int64)
        return state

    def set_state(self, state: dict[str, Any]) -> Self:
        """Restore what `get_state` gave."""
        own = state["own"].astype(bool)
        keys = [key.removesuffix("_values") for key in state if key.endswith("_values")]
        parts = {
            key: np.split(state[f"{key}_values"], np.cumsum(state[f"{key}_lengths"])[:-1])
            for key in keys
        }
        restored = [
            self._new().set_state({key: parts[key][i] for key in keys})
            for i in range(1 + own.sum())
        ]
        self.fallback = restored[0]
        following = iter(restored[1:])
        self.maps = [next(following) if mine else None for mine in own]
        return self


def check_count(name: str, values: Any, expected: int) -> None:
    """Raise unless restored `values` are a list or 1-d array with one entry for each set."""
    if np.shape(values) != (expected,):
        raise DataError(f"{name}: expected {expected} entries, found shape {np.shape(values)}")


def prefixed(prefix: str, state: dict[str, Any]) -> dict[str, Any]:
    """Put `prefix` and a dot before every key."""
    return {f"{prefix}.{key}": value for key, value in state.items()}


def unprefixed(prefix: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return the entries under `prefix`, without it."""
    start = f"{prefix}."
    return {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}
