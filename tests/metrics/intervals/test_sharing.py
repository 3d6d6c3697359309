"""Which pairs have people in common."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal.metrics.intervals.dyadic import Dyads

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
    shared = Dyads.of(left, right)
    assert (shared.same_dyad, shared.one_person) == by_hand(pairs)
    assert shared.pairs == len(pairs)
    assert shared.people == len(set(left) | set(right))
    assert not shared.alone


@given(imposters)
def test_sums(pairs):
    left, right = np.array(pairs).T
    shared = Dyads.of(left, right)
    values = np.arange(len(pairs)) ** 2.0
    of_dyads = shared.per_dyad(values)
    assert of_dyads.sum() == values.sum()
    names = np.unique(np.concatenate([left, right]))
    expected = [values[(left == who) | (right == who)].sum() for who in names]
    np.testing.assert_allclose(shared.per_person(of_dyads), expected)


def test_neither_sides_nor_order_matter():
    left, right = np.array([3, 1, 1, 7]), np.array([1, 3, 7, 3])
    one, two = Dyads.of(left, right), Dyads.of(right[::-1], left[::-1])
    assert (one.same_dyad, one.one_person) == (two.same_dyad, two.one_person)
    np.testing.assert_array_equal(one.sizes, two.sizes)


def test_genuine_pairs_show_one_person():
    who = np.array([4, 4, 4, 9])
    shared = Dyads.of(who, who)
    assert shared.alone
    assert (shared.same_dyad, shared.one_person, shared.people) == (6, 0, 2)
    np.testing.assert_array_equal(shared.per_person(shared.sizes), [3, 1])


def test_effective_people():
    ring = np.arange(10)
    assert Dyads.of(ring, (ring + 1) % 10).effective_people == pytest.approx(10)
    star = Dyads.of(np.zeros(9, int), np.arange(1, 10))  # one person is in every pair
    assert star.effective_people == pytest.approx(18**2 / (81 + 9))


def test_no_pairs():
    none = Dyads.of(np.zeros(0, int), np.zeros(0, int))
    assert (none.pairs, none.people, none.effective_people) == (0, 0, 0.0)
    assert len(none.per_dyad(np.zeros(0))) == 0
