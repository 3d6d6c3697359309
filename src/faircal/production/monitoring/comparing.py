"""One window of pairs in use, held against the calibration population."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from faircal.model import Population
from faircal.production.monitoring.distance import Exceedance, Tolerance, beyond
from faircal.production.monitoring.shares import FEWEST_LOTS, Float64, Int64, Shares


class SharesByClass(NamedTuple):
    """Shares of imposter and of genuine pairs, or of their images."""

    imposter: Shares
    genuine: Shares

    def mixed(self, share: float) -> Shares:
        """Return those of both, `share` of them genuine."""
        return self.imposter.mixed(self.genuine, share)


@dataclass(frozen=True)
class CalibrationShares:
    """Shares of calibration by class."""

    population: Population

    @cached_property
    def scores(self) -> tuple[SharesByClass, ...]:
        """Scores in bins of all pairs, and in those of strata where there are any."""
        of = self.population
        return tuple(
            SharesByClass(
                *(Shares.of(of.ranked_lots[way, k], of.ranked_counts[way, k]) for k in (0, 1))
            )
            for way in range(1 + of.stratified)
        )

    @cached_property
    def places(self) -> SharesByClass:
        """Images in regions."""
        of = self.population
        return SharesByClass(*map(Shares.of_images, of.place_lots, of.place_pairs))

    @cached_property
    def outside(self) -> SharesByClass:
        """Images within and outside."""
        of = self.population
        return SharesByClass(*map(Shares.of_images, of.outside_lots, of.outside_pairs))


#: Lots that people in use are dealt to.
LOTS = 32
#: Where nobody tells who is in the pairs, they may be as few as one in so many of calibration's.
FEWER_PEOPLE = 4.0
#: Numbers of people or images that so large a part of pairs lacks count as unknown.
_LACKING = 0.05
#: A region with less than this part of its due share counts as if it had that.
_TINY = 0.05
#: The part of the false-alarm rate that each way of counting scores has.
_WAYS = (("all_scores", 0.2), ("scores", 0.8))
#: Rounds of weighing and estimating the share of genuine pairs.
_ROUNDS = 4


class CountLayout(NamedTuple):
    """Where counts of a block stand: S bins of scores, R regions, `LOTS` lots."""

    bins: int
    regions: int

    @classmethod
    def of(cls, population: Population) -> CountLayout:
        """Return that for a population."""
        return cls(population.ranked_counts.shape[2], population.place_lots.shape[2])

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """The shape of each table."""
        return {
            "ranked": (2, self.bins),  # in bins of all pairs, and in those of strata
            "ranked_lots": (2, LOTS, self.bins),
            "place_lots": (LOTS, self.regions),
            "place_pairs": (2, self.regions, self.regions),
            "outside_lots": (LOTS, 2),
            "outside_pairs": (2, 2, 2),
            "known": (3,),  # pairs whose people, whose images only, of whom nobody is known
        }

    @property
    def size(self) -> int:
        """Counts in all."""
        return sum(int(np.prod(shape)) for shape in self.parts.values())

    def read(self, counts: Int64) -> dict[str, Int64]:
        """Cut `counts`, of shape (…, size), into tables."""
        tables, at = {}, 0
        for key, shape in self.parts.items():
            size = int(np.prod(shape))
            tables[key] = counts[..., at : at + size].reshape(*counts.shape[:-1], *shape)
            at += size
        return tables


class WindowComparison(NamedTuple):
    """What is found of one thing: how far from calibration, shares found and expected.

    There is not `enough` where a handful of people makes up all pairs: nothing can be told then.
    """

    beyond: Exceedance
    found: Float64
    expected: Float64
    enough: bool


class _ScoreFit(NamedTuple):
    """Scores found, those expected at the share of genuine pairs that fits best, and a metric."""

    found: Shares
    expected: Shares
    share: float
    by: Float64

    @classmethod
    def fit(cls, observed: Shares, classes: SharesByClass) -> _ScoreFit:
        """Find the share by least squares between distribution functions, weighed by pairs."""
        imposter, genuine = classes
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
        return cls(observed, classes.mixed(share), share, by)


@dataclass(frozen=True, eq=False)
class Window:
    """Counts of a window, and the population they are held against."""

    reference: CalibrationShares
    tables: dict[str, Int64]
    tolerance: Tolerance

    @classmethod
    def of(cls, reference: CalibrationShares, counts: Int64, tolerance: Tolerance) -> Window:
        """Read `counts`."""
        return cls(reference, CountLayout.of(reference.population).read(counts), tolerance)

    @cached_property
    def known(self) -> str:
        """Who is known of most pairs: ``people``, ``images``, or ``nobody``."""
        known = self.tables["known"]
        people, images, nobody = (known / max(known.sum(), 1)).tolist()
        if nobody > _LACKING:
            return "nobody"
        return "images" if images > _LACKING or people == 0 else "people"

    # ------------------------------------------------------------------ scores

    @cached_property
    def _by_stratum(self) -> bool:
        """Whether strata of most pairs are known."""
        everything, strata = self.tables["ranked"].sum(axis=1).tolist()
        return self.reference.population.stratified and 2 * strata > everything

    @cached_property
    def _fitted(self) -> tuple[_ScoreFit, ...]:
        """Scores in bins of all pairs, and in those of strata where these are known."""
        return tuple(
            _ScoreFit.fit(Shares.of(lots, counts), classes)
            for lots, counts, classes in zip(
                self.tables["ranked_lots"][: 1 + self._by_stratum],
                self.tables["ranked"],
                self.reference.scores,
                strict=False,
            )
        )

    @property
    def share_genuine(self) -> float:
        """The share of genuine pairs that fits the scores best."""
        return self._fitted[-1].share

    def scores(self) -> WindowComparison:
        """Hold scores against genuine and imposter pairs of calibration, mixed as fits best.

        The distance is that between distribution functions, root mean square over pairs. Scores
        of all pairs tell of any change, those by stratum of one that is not of the mix of people
        alone; the one that tells more counts, and its chance is the larger for it (`_WAYS`).
        """
        comparisons = []
        ways = _WAYS if len(self._fitted) > 1 else (("all_scores", 1.0),)
        for (name, part), fit in zip(ways, self._fitted, strict=True):
            limit = self.tolerance.scores
            comparison = self._compare(name, fit.found, fit.expected, fit.by, limit)
            chance = min(comparison.beyond.p_value / part, 1.0)
            comparisons.append(
                comparison._replace(beyond=comparison.beyond._replace(p_value=chance))
            )
        return min(comparisons, key=lambda compared: compared.beyond.p_value)

    # --------------------------------------------------------- clusters, outside

    @property
    def placed(self) -> int:
        """Pairs whose clusters are known."""
        return int(self.tables["place_pairs"].sum())

    def clusters(self) -> WindowComparison:
        """Hold regions' shares against those of calibration.

        The distance is half the relative change of a region's share, root mean square over images:
        the total variation, where all change alike.
        """
        expected = self.reference.places.mixed(self.share_genuine)
        least = _TINY / len(expected.share)
        by = np.diag(0.5 / np.sqrt(np.maximum(expected.share, least)))
        observed = Shares.of_images(self.tables["place_lots"], self.tables["place_pairs"])
        return self._compare("clusters", observed, expected, by, self.tolerance.clusters)

    @property
    def flagged(self) -> int:
        """Pairs of which it is known whether their images are outside."""
        return int(self.tables["outside_pairs"].sum())

    def outside(self) -> WindowComparison:
        """Hold the share of images outside against that of calibration; fewer is no fault."""
        expected = self.reference.outside.mixed(self.share_genuine)
        observed = Shares.of_images(self.tables["outside_lots"], self.tables["outside_pairs"])
        by = np.array([[0.0, 1.0]])
        compared = self._compare("outside", observed, expected, by, self.tolerance.outside)
        if observed.share[1] > expected.share[1]:
            return compared
        return compared._replace(beyond=Exceedance(0.0, 1.0))

    # ------------------------------------------------------------------- shared

    def _compare(
        self, name: str, observed: Shares, expected: Shares, by: Float64, tolerance: float
    ) -> WindowComparison:
        difference = by @ (observed.share - expected.share)
        mine, theirs = observed.covariance(by), expected.covariance(by)
        population = self.reference.population
        if self.known == "images":
            mine = mine * population.effects.get(name, 1.0)
        freedoms = max(observed.freedom, 1.0), max(expected.freedom, 1.0)
        parts = [(mine, freedoms[0]), (theirs, freedoms[1])]
        if self.known == "nobody" and population.lots_of != "pairs":
            parts[1] = (theirs * (1 + FEWER_PEOPLE), freedoms[1])
        exceedance = beyond(difference, tuple(parts), tolerance)
        enough = min(observed.freedom, expected.freedom) >= FEWEST_LOTS - 1
        if not enough:
            exceedance = exceedance._replace(p_value=1.0)
        return WindowComparison(exceedance, observed.share, expected.share, enough)
