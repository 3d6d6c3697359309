"""Candidates for regions: made on one half of the people, chosen there, tested on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress
from faircal._base.registry import check_whole
from faircal.calibrators import make_calibrator
from faircal.compute.clustering import kmeans
from faircal.data import Dataset
from faircal.data.columns import UNKNOWN
from faircal.data.types import Embeddings
from faircal.evaluation.audit.region_tests import Bools, HalfOfPeople, RegionMeasurement, Rows
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs

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
        everyone = self.embeddings.rows(used)
        for resolution in self.resolutions:
            clustering = kmeans(
                vectors, resolution, random_state=self.seed, engine=self.embeddings.engine
            )
            at = np.full(len(self.embeddings), UNKNOWN, np.int32)
            at[used] = clustering.assign(everyone, self.embeddings.engine)
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


def usable_resolutions(asked: Sequence[int], people: int) -> list[int]:
    """Return the numbers of regions for which `people`, those of a half, are enough; one at least.

    Examples
    --------
    >>> usable_resolutions((10, 30, 100), 400), usable_resolutions((10, 30, 100), 50)
    ([10, 30], [5])
    """
    if not asked:
        raise ParameterError("resolutions: expected one or more numbers of regions, found none")
    for number in asked:
        check_whole("resolutions", number, 2)
    most = people // PEOPLE_EACH
    if most < 2:
        raise DataError(
            f"regions: expected at least {4 * PEOPLE_EACH} people, {2 * PEOPLE_EACH} in each half, "
            f"found {people} in one; add people"
        )
    return sorted({number for number in asked if number <= most}) or [most]
