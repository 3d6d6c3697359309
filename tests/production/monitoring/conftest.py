"""A model of a simulated population, and pairs of other people of the same one."""

from typing import NamedTuple

import numpy as np
import pytest

import faircal
from faircal.production.monitoring import PairsInUse, survey
from faircal.production.scoring.judging import Judge


class Use(NamedTuple):
    """A model and pairs that it is used on."""

    model: object
    seen: PairsInUse
    genuine: np.ndarray
    group: np.ndarray

    def draw(self, n, rng, weights=None, higher=0.0, known="people"):
        """Draw pairs again; scores of imposters can be higher."""
        chance = None if weights is None else weights / weights.sum()
        rows = rng.choice(len(self.genuine), n, p=chance)
        taken = {
            name: getattr(self.seen, name)[rows]
            for name in PairsInUse.__dataclass_fields__
            if name not in ("identified_by", "genuine")
        }
        taken["score"] = np.clip(taken["score"] + higher * ~self.genuine[rows], -1, 1)
        if known == "nobody":
            taken["left_person"] = taken["right_person"] = None
        return PairsInUse(**taken), self.genuine[rows]


@pytest.fixture(scope="session")
def use():
    data = faircal.simulate("small", seed=5, people=1600, images=8000, pairs=48_000)
    first = np.isin(data.pairs.fold, (1, 2, 3))
    cal, test = data.subset(first), data.subset(~first)
    model = faircal.Baseline().fit(cal)
    survey(model, cal)
    said = model.apply(test)
    places = Judge.of(model).places(test.embeddings)
    sides = np.stack([test.pairs.left, test.pairs.right])
    seen = PairsInUse(
        said.score,
        said.probability,
        *places.cluster[sides],
        *places.outside[sides],
        *test.images.identity.codes[sides].astype(np.int64),
    )
    group = test.image_groups("ethnicity").codes[sides[0]]
    return Use(model, seen, test.genuine, group)
