"""The calibration population as pairs in use are held against it: worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from faircal.model import Population
from faircal.production.monitoring.lots import Shares


class Classes(NamedTuple):
    """Shares of imposter and of genuine pairs, or of their images."""

    imposter: Shares
    genuine: Shares

    def mixed(self, share: float) -> Shares:
        """Return those of both, `share` of them genuine."""
        return self.imposter.mixed(self.genuine, share)


@dataclass(frozen=True)
class Reference:
    """Shares of calibration by class."""

    population: Population

    @cached_property
    def scores(self) -> tuple[Classes, ...]:
        """Scores in bins of all pairs, and in those of strata where there are any."""
        of = self.population
        return tuple(
            Classes(*(Shares.of(of.ranked_lots[way, k], of.ranked_counts[way, k]) for k in (0, 1)))
            for way in range(1 + of.stratified)
        )

    @cached_property
    def places(self) -> Classes:
        """Images in regions."""
        of = self.population
        return Classes(*map(Shares.of_images, of.place_lots, of.place_pairs))

    @cached_property
    def outside(self) -> Classes:
        """Images within and outside."""
        of = self.population
        return Classes(*map(Shares.of_images, of.outside_lots, of.outside_pairs))
