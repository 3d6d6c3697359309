"""What is fitted for each set of pairs (a cluster or a group): a calibrator, or a shift of scores.

FairCal and Oracle fit a calibrator for each set, `SetCalibrators`; FSN and GST shift scores so that
one threshold gives every set the same false-positive rate, `threshold_shifts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from faircal._base.errors import DataError
from faircal.calibrators import (
    Calibrator,
    LogisticCalibrator,
    Samples,
    make_calibrator,
)
from faircal.compute import CPU, Engine
from faircal.compute.threads import each
from faircal.methods.base import check_count
from faircal.methods.inputs import Fitting, Float64, Inputs, PairSets
from faircal.metrics import Ranking, ThresholdRule, find_threshold

# Scores at a time, so that score, terms and probability stay in the cache.
_BLOCK = 1 << 14


class SetCalibrators:
    """One calibrator per set, and a global one for sets without their own.

    Parameters
    ----------
    own : ndarray of shape (n_sets,), bool
        Which sets have a calibrator of their own.
    fitted : list of Calibrator
        Those, in the order of their sets.
    fallback : Calibrator
        The global one.

    Attributes
    ----------
    maps : list of Calibrator
        That of each set, be it the global one.
    """

    def __init__(
        self, has_own: NDArray[np.bool_], fitted: list[Calibrator], fallback: Calibrator
    ) -> None:
        self.own, self.fallback = has_own, fallback
        following = iter(fitted)
        self.maps = [next(following) if each else fallback for each in has_own]
        self._table = None
        if isinstance(fallback, LogisticCalibrator):
            # Coefficients of all maps side by side, the global ones last, where −1 finds them:
            # a pair's map is then a column of numbers, and no loop over sets is needed.
            rows = [one.coefficients for one in (*self.maps, fallback)]
            self._table = np.ascontiguousarray(np.transpose(rows))

    @classmethod
    def fit(
        cls, calibrator: Calibrator, samples: Samples, min_pairs: int = 10, engine: Engine = CPU
    ) -> SetCalibrators:
        """Fit a calibrator on each set, and the global one on the last set, that of all pairs.

        Parameters
        ----------
        calibrator : Calibrator
            What to fit, itself left as it is.
        samples : Samples
        min_pairs : int
            A set with fewer pairs, or with one class only, uses the global calibrator.
        engine : Engine
        """
        # Pairs of one class say nothing of how odds grow with the score: no map of their own.
        genuine, mass = samples.totals()
        both_classes = (genuine > 0) & (genuine < mass)
        has_own = ((samples.sizes >= min_pairs) & both_classes)[:-1]
        # All maps in one call: the calibrators that can, fit many sets at once.
        which = [*np.flatnonzero(has_own), len(has_own)]
        *fitted, fallback = calibrator.fit_sets(samples, which, engine)
        return cls(has_own, fitted, fallback)

    def mix(
        self,
        score: Float64,
        k1: NDArray[np.integer],
        k2: NDArray[np.integer],
        sizes: NDArray[np.integer],
    ) -> Float64:
        """Return θ p₁ + (1 − θ) p₂ with θ = n₁ / (n₁ + n₂), the same whichever set comes first.

        Parameters
        ----------
        score : ndarray of shape (n,)
        k1, k2 : ndarray of int, shape (n,)
            The two sets of each pair, from 0; p₁ and p₂ are what their calibrators say.
        sizes : ndarray of int, shape (n_sets,)
            How many pairs each set has: n₁ and n₂ are those of the two.
        """
        probability = np.empty(len(score))

        def work(part: slice) -> None:
            # The lower set first: the same sum to the last digit whichever image is on the left.
            low, high = np.minimum(k1[part], k2[part]), np.maximum(k1[part], k2[part])
            p1, p2 = self.predict(score[part], low, high)
            n1, n2 = sizes.take(low), sizes.take(high)
            theta = n1 / np.maximum(n1 + n2, 1)  # two sets without pairs: both maps are global
            # θ (p₁ − p₂) + p₂ in place, and exactly p where both sets are the same.
            p1 -= p2
            p1 *= theta
            np.clip(np.add(p1, p2, out=p1), 0.0, 1.0, out=probability[part])

        # Other maps than logistic ones take all scores of a set at once.
        each(work, len(score), max(len(score), 1) if self._table is None else _BLOCK)
        return probability

    def predict(self, score: Float64, *which: NDArray[np.integer]) -> list[Float64]:
        """Return the probabilities of scores under the calibrators of sets.

        Parameters
        ----------
        score : ndarray of shape (n,)
        *which : ndarray of int, shape (n,)
            For each result the set of each score; a negative number asks for the global calibrator.

        Returns
        -------
        probabilities : list of ndarray of shape (n,)
        """
        if isinstance(self.fallback, LogisticCalibrator) and self._table is not None:
            coefficients = [self._table.take(np.maximum(k, -1), axis=1) for k in which]
            return self.fallback.probabilities(score, *coefficients)
        # One call a map, for all pairs that use it.
        map_of_set = np.where(np.append(self.own, False), np.arange(len(self.maps) + 1), -1)
        results = []
        for k in which:
            use = map_of_set[np.maximum(k, -1)]
            order = np.argsort(use, kind="stable")
            ends = np.searchsorted(use[order], np.arange(-1, len(self.maps) + 1))
            probability = np.empty(len(score))
            for i, fitted in enumerate([self.fallback, *self.maps]):
                rows = order[ends[i] : ends[i + 1]]
                if len(rows):
                    probability[rows] = fitted.predict(score[rows])
            results.append(probability)
        return results

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state as arrays: values of all maps in a row, with their lengths."""
        state: dict[str, Any] = {"own": self.own}
        fitted = [self.fallback, *compress(self.maps, self.own)]
        states = [calibrator.get_state() for calibrator in fitted]
        for key in states[0]:
            state[f"{key}_values"] = np.concatenate([np.atleast_1d(s[key]) for s in states])
            state[f"{key}_lengths"] = np.array([np.size(s[key]) for s in states], dtype=np.int64)
        return state

    @classmethod
    def restore(cls, calibrator: Calibrator, state: dict[str, Any]) -> SetCalibrators:
        """Return those whose state `get_state` gave; they are like `calibrator`."""
        has_own = state["own"].astype(bool)
        if has_own.ndim != 1:
            raise DataError(f"own: expected one entry for each set, found shape {has_own.shape}")
        n_maps = 1 + int(has_own.sum())
        parts = {}
        for key in (key.removesuffix("_values") for key in state if key.endswith("_values")):
            values, lengths = state[f"{key}_values"], state[f"{key}_lengths"]
            check_count(f"{key}_lengths", lengths, n_maps)
            if np.ndim(values) != 1 or (lengths < 1).any() or lengths.sum() != len(values):
                raise DataError(
                    f"{key}_values: expected as many as their lengths say; fit it again"
                )
            parts[key] = np.split(values, np.cumsum(lengths)[:-1])
        fallback, *fitted = (
            clone(calibrator).set_state({key: of_maps[i] for key, of_maps in parts.items()})
            for i in range(n_maps)
        )
        return cls(has_own, fitted, fallback)


