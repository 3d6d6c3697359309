"""Crowds chosen to break promises: who errs, how unevenly, and with whom.

Written apart from the rule that is judged. A pair's score is what both people add, what the couple
adds, and chance; people have uneven numbers of images, a couple has several pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from studies.uncertainty.design import make_design
from studies.uncertainty.laws import Float64
from studies.uncertainty.populations import POPULATIONS

Int64 = NDArray[np.int64]
#: Variances of a couple and of chance; the grid of the law, and how many people make it.
COUPLE, CHANCE = 0.2, 0.6
_GRID, _MANY = np.arange(-12, 40, 0.02), 2_000_000
#: Pairs of a couple on average, and pairs at most.
_PER_COUPLE, _MOST = 2.0, 40_000


@dataclass(frozen=True)
class Crowd:
    """People, each with what he adds to a score, how wide his scores are, and his share of pairs.

    Parameters
    ----------
    law : {"normal", "t3", "exponential"}
    size : float
        What the effects of people are multiplied by.
    wolves : float
        A share of people who differ: by `higher`, by `wider` scores or by `larger` effects.
    images : float
        Correlation of a person's effect with the log of his number of images.
    widths : float
        Spread of the log of everybody's width: effects that multiply.
    dominating : float
        Share of pairs that one person is in, whoever it is.
    siblings : float
        Share of pairs that are of siblings, who score 1.5 higher; each person has one.
    sites : float
        Pairs are within two sites, and at one they score so much higher.
    ties : float
        Scores are rounded to multiples of this.
    """

    law: str = "normal"
    size: float = 0.39
    wolves: float = 0.0
    higher: float = 0.0
    wider: float = 1.0
    larger: float = 1.0
    images: float = 0.0
    widths: float = 0.0
    dominating: float = 0.0
    siblings: float = 0.0
    sites: float = 0.0
    ties: float = 0.0

    def people(self, rng: np.random.Generator, n: int) -> tuple[Float64, Float64, Float64]:
        """Return effects, widths and shares of pairs of people drawn anew, each of shape (n,)."""
        if self.law == "t3":
            drawn = rng.standard_t(3, n)
        else:
            drawn = rng.exponential(size=n) - 1 if self.law == "exponential" else rng.normal(size=n)
        wolf = rng.random(n) < self.wolves
        effect = self.size * drawn * np.where(wolf, self.larger, 1) + self.higher * wolf
        width = np.exp(self.widths * rng.standard_normal(n)) * np.where(wolf, self.wider, 1)
        chance = rng.standard_normal(n)
        mixed = self.images * drawn + (1 - self.images**2) ** 0.5 * chance
        share = np.exp(0.5 * mixed)
        return effect, width, share

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Float64, Int64, Int64]:
        """Return scores of imposter pairs, and both people of each."""
        return self.imposters(rng, *self.members(rng, n))

    def members(self, rng: np.random.Generator, n: int) -> tuple[Float64, Float64, Float64]:
        """Return people as `people` does, one of them dominating; shares sum to 1."""
        effect, width, share = self.people(rng, n)
        if self.dominating:
            share[0] = self.dominating / (1 - self.dominating) * share[1:].sum()
        return effect, width, share / share.sum()

    def imposters(
        self, rng: np.random.Generator, effect: Float64, width: Float64, share: Float64
    ) -> tuple[Float64, Int64, Int64]:
        """Return scores of imposter pairs of these people, and both people of each."""
        n = len(share)
        pairs = min(int(_PER_COUPLE * n * (n - 1) / 2), _MOST)
        left, right = rng.choice(n, (2, 3 * pairs), p=share)
        apart = (left != right) & ((left ^ 1 != right) | (not self.siblings))
        if self.sites:
            apart &= left % 2 == right % 2
        left, right = left[apart][:pairs], right[apart][:pairs]
        if self.siblings:
            right = np.where(rng.random(len(left)) < self.siblings, left ^ 1, right)
        key = np.minimum(left, right) * n + np.maximum(left, right)
        couples, couple = np.unique(key, return_inverse=True)
        scores = COUPLE**0.5 * rng.standard_normal(len(couples))[couple]
        scores += CHANCE**0.5 * rng.standard_normal(len(left))
        scores = scores * width[left] * width[right] + effect[left] + effect[right]
        scores += self.sites * (left % 2) + 1.5 * (self.siblings > 0) * (left ^ 1 == right)
        if self.ties:
            scores = np.round(scores / self.ties) * self.ties
        return scores, left, right

    @cached_property
    def _passing(self) -> Float64:
        """The share of pairs above each point of the grid: sums of effects, blurred by chance."""
        rng = np.random.default_rng(12345)
        effect, width, share = self.people(rng, _MANY)
        one, other = rng.choice(_MANY, (2, _MANY), p=share / share.sum())
        sums = effect[one] + effect[other] + self.sites * (rng.random(_MANY) < 0.5)
        sums += 1.5 * (rng.random(_MANY) < self.siblings)
        widths = np.round(width[one] * width[other], 2)
        step, at = _GRID[1] - _GRID[0], np.arange(-400, 401) * (_GRID[1] - _GRID[0])
        mass = np.zeros(len(_GRID))
        for value in np.unique(widths):
            of_width = sums[widths == value]
            counts = np.histogram(np.clip(of_width, -11, 39), [*_GRID, _GRID[-1] + step])[0]
            spread = value * (COUPLE + CHANCE) ** 0.5
            blur = ndtr((at + step / 2) / spread) - ndtr((at - step / 2) / spread)
            mass += np.convolve(counts / _MANY, blur, "same")
        return np.maximum(np.cumsum(mass[::-1])[::-1], 1e-300)

    def fpr(self, threshold: float) -> float:
        """Return the true rate at a threshold."""
        if self.ties:  # what is rounded up to it
            threshold = (np.ceil(threshold / self.ties - 1e-6) - 0.5) * self.ties
        return float(np.exp(np.interp(threshold, _GRID, np.log(self._passing))))

    def threshold(self, rate: float) -> float:
        """Return the threshold of about a rate; with ties a score that occurs."""
        at = float(np.interp(-np.log(rate), -np.log(self._passing), _GRID))
        return float(np.round(at / self.ties) * self.ties) if self.ties else at


@dataclass(frozen=True)
class Known:
    """A population of the study of coverage; three images of each person, all pairs."""

    name: str

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Float64, Int64, Int64]:
        """Return scores of imposter pairs, and both people of each."""
        design = make_design(n, 3 if n <= 120 else 2, 0 if n <= 200 else _MOST)
        left, right = design.owner[design.imposter]
        return POPULATIONS[self.name].draw(rng, design, 0.0)[0], left, right

    def fpr(self, threshold: float) -> float:
        """Return the true rate at a threshold."""
        return POPULATIONS[self.name].law(0.0).fpr(threshold)

    def threshold(self, rate: float) -> float:
        """Return the threshold of a rate."""
        return POPULATIONS[self.name].law(0.0).threshold(rate)


CROWDS: dict[str, Crowd | Known] = {
    "normal": Crowd(),
    "normal, strong": Crowd(size=0.5),
    "normal, mild": Crowd(size=0.17),
    "multiplying": Crowd(size=0.0, widths=0.15),
    "0.3 · t₃": Crowd("t3", 0.3),
    "exponential": Crowd("exponential", 0.4),
    "wolves, 1 %": Crowd(wolves=0.01, size=0.25, higher=1.5),
    "wolves, 5 %": Crowd(wolves=0.05, size=0.25, higher=1.5),
    "wolves, 10 %": Crowd(wolves=0.1, size=0.25, higher=1.5),
    "wolves, 10 %, effects × 1.8": Crowd(wolves=0.1, larger=1.8),
    "wolves, 1 %, scores × 1.8": Crowd(wolves=0.01, size=0.17, wider=1.8),
    "wolves, 5 %, scores × 1.8": Crowd(wolves=0.05, size=0.17, wider=1.8),
    "wolves, 10 %, scores × 1.8": Crowd(wolves=0.1, size=0.17, wider=1.8),
    "siblings": Crowd(siblings=0.01),
    "images with the effect": Crowd(images=0.9),
    "one dominating": Crowd(dominating=0.2),
    "two sites": Crowd(sites=0.8),
    "ties": Crowd(ties=0.2),
    "embeddings, 64": Known("embeddings, 64"),
    "embeddings, 16": Known("embeddings, 16"),
    "faircal.simulate": Known("faircal.simulate"),
}
