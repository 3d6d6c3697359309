"""Scores of people: what tests of uncertainty draw."""

from __future__ import annotations

import numpy as np
import pytest


class Drawn:
    """Imposter pairs of every two of `n` people, `images` images each; scores vary as normal.

    A share `person` of the variance is each person's, `couple` the two people's; the rest is the
    pair's.
    """

    def __init__(self, rng, n, images, person, couple):
        one, two = np.triu_indices(n, 1)
        each = images**2
        self.left, self.right = np.repeat(one, each), np.repeat(two, each)
        own = rng.normal(size=n) * np.sqrt(person)
        both = rng.normal(size=len(one)) * np.sqrt(couple)
        rest = rng.normal(size=len(self.left)) * np.sqrt(1 - 2 * person - couple)
        self.scores = own[self.left] + own[self.right] + np.repeat(both, each) + rest


@pytest.fixture(scope="session")
def draw():
    def drawn(seed, n=30, images=3, person=0.1, couple=0.3):
        return Drawn(np.random.default_rng(seed), n, images, person, couple)

    return drawn