def threshold_shifts(samples: Samples, target_fpr: float, rule: ThresholdRule) -> Float64:
    """Return t_k − t_G of each set at `target_fpr`; NaN where a set has no threshold.

    The last set of `samples`, that of all pairs, gives t_G.
    """
    thresholds: Float64 = np.full(len(samples), np.nan)
    for k in np.flatnonzero(samples.sizes).tolist():
        sample = samples[k]
        genuine, imposter = (
            np.round(count).astype(np.int64)  # masses are sums of ones
            for count in (sample.genuine, sample.mass - sample.genuine)
        )
        ranking = Ranking.counted(sample.scores, genuine, imposter)
        thresholds[k] = find_threshold(ranking, target_fpr, rule=rule)
    shifts: Float64 = thresholds[:-1] - thresholds[-1]
    return shifts


@dataclass(frozen=True, eq=False)
class ShiftedScores:
    """Scores less the shift of a pair's set, or the mean of those of its two sets.

    Parameters
    ----------
    sets : PairSets
    shifts : ndarray of shape (n_sets,)
    """

    sets: PairSets
    shifts: Float64

    def __call__(self, inputs: Inputs) -> Float64:
        """Return ŝ = s − t of each pair; a pair of no set keeps s."""
        table = np.append(self.shifts, 0.0)  # −1, no set, is last
        first, *others = self.sets(inputs)
        total = table[first]
        for codes in others:
            total = total + table[codes]
        shifted: Float64 = inputs.score - total / (1 + len(others))
        return shifted

    def calibrator(self, kind: str | Calibrator, score_range: tuple[float, float]) -> Calibrator:
        """Return an unfitted calibrator: the range of scores moves with the shifts."""
        low, high = score_range
        if not len(self.shifts):
            return make_calibrator(kind, score_range)
        return make_calibrator(
            kind, (low - float(self.shifts.max()), high - float(self.shifts.min()))
        )

    def fit(self, kind: str | Calibrator, inputs: Fitting) -> Calibrator:
        """Fit a calibrator on the shifted scores of all pairs: normalised scores say no odds."""
        calibrator = self.calibrator(kind, inputs.score_range)
        samples = inputs.samples(scores=self, score_range=calibrator.score_range)
        (fitted,) = calibrator.fit_sets(samples, engine=inputs.engine)
        return fitted
