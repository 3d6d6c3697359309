"""FSN: fair score normalisation, a shift per cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from faircal._base.container import prefixed, unprefixed
from faircal.calibrators import Calibrator
from faircal.methods.base import Claims, Needs, Output, check_count
from faircal.methods.clusters import ClusterMethod
from faircal.methods.inputs import Fitting, Float64, Inputs
from faircal.methods.set_calibrators import ShiftedScores, threshold_shifts
from faircal.metrics import ThresholdRule


@dataclass(eq=False, repr=False)
class FSN(ClusterMethod):
    """Shift scores so that each cluster meets one false-positive rate at one threshold.

    With t_k the threshold of the calibration pairs of cluster k at `target_fpr` and t_G that of
    all, the score of a pair in clusters k₁, k₂ is s − ½ (t_k₁ − t_G) − ½ (t_k₂ − t_G). One global
    calibrator turns it into a probability.

    Parameters
    ----------
    n_clusters : int
    calibrator : str or Calibrator
    target_fpr : float
        The false-positive rate it is fitted to (the paper: 0.1 %).
    threshold_rule : {"nearest", "interpolate", "conservative"}
        How a threshold is read off a finite ROC; see `faircal.metrics.find_threshold`.
    n_init, random_state : int
        Starts and seed of K-means.

    Attributes
    ----------
    shifts_ : ndarray of shape (n_clusters,)
        t_k − t_G; 0 where a cluster has no imposter.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.FSN(n_clusters=20).fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "fsn"
    title = "FSN"
    needs = Needs(embeddings=True)
    streams = True
    claims = Claims(improves_accuracy=True, predictive_equality=True)
    fitted_to_rate = True

    n_clusters: int = 100
    calibrator: str | Calibrator = "beta"
    target_fpr: float = 1e-3
    threshold_rule: ThresholdRule = "nearest"
    n_init: int = 1
    random_state: int = 0

    def _fit(self, inputs: Fitting) -> None:
        samples = self._fit_clusters(inputs)  # the scores of S_1 … S_K, as in FairCal
        # t_k − t_G, where t_k is the score above which `target_fpr` of S_k's imposters lie.
        shifts = threshold_shifts(samples, self.target_fpr, self.threshold_rule)
        without = int(np.isnan(shifts).sum())
        self.diagnostics_.figures["clusters_without_shift"] = without
        if without:
            self.diagnostics_.note(f"{without} clusters have no imposter pair and are not shifted")
        self.shifts_ = np.nan_to_num(shifts)
        # ŝ = s − ½ (t_k₁ − t_G) − ½ (t_k₂ − t_G)
        self._shifted = ShiftedScores(self.sets, self.shifts_)
        # Normalised scores are no probabilities: one global map, fitted in a second pass.
        self.calibrator_ = self._shifted.fit(self.calibrator, inputs)

    @property
    def cluster_shifts_(self) -> Float64:
        """t_k − t_G at the target false-positive rate, (K,)."""
        return self.shifts_

    def _apply(self, inputs: Inputs) -> Output:
        score = self._shifted(inputs)
        return Output(score, self.calibrator_.predict(score))

    def _get_state(self) -> dict[str, Any]:
        return {
            **self._cluster_state(),
            "shifts": self.shifts_,
            **prefixed("calibrator", self.calibrator_.get_state()),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        self._set_cluster_state(state)
        self.shifts_ = np.asarray(state["shifts"], np.float64)
        check_count("shifts", self.shifts_, len(self.cluster_sizes_))
        self._shifted = ShiftedScores(self.sets, self.shifts_)
        calibrator = self._shifted.calibrator(self.calibrator, self.score_range_)
        self.calibrator_ = calibrator.set_state(unprefixed("calibrator", state))
