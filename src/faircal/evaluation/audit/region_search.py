"""Regions of embedding space: made on one half of the people, chosen there, tested on the other.

A pair belongs by half to the region of each of its two images. So all regions of one clustering
share out the pairs without rest, and where faces are alike everywhere a region has the same error
rate, and the same share of genuine pairs, as all pairs have. (Pairs with both images in a region
are alike *because* they are in one region: their scores are higher everywhere.) Tests know that
pairs share people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtr, stdtrit

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress
from faircal._base.registry import check_integer
from faircal.calibrators import make_calibrator
from faircal.data import Dataset
from faircal.data.columns import UNKNOWN
from faircal.data.types import Embeddings
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64, IdentifiedPairs
from faircal.metrics.intervals.inversion import rate_interval

#: People that a region must have on average, in each half.
PEOPLE_EACH = 10
#: Candidates that are tested at most, for each of the two questions and each half.
CANDIDATES = 10
#: And they must look like it where they were made: the p-value there.
APPARENT = 0.2
#: What is asked of a region: the p-values of more false matches, and of other calibration.
QUESTIONS = ("p", "gap_p")
_HALVES = ("A", "B")


class HalfOfPairs(NamedTuple):
    """One half: its pairs, and the number of its people."""

    pairs: Rows
    people: int


@dataclass(eq=False)
class RegionCandidate:
    """A region of one half, tested on the other."""

    name: str
    resolution: int
    centre: NDArray[np.float32]
    inside: Bools
    apparent: RegionMeasurement
    shown: RegionMeasurement
    tests: dict[str, float]  # adjusted p-values, by question; empty where it was not tested

    @property
    def tested(self) -> bool:
        """Whether it was among those chosen."""
        return bool(self.tests)


@dataclass(frozen=True, eq=False)
class RegionSearch:
    """What is searched: pairs with scores, and at which threshold; probabilities or None."""

    data: Dataset
    embeddings: Embeddings
    people: NDArray[np.int64]
    score: Float64
    probability: Float64 | None
    threshold: float
    seed: int
    resolutions: Sequence[int]
    progress: Progress

    def run(self, halves: Sequence[HalfOfPairs]) -> list[RegionCandidate]:
        """Make and test the regions of both halves."""
        candidates: list[RegionCandidate] = []
        total = 2 * sum(self.resolutions)
        for name, made, tested in zip(_HALVES, halves, halves[::-1], strict=True):
            probability = self._probability(made)
            first, second = (self._half(half.pairs, probability) for half in (made, tested))
            of_half: list[RegionCandidate] = []
            for candidate in self._candidates(name, first, second):
                of_half.append(candidate)
                self.progress("regions", len(candidates) + len(of_half), total, candidate.name)
            _decide(of_half)
            candidates += of_half
        self.progress("regions", 0, 0, "")
        return candidates

    def _probability(self, made: HalfOfPairs) -> Float64:
        if self.probability is not None:
            return self.probability
        low, high = float(self.score.min()), float(self.score.max())
        scaled = (self.score - low) / max(high - low, 1e-12)
        genuine = self.data.genuine[made.pairs]
        calibrator = make_calibrator("beta").fit(scaled[made.pairs], genuine)
        return np.asarray(calibrator.predict(scaled), dtype=np.float64)

    def _half(self, rows: Rows, probability: Float64) -> HalfOfPeople:
        left, right = self.data.pairs.left[rows], self.data.pairs.right[rows]
        genuine = self.data.genuine[rows]
        one, n = self.people[left], int(self.people.max()) + 1
        # Of a genuine pair both are one person, whatever its images are labelled.
        identified = IdentifiedPairs(genuine, one, np.where(genuine, one, self.people[right]), n)
        return HalfOfPeople(
            left, right, identified, self.score[rows], probability[rows], self.threshold
        )

    def _candidates(
        self, name: str, made: HalfOfPeople, tested: HalfOfPeople
    ) -> Iterator[RegionCandidate]:
        vectors = self.embeddings.rows(made.images)
        used = self.data.used_images()
        everyone, engine = self.embeddings.rows(used), self.embeddings.engine
        for resolution in self.resolutions:
            clustering = engine.kmeans(vectors, resolution, random_state=self.seed)
            at = np.full(len(self.embeddings), UNKNOWN, np.int32)
            at[used] = engine.assign(everyone, clustering.centers)
            for number in range(resolution):
                inside = at == number
                yield RegionCandidate(
                    f"{name}{resolution}-{number + 1}",
                    resolution,
                    clustering.centers[number],
                    inside,
                    made.test(inside, intervals=False),
                    tested.test(inside),
                    {},
                )


def _decide(candidates: Sequence[RegionCandidate]) -> None:
    """Choose candidates by how they look where they were made; adjust their p-values elsewhere."""
    from scipy.stats import false_discovery_control  # slow to import, and only needed here

    hypotheses: list[tuple[RegionCandidate, str]] = []
    for question in QUESTIONS:
        able = [
            c
            for c in candidates
            if _p(c.apparent, question) <= APPARENT and _p(c.shown, question) < np.inf
        ]
        able.sort(key=lambda c: (_p(c.apparent, question), c.name))
        hypotheses += [(c, question) for c in able[:CANDIDATES]]
    values = np.array([_p(c.shown, question) for c, question in hypotheses])
    if not len(values):
        return
    # Benjamini and Hochberg (1995); each half has half of the level.
    adjusted = 2 * false_discovery_control(values)
    for (candidate, question), value in zip(hypotheses, adjusted, strict=True):
        candidate.tests[question] = min(float(value), 1.0)


def _p(tested: RegionMeasurement, question: str) -> float:
    value = float(getattr(tested, question))
    return value if value == value else np.inf


def split_people(data: Dataset, people: NDArray[np.int64], seed: int) -> list[HalfOfPairs]:
    """Deal people to halves, those with about equally many pairs evenly; a pair of two is lost."""
    left, right = people[data.pairs.left], people[data.pairs.right]
    counts = np.bincount(np.concatenate([left, right]))
    rng = np.random.default_rng([seed, 1])  # numbers of its own: K-means draws from `seed`
    order = np.lexsort([rng.random(len(counts)), -counts])
    order = order[counts[order] > 0]
    half = np.full(len(counts), UNKNOWN, np.int64)
    flips = np.repeat(rng.integers(0, 2, len(order) // 2 + 1), 2)[: len(order)]
    half[order] = (np.arange(len(order)) + flips) % 2
    halves = []
    for h in (0, 1):
        pairs = np.flatnonzero((half[left] == h) & (half[right] == h))
        halves.append(HalfOfPairs(pairs, int((half == h).sum())))
        genuine = data.genuine[pairs]
        if not genuine.any() or genuine.all():
            raise DataError(
                f"{data.where}: expected genuine and imposter pairs within each half of the "
                f"{len(order)} people, found too few pairs; add pairs ('faircal pairs')"
            )
    return halves


def usable_resolutions(resolutions: Sequence[int], people: int) -> list[int]:
    """Return the numbers of regions for which `people`, those of a half, are enough; one at least.

    Examples
    --------
    >>> usable_resolutions((10, 30, 100), 400), usable_resolutions((10, 30, 100), 50)
    ([10, 30], [5])
    """
    if not resolutions:
        raise ParameterError("resolutions: expected one or more numbers of regions, found none")
    for number in resolutions:
        check_integer("resolutions", number, 2)
    most = people // PEOPLE_EACH
    if most < 2:
        raise DataError(
            f"regions: expected at least {4 * PEOPLE_EACH} people, {2 * PEOPLE_EACH} in each half, "
            f"found {people} in one; add people"
        )
    return sorted({number for number in resolutions if number <= most}) or [most]


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
        misses = self.identified.trials["fpr"].rows
        return (self.score[misses] >= self.threshold).astype(np.float64)

    @cached_property
    def _dependence(self) -> Dependence:
        imposters = self.identified.trials["fpr"]
        return Dependence.of(self.score[imposters.rows], imposters)

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
        # ½ for each image in the region: over the regions of a clustering every pair counts once.
        weight = (inside[self.left].astype(np.float64) + inside[self.right]) / 2
        of_imposters = weight[self.identified.trials["fpr"].rows]
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
        misses, n = self.identified.trials["fpr"].rows, self.identified.n_people
        sides = ((self.left, self.identified.left), (self.right, self.identified.right))
        counts = [np.bincount(who[misses][inside[image[misses]]], None, n) for image, who in sides]
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
        # Region less rest, as one weighted sum over pairs: its variance knows who is in both.
        contrast = weight / total - (1 - weight) / rest
        p = self._p_value(fpr - rest_fpr, contrast)
        return result | {"fpr": fpr, "rest_fpr": rest_fpr, "p": p}

    def _interval(self, rate: float, weight: Float64, level: float) -> tuple[float, float]:
        """Return the interval of a region's rate; the region's own dependence, or all pairs'."""
        rows = np.flatnonzero(weight)
        misses = self.identified.trials["fpr"].rows[rows]
        sharing = Dyads(self.identified.left, self.identified.right, misses)
        of_region = Dependence.of(self.score[misses], sharing)
        sums = _WeightSums.of(weight[rows] / weight.sum(), sharing)
        # Worked out once for many rates, not at each step of the search for the ends.
        wider = [
            sums.variance(*dependence.correlations(_AT))
            for dependence in (of_region, self._dependence)
        ]
        effects = len(rows) * np.maximum(*wider)

        def design_effect(rate: npt.ArrayLike) -> Float64:
            at = np.asarray(rate)
            return np.asarray(np.interp(np.log(np.minimum(at, 1 - at)), np.log(_AT), effects))

        freedom = of_region.degrees_of_freedom(rate)
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
        sums = _WeightSums.of(contrast, self.identified.trials["fpr"])
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
        of_region = self.identified.spread(residuals)
        off = float(stdtrit(of_region.freedom, (1 + level) / 2)) * of_region.variance**0.5
        both = self.identified.spread(residuals - rest_residuals)
        p = min(2 * _tail(-abs(gap - rest), both.variance, both.freedom), 1.0)
        hits = self.identified.trials["fnr"].rows
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
