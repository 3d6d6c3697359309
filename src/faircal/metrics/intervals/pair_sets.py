"""The sets of pairs whose values are to have intervals: all pairs, and each group's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import stdtrit

from faircal.data import Groups
from faircal.metrics import log_likelihood_ratio
from faircal.metrics.catalogue import Metric
from faircal.metrics.intervals.auroc import AurocDependence
from faircal.metrics.intervals.calibration_error import BinnedCurve, cut
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64, IdentifiedPairs, Int64, PeopleVariance
from faircal.metrics.results import GLOBAL


@dataclass(frozen=True, eq=False)
class PairSet:
    """One set of pairs, and what was worked out of it.

    Parameters
    ----------
    name : str
        ``global``, or that of a group.
    identified : IdentifiedPairs
    score, probability : ndarray of float64, shape (n_pairs,), optional
    """

    name: str
    identified: IdentifiedPairs
    score: Float64 | None
    probability: Float64 | None
    _spreads: dict[tuple[str, float, float], PeopleVariance] = field(default_factory=dict)

    @cached_property
    def imposters(self) -> Dependence:
        """How imposter pairs that share people exceed thresholds together."""
        return Dependence.of(
            self._scores[self.identified.imposter_rows], self.identified.imposter_dyads
        )

    @cached_property
    def genuine(self) -> Dependence:
        """How genuine pairs of a person fall below thresholds together."""
        return Dependence.of(
            -self._scores[self.identified.genuine_rows], self.identified.genuine_dyads
        )

    def dependence(self, metric: str) -> Dependence:
        """Return what pairs that share people do to a rate."""
        return self.imposters if metric == "fpr" else self.genuine

    def rows(self, metric: str) -> Int64:
        """Return the pairs that an error rate counts."""
        return self.identified.imposter_rows if metric == "fpr" else self.identified.genuine_rows

    def dyads(self, metric: str) -> Dyads:
        """Return the same, by the people in them."""
        return self.identified.imposter_dyads if metric == "fpr" else self.identified.genuine_dyads

    def trials(self, metric: str) -> int:
        """Return how many there are."""
        return len(self.rows(metric))

    @property
    def _scores(self) -> Float64:
        if self.score is None:
            raise ValueError("a set without scores has no rates")
        return self.score

    @property
    def _probabilities(self) -> Float64:
        if self.probability is None:
            raise ValueError("a set without probabilities has no calibration error")
        return self.probability

    def errors(self, metric: str, threshold: float) -> int:
        """Count the errors at a threshold."""
        rows = self.rows(metric)
        return int(((self._scores[rows] >= threshold) == (metric == "fpr")).sum())

    def slope(self, metric: str, threshold: float) -> float:
        """Return how fast a rate changes at a threshold: by its size around, per unit of score.

        Looked at where the pairs nearest to it are, about a third of the errors there are, and no
        fewer than eight pairs.
        """
        rows = self.rows(metric)
        if not len(rows):
            return 0.0
        scores = self._scores[rows]
        near = min(max(self.errors(metric, threshold) // 3, 8), len(rows))
        away = np.partition(np.abs(scores - threshold), near - 1)[near - 1]
        return near / len(rows) / max(2 * float(away), 1e-12)

    def tpr_between(self, rate: float, level: float) -> tuple[float, float]:
        """Return the TPR at the highest and at the lowest threshold that a false-positive rate has.

        Those at which the counted rate does not contradict it.
        """
        imposters = self._scores[self.identified.imposter_rows]
        genuine = self._scores[self.identified.genuine_rows]
        n, dependence = len(imposters), self.imposters
        z = float(stdtrit(dependence.degrees_of_freedom(rate), (1 + level) / 2))
        away = z * np.sqrt(dependence.variance(rate))
        ordered = np.sort(imposters)
        counts = np.clip([np.floor((rate - away) * n), np.ceil((rate + away) * n)], 0, n - 1)
        ends = ordered[n - 1 - counts.astype(np.int64)]
        return float((genuine > ends[0]).mean()), float((genuine > ends[1]).mean())

    def rate_spread(self, metric: str, threshold: float, rate: float) -> PeopleVariance:
        """Return how a rate at a threshold varies with the people, by its design effect."""
        key = metric, threshold, rate
        if key not in self._spreads:
            self._spreads[key] = self._rate_spread(*key)
        return self._spreads[key]

    def _rate_spread(self, metric: str, threshold: float, rate: float) -> PeopleVariance:
        rows = self.rows(metric)
        if not len(rows):
            return PeopleVariance(np.nan, 3.0, np.zeros(self.identified.n_people))
        wrong = (self._scores[rows] >= threshold) == (metric == "fpr")
        residuals = np.zeros(len(self._scores))
        residuals[rows] = (wrong - wrong.mean()) / len(rows)
        spread = self.identified.spread(residuals)
        dependence = self.dependence(metric)
        variance = dependence.variance(rate)
        square = float((spread.influence**2).sum())
        scale = np.sqrt(variance / square) if square > 0 else 0.0
        return PeopleVariance(
            variance, dependence.degrees_of_freedom(rate), spread.influence * scale
        )

    def loss_spread(self, metric: Metric) -> PeopleVariance:
        """Return how a metric that is a mean over pairs varies with the people."""
        if metric.losses is None:
            raise ValueError(f"{metric.name} is no mean over pairs")
        values = self._scores if metric.of == "score" else self._probabilities
        losses = metric.losses(values, self.identified.genuine)
        return self.identified.spread((losses - losses.mean()) / len(losses))

    def cllr_spread(self, prior: float | None) -> PeopleVariance:
        """Return how Cllr varies with the people; or its minimum (no `prior`), map held fixed."""
        genuine = self.identified.genuine
        if prior is not None:
            ratio = log_likelihood_ratio(self._probabilities, calibrated_at=prior)
        else:
            ratio = _best_ratio(self._scores, genuine)
        cost = np.logaddexp(0, np.where(genuine, -ratio, ratio)) / np.log(2)
        for rows in (self.identified.genuine_rows, self.identified.imposter_rows):
            cost[rows] = (cost[rows] - cost[rows].mean()) / (2 * len(rows))
        return self.identified.spread(cost)

    @cached_property
    def _bins(self) -> tuple[Int64, Int64]:
        return cut(self._probabilities)

    def ks_spread(self) -> PeopleVariance:
        """Return how KS varies with the people: the curve at the place where it is largest."""
        gaps, (bin_of, tens) = self._probabilities - self.identified.genuine, self._bins
        curve = np.cumsum(np.bincount(bin_of, gaps, len(tens)))
        top = int(np.argmax(np.abs(curve)))
        part = np.where(bin_of <= top, gaps, 0.0) * np.sign(curve[top])
        return self.identified.spread((part - part.mean()) / len(part))

    def ece_spread(self) -> PeopleVariance:
        """Return how the ECE varies with the people, bins and the signs of gaps held fixed."""
        gaps, (bin_of, tens) = self._probabilities - self.identified.genuine, self._bins
        ten_of = tens[bin_of]
        part = gaps * np.sign(np.bincount(ten_of, gaps))[ten_of]
        return self.identified.spread((part - part.mean()) / len(part))

    @cached_property
    def ordering(self) -> AurocDependence:
        """How imposter pairs that share people score above genuine ones together."""
        return AurocDependence.of(self._scores, self.identified)

    def curve(self, n: int, seed: int) -> BinnedCurve:
        """Return the calibration curve with `n` replicates of its noise."""
        rng = np.random.default_rng([seed, len(self.name), *self.name.encode()])
        return BinnedCurve.of(self._probabilities, self.identified, n, rng)


def pair_sets(
    score: Float64 | None,
    probability: Float64 | None,
    genuine: NDArray[np.bool_],
    groups: Groups | None,
    people: Groups | None,
) -> list[PairSet]:
    """Return all pairs, and those of each group."""
    identified = IdentifiedPairs.of(genuine, people)
    sets = [PairSet(GLOBAL, identified, score, probability)]
    if groups is None:
        return sets
    code = groups.pair
    for g, name in enumerate(groups.names):
        rows = np.flatnonzero(code == g)
        one, two = (None if of is None else of[rows] for of in (score, probability))
        sets.append(PairSet(name, identified.part(rows), one, two))
    return sets


def _best_ratio(scores: Float64, genuine: NDArray[np.bool_]) -> Float64:
    """Return the log-likelihood ratios that isotonic regression makes of scores; up to ±50."""
    _, at = np.unique(scores, return_inverse=True)
    pairs, hits = np.bincount(at), np.bincount(at, genuine)
    share = isotonic_regression(hits / pairs, weights=pairs).x
    prior = genuine.mean()
    with np.errstate(divide="ignore"):
        odds = np.log(share) - np.log1p(-share) - np.log(prior) + np.log1p(-prior)
    return np.asarray(np.clip(odds, -50, 50)[at])
