"""The regression of SmoothFairCal: labelled pairs, their features, their effects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators import Calibrator, Samples
from faircal.compute.ridge import Regression
from faircal.methods.inputs import Inputs
from faircal.methods.smooth.landscape import Landscape, pair_memberships

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
class Labelled:
    """Labelled pairs; `left` and `right` are rows of `vectors`."""

    vectors: NDArray[np.float32]
    left: Rows
    right: Rows
    score: Float64
    genuine: NDArray[np.bool_]

    @classmethod
    def of(cls, inputs: Inputs) -> tuple[Labelled, Rows]:
        """Return all pairs in an order of their own, and which of those given each was.

        So neither the order of pairs nor which image is on the left changes a digit.
        """
        sides = np.stack(inputs.positions())
        low, high = sides.min(axis=0), sides.max(axis=0)
        order = np.lexsort((inputs.genuine, high, low))
        low, high, genuine = low[order], high[order], inputs.genuine[order]
        return cls(inputs.vectors(), low, high, inputs.score[order], genuine), order

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: Rows) -> Labelled:
        """Return some of the pairs, with the images that occur in them."""
        both = np.concatenate([self.left[rows], self.right[rows]])
        used, places = np.unique(both, return_inverse=True)
        left, right = places.reshape(2, -1)
        return Labelled(self.vectors[used], left, right, self.score[rows], self.genuine[rows])

    def some(self, most: int, seed: int) -> Labelled:
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

    def survey(self, n_dimensions: int, n_regions: int, seed: int) -> Landscape:
        """Return embedding space as the pairs show it, without a mixture yet."""
        imposters = self.imposters(seed)
        return Landscape.survey(self.vectors, *imposters, n_dimensions, n_regions, seed)

    def mix(self, landscape: Landscape, n_components: int, seed: int) -> Landscape:
        """Return `landscape` with a mixture that the imposter pairs show."""
        return landscape.mixed(self.vectors, *self.imposters(seed), n_components, seed)

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
class Problem:
    """The regression of labelled pairs, given a landscape and a global calibrator."""

    pairs: Labelled
    landscape: Landscape
    calibrator: Calibrator

    @cached_property
    def _traits(self) -> Float64:
        return self.landscape.traits(self.pairs.vectors)

    @cached_property
    def components(self) -> Float64:
        """The components of pairs, (n, J)."""
        found = self.landscape.memberships(self.landscape.places(self.pairs.vectors))
        return pair_memberships(found[self.pairs.left], found[self.pairs.right])

    @cached_property
    def _regression(self) -> Regression:
        t = self.calibrator.log_odds(self.pairs.score) / _ODDS
        return Regression(self._features, t, self.pairs.genuine.astype(np.float64))

    def _features(self, block: slice) -> Float64:
        """Return a constant, components and mean traits of pairs, (block, 1 + J + r + K)."""
        left, right = self.pairs.left[block], self.pairs.right[block]
        near = (self._traits[left] + self._traits[right]) / 2
        return np.hstack([np.ones((len(left), 1)), self.components[block], near])

    def fit(self, ridge: float, start: Float64 | None = None) -> Float64:
        """Return the effects of features on the log-odds and on how T counts, (2, 1 + J + r + K).

        `start` are effects to begin the search with.
        """
        n = len(self.landscape.mixture)
        penalty = np.full((2, 1 + n + self._traits.shape[1]), ridge)
        penalty[:, : 1 + n] = _COMPONENT
        penalty[:, 0] = _CONSTANT
        if start is None:
            start = np.zeros_like(penalty)
            start[1, 0] = 1.0  # the global map
        scale = np.array([[1.0], [_ODDS]])
        found: Float64 = self._regression.fit(penalty, start * scale) / scale
        return found

    def log_odds(self, effects: Float64) -> tuple[Float64, float]:
        """Return the log-odds of the pairs, and the share of them in which T is kept out."""
        shift, tilt = self._regression.lines(effects)
        t = self._regression.t * _ODDS
        shift += np.maximum(tilt, 0.0) * t
        return shift, float((tilt <= 0).mean())
