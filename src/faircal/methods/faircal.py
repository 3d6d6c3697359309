"""FairCal: cluster without labels, calibrate each cluster, mix the two clusters' maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal.calibrators import Calibrator, make_calibrator
from faircal.methods.base import Claims, Needs, Output, check_count
from faircal.methods.clusters import ClusterMethod
from faircal.methods.inputs import Fitting, Inputs
from faircal.methods.set_calibrators import SetCalibrators

#: Where half of the clusters have fewer pairs of either class, log-loss was 1.1 to 7 times that of
#: Baseline, on simulated people held out; with 20 to 50 it was 0.9 to 1.3 times.
FEW_PAIRS = 20
#: With as many pairs of the rarer class for each cluster it was as good as Baseline.
ENOUGH_PAIRS = 40
#: Imposter pairs within a cluster, as a multiple of what chance makes. Imposters drawn at random
#: have 0.6 to 1.0, those drawn within groups 1.1 to 6, those that score highest 10 to 40.
AT_RANDOM, HARD = 1.1, 10.0
#: Clusters, and imposter pairs within one by chance, that are needed to tell.
_LEAST_CLUSTERS, _BY_CHANCE = 8, 20.0
#: Scores at which maps are compared, over the range of scores.
_SHIFT_POINTS = 4001


@dataclass(eq=False, repr=False)
class FairCal(ClusterMethod):
    """The paper's method: fair, calibrated probabilities without sensitive attributes.

    K-means cuts the embedding space into K clusters. Each has a calibrator of its own, fitted on
    the calibration pairs with at least one image in the cluster. A pair with score s whose images
    lie in clusters i and j gets ``θ μᵢ(s) + (1 − θ) μⱼ(s)`` with ``θ = nᵢ / (nᵢ + nⱼ)``: μᵢ is
    cluster i's calibrator, nᵢ the number of pairs that it was fitted on.

    Parameters
    ----------
    n_clusters : int
        K, the number of clusters. More tell people apart better, and leave each fewer pairs to be
        calibrated on.
    calibrator : str or Calibrator
        What is fitted in each cluster; see `faircal.calibrators`.
    n_init : int
        Starts of K-means; the best one counts.
    random_state : int
        Seed of K-means.
    min_pairs : int
        A cluster with fewer pairs, or one class only, uses the global calibrator.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
        Centres of the clusters in embedding space.
    inertia_ : float
        K-means' objective: the sum of squared distances to the nearest centre.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Calibration pairs with at least one image in each cluster.
    diagnostics_ : Diagnostics
        Which clusters fell back to the global map, and the sizes of clusters.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.FairCal(n_clusters=20).fit(cal)
    >>> p = model.predict_proba(test)
    >>> bool((p >= 0).all() and (p <= 1).all())
    True
    """

    name = "faircal"
    title = "FairCal"
    needs = Needs(embeddings=True)
    streams = True
    claims = Claims(improves_accuracy=True, fairly_calibrated=True, predictive_equality=True)

    n_clusters: int = 100
    calibrator: str | Calibrator = "beta"
    n_init: int = 1
    random_state: int = 0
    min_pairs: int = 10

    def _fit(self, inputs: Fitting) -> None:
        # (i) K-means of the images' features; the scores of the calibration sets S_1 … S_K.
        samples = self._fit_clusters(inputs)
        # (ii) A calibration map μ_k for each S_k, and the global one for those too small.
        calibrator = make_calibrator(self.calibrator, inputs.score_range)
        self.calibrators_ = SetCalibrators.fit(calibrator, samples, self.min_pairs, inputs.engine)
        genuine, mass = samples.totals()
        self._note_few(genuine, mass)
        self._note_pairing(mass - genuine)
        on_global = int((~self.calibrators_.own).sum())
        self.diagnostics_.figures["clusters_on_global_map"] = on_global
        if on_global:
            self.diagnostics_.note(
                f"{on_global} of {self.n_clusters} clusters have under {self.min_pairs} pairs or "
                "only one class and use the global calibrator"
            )

    def _note_few(self, genuine: NDArray[np.float64], mass: NDArray[np.float64]) -> None:
        """Say where clusters are too many for the pairs, of which the last set has all."""
        *of_sets, pairs = np.minimum(genuine, mass - genuine)
        own = np.array(of_sets)[self.calibrators_.own]
        few = float(np.median(own)) if len(own) else FEW_PAIRS
        if self.n_clusters > 1 and few < FEW_PAIRS:
            clusters = int(pairs / ENOUGH_PAIRS)
            fewer = f"about {clusters} clusters" if clusters > 1 else "Baseline, or more people"
            self.diagnostics_.note(
                f"half of the {len(own)} clusters with a map of their own have {few:.0f} or fewer "
                "genuine or imposter pairs to fit it on: probabilities are probably worse than "
                f"Baseline's; take {fewer}, or ask 'faircal choose'"
            )

    def _note_pairing(self, imposters: NDArray[np.float64]) -> None:
        """Say where imposters were paired at random, or the hardest ones were taken.

        `imposters` counts those with an image in each cluster, and, last, all.
        """
        *of_sets, pairs = imposters
        # A pair is in two sets unless both of its images are of one cluster.
        within = 2 * pairs - sum(of_sets)
        # At random, n_k / n = 1 − (1 − p_k)² of all pairs have an image in cluster k.
        share = 1 - np.sqrt(np.maximum(1 - np.array(of_sets) / max(pairs, 1.0), 0.0))
        by_chance = pairs * float(np.square(share).sum()) / max(float(share.sum()) ** 2, 1e-12)
        if self.n_clusters < _LEAST_CLUSTERS or by_chance < _BY_CHANCE:
            return
        times = float(within / by_chance)
        self.diagnostics_.figures["imposters_within_a_cluster_by_chance"] = times
        how_often = f"imposter pairs are within one cluster {times:.1f} times as often as by chance"
        if times < AT_RANDOM:
            self.diagnostics_.note(
                f"{how_often}, as if paired at random: they say little of different people who "
                "look alike, so groups may be treated no better than by Baseline; pair imposters "
                "with 'faircal pairs --imposters matched', or take method cohort"
            )
        elif times > HARD:
            self.diagnostics_.note(
                f"{how_often}: the hardest imposters were taken, and probabilities hold for pairs "
                "as hard as these; calibrate on pairs as they come in use"
            )

    def _apply(self, inputs: Inputs) -> Output:
        # (iii) c(x₁, x₂) = θ μ_k₁(s) + (1 − θ) μ_k₂(s) with θ = |S_k₁| / (|S_k₁| + |S_k₂|)
        k1, k2 = self.sets(inputs)
        probability = self.calibrators_.mix(inputs.score, k1, k2, self.cluster_sizes_)
        # Ranked by probability: the same score means more in one cluster than in another, which is
        # what the maps mend.
        return Output(probability, probability)

    @property
    def cluster_shifts_(self) -> NDArray[np.float64]:
        """How much higher than by the global map a score must be for P(genuine) = 1/2, (K,).

        NaN where a cluster's map does not reach 1/2; 0 where it is the global one.
        """
        scores = np.linspace(*self.score_range_, _SHIFT_POINTS)

        reached = []
        for fitted in (*self.calibrators_.maps, self.calibrators_.fallback):
            # Maps need not be monotone (histogram, spline): the first score that reaches one half.
            likely = fitted.predict(scores) >= 0.5
            reached.append(scores[np.argmax(likely)] if likely.any() else np.nan)
        return np.where(self.calibrators_.own, np.array(reached[:-1]) - reached[-1], 0.0)

    def _get_state(self) -> dict[str, Any]:
        return {**self._cluster_state(), **prefixed("bank", self.calibrators_.get_state())}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._set_cluster_state(state)
        calibrator = make_calibrator(self.calibrator, self.score_range_)
        self.calibrators_ = SetCalibrators.restore(calibrator, unprefixed("bank", state))
        check_count("bank", self.calibrators_.own, len(self.cluster_sizes_))
