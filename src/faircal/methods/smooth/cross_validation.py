"""What SmoothFairCal chooses by cross-validation: on people held out, without attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress
from faircal.calibrators import Calibrator
from faircal.compute.threads import each
from faircal.methods.smooth.landscape import Landscape
from faircal.methods.smooth.regression import Float64, Labelled, Problem, some_rows

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
#: Nats that the best must tell; what pairs at random seem to tell is less.
_TOLD = 0.01
#: Pairs held out of a component that count in full; one with fewer counts less.
_FULL = 50


@dataclass
class Chosen:
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
class _Trial:
    """Pairs to fit on and pairs of other people to try on, with what was fitted so far."""

    fitted: Labelled
    held: Labelled
    landscape: Landscape
    seed: int
    effects: Float64 | None = None

    def association(self, n_components: int) -> float:
        """Fit a mixture; return what it tells of who is paired with whom, of people held out."""
        landscape = self.fitted.mix(self.landscape, n_components, self.seed)
        if not len(landscape.mixture):
            return 0.0
        points = landscape.places(self.held.vectors)
        imposters = self.held.imposters(self.seed)
        return float(landscape.mixture.association(points, *imposters).mean())

    def prepare(self, n_components: int, calibrator: Calibrator) -> None:
        """Set up the regressions with so many components."""
        self.landscape = self.fitted.mix(self.landscape, n_components, self.seed)
        plain = self.fitted.calibrate(calibrator)
        self.problem = Problem(self.fitted, self.landscape, plain)
        self.test = Problem(self.held, self.landscape, plain)

    def plain(self) -> float:
        """Return the loss of the global map."""
        return self._loss(self.test.calibrator.log_odds(self.held.score))

    def loss(self, ridge: float) -> float:
        """Fit the regression, from where the last one ended; return the loss held out."""
        self.effects = self.problem.fit(ridge, self.effects)
        return self._loss(self.test.log_odds(self.effects)[0])

    def _loss(self, log_odds: Float64) -> float:
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
    weight = components @ (1 / np.maximum(components.sum(axis=0), _FULL))
    return float(weight @ loss / weight.sum())


def choose(
    pairs: Labelled,
    calibrator: Calibrator,
    folds: Callable[[int], NDArray[np.int64]],
    *,
    ridge: float | None,
    n_components: int | None,
    n_dimensions: int,
    n_regions: int,
    random_state: int,
    progress: Progress,
) -> Chosen:
    """Choose the number of components and the ridge, unless given.

    ``folds(n)`` gives each pair one of n folds of people, from 1, or −1.

    People are dealt to parts; for each, everything is fitted on pairs of the others and tried on
    pairs within it. The mixture is judged by what it tells of who is paired with whom: of the
    numbers of components that tell nearly as much as the best, the largest is taken, for groups so
    small that they hardly count in the average need components of their own. The ridge is the one
    of least balanced loss.
    """
    chosen = Chosen(n_components or USUAL_COMPONENTS, ridge or USUAL_RIDGE)
    if n_components is not None and ridge is not None:
        return chosen
    trials = [
        _Trial(fitted, held, fitted.survey(n_dimensions, n_regions, random_state), random_state)
        for fitted, held in _parts(pairs, folds(_PARTS), random_state)
    ]
    if len(trials) < 2:
        return chosen
    chosen.parts = len(trials)
    if n_components is None:
        _choose_components(trials, chosen, progress)
    _all(trials, lambda trial: trial.prepare(chosen.n_components, calibrator))
    chosen.plain = float(np.mean(_all(trials, _Trial.plain)))
    if ridge is None:
        _choose_ridge(trials, chosen, progress)
    return chosen


def _choose_components(trials: Sequence[_Trial], chosen: Chosen, progress: Progress) -> None:
    """Take the most components that tell nearly as much of people held out as the best number."""
    found = chosen.associations
    for done, n in enumerate(COMPONENTS):
        progress("choosing components", done, len(COMPONENTS), f"{n} components")
        found[n] = float(np.mean(_all(trials, partial(_Trial.association, n_components=n))))
    best = max(found.values())
    chosen.n_components = 1
    if best > _TOLD:
        chosen.n_components = max(n for n, told in found.items() if told >= _NEARLY * best)
    progress("choosing components", len(COMPONENTS), len(COMPONENTS), "")


def _choose_ridge(trials: Sequence[_Trial], chosen: Chosen, progress: Progress) -> None:
    """Take the ridge of least loss on people held out; it may have more than one low."""
    for done, ridge in enumerate(RIDGES):
        progress("choosing the ridge", done, len(RIDGES), f"{ridge:g}")
        chosen.losses[ridge] = float(np.mean(_all(trials, partial(_Trial.loss, ridge=ridge))))
    chosen.ridge = min(chosen.losses, key=chosen.losses.__getitem__)
    progress("choosing the ridge", len(RIDGES), len(RIDGES), "")


def _all(trials: Sequence[_Trial], work: Callable[[_Trial], T]) -> list[T]:
    """Return what `work` gives for each trial, several at a time."""
    found = each(lambda part: [work(trial) for trial in trials[part]], len(trials), 1)
    return [one for part in found for one in part]


def _parts(
    pairs: Labelled, fold: NDArray[np.int64], seed: int
) -> Iterator[tuple[Labelled, Labelled]]:
    """Yield pairs of all parts but one, and of that one; where there are enough of each class."""
    rows = some_rows(np.flatnonzero(fold > 0), _MOST, seed)
    for part in np.unique(fold[rows]):
        inside = fold[rows] == part
        fitted, held = pairs.take(rows[~inside]), pairs.take(rows[inside])
        if min(fitted.fewest, held.fewest) >= _LEAST:
            yield fitted, held
