"""Simulated worlds: many people, of whom some calibrate and others come in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import faircal
from faircal.data import Dataset, Embeddings, Feature, Images, Pairs
from faircal.data.columns import Column
from faircal.data.simulation import PRESETS

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """How many people and pairs calibrate, and how many people come in use, of how many."""

    world: int
    calibration: int
    pairs: int
    use: int
    genuine: float


#: Calibration is about what each preset has in four folds.
SIZES = {
    "small": Size(1600, 160, 6_400, 640, 1 / 3),
    "rfw-like": Size(12_000, 7000, 19_000, 3600, 1 / 2),
    "bfw-like": Size(2400, 640, 40_000, 960, 1 / 3.81),
}


@dataclass(frozen=True, eq=False)
class World:
    """Everybody there is, in one preset.

    `person` is that of each image, `group` that of each person; images of a person are in a row.
    """

    preset: str
    vectors: Embeddings
    person: Int64
    group: Int64

    @classmethod
    def of(cls, preset: str, seed: int) -> World:
        """Simulate it."""
        data = faircal.simulate(preset, seed, people=SIZES[preset].world, pairs=400)
        if data.embeddings is None or data.images.identity is None:
            raise TypeError("expected embeddings and identities")
        person = data.images.identity.codes.astype(np.int64)
        order = np.argsort(person, kind="stable")
        group = data.image_groups().codes[order].astype(np.int64)
        first = np.searchsorted(person[order], np.arange(SIZES[preset].world))
        vectors = Embeddings(np.ascontiguousarray(data.embeddings.vectors[order]))
        return cls(preset, vectors, person[order], group[first])

    @cached_property
    def starts(self) -> Int64:
        """The first image of each person, and one more."""
        return np.searchsorted(self.person, np.arange(len(self.group) + 1))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.group.max()) + 1

    def draw_pairs(
        self,
        people: Int64,
        n: int,
        genuine_share: float,
        rng: np.random.Generator,
        mix: NDArray[np.float64] | None = None,
    ) -> Pairs:
        """Draw pairs among `people`: both people of an imposter pair as the preset has it.

        `mix` is how likely each group is to be drawn, against how often its people are there.
        """
        weight = (np.ones(self.groups) if mix is None else mix)[self.group[people]]
        chance = weight / weight.sum()
        one = rng.choice(people, n, p=chance)
        genuine = rng.random(n) < genuine_share
        across = rng.random(n) < PRESETS[self.preset].cross_group_share
        other = rng.choice(people, n, p=chance)
        for g in range(self.groups):
            of_group = people[self.group[people] == g]
            rows = np.flatnonzero(~across & (self.group[one] == g))
            if len(of_group):
                other[rows] = of_group[rng.integers(len(of_group), size=len(rows))]
        again = ~genuine & (other == one)
        other[again] = people[rng.integers(len(people), size=int(again.sum()))]
        genuine |= other == one
        other = np.where(genuine, one, other)
        left, right = (self._image(side, rng) for side in (one, other))
        same = left == right  # another image of the same person
        count = (self.starts[1:] - self.starts[:-1])[one]
        right = np.where(same, self.starts[one] + (right - self.starts[one] + 1) % count, right)
        return Pairs(left.astype(np.intp), right.astype(np.intp), genuine)

    def _image(self, people: Int64, rng: np.random.Generator) -> Int64:
        count = (self.starts[1:] - self.starts[:-1])[people]
        return self.starts[people] + (rng.random(len(people)) * count).astype(np.int64)

    def dataset(self, pairs: Pairs, scores: NDArray[np.float64] | None = None) -> Dataset:
        """Return pairs as a dataset; all share the embeddings."""
        names = tuple(map(str, range(len(self.group))))
        images = Images(
            pa.array(np.arange(len(self.person))), Column(self.person.astype(np.int32), names)
        )
        return Dataset.assemble(
            f"{self.preset} (simulated)",
            images,
            pairs,
            {"embedding": Feature(self.vectors, scores)},
            seed=None,
        )
