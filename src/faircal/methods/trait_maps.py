"""Maps from a pair's score, and from what its images are like, to log-odds; and which to take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from faircal.calibrators import Calibrator, make_calibrator
from faircal.methods.likeness import doubted
from faircal.methods.normalizing import wide_range

Float64 = NDArray[np.float64]

#: The maps there are, from the plainest.
MapKind = Literal["plain", "shifted", "learned"]
KINDS: tuple[MapKind, ...] = ("plain", "shifted", "learned")
#: Part of the first trait by which a score is shifted, for each image: half of both.
SHIFT = 0.5
#: The first trait of an image that the cohort does not represent, in standard deviations.
UNKNOWN = 0.25
#: People that are imagined to say that nothing is to be learned.
_IMAGINED = 60.0
#: Traits are taken within so many standard deviations.
WITHIN = 3.0
#: Standard deviations below the mean from where on a trait is `doubted`, and what counts there.
FLOOR, DOUBT = -0.9, 0.25
#: Price of the two coefficients that are the same for all pairs: next to none.
_FREE = 1e-6
_STEPS, _GAIN = 50, 1e-10


@dataclass(frozen=True, eq=False)
class LabelledTraits:
    """Labelled pairs: score, and the numbers of both images (`Likeness`): traits, then trust.

    Attributes
    ----------
    score : ndarray of shape (n,)
    left, right : ndarray of shape (n, 4)
    genuine : ndarray of bool, shape (n,)
    weight : ndarray of shape (n,)
    part : ndarray of shape (n, 2)
        Which part of the people each image's person is in, to hold parts out.
    unit : float
        Weight that counts as one person: many pairs show the same one.
    """

    score: Float64
    left: Float64
    right: Float64
    genuine: NDArray[np.bool_]
    weight: Float64
    part: NDArray[np.integer]
    unit: float

    def take(self, rows: NDArray[np.bool_]) -> LabelledTraits:
        """Return some of the pairs."""
        names = ("score", "left", "right", "genuine", "weight", "part")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, eq=False)
class TraitMap:
    """Log-odds u₀ + (φ + φ')·u + max(v₀ + (φ + φ')·v, 0) T(s − h − h') of a pair.

    φ are the standardised traits of an image as far as it is trusted, h its shift of the score. Low
    traits are doubted.

    Attributes
    ----------
    kind : {"plain", "shifted", "learned"}
        Plain: h and φ are 0. Shifted: φ is 0.
    calibrator : Calibrator
        T.
    effects : ndarray of shape (2, 4)
        u and v, from u₀ and v₀ on.
    mean, scale : ndarray of shape (3,)
        Of traits.
    """

    kind: MapKind
    calibrator: Calibrator
    effects: Float64
    mean: Float64
    scale: Float64

    @property
    def shift(self) -> float:
        """Part of the first trait by which an image shifts the score."""
        return 0.0 if self.kind == "plain" else SHIFT

    def of_images(self, values: Float64) -> Float64:
        """Return what each image adds to score, log-odds and slope, (n, 3), from its numbers."""
        added, trust = np.empty((len(values), 3)), values[:, -1]
        closeness = doubted((values[:, 0] - self.mean[0]) / self.scale[0], FLOOR, DOUBT)
        added[:, 0] = trust * closeness + (1 - trust) * UNKNOWN
        added[:, 0] *= self.shift * self.scale[0]
        added[:, 1:] = self._standard(values) @ self.effects[:, 1:].T
        return added

    def log_odds(self, score: Float64, both: Float64) -> Float64:
        """Return log-odds of pairs, given what `of_images` gives, summed over both images."""
        constant, slope = self.effects[:, 0]
        log_odds = self.calibrator.log_odds(score - both[:, 0])
        log_odds *= np.maximum(slope + both[:, 2], 0.0)
        log_odds += constant + both[:, 1]
        return log_odds

    @classmethod
    def fit(cls, kind: MapKind, pairs: LabelledTraits, calibrator: str | Calibrator) -> TraitMap:
        """Fit T, and what is learned on top of it with a ridge, on labelled pairs."""
        sides = np.concatenate([pairs.left, pairs.right])[:, :-1]
        # As strangers of the cohort have them, every group weighing the same.
        weight = np.tile(np.where(pairs.genuine, 0.0, pairs.weight), 2)
        mean = np.average(sides, axis=0, weights=weight)
        scale = np.sqrt(np.average((sides - mean) ** 2, axis=0, weights=weight))
        effects = np.zeros((2, 1 + len(mean)))
        effects[1, 0] = 1.0
        # Not fitted yet: images shift scores whatever the calibrator.
        unfitted = make_calibrator(calibrator, (0.0, 1.0))
        shifting = cls(kind, unfitted, effects, mean, np.maximum(scale, 1e-12))
        both = shifting.of_images(pairs.left) + shifting.of_images(pairs.right)
        score = pairs.score - both[:, 0]
        fitted = make_calibrator(calibrator, wide_range(score))
        fitted.fit(score, pairs.genuine, pairs.weight)
        if kind == "learned":
            traits = shifting._standard(pairs.left) + shifting._standard(pairs.right)
            features = np.hstack([np.ones((len(traits), 1)), traits])
            effects = _regress(features, fitted.log_odds(score), pairs)
        return replace(shifting, calibrator=fitted, effects=effects)

    def _standard(self, values: Float64) -> Float64:
        traits = np.clip((values[:, :-1] - self.mean) / self.scale, -WITHIN, WITHIN)
        return np.asarray(doubted(traits, FLOOR, DOUBT) * values[:, -1:])


class HeldOut(NamedTuple):
    """What a map costs on people held out: the mean log-loss a pair, part by part."""

    kind: MapKind
    losses: Float64


def choose_map(
    pairs: LabelledTraits, calibrator: str | Calibrator
) -> tuple[MapKind, list[HeldOut]]:
    """Return the map to take, and what each that was tried costs on people held out.

    From the plainest on, the next is taken where it is better: the shifted one where it is on
    average, the learned one where it is by more than a standard error.
    """
    held_out = [HeldOut(kind, _held_out(kind, pairs, calibrator)) for kind in KINDS]
    chosen = KINDS[0]
    for (_, before), (kind, after) in pairwise(held_out):
        gains = before - after
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
        # Too few people to hold any out: the plainest.
        if not len(gains) or gains.mean() <= (error if kind == "learned" else 0.0):
            break
        chosen = kind
    return chosen, held_out


def _held_out(kind: MapKind, pairs: LabelledTraits, calibrator: str | Calibrator) -> Float64:
    losses = []
    for part in np.unique(pairs.part[pairs.part >= 0]):
        inside = (pairs.part == part).any(axis=1)
        fitted, tested = pairs.take(~inside), pairs.take(inside)
        if any(one.genuine.all() or not one.genuine.any() for one in (fitted, tested)):
            continue
        fitted_map = TraitMap.fit(kind, fitted, calibrator)
        both = fitted_map.of_images(tested.left) + fitted_map.of_images(tested.right)
        log_odds = fitted_map.log_odds(tested.score, both)
        loss = np.logaddexp(0.0, np.where(tested.genuine, -log_odds, log_odds))
        # Each class counts as in all pairs: parts have more or less of one.
        classes = [pairs.genuine, ~pairs.genuine]
        share = [float(pairs.weight[one].sum()) for one in classes]
        mean = [
            float(np.average(loss[one], weights=tested.weight[one]))
            for one in (tested.genuine, ~tested.genuine)
        ]
        losses.append(np.average(mean, weights=share))
    return np.array(losses)


def _regress(features: Float64, t: Float64, pairs: LabelledTraits) -> Float64:
    """Return u and v, (2, p), of least weighted log-loss with a ridge: Newton's method."""
    x = np.hstack([features, features * t[:, None]])
    p, target, weight = features.shape[1], pairs.genuine.astype(np.float64), pairs.weight
    ridge = np.full(2 * p, _IMAGINED * pairs.unit)
    ridge[[0, p]] = _FREE
    theta = np.zeros(2 * p)
    theta[p] = 1.0

    def loss(theta: Float64) -> float:
        eta = x @ theta
        likely = np.logaddexp(0.0, np.where(pairs.genuine, -eta, eta))
        return float(weight @ likely + ridge @ theta**2 / 2)

    now = loss(theta)
    for _ in range(_STEPS):
        likely = expit(x @ theta)
        gradient = x.T @ (weight * (likely - target)) + ridge * theta
        hessian = (x * (weight * likely * (1 - likely))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        length, gain = 1.0, float(step @ gradient)
        # Armijo's rule: a ten-thousandth of what the slope promises will do.
        while (after := loss(theta - length * step)) > now - 1e-4 * length * gain and length > 1e-6:
            length /= 2
        theta, now = theta - length * step, after
        if gain < _GAIN * weight.sum():
            break
    return theta.reshape(2, p)
