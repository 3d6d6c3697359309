"""What is measured of class probabilities, for rows as they are and for rows drawn again.

The plain values are those of `faircal.metrics`; here they are worked out for many weightings of
the rows at once, which a bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from studies.classes.table import Float64, Int64

#: Names of what is measured, and how a page calls it; all but accuracy are better when small.
TITLES = {
    "nll": "NLL",
    "top_ks_mean": "KS mean",
    "top_ks_aad": "KS AAD",
    "class_ks_mean": "class KS mean",
    "top_ks": "KS global",
    "brier": "Brier",
    "accuracy": "accuracy",
}
#: Probabilities are kept this far from 0 before a logarithm is taken, as in `faircal.metrics`.
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Measured:
    """Class probabilities of rows whose labels and groups are known.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (n, C)
    codes : ndarray of int64, shape (n,)
    groups : ndarray of int64, shape (n,)
        −1 where unknown: such a row counts globally and in no group.
    n_groups : int

    Examples
    --------
    >>> said = np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]])
    >>> rows = Measured(said, np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), 2)
    >>> {name: round(value, 3) for name, value in rows.values().items() if "top" in name}
    {'top_ks_mean': 0.125, 'top_ks_aad': 0.125, 'top_ks': 0.125}
    """

    probabilities: Float64
    codes: Int64
    groups: Int64
    n_groups: int

    @cached_property
    def _top(self) -> tuple[Float64, npt.NDArray[np.bool_]]:
        """Confidence in the likeliest class, and whether it is the right one."""
        best = self.probabilities.argmax(axis=1)
        return self.probabilities.max(axis=1), best == self.codes

    def values(self) -> dict[str, float]:
        """Return every measure once, by the names of `TITLES`."""
        weights = np.ones((1, len(self.codes)))
        return {name: float(value[0]) for name, value in self.drawn(weights).items()}

    def drawn(self, weights: Float64) -> dict[str, Float64]:
        """Return every measure under weightings of the rows.

        Parameters
        ----------
        weights : ndarray of float64, shape (n_draws, n)
            How often each row was drawn.

        Returns
        -------
        dict of str to ndarray of float64, shape (n_draws,)
        """
        total = weights.sum(axis=1)
        right = self.probabilities[np.arange(len(self.codes)), self.codes]
        hit = np.eye(self.probabilities.shape[1])[self.codes]
        square = ((self.probabilities - hit) ** 2).sum(axis=1)
        confidence, correct = self._top
        top = self.by_group(weights)
        return {
            "nll": weights @ -np.log(np.maximum(right, _EPS)) / total,
            "top_ks_mean": np.nanmean(top, axis=1),
            "top_ks_aad": np.nanmean(np.abs(top - np.nanmean(top, axis=1, keepdims=True)), axis=1),
            "class_ks_mean": np.nanmean(self._classwise(weights), axis=1),
            "top_ks": _ks(confidence, correct, weights),
            "brier": weights @ square / total,
            "accuracy": weights @ correct / total,
        }

    def by_group(self, weights: Float64) -> Float64:
        """Return the top-label KS of each group, shape (n_draws, n_groups); NaN for none drawn."""
        confidence, correct = self._top
        return self._each(lambda rows: _ks(confidence[rows], correct[rows], weights[:, rows]))

    def floor(self, rng: np.random.Generator, draws: int) -> float:
        """Return the mean group KS if the probabilities were right: what chance alone leaves."""
        confidence = self._top[0]
        correct = rng.random((draws, len(confidence))) < confidence
        ones = np.ones((1, len(confidence)))
        found = self._each(lambda rows: _ks(confidence[rows], correct[:, rows], ones[:, rows]))
        return float(np.nanmean(found))

    def _classwise(self, weights: Float64) -> Float64:
        """Return the mean KS over classes of each group, shape (n_draws, n_groups)."""
        classes = range(self.probabilities.shape[1])

        def of(rows: Int64) -> Float64:
            found = [
                _ks(self.probabilities[rows, c], self.codes[rows] == c, weights[:, rows])
                for c in classes
            ]
            return np.asarray(np.mean(found, axis=0))

        return self._each(of)

    def _each(self, of: Callable[[Int64], Float64]) -> Float64:
        found = [of(np.flatnonzero(self.groups == g)) for g in range(self.n_groups)]
        return np.column_stack(found)


def _ks(said: Float64, correct: npt.NDArray[np.bool_], weights: Float64) -> Float64:
    """Return the weighted KS calibration error of each draw; NaN where nothing was drawn.

    Parameters
    ----------
    said : ndarray of float64, shape (n,)
    correct : ndarray of bool, shape (n,) or (n_draws, n)
    weights : ndarray of float64, shape (n_draws, n) or (1, n)
    """
    if not len(said):
        return np.full(max(len(weights), np.atleast_2d(correct).shape[0]), np.nan)
    order = np.argsort(said, kind="stable")
    said = said[order]
    gap = weights[:, order] * (said - np.atleast_2d(correct)[:, order])
    ends = np.append(said[1:] != said[:-1], True)  # equal probabilities come as one block
    total = weights.sum(axis=1)
    worst = np.abs(np.cumsum(gap, axis=1)[:, ends]).max(axis=1)
    found: Float64 = worst / np.where(total > 0, total, np.nan)
    return found


def units_drawn(units: Int64, draws: int, rng: np.random.Generator) -> Float64:
    """Return how often each row is drawn when whole units are, shape (draws, n).

    Examples
    --------
    >>> drawn = units_drawn(np.array([0, 0, 1]), 50, np.random.default_rng(0))
    >>> bool((drawn[:, 0] == drawn[:, 1]).all()), set((drawn[:, 0] + drawn[:, 2]).tolist())
    (True, {2.0})
    """
    names, unit = np.unique(units, return_inverse=True)
    picked = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    return picked[:, unit].astype(np.float64)
