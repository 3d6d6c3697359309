"""Which pairs have people in common, and how sums over pairs vary with the people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.metrics.intervals.dyadic import Dyads, IdentifiedPairs

people = st.integers(0, 5)
imposters = st.lists(st.tuples(people, people).filter(lambda p: p[0] != p[1]), min_size=1)


def by_hand(pairs):
    """Count ordered couples of pairs of the same two people, and with one person in common."""
    same = one = 0
    for i, a in enumerate(pairs):
        for j, b in enumerate(pairs):
            if i != j:
                common = len(set(a) & set(b))
                same += common == 2
                one += common == 1
    return same, one


@given(imposters)
def test_couples_are_counted(pairs):
    left, right = np.array(pairs).T
    shared = Dyads(left, right)
    assert (shared.same_dyad, shared.one_person) == by_hand(pairs)
    assert shared.pairs == len(pairs)
    assert shared.people == len(set(left) | set(right))
    assert not shared.alone


@given(imposters)
def test_sums(pairs):
    left, right = np.array(pairs).T
    shared = Dyads(left, right)
    values = np.arange(len(pairs)) ** 2.0
    of_dyads = shared.per_dyad(values)
    assert of_dyads.sum() == values.sum()
    names = np.unique(np.concatenate([left, right]))
    expected = [values[(left == who) | (right == who)].sum() for who in names]
    np.testing.assert_allclose(shared.per_person(of_dyads), expected)


def test_neither_sides_nor_order_matter():
    left, right = np.array([3, 1, 1, 7]), np.array([1, 3, 7, 3])
    one, two = Dyads(left, right), Dyads(right[::-1], left[::-1])
    assert (one.same_dyad, one.one_person) == (two.same_dyad, two.one_person)
    np.testing.assert_array_equal(one.sizes, two.sizes)


def test_genuine_pairs_show_one_person():
    who = np.array([4, 4, 4, 9])
    shared = Dyads(who, who)
    assert shared.alone
    assert (shared.same_dyad, shared.one_person, shared.people) == (6, 0, 2)
    np.testing.assert_array_equal(shared.per_person(shared.sizes), [3, 1])


def test_effective_people():
    ring = np.arange(10)
    assert Dyads(ring, (ring + 1) % 10).effective_people == pytest.approx(10)
    star = Dyads(np.zeros(9, int), np.arange(1, 10))  # one person is in every pair
    assert star.effective_people == pytest.approx(18**2 / (81 + 9))


def test_no_pairs():
    none = Dyads(np.zeros(0, int), np.zeros(0, int))
    assert (none.pairs, none.people, none.effective_people) == (0, 0, 0.0)
    assert len(none.per_dyad(np.zeros(0))) == 0


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
    assert len(part.people) == 10


@pytest.mark.parametrize("n", [2, 3])
def test_too_few_people(n):
    one, two = np.triu_indices(n, 1)
    identified = IdentifiedPairs(np.zeros(len(one), bool), one, two, n)
    assert np.isnan(identified.spread(np.ones(len(one))).variance)
