"""Populations to draw people from, each with its law: ways in which pairs depend on people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from faircal.data.simulation.population import PRESETS, spectrum, unit
from faircal.data.simulation.population import PopulationModel as Faces
from studies.uncertainty.design import Design
from studies.uncertainty.laws import Float64, Law

#: How much higher genuine pairs score, in standard deviations of an imposter's.
_APART = 3.5
#: People, two images each, and how often they are drawn for the law of embeddings.
_MANY, _TIMES, _GENUINE = 3000, 6, 40_000
_CELLS = 20_000


class Population(ABC):
    """People whose pairs have scores; a group is set apart by one number, 0 for the plain one."""

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, design: Design, apart: float
    ) -> tuple[Float64, Float64]:
        """Return scores of imposter and of genuine pairs of people drawn anew."""

    @abstractmethod
    def law(self, apart: float) -> Law:
        """Return what is true of a group."""

    @abstractmethod
    def evidence(self, score: Float64) -> Float64:
        """Return the log-likelihood ratio that a score is taken for; right in a plain group."""

    def probability(self, score: Float64, share: float, tilt: float) -> Float64:
        """Return P(genuine), off by `tilt` in log-odds."""
        said = expit(self.evidence(score) + logit(share) + tilt)
        return np.asarray(np.clip(said, 1e-9, 1 - 1e-9))


@dataclass(frozen=True)
class Effects(Population):
    """Normal scores: what both people, both images and the couple bring, and chance; variance 1.

    Of `wolves`, a share of people, all imposter pairs score higher by `higher`. A genuine pair has
    twice the effect of its person.
    """

    person: float
    image: float
    couple: float
    wolves: float = 0.0
    higher: float = 0.0

    def draw(
        self, rng: np.random.Generator, design: Design, apart: float
    ) -> tuple[Float64, Float64]:
        """Add up the effects."""
        who = rng.normal(0, self.person**0.5, design.people)
        image = rng.normal(0, self.image**0.5, len(design.owner))
        couples = rng.normal(0, self.couple**0.5, int(design.couple[-1]) + 1)
        wolf = self.higher * (rng.random(design.people) < self.wolves)
        alone = 1 - 2 * self.person - 2 * self.image - self.couple
        seen = (who + wolf)[design.owner] + image
        imposter = seen[design.imposter].sum(axis=0) + couples[design.couple] + apart
        imposter += rng.normal(0, alone**0.5, len(imposter))
        own = who[design.owner] + image
        genuine = _APART + own[design.genuine].sum(axis=0)
        rest = 1 - 4 * self.person - 2 * self.image
        return imposter, genuine + rng.normal(0, rest**0.5, len(genuine))

    def law(self, apart: float) -> Law:
        """Return the normal law, or the mixture of three; exact."""
        edges = np.linspace(-9, 13, _CELLS + 1)
        parts = (share * np.diff(ndtr(edges - apart - up)) for share, up in self._mixture)
        return Law(edges, np.asarray(sum(parts)), np.diff(ndtr(edges - _APART)))

    def evidence(self, score: Float64) -> Float64:
        """Return the true log-likelihood ratio of a plain group."""
        parts = [np.log(share) + score * up - up**2 / 2 for share, up in self._mixture]
        return np.asarray(_APART * score - _APART**2 / 2 - np.logaddexp.reduce(parts))

    @property
    def _mixture(self) -> list[tuple[float, float]]:
        """Shares of pairs with no, one and two wolves, and how much higher they score."""
        w = self.wolves
        shares = ((1 - w) ** 2, 2 * w * (1 - w), w**2)
        return [(share, k * self.higher) for k, share in enumerate(shares) if share]


class _Embedded(Population):
    """Cosines of embeddings; the law is counted once, over many more people than a draw has."""

    @abstractmethod
    def vectors(
        self, rng: np.random.Generator, owner: NDArray[np.int64], apart: float
    ) -> NDArray[np.float32]:
        """Return embeddings of images of people drawn anew, rows of unit length."""

    def draw(
        self, rng: np.random.Generator, design: Design, apart: float
    ) -> tuple[Float64, Float64]:
        """Draw embeddings; the score is the cosine."""
        x = self.vectors(rng, design.owner, apart)
        cosine = (x @ x.T).astype(np.float64)
        return cosine[*design.imposter], cosine[*design.genuine]

    def law(self, apart: float) -> Law:
        """Return the law as counted."""
        return _counted(self, apart)

    def evidence(self, score: Float64) -> Float64:
        """Equal normal laws, of the means and the mean variance that there really are."""
        middle, slope = self._line
        return slope * (score - middle)

    @cached_property
    def _line(self) -> tuple[float, float]:
        law = self.law(0.0)
        means = [float(mass @ law.scores) for mass in (law.imposter, law.genuine)]
        both = zip((law.imposter, law.genuine), means, strict=True)
        variance = sum(float(mass @ (law.scores - mean) ** 2) for mass, mean in both) / 2
        return sum(means) / 2, (means[1] - means[0]) / variance


@dataclass(frozen=True)
class Centroids(_Embedded):
    """A person's own direction in `dimension` dimensions, a common one, and noise of the image."""

    dimension: int
    common: float
    noise: float

    def vectors(
        self, rng: np.random.Generator, owner: NDArray[np.int64], apart: float
    ) -> NDArray[np.float32]:
        """Draw people, then images around them."""
        shape = (int(owner[-1]) + 1, self.dimension)
        who = rng.standard_normal(shape, dtype=np.float32)
        who[:, 0] += self.common + apart
        noise = rng.standard_normal((len(owner), self.dimension), dtype=np.float32)
        return unit(who[owner] + np.float32(self.noise) * noise)


