"""How far a window of pairs in use is from calibration, and whether surely further than tolerated.

Of each thing that is watched, a difference of two vectors of shares, in use and in calibration, is
scaled so that its length is a distance that means something; one test (`exceedance`) serves all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc

from faircal.model import Population
from faircal.production.monitoring.counts import (
    FEWEST_BUCKETS,
    Float64,
    Int64,
    Shares,
    Tables,
    class_tables,
)

#: How far use may be from calibration: an alarm says that a distance is surely larger, not only
#: that it is there. Half the relative change of regions' shares, root mean square (0.01 is 2 % more
#: or less); the distance of scores' distribution functions, root mean square; more images out of
#: the population, as a share of all.
TOLERANCES = {"clusters": 0.01, "scores": 0.005, "outside": 0.02}
#: Where nobody is identified, people may be as few as one in so many of calibration's.
_FEWER_PEOPLE = 4.0
#: Numbers of people or images that so large a part of pairs lacks count as unknown.
_UNIDENTIFIED = 0.05
#: A region with less than this part of its due share counts as if it had that.
_TINY = 0.05
#: The part of the false-alarm rate that each way of counting scores has.
_WAYS = {"all_scores": 0.2, "scores": 0.8}
#: Rounds of weighing and estimating the share of genuine pairs.
_ROUNDS = 4


class Exceedance(NamedTuple):
    """How far use is from calibration.

    Attributes
    ----------
    distance : float
        Less what chance brings.
    p_value : float
        The chance of such a one at the tolerance.
    sufficient : bool
        False where a handful of people makes up all pairs: nothing can be said then.
    observed, expected : ndarray of shape (B,)
        Shares in use and in calibration, where those were compared.
    """

    distance: float
    p_value: float
    sufficient: bool = True
    observed: Float64 = np.zeros(0)
    expected: Float64 = np.zeros(0)


def exceedance(
    difference: Float64, covariances: tuple[tuple[Float64, float], ...], tolerance: float
) -> Exceedance:
    """Test whether the length of the true difference is more than `tolerance`.

    The squared length Q of the observed difference has the mean Δ² + tr Σ, so Q − tr Σ estimates
    Δ²; and at a true length of δ its variance is 2 tr Σ² + 4 δᵀΣδ, which 4 δ² λ bounds for λ the
    largest eigenvalue (taken as twice the mean one, weighed by itself, at most √(tr Σ²)). A
    multiple of χ² with that mean and variance (Satterthwaite, Patnaik) gives the chance; as Σ is
    itself estimated from buckets, it becomes Fisher's F.

    Parameters
    ----------
    difference : ndarray of shape (m,)
        Scaled so that its length is the distance.
    covariances : tuple of (ndarray of shape (m, m), float)
        Independent parts of Σ, each with its degrees of freedom.
    tolerance : float
    """
    square = float(difference @ difference)
    traces = np.array([float(np.trace(part)) for part, _ in covariances])
    squares = np.array([_squared_trace(part, freedom) for part, freedom in covariances])
    cross = sum(
        2 * float((a * b).sum())
        for i, (a, _) in enumerate(covariances)
        for b, _ in covariances[i + 1 :]
    )
    trace = float(traces.sum())
    if not trace > 0:
        return Exceedance(np.sqrt(square), float(square <= tolerance**2))
    squared = min(max(float(squares.sum()) + cross, trace**2 / len(difference)), trace**2)
    mean = trace + tolerance**2
    largest = min(2 * squared / trace, np.sqrt(squared))
    variance = 2 * squared + 4 * tolerance**2 * largest
    freedoms = np.array([freedom for _, freedom in covariances])
    doubt = float((2 * squares / freedoms).sum())  # the variance of the estimate of tr Σ
    chance = fdtrc(2 * mean**2 / variance, 2 * mean**2 / max(doubt, 1e-300), square / mean)
    return Exceedance(float(np.sqrt(max(square - trace, 0.0))), float(chance))


def _squared_trace(part: Float64, freedom: float) -> float:
    """Return tr Σ² of an estimate from `freedom` independent squares, which by itself is too large.

    E tr S² = tr Σ² (1 + 1/f) + (tr Σ)² / f of a Wishart matrix, solved for tr Σ².
    """
    raw, trace = float((part * part).sum()), float(np.trace(part))
    if not np.isfinite(freedom):
        return raw
    freedom = max(freedom, 2.0)
    unbiased = freedom**2 / ((freedom - 1) * (freedom + 2)) * (raw - trace**2 / freedom)
    return float(np.clip(unbiased, trace**2 / len(part), trace**2))


class Reference:
    """Shares of calibration, by what is counted: of imposter pairs, and of genuine ones."""

    def __init__(self, population: Population) -> None:
        self.population = population
        classes = [class_tables(population, genuine) for genuine in (0, 1)]
        ways = list(_WAYS)[: 1 + population.stratified]
        self.by_class = {
            name: tuple(Shares.of(tables[name]) for tables in classes)
            for name in (*ways, "clusters", "outside")
        }

    def mixed(self, name: str, genuine: float) -> Shares:
        """Return what is expected where a share `genuine` of pairs is."""
        imposter, of_genuine = self.by_class[name]
        return imposter.mixed(of_genuine, genuine)


class _ScoreFit(NamedTuple):
    """The share of genuine pairs that fits scores best, and a metric that does not depend on it."""

    observed: Shares
    share: float
    by: Float64

    @classmethod
    def of(cls, observed: Shares, imposter: Shares, genuine: Shares) -> _ScoreFit:
        """Fit the share by least squares between distribution functions, weighed by pairs."""
        line, rest = genuine.share - imposter.share, observed.share - imposter.share
        share, by = 0.5, np.tri(len(line))
        for _ in range(_ROUNDS):
            weight = (1 - share) * imposter.share + share * genuine.share
            by = np.sqrt(weight)[:, None] * np.tri(len(line))
            along = by @ line
            share = float(np.clip(along @ by @ rest / max(float(along @ along), 1e-300), 0, 1))
        if 0 < share < 1:  # what another share would do is taken out
            along = by @ line
            by = by - np.outer(along, along @ by) / max(float(along @ along), 1e-300)
        return cls(observed, share, by)


@dataclass(frozen=True, eq=False)
class UseWindow:
    """Counts of pairs in use, and the calibration that they are compared with."""

    reference: Reference
    tables: Tables
    identified: Int64

    @cached_property
    def identified_by(self) -> str:
        """Who is identified of most pairs: ``people``, ``images``, or ``nobody``."""
        shares = self.identified / max(self.identified.sum(), 1)
        people, images, neither = shares.tolist()
        if neither > _UNIDENTIFIED:
            return "nobody"
        return "images" if images > _UNIDENTIFIED or people == 0 else "people"

    @cached_property
    def _score_fits(self) -> dict[str, _ScoreFit]:
        """Scores in bins of all pairs, and in those of strata where most pairs' are known."""
        in_strata = self.tables["scores"].pairs.sum()
        by_stratum = bool(2 * in_strata > self.tables["all_scores"].pairs.sum())
        return {
            name: _ScoreFit.of(Shares.of(self.tables[name]), *self.reference.by_class[name])
            for name in list(_WAYS)[: 1 + by_stratum]
        }

    @property
    def share_genuine(self) -> float:
        """The share of genuine pairs that fits the scores best."""
        return list(self._score_fits.values())[-1].share

    def covers(self, name: str) -> bool:
        """Whether ``scores``, ``clusters`` or ``outside`` are known of most pairs."""
        everything = self.tables["all_scores"].pairs.sum()
        return name == "scores" or bool(2 * self.tables[name].pairs.sum() >= everything)

    def compare(self, name: str) -> Exceedance:
        """Compare ``scores``, ``clusters`` or ``outside``."""
        if name == "scores":
            return self._scores()
        observed = Shares.of(self.tables[name])
        expected = self.reference.mixed(name, self.share_genuine)
        if name == "outside":
            compared = self._distance(name, observed, expected, np.array([[0.0, 1.0]]))
            if observed.share[1] > expected.share[1]:
                return compared
            return compared._replace(distance=0.0, p_value=1.0)  # fewer is no fault
        # Half the relative change of a region's share, root mean square over images: the total
        # variation, where all change alike.
        least = _TINY / len(expected.share)
        by = np.diag(0.5 / np.sqrt(np.maximum(expected.share, least)))
        return self._distance(name, observed, expected, by)

    def _scores(self) -> Exceedance:
        """Compare with genuine and imposter pairs of calibration, mixed as fits best.

        The distance is that between distribution functions, root mean square over pairs. Scores
        of all pairs tell of any change, those by stratum of one that is not of the mix of people
        alone; the one that tells more counts, and its chance is the larger for it (`_WAYS`).
        """
        compared = []
        for name, fit in self._score_fits.items():
            expected = self.reference.mixed(name, fit.share)
            way = self._distance(name, fit.observed, expected, fit.by)
            part = _WAYS[name] if len(self._score_fits) > 1 else 1.0
            compared.append(way._replace(p_value=min(way.p_value / part, 1.0)))
        return min(compared, key=lambda way: way.p_value)

    def _distance(self, name: str, observed: Shares, expected: Shares, by: Float64) -> Exceedance:
        """Compare shares by the length of ``by @ (observed − expected)``."""
        population = self.reference.population
        in_use, in_calibration = observed.covariance(by), expected.covariance(by)
        if self.identified_by == "images":
            # A person has several images: taken as independent, they make variances too small.
            in_use = in_use * population.effects.get(name, 1.0)
        elif self.identified_by == "nobody" and population.counted_by != "pairs":
            in_calibration = in_calibration * (1 + _FEWER_PEOPLE)
        parts = (
            (in_use, max(observed.freedom, 1.0)),
            (in_calibration, max(expected.freedom, 1.0)),
        )
        limit = TOLERANCES["scores" if name in _WAYS else name]
        compared = exceedance(by @ (observed.share - expected.share), parts, limit)
        # From so few buckets the variance itself is too uncertain for an alarm.
        if min(observed.freedom, expected.freedom) < FEWEST_BUCKETS - 1:
            compared = compared._replace(p_value=1.0, sufficient=False)
        return compared._replace(observed=observed.share, expected=expected.share)
