"""Imposter scores whose far tail is known: the threshold at which the true FPR is 1e-5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from studies.uncertainty.design import Design
from studies.uncertainty.laws import Float64

RATE = 1e-5


class Tailed(ABC):
    """A population of imposter pairs; no score is above `upper`."""

    upper: float

    @abstractmethod
    def draw(self, rng: np.random.Generator, design: Design) -> Float64:
        """Return scores of imposter pairs of people drawn anew."""

    @property
    @abstractmethod
    def truth(self) -> float:
        """The threshold at which the true FPR is `RATE`."""


@dataclass(frozen=True)
class Sums(Tailed):
    """Score = person + person + couple + chance, of variance 1 but for wolves, who are higher."""

    person: float = 0.0
    couple: float = 0.0
    noise: str = "norm"
    wolves: float = 0.0
    higher: float = 0.0
    upper: float = np.inf

    @property
    def _scale(self) -> float:
        rest = float(np.sqrt(1 - 2 * self.person - self.couple))
        return rest * {"norm": 1, "laplace": 2**-0.5, "logistic": 3**0.5 / np.pi}[self.noise]

    def draw(self, rng: np.random.Generator, design: Design) -> Float64:
        """Add up."""
        who = rng.normal(0, self.person**0.5, design.people)
        who += self.higher * (rng.random(design.people) < self.wolves)
        couples = rng.normal(0, self.couple**0.5, int(design.couple.max()) + 1)
        chance = {"norm": rng.normal, "laplace": rng.laplace, "logistic": rng.logistic}[self.noise]
        left, right = design.owner[design.imposter]
        noise = chance(0, self._scale, len(left))
        return np.asarray(who[left] + who[right] + couples[design.couple] + noise)

    @cached_property
    def truth(self) -> float:
        """Integrate over what people and couples bring."""
        z = np.linspace(-8, 8, 2001)
        weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
        brought = z * (2 * self.person + self.couple) ** 0.5
        law, w = getattr(stats, self.noise), self.wolves

        def off(t: float) -> float:
            rates = [
                share * (weights * law.sf(t - brought - k * self.higher, scale=self._scale)).sum()
                for k, share in enumerate(((1 - w) ** 2, 2 * w * (1 - w), w**2))
            ]
            return float(np.log(max(sum(rates), 1e-300) / RATE))

        return float(optimize.brentq(off, 0, 30))


@dataclass(frozen=True)
class Cosines(Tailed):
    """Cosines of a person's direction and noise; people share one direction, some more of it."""

    dimension: int
    common: float = 0.0
    uneven: float = 0.0
    image: float = 0.7
    upper: float = 1.0

    def _vectors(self, rng: np.random.Generator, owner: NDArray[np.int64]) -> Float64:
        n = int(owner[-1]) + 1
        who = (1 - self.image**2) ** 0.5 * rng.standard_normal((n, self.dimension))
        more = self.image * rng.standard_normal((len(owner), self.dimension))
        vectors = (who[owner] + more) / self.dimension**0.5
        vectors[:, 0] += (self.common + self.uneven * rng.standard_normal(n))[owner]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def draw(self, rng: np.random.Generator, design: Design) -> Float64:
        """Draw embeddings; the score is the cosine."""
        vectors = self._vectors(rng, design.owner)
        return np.asarray((vectors @ vectors.T)[*design.imposter])

    @cached_property
    def truth(self) -> float:
        """Given both parts along the common direction, the rest are two even directions.

        Their cosine follows a beta law on [−1, 1]; parts are drawn, 800,000 couples of them.
        """
        rng = np.random.default_rng(99)
        one = self._vectors(rng, np.arange(200_000))[:, 0]
        a, b = np.tile(one, 4), np.concatenate([rng.permutation(one) for _ in range(4)])
        half = (self.dimension - 2) / 2
        law = stats.beta(half, half)

        def off(t: float) -> float:
            rest = np.clip((t - a * b) / np.sqrt((1 - a**2) * (1 - b**2)), -1, 1)
            return float(np.log(law.sf((rest + 1) / 2).mean() / RATE))

        return float(optimize.brentq(off, 0.1, 0.97, xtol=1e-5))


MODELS: dict[str, Tailed] = {
    "normal, couples 30 %": Sums(couple=0.3),
    "normal, people 10 %": Sums(0.05, 0.2),
    "normal, people 30 %": Sums(0.15, 0.2),
    "normal, people 50 %": Sums(0.25, 0.2),
    "cosines, 64 dimensions": Cosines(64),
    "cosines, 128, uneven": Cosines(128, 0.3, 0.15),
    "cosines, 64, very uneven": Cosines(64, 0.3, 0.3),
    "Laplace, people 20 %": Sums(0.1, noise="laplace"),
    "logistic, people 20 %": Sums(0.1, noise="logistic"),
    "wolves, 5 %, + 1.5": Sums(0.05, 0.2, wolves=0.05, higher=1.5),
    "wolves, 5 %, + 2.5": Sums(0.05, 0.2, wolves=0.05, higher=2.5),
}
