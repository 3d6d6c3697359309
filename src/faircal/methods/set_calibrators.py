"""What is fitted for each set of pairs (a cluster or a group): a calibrator, or a shift of scores.

FairCal and Oracle fit a calibrator for each set, `SetCalibrators`; FSN and GST shift scores so that
one threshold gives every set the same false-positive rate, `threshold_shifts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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
        self._new = partial(make_calibrator, calibrator, score_range)
        self.min_pairs = min_pairs

    def fit(self, samples: Samples, engine: Engine = CPU) -> Self:
        """Fit a calibrator on each set, and the global one on the last set, that of all pairs."""
        # Pairs of one class say nothing of how odds grow with the score: no map of their own.
        genuine, mass = samples.totals()
        both_classes = (genuine > 0) & (genuine < mass)
        own = ((samples.sizes >= self.min_pairs) & both_classes)[:-1]
        everybody = len(samples) - 1
        # All maps in one call: the calibrators that can, fit many sets at once.
        *fitted, fallback = self._new().fit_sets(samples, [*np.flatnonzero(own), everybody], engine)
        return self._set(own, fitted, fallback)

    def _set(self, own: NDArray[np.bool_], fitted: list[Calibrator], fallback: Calibrator) -> Self:
        following = iter(fitted)
        self.maps: list[Calibrator | None] = [next(following) if mine else None for mine in own]
        self.fallback = fallback
        self._table = None
        if isinstance(fallback, LogisticCalibrator):
            # Coefficients of all maps side by side, the global ones last, where −1 finds them:
            # a pair's map is then a column of numbers, and no loop over sets is needed.
            rows = [(fallback if one is None else one).coefficients for one in [*self.maps, None]]
            self._table = np.ascontiguousarray(np.transpose(rows))
        return self

    @property
    def own(self) -> NDArray[np.bool_]:
        """Which sets have a calibrator of their own, shape (n_sets,)."""
        return np.array([fitted is not None for fitted in self.maps], dtype=bool)

    def predict(self, score: Float64, which: NDArray[np.integer]) -> Float64:
        """Return the probability of each score under the calibrator of its set.

        A negative number in `which` asks for the global calibrator.
        """
        if self._table is None:
            return self._predict_by_set(score, which)
        probability = np.empty(len(score))

        def work(part: slice) -> None:
            (probability[part],) = self._looked_up(score[part], which[part])

        each(work, len(score), _BLOCK)
        return probability

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
            self.mix_into(probability[part], score[part], k1[part], k2[part], sizes)

        if self.in_blocks:
            each(work, len(score), _BLOCK)
        else:
            work(slice(0, len(score)))
        return probability

    @property
    def in_blocks(self) -> bool:
        """Whether blocks within the cache are cheapest; other maps than logistic ones like many."""
        return self._table is not None

    def mix_into(
        self,
        out: Float64,
        score: Float64,
        k1: NDArray[np.integer],
        k2: NDArray[np.integer],
        sizes: NDArray[np.integer],
    ) -> None:
        """Write what `mix` gives into `out`, (n,), in this thread: for blocks within the cache."""
        # The lower set first: the same sum to the last digit whichever image is on the left.
        low, high = np.minimum(k1, k2), np.maximum(k1, k2)
        if self._table is None:
            p1, p2 = (self._predict_by_set(score, k) for k in (low, high))
        else:
            p1, p2 = self._looked_up(score, low, high)
        n1, n2 = sizes.take(low), sizes.take(high)
        theta = n1 / np.maximum(n1 + n2, 1)  # two sets without pairs: both maps are global
        # θ (p₁ − p₂) + p₂ in place, and exactly p where both sets are the same.
        p1 -= p2
        p1 *= theta
        np.clip(np.add(p1, p2, out=p1), 0.0, 1.0, out=out)

    def _looked_up(self, score: Float64, *which: NDArray[np.integer]) -> list[Float64]:
        """Return the probabilities under each choice of sets, given a logistic calibrator."""
        table = np.asarray(self._table)
        coefficients = [table.take(np.maximum(k, -1), axis=1) for k in which]
        probabilities: list[Float64] = self.fallback.probabilities(score, *coefficients)
        return probabilities

    def _predict_by_set(self, score: Float64, which: NDArray[np.integer]) -> Float64:
        """Return the probabilities, one call a set: pairs are sorted by the map they use."""
        map_of_set = np.where(np.append(self.own, False), np.arange(len(self.maps) + 1), -1)
        use = map_of_set[np.maximum(which, -1)]
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
        if own.ndim != 1:
            raise DataError(f"own: expected one entry for each set, found shape {own.shape}")
        keys = [key.removesuffix("_values") for key in state if key.endswith("_values")]
        for key in keys:
            _check_lengths(key, state, 1 + int(own.sum()))
        parts = {
            key: np.split(state[f"{key}_values"], np.cumsum(state[f"{key}_lengths"])[:-1])
            for key in keys
        }
        restored = [
            self._new().set_state({key: parts[key][i] for key in keys})
            for i in range(1 + own.sum())
        ]
        return self._set(own, restored[1:], restored[0])


def _check_lengths(key: str, state: dict[str, Any], expected: int) -> None:
    """Raise unless the values of all maps in a row are as many as their lengths say."""
    values, lengths = state[f"{key}_values"], state[f"{key}_lengths"]
    check_count(f"{key}_lengths", lengths, expected)
    if np.ndim(values) != 1 or (lengths < 1).any() or lengths.sum() != len(values):
        raise DataError(f"{key}_values: expected as many as their lengths say; fit it again")


def threshold_shifts(samples: Samples, target_fpr: float, rule: ThresholdRule) -> Float64:
    """Return t_k − t_G of each set at `target_fpr`; NaN where a set has no threshold.

    The last set of `samples`, that of all pairs, gives t_G.
    """

    def threshold(k: int) -> float:
        if not samples.sizes[k]:
            return np.nan
        sample = samples[k]
        genuine, imposter = (
            np.round(count).astype(np.int64)  # masses are sums of ones
            for count in (sample.genuine, sample.mass - sample.genuine)
        )
        ranking = Ranking.counted(sample.scores, genuine, imposter)
        return find_threshold(ranking, target_fpr, rule=rule)

    *of_sets, overall = map(threshold, range(len(samples)))
    return np.array(of_sets) - overall


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
