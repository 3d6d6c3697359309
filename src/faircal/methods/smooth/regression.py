"""SmoothFairCal's regression, and what it chooses by cross-validation.

The log-odds of a pair are φ · u + max(φ · v, 0) T(s); `TiltRegression` fits u and v given a ridge.
`choose` takes the ridge and the number of mixture components that do best on people held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress
from faircal.calibrators import Calibrator, Samples
from faircal.compute.ridge import Regression
from faircal.compute.threads import each
from faircal.methods.inputs import Inputs
from faircal.methods.smooth.features import FeatureMap, pair_memberships

Float64 = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Prices of the constant and of components: hardly any, for those make the map calibrated within
#: each component, which is what they are for. Held-out loss alone would hold them back.
_CONSTANT, _COMPONENT = 1e-6, 0.1
#: T is measured in odds of 99 to 1, so that a ridge means the same for shifts and for tilts.
_ODDS = float(np.log(99))
#: Imposter pairs that a mixture takes at most.
_MIXED = 100_000


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Labelled pairs; `left` and `right` are rows of `vectors`."""

    vectors: NDArray[np.float32]
    left: Rows
    right: Rows
    score: Float64
    genuine: NDArray[np.bool_]

    @classmethod
    def of(cls, inputs: Inputs) -> tuple[LabelledPairs, Rows]:
        """Return all pairs in an order of their own, and which of those given each was.

        So neither the order of pairs nor which image is on the left changes a digit.
        """
        sides = np.stack(inputs.positions())
        low, high = sides.min(axis=0), sides.max(axis=0)
        # The lower row first, then sorted: sums of floats depend on the order they are taken in.
        order = np.lexsort((inputs.genuine, high, low))
        low, high, genuine = low[order], high[order], inputs.genuine[order]
        return cls(inputs.vectors(), low, high, inputs.score[order], genuine), order

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: Rows) -> LabelledPairs:
        """Return some of the pairs, with the images that occur in them."""
        both = np.concatenate([self.left[rows], self.right[rows]])
        used, places = np.unique(both, return_inverse=True)
        left, right = places.reshape(2, -1)
        return LabelledPairs(self.vectors[used], left, right, self.score[rows], self.genuine[rows])

    def sample(self, most: int, seed: int) -> LabelledPairs:
        """Return all pairs, or `most` of them at random where there are more."""
        if len(self) <= most:
            return self
        return self.take(some_rows(np.arange(len(self)), most, seed))

    def calibrate(self, calibrator: Calibrator) -> Calibrator:
        """Return a global calibrator like `calibrator`, fitted on all pairs."""
        return calibrator.fit_sets(Samples.of(self.score, self.genuine, n_sets=0))[0]

    @property
    def fewest(self) -> int:
        """Pairs of the class that has fewer of them."""
        genuine = int(self.genuine.sum())
        return min(genuine, len(self) - genuine)

    def fit_feature_map(self, n_dimensions: int, n_regions: int, seed: int) -> FeatureMap:
        """Return embedding space as the pairs show it, without a mixture yet."""
        imposters = self.imposters(seed)
        return FeatureMap.fit(self.vectors, *imposters, n_dimensions, n_regions, seed)

    def with_mixture(self, feature_map: FeatureMap, n_components: int, seed: int) -> FeatureMap:
        """Return `feature_map` with the mixture that the imposter pairs show."""
        return feature_map.with_mixture(self.vectors, *self.imposters(seed), n_components, seed)

    def association(self, feature_map: FeatureMap, seed: int) -> float:
        """Return what components tell of who is paired with whom, in nats a pair."""
        if not len(feature_map.mixture):
            return 0.0
        points = feature_map.mixture_points(self.vectors)
        return float(feature_map.mixture.association(points, *self.imposters(seed)).mean())

    def imposters(self, seed: int) -> tuple[Rows, Rows]:
        """Return the rows of both images of imposter pairs, of some at random where many."""
        rows = some_rows(np.flatnonzero(~self.genuine), _MIXED, seed)
        return self.left[rows], self.right[rows]