@dataclass(frozen=True)
class Simulated(_Embedded):
    """A group of `faircal.simulate`'s population model, its sub-clusters as they once were drawn.

    `apart` is added to the group's concentration.
    """

    preset: str
    concentration: float

    def vectors(
        self, rng: np.random.Generator, owner: NDArray[np.int64], apart: float
    ) -> NDArray[np.float32]:
        """Draw as `faircal.data.simulation.population` does, but for the sub-clusters."""
        faces, face, noise, clusters = self._fixed
        n = int(owner[-1]) + 1
        own = rng.standard_normal((n, len(face)), dtype=np.float32) * face
        share = np.float32(faces.sub_cluster_share)
        who = np.sqrt(share) * clusters[rng.integers(len(clusters), size=n)]
        who += np.sqrt(1 - share) * own
        quality = rng.standard_normal(len(owner), dtype=np.float32)
        nu = np.float32(faces.noise) * np.exp(np.float32(faces.noise_spread) * quality)
        more = rng.standard_normal((len(owner), len(noise)), dtype=np.float32) * noise
        alpha = np.float32(self.concentration + apart)
        x = np.sqrt(1 - alpha) * (who[owner] + np.sqrt(nu)[:, None] * more)
        return unit(np.concatenate([np.full((len(x), 1), np.sqrt(alpha)), x], axis=1))

    @cached_property
    def _fixed(
        self,
    ) -> tuple[Faces, NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        preset = PRESETS[self.preset]
        faces = preset.population
        face, noise = (
            spectrum(preset.dimension, effective)
            for effective in (faces.face_dimension, faces.noise_dimension)
        )
        rng = np.random.default_rng(0)
        drawn = rng.standard_normal((faces.sub_clusters, len(face)), dtype=np.float32)
        return faces, face, noise, unit(drawn * face)


@lru_cache(maxsize=16)
def _counted(population: _Embedded, apart: float) -> Law:
    rng = np.random.default_rng([1, _MANY])
    edges = np.linspace(-1, 1, _CELLS + 1)
    counts = np.zeros((2, _CELLS))

    def count(cosine: NDArray[np.float32]) -> NDArray[np.integer]:
        cell = ((cosine + 1) * (_CELLS / 2)).astype(np.int64)
        return np.bincount(np.clip(cell, 0, _CELLS - 1).ravel(), minlength=_CELLS)

    for _ in range(_TIMES):
        x = population.vectors(rng, np.arange(_MANY), apart)
        counts[0] += count((x @ x.T)[np.triu_indices(_MANY, 1)])
        y = population.vectors(rng, np.repeat(np.arange(_GENUINE), 2), apart)
        counts[1] += count(np.einsum("ij,ij->i", y[::2], y[1::2]))
    return Law(edges, *(counts / counts.sum(axis=1, keepdims=True)))


POPULATIONS: dict[str, Population] = {
    "normal, mild": Effects(0.02, 0.0, 0.1),
    "normal, medium": Effects(0.1, 0.05, 0.3),
    "normal, strong": Effects(0.2, 0.04, 0.3),
    "normal, couples only": Effects(0.0, 0.0, 0.5),
    "wolves, 10 %": Effects(0.05, 0.0, 0.3, 0.1, 1.0),
    "wolves, 5 %": Effects(0.05, 0.0, 0.3, 0.05, 1.5),
    "embeddings, 64": Centroids(64, 3.0, 1.4),
    "embeddings, 16": Centroids(16, 1.0, 0.7),
    "faircal.simulate": Simulated("small", 0.3),
}
#: By how much groups C and D are set apart, where they are.
APART: dict[str, tuple[float, float]] = dict.fromkeys(POPULATIONS, (0.6, 1.2)) | {
    "embeddings, 64": (1.2, 2.4),
    "embeddings, 16": (0.8, 1.4),
    "faircal.simulate": (0.1, 0.2),
}
