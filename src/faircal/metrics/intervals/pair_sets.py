"""One set of pairs whose values are to have intervals: all pairs, or a group's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import ndtri, stdtrit

from faircal.metrics import METRICS, log_likelihood_ratio
from faircal.metrics.intervals.auroc import AurocDependence
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs, PeopleVariance
from faircal.metrics.intervals.sufficient_data import ERROR_RATES


@dataclass(frozen=True, eq=False)
class PairSet:
    """One set of pairs, and what was worked out of it.

    Of a rate, `metric` is ``fpr``, which counts imposter pairs, or ``fnr``, which counts genuine
    ones.

    Parameters
    ----------
    name : str
        ``global``, or that of a group.
    identified : IdentifiedPairs
    score, probability : ndarray of float64, shape (n_pairs,)
        Empty where there is none.
    independent : bool
        Whether nobody is known: pairs are taken as independent of each other.
    replicates, seed : int
        Of the noise of the calibration curve.
    """

    name: str
    identified: IdentifiedPairs
    score: Float64
    probability: Float64
    independent: bool
    replicates: int
    seed: int
    _dependence: dict[str, Dependence] = field(default_factory=dict)
    _spreads: dict[tuple[str, float, float], PeopleVariance] = field(default_factory=dict)

    def people(self, metric: str) -> int:
        """Return how many people are in the pairs that a value is measured of."""
        trials = self.identified.trials
        if metric == "auroc":
            return min(dyads.people for dyads in trials.values())
        if metric in ERROR_RATES:
            return trials[ERROR_RATES[metric]].people
        return len(self.identified.people)

    def dependence(self, metric: str) -> Dependence:
        """Return how pairs that share people exceed thresholds together, or fall below them."""
        if metric not in self._dependence:
            dyads = self.identified.trials[metric]
            tail = self.score if metric == "fpr" else -self.score
            self._dependence[metric] = Dependence.of(tail[dyads.rows], dyads)
        return self._dependence[metric]

    def effective_trials(self, metric: str, rate: float, near: float) -> float:
        """Return how many independent trials an error rate counts whose true value is `rate`.

        Fewer where the design effect is badly known: as much as Student's t is wider than normal,
        with the degrees of freedom at a rate that is `near`.
        """
        trials = self.identified.trials[metric].pairs
        if self.independent:
            return float(trials)
        dependence = self.dependence(metric)
        freedom = dependence.degrees_of_freedom(min(max(near, 1e-9), 1 - 1e-9))
        few = (ndtri(0.975) / stdtrit(freedom, 0.975)) ** 2
        return float(trials * few / dependence.design_effect(min(max(rate, 1e-9), 1.0)))

    def slope(self, metric: str, threshold: float) -> float:
        """Return how fast a rate changes at a threshold: by its size around, per unit of score.

        Looked at where the pairs nearest to it are, about a third of the errors there are, and no
        fewer than eight pairs.
        """
        scores = self.score[self.identified.trials[metric].rows]
        if not len(scores):
            return 0.0
        errors = int(((scores >= threshold) == (metric == "fpr")).sum())
        near = min(max(errors // 3, 8), len(scores))
        away = np.partition(np.abs(scores - threshold), near - 1)[near - 1]
        return near / len(scores) / max(2 * float(away), 1e-12)

    def rate_spread(self, metric: str, threshold: float, rate: float) -> PeopleVariance:
        """Return how a rate at a threshold varies with the people, by its design effect."""
        key = metric, threshold, rate
        if key not in self._spreads:
            rows = self.identified.trials[metric].rows
            if not len(rows):
                return PeopleVariance(np.nan, 3.0, np.zeros(self.identified.n_people))
            wrong = (self.score[rows] >= threshold) == (metric == "fpr")
            residuals = np.zeros(len(self.score))
            residuals[rows] = (wrong - wrong.mean()) / len(rows)
            influence = self.identified.spread(residuals).influence
            dependence = self.dependence(metric)
            variance, square = dependence.variance(rate), float((influence**2).sum())
            scale = np.sqrt(variance / square) if square > 0 else 0.0
            freedom = dependence.degrees_of_freedom(rate)
            self._spreads[key] = PeopleVariance(variance, freedom, influence * scale)
        return self._spreads[key]

    def spread(self, metric: str, prior: float) -> PeopleVariance:
        """Return how anything but a rate and the AUROC varies with the people, as far as linear.

        KS is taken as its curve at the place where that is largest; of the ECE bins and the signs
        of gaps are held fixed, and of the minimum of Cllr the map. Probabilities are calibrated at
        the share of genuine pairs `prior`.
        """
        genuine = self.identified.genuine
        if metric in ("cllr", "min_cllr"):
            ratio = (
                log_likelihood_ratio(self.probability, calibrated_at=prior)
                if metric == "cllr"
                else _best_ratio(self.score, genuine)
            )
            cost = np.logaddexp(0, np.where(genuine, -ratio, ratio)) / np.log(2)
            for dyads in self.identified.trials.values():
                own = cost[dyads.rows]
                cost[dyads.rows] = (own - own.mean()) / (2 * dyads.pairs)
            return self.identified.spread(cost)
        losses = METRICS[metric].losses
        if losses is not None:
            moved = losses(
                self.score if METRICS[metric].of == "score" else self.probability, genuine
            )
        else:
            gaps, bin_of, tens = self.probability - genuine, self.curve.bin_of, self.curve.tens
            if metric == "ks":
                curve = np.cumsum(np.bincount(bin_of, gaps, len(tens)))
                top = int(np.argmax(np.abs(curve)))
                moved = np.where(bin_of <= top, gaps, 0.0) * np.sign(curve[top])
            else:
                ten_of = tens[bin_of]
                moved = gaps * np.sign(np.bincount(ten_of, gaps))[ten_of]
        return self.identified.spread((moved - moved.mean()) / len(moved))

    @cached_property
    def ordering(self) -> AurocDependence:
        """How imposter pairs that share people score above genuine ones together."""
        return AurocDependence.of(self.score, self.identified)

    @cached_property
    def curve(self) -> BinnedCurve:
        """The calibration curve with replicates of its noise."""
        rng = np.random.default_rng([self.seed, len(self.name), *self.name.encode()])
        return BinnedCurve.of(self.probability, self.identified, self.replicates, rng)


def _best_ratio(scores: Float64, genuine: NDArray[np.bool_]) -> Float64:
    """Return the log-likelihood ratios that isotonic regression makes of scores; up to ±50."""
    _, at = np.unique(scores, return_inverse=True)
    pairs, hits = np.bincount(at), np.bincount(at, genuine)
    share = isotonic_regression(hits / pairs, weights=pairs).x
    prior = genuine.mean()
    with np.errstate(divide="ignore"):
        odds = np.log(share) - np.log1p(-share) - np.log(prior) + np.log1p(-prior)
    return np.asarray(np.clip(odds, -50, 50)[at])