def some_rows(rows: Rows, most: int, seed: int) -> Rows:
    """Return `rows`, or `most` of them at random, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


@dataclass(frozen=True, eq=False)
class TiltRegression:
    """The regression of labelled pairs, given a feature map and a global calibrator."""

    pairs: LabelledPairs
    feature_map: FeatureMap
    calibrator: Calibrator

    @cached_property
    def _traits(self) -> Float64:
        return self.feature_map.traits(self.pairs.vectors)

    @cached_property
    def components(self) -> Float64:
        """The components of pairs, (n, J)."""
        points = self.feature_map.mixture_points(self.pairs.vectors)
        of_images = self.feature_map.memberships(points)
        return pair_memberships(of_images[self.pairs.left], of_images[self.pairs.right])

    @cached_property
    def _regression(self) -> Regression:
        t = self.calibrator.log_odds(self.pairs.score) / _ODDS
        return Regression(self._features, t, self.pairs.genuine.astype(np.float64))

    def _features(self, block: slice) -> Float64:
        """Return a constant, components and mean traits of pairs, (block, 1 + J + r + K)."""
        left, right = self.pairs.left[block], self.pairs.right[block]
        # The mean of both images' traits: symmetric, and linear in each image's own.
        near = (self._traits[left] + self._traits[right]) / 2
        return np.hstack([np.ones((len(left), 1)), self.components[block], near])

    def fit(self, ridge: float, start: Float64 | None = None) -> Float64:
        """Return the effects of features on the log-odds and on how T counts, (2, 1 + J + r + K).

        `start` are effects to begin the search with.
        """
        n = len(self.feature_map.mixture)
        penalty = np.full((2, 1 + n + self._traits.shape[1]), ridge)
        penalty[:, : 1 + n] = _COMPONENT
        penalty[:, 0] = _CONSTANT
        if start is None:
            start = np.zeros_like(penalty)
            # u = 0, v = (1, 0, …): log-odds T(s), from which the pairs say how far to go.
            start[1, 0] = 1.0  # the global map
        # With t = T / ln 99 the coefficient of t is v ln 99.
        scale = np.array([[1.0], [_ODDS]])
        effects: Float64 = self._regression.fit(penalty, start * scale) / scale
        return effects

    def log_odds(self, effects: Float64) -> tuple[Float64, float]:
        """Return the log-odds of the pairs, and the share of them in which T is kept out."""
        shift, tilt = self._regression.lines(effects)
        t = self._regression.t * _ODDS
        # A negative tilt would turn the score around: such a pair is decided by its shift alone.
        shift += np.maximum(tilt, 0.0) * t
        return shift, float((tilt <= 0).mean())


T = TypeVar("T")

#: What is tried: components from few to many, ridges from stiff to loose. The first ridge leaves
#: nothing of coordinates and regions.
COMPONENTS = (12, 16, 24)
RIDGES = (1e6, 1000.0, 250.0, 60.0, 15.0, 4.0, 1.0)
#: What is taken where there are too few people to try.
USUAL_COMPONENTS, USUAL_RIDGE = 12, 100.0
#: Parts that people are dealt to; pairs tried with, at most; pairs of each class in a part, at
#: least.
_PARTS, _MOST, _LEAST = 3, 20_000, 20
#: Part of the best association that a larger number of components must keep.
_NEARLY = 0.97
#: Nats of association that the best must reach; pairs at random seem to have less.
_LEAST_ASSOCIATION = 0.01
#: Pairs held out of a component that count in full; one with fewer counts less.
_FULL = 50


@dataclass
class SmoothSettings:
    """What was chosen, and what was found on people held out.

    In losses every component counts the same. `losses` are by ridge, `associations` (what the
    mixture tells of who is paired with whom, in nats) by number of components; `plain` is the
    global map's loss, `parts` how many times people were held out.
    """

    n_components: int
    ridge: float
    parts: int = 0
    plain: float = float("nan")
    losses: dict[float, float] = field(default_factory=dict)
    associations: dict[int, float] = field(default_factory=dict)


@dataclass(eq=False)
class _HeldOutTrial:
    """Pairs to fit on and pairs of other people to try on, with what was fitted so far."""

    fitted: LabelledPairs
    held: LabelledPairs
    feature_map: FeatureMap
    seed: int
    effects: Float64 | None = None

    def association(self, n_components: int) -> float:
        """Fit a mixture; return what it tells of who is paired with whom, of people held out."""
        feature_map = self.fitted.with_mixture(self.feature_map, n_components, self.seed)
        return self.held.association(feature_map, self.seed)

    def prepare(self, n_components: int, calibrator: Calibrator) -> None:
        """Set up the regressions with so many components."""
        self.feature_map = self.fitted.with_mixture(self.feature_map, n_components, self.seed)
        plain = self.fitted.calibrate(calibrator)
        self.problem = TiltRegression(self.fitted, self.feature_map, plain)
        self.test = TiltRegression(self.held, self.feature_map, plain)

    def plain(self) -> float:
        """Return the loss of the global map."""
        return self._loss(self.test.calibrator.log_odds(self.held.score))

    def loss(self, ridge: float) -> float:
        """Fit the regression, from where the last one ended; return the loss held out."""
        self.effects = self.problem.fit(ridge, self.effects)
        return self._loss(self.test.log_odds(self.effects)[0])

    def _loss(self, log_odds: Float64) -> float:
        # log(1 + e^∓η), the log-loss of a genuine pair and of an imposter
        loss = np.logaddexp(0.0, np.where(self.held.genuine, -log_odds, log_odds))
        return balanced(loss, self.test.components)


def balanced(loss: Float64, components: Float64) -> float:
    """Return the mean of `loss`, (n,), in which every one of `components`, (n, J), counts the same.

    One with few pairs counts less, for chance would decide.

    Examples
    --------
    >>> many = np.repeat([[1.0, 0.0], [0.0, 1.0]], [900, 100], axis=0)
    >>> round(balanced(many[:, 1], many), 6)
    0.5
    """
    if not components.shape[1]:
        return float(loss.mean())
    # Pair i counts Σ_j r_ij / Σ_i r_ij: each component adds up to 1, whatever its size.
    weight = components @ (1 / np.maximum(components.sum(axis=0), _FULL))
    return float(weight @ loss / weight.sum())


def choose(
    pairs: LabelledPairs,
    calibrator: Calibrator,
    folds: Callable[[int], NDArray[np.int64]],
    *,
    ridge: float | None,
    n_components: int | None,
    n_dimensions: int,
    n_regions: int,
    random_state: int,
    progress: Progress,
) -> SmoothSettings:
    """Choose the number of components and the ridge, unless given.

    ``folds(n)`` gives each pair one of n folds of people, from 1, or −1.

    People are dealt to parts; for each, everything is fitted on pairs of the others and tried on
    pairs within it. The mixture is judged by what it tells of who is paired with whom: of the
    numbers of components that tell nearly as much as the best, the largest is taken, for groups so
    small that they hardly count in the average need components of their own. The ridge is the one
    of least balanced loss.
    """
    chosen = SmoothSettings(n_components or USUAL_COMPONENTS, ridge or USUAL_RIDGE)
    if n_components is not None and ridge is not None:
        return chosen
    trials = [
        _HeldOutTrial(
            fitted,
            held,
            fitted.fit_feature_map(n_dimensions, n_regions, random_state),
            random_state,
        )
        for fitted, held in _parts(pairs, folds(_PARTS), random_state)
    ]
    if len(trials) < 2:
        return chosen
    chosen.parts = len(trials)
    if n_components is None:
        _choose_components(trials, chosen, progress)
    _all(trials, lambda trial: trial.prepare(chosen.n_components, calibrator))
    chosen.plain = float(np.mean(_all(trials, _HeldOutTrial.plain)))
    if ridge is None:
        _choose_ridge(trials, chosen, progress)
    return chosen


def _choose_components(
    trials: Sequence[_HeldOutTrial], chosen: SmoothSettings, progress: Progress
) -> None:
    """Take the most components that tell nearly as much of people held out as the best number."""
    associations = chosen.associations
    for done, n in enumerate(COMPONENTS):
        progress("choosing components", done, len(COMPONENTS), f"{n} components")
        associations[n] = float(
            np.mean(_all(trials, partial(_HeldOutTrial.association, n_components=n)))
        )
    best = max(associations.values())
    chosen.n_components = 1
    if best > _LEAST_ASSOCIATION:
        chosen.n_components = max(n for n, of_n in associations.items() if of_n >= _NEARLY * best)
    progress("choosing components", len(COMPONENTS), len(COMPONENTS), "")


def _choose_ridge(
    trials: Sequence[_HeldOutTrial], chosen: SmoothSettings, progress: Progress
) -> None:
    """Take the ridge of least loss on people held out; it may have more than one low."""
    for done, ridge in enumerate(RIDGES):
        progress("choosing the ridge", done, len(RIDGES), f"{ridge:g}")
        chosen.losses[ridge] = float(
            np.mean(_all(trials, partial(_HeldOutTrial.loss, ridge=ridge)))
        )
    chosen.ridge = min(chosen.losses, key=chosen.losses.__getitem__)
    progress("choosing the ridge", len(RIDGES), len(RIDGES), "")


def _all(trials: Sequence[_HeldOutTrial], work: Callable[[_HeldOutTrial], T]) -> list[T]:
    """Return what `work` gives for each trial, several at a time."""
    return each(lambda part: work(trials[part.start]), len(trials), 1)


def _parts(
    pairs: LabelledPairs, fold: NDArray[np.int64], seed: int
) -> Iterator[tuple[LabelledPairs, LabelledPairs]]:
    """Yield pairs of all parts but one, and of that one; where there are enough of each class."""
    rows = some_rows(np.flatnonzero(fold > 0), _MOST, seed)
    for part in np.unique(fold[rows]):
        inside = fold[rows] == part
        fitted, held = pairs.take(rows[~inside]), pairs.take(rows[inside])
        if min(fitted.fewest, held.fewest) >= _LEAST:
            yield fitted, held
