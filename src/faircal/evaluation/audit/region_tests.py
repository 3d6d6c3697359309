"""Is a region of embedding space worse than the rest? Tests that know that pairs share people.

A pair belongs by half to the region of each of its two images. So all regions of one clustering
share out the pairs without rest, and where faces are alike everywhere a region has the same error
rate, and the same share of genuine pairs, as all pairs have. (Pairs with both images in a region
are alike *because* they are in one region: their scores are higher everywhere.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtr, stdtrit

from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64, IdentifiedPairs
from faircal.metrics.intervals.inversion import rate_interval

Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

#: Effective people that a region must have to be tested; for calibration also in genuine pairs.
LEAST_PEOPLE = 8.0
_NAN = float("nan")
#: Rates at which design effects are worked out; between them they are interpolated.
_AT = np.geomspace(1e-9, 0.5, 100)


class RegionMeasurement(NamedTuple):
    """What was measured of one region; a rate and a gap, each with interval, rest and p-value.

    A p-value is NaN where too few people are in the region to test it.
    `gap` is mean probability less share of genuine pairs; positive where the probability says too
    much. Both regions and rest are taken at the share of genuine pairs that all pairs have.
    """

    people: int
    effective_people: float
    images: int
    pairs: int
    imposters: int
    fpr: float
    low: float
    high: float
    rest_fpr: float
    p: float
    gap: float
    gap_low: float
    gap_high: float
    rest_gap: float
    gap_p: float


@dataclass(frozen=True, eq=False)
class HalfOfPeople:
    """The pairs of one half of the people.

    Parameters
    ----------
    left, right : ndarray of intp, shape (n_pairs,)
        Images.
    identified : IdentifiedPairs
        Who is in the pairs, and whether they are genuine.
    score, probability : ndarray of float64, shape (n_pairs,)
    threshold : float
        A pair is accepted from this score on.
    """

    left: Rows
    right: Rows
    identified: IdentifiedPairs
    score: Float64
    probability: Float64
    threshold: float

    @cached_property
    def images(self) -> Rows:
        """The images of the pairs, ascending."""
        return np.unique(np.concatenate([self.left, self.right]))

    @cached_property
    def _wrong(self) -> Float64:
        """Whether each imposter pair is accepted."""
        return (self.score[self.identified.imposter_rows] >= self.threshold).astype(np.float64)

    @cached_property
    def _dependence(self) -> Dependence:
        return Dependence.of(
            self.score[self.identified.imposter_rows], self.identified.imposter_dyads
        )

    @cached_property
    def _imposters(self) -> IdentifiedPairs:
        return self.identified.part(self.identified.imposter_rows)

    def test(
        self, inside: Bools, level: float = 0.95, *, intervals: bool = True
    ) -> RegionMeasurement:
        """Measure and test a region.

        Parameters
        ----------
        inside : ndarray of bool, shape (n_images,)
            Which images, of all there are, lie in the region.
        level : float
            Of the intervals.
        intervals : bool
            Whether to give an interval of the rate.
        """
        weight = (inside[self.left].astype(np.float64) + inside[self.right]) / 2
        misses = self.identified.imposter_rows
        of_imposters = weight[misses]
        each = self._weight_of_people(inside)
        fpr = self._rate(of_imposters)
        if _effective(each) < LEAST_PEOPLE:
            fpr["p"] = _NAN
        if intervals and fpr["fpr"] == fpr["fpr"]:
            fpr["low"], fpr["high"] = self._interval(fpr["fpr"], of_imposters, level)
        gap = self._gap(weight, level)
        return RegionMeasurement(
            people=int((each > 0).sum()),
            effective_people=_effective(each),
            images=int(inside[self.images].sum()),
            pairs=int((weight > 0).sum()),
            imposters=int((of_imposters > 0).sum()),
            **fpr,
            **gap,
        )

    def _weight_of_people(self, inside: Bools) -> Float64:
        """Return in how many imposter pairs each person comes with an image of the region."""
        imposters = self._imposters
        misses, n = self.identified.imposter_rows, self.identified.n_people
        sides = ((self.left, imposters.left), (self.right, imposters.right))
        counts = [np.bincount(who[inside[image[misses]]], None, n) for image, who in sides]
        return np.asarray(counts[0] + counts[1], dtype=np.float64)

    # ------------------------------------------------------------------ false matches

    def _rate(self, weight: Float64) -> dict[str, float]:
        """Return rate, the rest's rate and p-value; weights are those of imposters."""
        total, rest = float(weight.sum()), float((1 - weight).sum())
        result = dict.fromkeys(("fpr", "low", "high", "rest_fpr", "p"), _NAN)
        if not total or not rest:
            return result
        fpr = float(weight @ self._wrong) / total
        rest_fpr = float((1 - weight) @ self._wrong) / rest
        contrast = weight / total - (1 - weight) / rest
        p = self._p_value(fpr - rest_fpr, contrast)
        return result | {"fpr": fpr, "rest_fpr": rest_fpr, "p": p}

    def _interval(self, rate: float, weight: Float64, level: float) -> tuple[float, float]:
        """Return the interval of a region's rate; the region's own dependence, or all pairs'."""
        rows = np.flatnonzero(weight)
        sharing = Dyads.of(self._imposters.left[rows], self._imposters.right[rows])
        own = Dependence.of(self.score[self.identified.imposter_rows[rows]], sharing)
        sums = _WeightSums.of(weight[rows] / weight.sum(), sharing)
        # Worked out once for many rates, not at each step of the search for the ends.
        wider = [
            sums.variance(*dependence.correlations(_AT)) for dependence in (own, self._dependence)
        ]
        effects = len(rows) * np.maximum(*wider)

        def design_effect(rate: npt.ArrayLike) -> Float64:
            at = np.asarray(rate)
            return np.asarray(np.interp(np.log(np.minimum(at, 1 - at)), np.log(_AT), effects))

        freedom = own.degrees_of_freedom(rate)
        return rate_interval(rate, len(rows), design_effect, level=level, freedom=freedom)

    def _p_value(self, excess: float, contrast: Float64) -> float:
        """Return how likely so much more than the rest is where there is no more.

        Errors of pairs that share people correlate as those of all pairs do; that makes so many
        effective trials, and these have the skewness of a count where errors are few. (Variances
        estimated within region and rest, with Student's t, find next to nothing at rates of 1 %.)
        """
        rate = float(self._wrong.mean())
        if not 0 < rate < 1:
            return 1.0
        sums = _WeightSums.of(contrast, self.identified.imposter_dyads)
        trials = 1 / float(sums.variance(*self._dependence.correlations(rate)))
        count = min(trials * (rate + excess), trials)
        if count <= 0:
            return 1.0
        # I_p(k, n − k + 1) is the chance of k errors or more in n trials at the rate p.
        likely = float(betainc(count, trials - count + 1, rate))
        freedom = self._dependence.degrees_of_freedom(rate)
        return float(stdtr(freedom, ndtri(likely)))

    # ------------------------------------------------------------------ calibration

    def _gap(self, weight: Float64, level: float) -> dict[str, float]:
        """Return gap, interval, the rest's gap and p-value."""
        gap, residuals = self._gap_of(weight)
        rest, rest_residuals = self._gap_of(1 - weight)
        if gap != gap or rest != rest:
            return dict.fromkeys(("gap", "gap_low", "gap_high", "rest_gap", "gap_p"), _NAN)
        own = self.identified.spread(residuals)
        off = float(stdtrit(own.freedom, (1 + level) / 2)) * own.variance**0.5
        both = self.identified.spread(residuals - rest_residuals)
        p = min(2 * _tail(-abs(gap - rest), both.variance, both.freedom), 1.0)
        hits = self.identified.genuine_rows
        each = np.bincount(self.identified.left[hits], weight[hits]).astype(np.float64)
        if _effective(each) < LEAST_PEOPLE:
            p = _NAN
        ends = {"gap_low": gap - off, "gap_high": gap + off}
        return {"gap": gap, **ends, "rest_gap": rest, "gap_p": p}

    def _gap_of(self, weight: Float64) -> tuple[float, Float64]:
        """Return mean probability less share of genuine pairs, and each pair's part in it."""
        genuine = self.identified.genuine
        share = float(genuine.mean())
        off = self.probability - genuine
        gap, residuals = 0.0, np.zeros(len(off))
        for rows, part in ((genuine, share), (~genuine, 1 - share)):
            total = float(weight[rows].sum())
            if not total:
                return _NAN, residuals
            mean = float(weight[rows] @ off[rows]) / total
            gap += part * mean
            residuals[rows] = part * weight[rows] * (off[rows] - mean) / total
        return gap, residuals


class _WeightSums(NamedTuple):
    """Squares of weights, summed over pairs, over dyads' sums, and over people's sums."""

    pairs: float
    dyads: float
    people: float

    @classmethod
    def of(cls, weight: Float64, sharing: Dyads) -> _WeightSums:
        dyads = sharing.per_dyad(weight)
        people = sharing.per_person(dyads)
        return cls(float(weight @ weight), float(dyads @ dyads), float(people @ people))

    def variance(self, both: Float64, one: Float64) -> Float64:
        """Return the variance of the weighted sum of errors, in units of that of one error."""
        # Two pairs of the same two people correlate by `both`, two with one person in common by
        # `one`; sums over people hold each dyad twice.
        same, meet = self.dyads - self.pairs, max(self.people - 2 * self.dyads, 0.0)
        return np.asarray(self.pairs + both * same + one * meet)


def _effective(each: Float64) -> float:
    """Return how many people of equal weight tell as much as those with these weights."""
    return float(each.sum() ** 2 / max(each @ each, 1e-300))


def _tail(off: float, variance: float, freedom: float) -> float:
    """Return the lower tail of Student's t; 1 where there is no variance to go by."""
    if not variance > 0:
        return 1.0
    return float(stdtr(freedom, off / variance**0.5))
