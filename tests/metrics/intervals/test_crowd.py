"""How sums over pairs vary with the people."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.metrics.intervals.dyadic import IdentifiedPairs


def test_variance_of_a_u_statistic(draw):
    """Without bias, over draws: the variance of the mean of pairs."""
    means, variances = [], []
    for seed in range(600):
        pairs = draw(seed, n=12, images=2, person=0.15, couple=0.3)
        identified = IdentifiedPairs(np.zeros(len(pairs.left), bool), pairs.left, pairs.right, 12)
        means.append(pairs.scores.mean())
        residuals = (pairs.scores - pairs.scores.mean()) / len(pairs.scores)
        variances.append(identified.spread(residuals).variance)
    assert np.mean(variances) == pytest.approx(np.var(means), rel=0.15)


def test_genuine_pairs_are_clustered_by_person():
    who = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    identified = IdentifiedPairs(np.ones(15, bool), who, who, 5)
    values = np.arange(15.0)
    residuals = (values - values.mean()) / 15
    expected = 5 / 4 * sum(residuals[who == i].sum() ** 2 for i in range(5))
    assert identified.spread(residuals).variance == pytest.approx(expected)


def test_influence_makes_the_variance(draw):
    pairs = draw(3, n=20)
    identified = IdentifiedPairs(np.zeros(len(pairs.left), bool), pairs.left, pairs.right, 25)
    spread = identified.spread((pairs.scores - pairs.scores.mean()) / len(pairs.scores))
    assert (spread.influence**2).sum() == pytest.approx(spread.variance)
    assert spread.influence.shape == (25,)
    assert (spread.influence[20:] == 0).all()


def test_who_is_not_known_is_nobody_else():
    names = ("ann", "bea")
    people = Groups(names, np.array([0, UNKNOWN, UNKNOWN]), np.array([1, UNKNOWN, UNKNOWN]))
    identified = IdentifiedPairs.of(np.array([False, False, True]), people)
    assert len({*identified.left, *identified.right[:2]}) == 5
    assert identified.left[2] == identified.right[2]  # a genuine pair shows one person


def test_parts_keep_the_numbers_of_people(draw):
    pairs = draw(0, n=10)
    identified = IdentifiedPairs(np.zeros(len(pairs.left), bool), pairs.left, pairs.right, 10)
    part = identified.part(pairs.left == 9 - pairs.right)
    assert part.n_people == 10
    assert part.people == 10


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_people(n):
    one, two = np.triu_indices(n, 1)
    identified = IdentifiedPairs(np.zeros(len(one), bool), one, two, n)
    assert np.isnan(identified.spread(np.ones(len(one))).variance)
