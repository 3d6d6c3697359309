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
from faircal.calibrators import Calibrator, Samples, sigmoid
from faircal.compute import CPU
from faircal.compute.ridge import LEAST_GAIN, Regression
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
_MIXED = 30_000


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Labelled pairs; `left` and `right` are rows of `vectors`."""

    vectors: NDArray[np.float32]
    traits: Float64
    person: Rows
    left: Rows
    right: Rows
    score: Float64
    genuine: NDArray[np.bool_]

    @classmethod
    def of(
        cls, inputs: Inputs, vectors: NDArray[np.float32], traits: Float64, person: Rows
    ) -> tuple[LabelledPairs, Rows]:
        """Return all pairs, each once, in an order of their own, and which of those given each was.

        So neither the order of pairs, nor which image is on the left, nor how often a pair is in
        the list changes a digit. Of each image there are its vector, traits and a person's number.
        """
        sides = np.stack(inputs.positions())
        low, high = sides.min(axis=0), sides.max(axis=0)
        # The lower row first, then sorted: sums of floats depend on the order they are taken in.
        pair = low * len(vectors) + high
        order = np.argsort(pair)
        if (np.diff(pair[order]) == 0).any():  # some are there more than once
            order = np.lexsort((inputs.score, inputs.genuine, pair))
            order = order[np.append(True, np.diff(pair[order]) > 0)]
        low, high, genuine = low[order], high[order], inputs.genuine[order]
        return cls(vectors, traits, person, low, high, inputs.score[order], genuine), order

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: Rows) -> LabelledPairs:
        """Return some of the pairs, with the images that occur in them."""
        both = np.concatenate([self.left[rows], self.right[rows]])
        used, places = np.unique(both, return_inverse=True)
        left, right = places.reshape(2, -1)
        vectors, traits, person = self.vectors[used], self.traits[used], self.person[used]
        score, genuine = self.score[rows], self.genuine[rows]
        return LabelledPairs(vectors, traits, person, left, right, score, genuine)

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

    def with_mixture(self, feature_map: FeatureMap, n_components: int, seed: int) -> FeatureMap:
        """Return `feature_map` with the mixture that the imposter pairs show."""
        return feature_map.with_mixture(self.traits, *self.imposters(seed), n_components, seed)

    def associations(self, feature_map: FeatureMap, seed: int) -> Float64:
        """Return what components tell of who is paired with whom, in nats, of imposter pairs."""
        left, right = self.imposters(seed)
        if not len(feature_map.mixture):
            return np.zeros(len(left))
        points = feature_map.mixture_points(self.traits)
        return feature_map.mixture.association(points, left, right).astype(np.float64)

    def draws(self, n: int, seed: int) -> Float64:
        """Return how often pairs count, as they are and with people drawn anew: (1 + n, n_pairs).

        A person counts a Poisson number of times, and a pair of two more or less often by as much
        as both do.
        """
        people, number = np.unique(self.person, return_inverse=True)
        drawn = np.random.default_rng(seed).poisson(1.0, (n, len(people))).astype(float)
        drawn = np.vstack([np.ones(len(people)), drawn])
        left, right = number[self.left], number[self.right]
        counts: Float64 = drawn[:, left] + np.where(left == right, 1.0, drawn[:, right]) - 1.0
        return counts

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
    def components(self) -> Float64:
        """The components of pairs, (n, J)."""
        points = self.feature_map.mixture_points(self.pairs.traits)
        of_images = self.feature_map.memberships(points)
        return pair_memberships(of_images[self.pairs.left], of_images[self.pairs.right])

    @cached_property
    def _regression(self) -> Regression:
        pairs, one = self.pairs, np.ones((len(self.pairs), 1))
        # φ: a constant, components, and the mean of both images' traits: symmetric, and linear in
        # each image's own.
        return Regression(
            own=np.hstack([one, self.components]),
            shared=pairs.traits,
            sides=np.stack([pairs.left, pairs.right]),
            t=self.calibrator.log_odds(pairs.score) / _ODDS,
            target=pairs.genuine.astype(np.float64),
        )

    def fit(
        self, ridge: float, start: Float64 | None = None, least_gain: float = LEAST_GAIN
    ) -> Float64:
        """Return the effects of features on the log-odds and on how T counts, (2, 1 + J + r + K).

        `start` are effects to begin the search with.
        """
        n = len(self.feature_map.mixture)
        penalty = np.full((2, 1 + n + self.pairs.traits.shape[1]), ridge)
        penalty[:, : 1 + n] = _COMPONENT
        penalty[:, 0] = _CONSTANT
        # u = 0, v = (1, 0, …): log-odds T(s), from which the pairs say how far to go.
        the_global = np.zeros_like(penalty)
        the_global[1, 0] = 1.0
        if ridge == np.inf:
            return the_global
        start = the_global if start is None else start
        # With t = T / ln 99 the coefficient of t is v ln 99.
        scale = np.array([[1.0], [_ODDS]])
        effects: Float64 = self._regression.fit(penalty, start * scale, least_gain) / scale
        return effects

    def log_odds(self, effects: Float64) -> tuple[Float64, float]:
        """Return the log-odds of the pairs, and the share of them in which T is kept out."""
        shift, tilt = self._regression.lines(effects)
        t = self._regression.t * _ODDS
        # A negative tilt would turn the score around: such a pair is decided by its shift alone.
        shift += np.maximum(tilt, 0.0) * t
        return shift, float((tilt <= 0).mean())


T = TypeVar("T")

#: Components that a mixture has, at most; it hardly matters how many more than there are groups.
USUAL_COMPONENTS = 16
#: What is tried, from stiff to loose. The first leaves nothing of coordinates and regions.
RIDGES = (1e6, 1000.0, 250.0, 60.0, 15.0)
#: Loss a pair that a step of a regression tried gains, at least; ridges beyond the best one.
_CLOSE, _BEYOND = 1e-7, 3
#: Parts that people are dealt to; pairs of each class in a part, at least.
_PARTS, _LEAST = 3, 20
#: Pairs fitted on in a trial, at most; pairs of all parts.
_MOST, _MOST_HELD = 13_000, 30_000
#: Nats of association that components must reach; pairs at random seem to have less.
_LEAST_ASSOCIATION = 0.01
#: Parts of embedding space within which strangers count as alike where there are no components.
_CELLS = 8
#: Pairs held out of a cell that count in full; one with fewer counts less.
_FULL = 50
#: How many times people are drawn anew; standard errors that a gain must exceed, and one with
#: components, which have shown beyond as many that there is something to gain.
_DRAWS, _ERRORS, _ERRORS_SHOWN = 100, 2.0, 1.5
_TINY = np.finfo(float).tiny.item()


@dataclass
class SmoothSettings:
    """What was chosen, and what was found on people held out.

    A ridge of infinity leaves the global map. In losses every component counts the same. `losses`
    are by ridge, `plain` is the global map's, `parts` how many times people were held out;
    `association` is what a mixture tells of who is paired with whom, in nats. `gain` is by how much
    the error of the chosen map is below the global map's, mean over cells, `noise` its standard
    error over people.
    """

    n_components: int
    ridge: float
    parts: int = 0
    plain: float = float("nan")
    losses: dict[float, float] = field(default_factory=dict)
    association: float = 0.0
    gain: float = 0.0
    noise: float = 0.0


@dataclass(eq=False)
class _HeldOutTrial:
    """Pairs to fit on and pairs of other people to try on, with what was fitted so far."""

    fitted: LabelledPairs
    held: LabelledPairs
    feature_map: FeatureMap
    seed: int
    effects: dict[float, Float64] = field(default_factory=dict)

    def associations(self, n_components: int) -> Float64:
        """Fit a mixture; return what it tells of who is paired with whom, of people held out.

        First as people are, then with people drawn anew: (1 + draws,).
        """
        self.feature_map = self.fitted.with_mixture(self.feature_map, n_components, self.seed)
        told = self.held.associations(self.feature_map, self.seed)
        counts = self.held.draws(_DRAWS, self.seed)[:, ~self.held.genuine]
        means: Float64 = told.mean() + counts @ (told - told.mean()) / len(told)
        return means

    def prepare(
        self, calibrator: Calibrator, n_components: int, centers: NDArray[np.float32]
    ) -> None:
        """Set up the regressions; where there are no components, `centers` make cells."""
        if n_components < 2:
            self.feature_map = self.feature_map.without_mixture()
        plain = self.fitted.calibrate(calibrator)
        self.problem = TiltRegression(self.fitted, self.feature_map, plain)
        self.test = TiltRegression(self.held, self.feature_map, plain)
        if len(self.feature_map.mixture):
            self.cells = even(self.test.components)
        else:
            self.cells = alike_cells(self.held, centers)

    def loss(self, ridge: float) -> float:
        """Fit the regression, from where the last one ended; return the loss held out."""
        weight = self.cells.sum(axis=1)
        return float(weight @ self._losses(ridge) / max(weight.sum(), _TINY))

    def gains(self, ridge: float) -> Float64:
        """Return by how much less cells differ in their errors than with the global map.

        First as people are, then with people drawn anew: (1 + draws,). Loss is no proof of a gain:
        where strangers are unlike each other, it falls with a map that only knows who are alike.
        """
        counts = self.held.draws(_DRAWS, self.seed)
        size = counts @ self.cells
        whole = max(size[0].sum(), _TINY)
        spread: list[Float64] = []
        for price in (np.inf, ridge):
            away = sigmoid(self._log_odds(price)) - self.held.genuine
            total = counts @ (self.cells * away[:, None])
            level = total.sum(axis=1, keepdims=True) / whole
            spread.append(np.abs(total - level * size).sum(axis=1) / whole)
        closer: Float64 = spread[0] - spread[1]
        return closer

    def _losses(self, ridge: float) -> Float64:
        # log(1 + e^∓η), the log-loss of a genuine pair and of an imposter
        log_odds = self._log_odds(ridge)
        losses: Float64 = np.logaddexp(0.0, np.where(self.held.genuine, -log_odds, log_odds))
        return losses

    def _log_odds(self, ridge: float) -> Float64:
        if ridge not in self.effects:
            start = self.effects[min(self.effects)] if self.effects else None
            self.effects[ridge] = self.problem.fit(ridge, start, _CLOSE)
        return self.test.log_odds(self.effects[ridge])[0]


def even(cells: Float64) -> Float64:
    """Return `cells`, (n, J), so that each counts the same: what each pair counts in each.

    One with few pairs counts less, for chance would decide.

    Examples
    --------
    >>> many = np.repeat([[1.0, 0.0], [0.0, 1.0]], [900, 100], axis=0)
    >>> even(many).sum(axis=0).round(6)
    array([1., 1.])
    """
    weights: Float64 = cells / np.maximum(cells.sum(axis=0), _FULL)
    return weights


def alike_cells(pairs: LabelledPairs, centers: NDArray[np.float32]) -> Float64:
    """Return cells of pairs whose images are both nearest to one of `centers`, (n, J).

    Random strangers are seldom alike, so that these are those among whom errors of a map hurt. In
    each cell as many count as genuine as of all pairs.
    """
    nearest = CPU.assign(pairs.vectors, centers)
    left, right = nearest[pairs.left], nearest[pairs.right]
    inside = (left[:, None] == np.arange(len(centers))) & (left == right)[:, None]
    classes = [even(inside * (pairs.genuine == label)[:, None]) for label in (False, True)]
    sizes = [part.sum(axis=0) for part in classes]
    # What there is too little of in a cell, of either class, counts less.
    scale = np.minimum(*sizes) / np.maximum(sizes, _TINY)
    share = float(pairs.genuine.mean())
    alike: Float64 = (1 - share) * scale[0] * classes[0] + share * scale[1] * classes[1]
    return alike


def choose(
    pairs: LabelledPairs,
    feature_map: FeatureMap,
    calibrator: Calibrator,
    folds: Callable[[int], NDArray[np.int64]],
    *,
    ridge: float | None,
    n_components: int | None,
    random_state: int,
    progress: Progress,
) -> SmoothSettings:
    """Choose the number of components and the ridge, unless given.

    ``folds(n)`` gives each pair one of n folds of people, from 1, or −1.

    People are dealt to parts; for each, everything is fitted on pairs of the others and tried on
    pairs within it. There are components where they tell, of people held out, who is paired with
    whom. The ridge is the one of least loss in which every cell counts the same; cells are the
    components, or else parts of embedding space. Where cells' errors do not come closer to each
    other by more than chance makes them, it is infinite: the map is the global one.
    """
    chosen = SmoothSettings(n_components or 1, ridge or np.inf)
    if n_components is not None and ridge is not None:
        return chosen
    trials = [
        _HeldOutTrial(fitted, held, feature_map, random_state)
        for fitted, held in _parts(pairs, folds(_PARTS), random_state)
    ]
    if len(trials) < 2:
        return chosen
    chosen.parts = len(trials)
    progress("choosing components", 0, 1, "")
    n = n_components or USUAL_COMPONENTS
    chosen.association, noise = _with_noise(
        trials, partial(_HeldOutTrial.associations, n_components=n)
    )
    if n_components is None and chosen.association > max(_LEAST_ASSOCIATION, _ERRORS * noise):
        chosen.n_components = n
    progress("choosing components", 1, 1, "")
    if ridge is None:
        n_cells, centers = min(_CELLS, len(pairs.vectors)), np.empty((0, 0), np.float32)
        if chosen.n_components < 2 or any(not len(one.feature_map.mixture) for one in trials):
            centers = CPU.kmeans(pairs.vectors, n_cells, random_state=random_state).centers
        _all(trials, lambda trial: trial.prepare(calibrator, chosen.n_components, centers))
        _choose_ridge(trials, chosen, progress)
    return chosen


def _choose_ridge(
    trials: Sequence[_HeldOutTrial], chosen: SmoothSettings, progress: Progress
) -> None:
    """Take the ridge of least loss on people held out; it may have more than one low."""
    chosen.plain, losses = _mean(trials, lambda trial: trial.loss(np.inf)), chosen.losses
    best = RIDGES[0]
    for done, ridge in enumerate(RIDGES):
        progress("choosing the ridge", done, len(RIDGES), f"{ridge:g}")
        losses[ridge] = _mean(trials, partial(_HeldOutTrial.loss, ridge=ridge))
        best = min(losses, key=losses.__getitem__)
        if done - RIDGES.index(best) == _BEYOND:
            break
    chosen.gain, chosen.noise = _with_noise(trials, partial(_HeldOutTrial.gains, ridge=best))
    errors = _ERRORS_SHOWN if chosen.n_components > 1 else _ERRORS
    if chosen.gain > errors * chosen.noise:
        chosen.ridge = best
    else:
        chosen.n_components = 1
    progress("choosing the ridge", len(RIDGES), len(RIDGES), "")


def _all(trials: Sequence[_HeldOutTrial], work: Callable[[_HeldOutTrial], T]) -> list[T]:
    """Return what `work` gives for each trial, several at a time."""
    return each(lambda part: work(trials[part.start]), len(trials), 1)


def _mean(trials: Sequence[_HeldOutTrial], work: Callable[[_HeldOutTrial], float]) -> float:
    """Return the mean over trials of what `work` gives."""
    return float(np.mean(_all(trials, work)))


def _with_noise(
    trials: Sequence[_HeldOutTrial], work: Callable[[_HeldOutTrial], Float64]
) -> tuple[float, float]:
    """Return the mean over trials, and its standard error over people, of what `work` draws."""
    values = np.mean(_all(trials, work), axis=0)
    return float(values[0]), float(values[1:].std())


def _parts(
    pairs: LabelledPairs, fold: NDArray[np.int64], seed: int
) -> Iterator[tuple[LabelledPairs, LabelledPairs]]:
    """Yield pairs of all parts but one, and of that one; where there are enough of each class."""
    rows = some_rows(np.flatnonzero(fold > 0), _MOST_HELD, seed)
    for part in np.unique(fold[rows]):
        inside = fold[rows] == part
        fitted = pairs.take(some_rows(rows[~inside], _MOST, seed))
        held = pairs.take(rows[inside])
        if min(fitted.fewest, held.fewest) >= _LEAST:
            yield fitted, held
