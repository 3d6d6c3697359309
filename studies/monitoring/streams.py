"""Streams of pairs in use, quiet or changed, and what a watch says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import faircal
from faircal.data import Pairs
from faircal.methods import Method
from faircal.production.monitoring import PairsInUse, Watch, survey
from faircal.production.scoring.judging import Judge
from studies.monitoring.made import SIZES, World

Change = Literal["none", "share_times_1.2", "share_plus_20_points", "imposters_plus_0.05"]
Known = Literal["people", "images", "nobody"]

#: Pairs that come at a time.
_BATCH = 5000


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model fitted on some people of a world, and everybody else."""

    world: World
    model: Method
    places: NDArray[np.int64]
    outside: NDArray[np.bool_]
    others: NDArray[np.int64]

    @classmethod
    def of(cls, world: World, method: str, rng: np.random.Generator) -> Fitted:
        """Fit on people drawn at random."""
        size = SIZES[world.preset]
        order = rng.permutation(len(world.group))
        pairs = world.draw_pairs(order[: size.calibration], size.pairs, size.genuine, rng)
        data = world.dataset(pairs)
        model = make(method, world.preset).fit(data)
        survey(model, data)
        found = Judge.of(model).places(world.vectors)
        if found is None:
            raise TypeError("expected places")
        return cls(
            world, model, found.cluster.astype(np.int64), found.outside, order[size.calibration :]
        )

    def say(self, pairs: Pairs, higher: float = 0.0) -> tuple[NDArray[np.float64], ...]:
        """Return score and probability; cosines of imposters can be `higher`."""
        data = self.world.dataset(pairs)
        if higher:
            scores = np.clip(data.scores + higher * ~data.genuine, -1, 1)
            data = self.world.dataset(pairs, scores)
        said = self.model.apply(data)
        return said.score, said.probability


def make(method: str, preset: str) -> Method:
    """Return a method as a user would choose it."""
    if method == "faircal":
        return faircal.FairCal(n_clusters=50 if preset == "small" else 100)
    return faircal.methods.make_method(method)


class Begun(NamedTuple):
    """People in use, and the watch so far."""

    people: NDArray[np.int64]
    state: dict[str, Any]


@dataclass(frozen=True)
class Stream:
    """What comes in use.

    `use` is how many people; `labels` the share of pairs whose label comes back.
    """

    pairs: int = 20_000
    quiet: int = 0
    change: Change = "none"
    known: Known = "people"
    genuine_share: float | None = None
    use: int | None = None
    labels: float = 0.0
    in_order: bool = True

    def begin(self, fitted: Fitted, rng: np.random.Generator, rate: float) -> Begun:
        """Watch the quiet time before the change."""
        watch = Watch(fitted.model, false_alarms=rate, in_order=self.in_order)
        people = rng.permutation(fitted.others)[: self.use or SIZES[fitted.world.preset].use]
        for start in range(0, self.quiet, _BATCH):
            self._feed(watch, fitted, people, min(_BATCH, self.quiet - start), "none", rng)
        return Begun(people, watch.get_state())

    def run(self, fitted: Fitted, begun: Begun, rng: np.random.Generator) -> dict[str, int]:
        """Return how many pairs after the change each alarm was raised, 0 where it was not.

        One before it counts as −1.
        """
        watch = Watch.restore(fitted.model, begun.state)
        mix = _mix(self.change, fitted.world.groups, rng)
        for _ in range(0, self.pairs, _BATCH):
            self._feed(watch, fitted, begun.people, _BATCH, self.change, rng, mix)
        found = {}
        for finding in watch.verdict().findings:
            at = int(finding.details.get("window_end", 0))
            if finding.name == "calibration":
                at = self.quiet + 1
            found[finding.name] = (max(at - self.quiet, -1) or -1) if finding.alarm else 0
        return found

    def _feed(
        self,
        watch: Watch,
        fitted: Fitted,
        people: NDArray[np.int64],
        n: int,
        change: Change,
        rng: np.random.Generator,
        mix: NDArray[np.float64] | None = None,
    ) -> None:
        share = self.genuine_share or SIZES[fitted.world.preset].genuine
        pairs = fitted.world.draw_pairs(people, n, share, rng, mix)
        score, probability = fitted.say(pairs, 0.05 if change == "imposters_plus_0.05" else 0.0)
        sides = np.stack([pairs.left, pairs.right])
        who = {"people": fitted.world.person[sides], "images": sides, "nobody": None}[self.known]
        places, outside = fitted.places[sides], fitted.outside[sides]
        left, right = (None, None) if who is None else who
        known = "images" if self.known == "images" else "people"
        seen = PairsInUse(score, probability, *places, *outside, left, right, known)
        watch.add(seen)
        if self.labels and pairs.genuine is not None:
            rows = rng.random(n) < self.labels
            who = fitted.world.person[pairs.left[rows]] if self.known == "people" else None
            watch.feedback(probability[rows], pairs.genuine[rows], who)


def _mix(change: Change, groups: int, rng: np.random.Generator) -> NDArray[np.float64] | None:
    """Return how much more likely each group becomes."""
    mix = np.ones(groups) / groups
    if change == "share_times_1.2":
        mix[rng.integers(groups)] *= 1.2
    elif change == "share_plus_20_points":
        to = int(rng.integers(groups))
        others = np.arange(groups) != to
        mix[others] *= (0.8 - 1 / groups) / (1 - 1 / groups)
        mix[to] += 0.2
    else:
        return None
    return mix
