"""Imposter pairs are drawn evenly, under the cap, whichever way they are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from faircal.data.pairing import imposters
from faircal.data.pairing.imposters import Pool, across, supply, within

PERSON = np.array([0, 0, 0, 1, 1, 2])
PEOPLE_AND_CELLS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=25
)


def pool(person, cell=None, cap=10):
    person = np.array(person, dtype=np.int64)
    return Pool(person, np.zeros_like(person) if cell is None else np.array(cell), cap)


def as_set(pairs):
    left, right = pairs
    found = frozenset(zip(left.tolist(), right.tolist(), strict=True))
    assert len(found) == len(left)
    return found


def allowed(images, crossing):
    """All pairs of strangers, listed one by one."""
    return [
        (i, j)
        for i, j in combinations(range(len(images)), 2)
        if images.person[i] != images.person[j] and (images.cell[i] != images.cell[j]) == crossing
    ]


def couples(pairs, images):
    return Counter(tuple(sorted(images.person[list(pair)].tolist())) for pair in pairs)


def chances(images, wanted, crossing):
    """The probability of each set of pairs: every next pair is any that the cap still allows."""
    every = allowed(images, crossing)
    chance = Counter()
    for chosen in combinations(every, wanted):
        if max(couples(chosen, images).values()) > images.cap:
            continue
        for order in permutations(chosen):
            one = 1.0
            for step in range(wanted):
                used = couples(order[:step], images)
                free = [
                    pair
                    for pair in every
                    if pair not in order[:step]
                    and used[tuple(sorted(images.person[list(pair)].tolist()))] < images.cap
                ]
                one /= len(free)
            chance[frozenset(chosen)] += one
    return chance


class TestDistribution:
    @pytest.mark.parametrize("way", ["_reject", "_list"])
    @pytest.mark.parametrize(
        ("cap", "wanted", "crossing"),
        [(9, 2, False), (2, 3, False), (1, 3, False), (1, 2, True), (9, 2, True)],
    )
    def test_of_sets(self, way, cap, wanted, crossing):
        images = pool(PERSON, [0, 0, 1, 1, 0, 2] if crossing else None, cap)
        chance = chances(images, wanted, crossing)
        assert sum(chance.values()) == pytest.approx(1)
        rng = np.random.default_rng(8)
        runs = 25 * len(chance)
        found = Counter(
            as_set(getattr(imposters, way)(images, wanted, crossing, rng)) for _ in range(runs)
        )
        assert set(found) <= set(chance)
        expected = np.array(list(chance.values())) * runs
        assert chisquare([found[one] for one in chance], expected).pvalue > 0.001

    @pytest.mark.parametrize("wanted", [1, 10])
    def test_few_and_nearly_all(self, wanted):
        # 11 pairs of strangers: one taken, or one left out, is each with probability 1/11.
        rng = np.random.default_rng(2)
        found = Counter(as_set(within(pool(PERSON, cap=99), wanted, rng)) for _ in range(1100))
        assert len(found) == 11
        assert chisquare(list(found.values())).pvalue > 0.001

    def test_many_of_many(self):
        # 40 people of 3 images: 7,020 pairs of strangers, of which 3,000 are drawn.
        person = np.repeat(np.arange(40), 3)
        times = np.zeros((120, 120))
        for seed in range(30):
            left, right = within(pool(person), 3000, np.random.default_rng(seed))
            times[left, right] += 1
        counts = times[np.triu(person[:, None] != person)]
        # Drawn without repeats, so the spread is that of a binomial with p = 3000 / 7020.
        p = 3000 / 7020
        assert counts.mean() == pytest.approx(30 * p)
        assert counts.var() == pytest.approx(30 * p * (1 - p), rel=0.05)


class TestPromises:
    @given(PEOPLE_AND_CELLS, st.integers(1, 4), st.integers(0, 60), st.booleans())
    def test_as_many_as_wanted_or_all_there_are(self, images, cap, wanted, crossing):
        images = pool(*np.array(images).T, cap)
        every = allowed(images, crossing)
        most = sum(min(cap, n) for n in couples(every, images).values())
        draw = across if crossing else within
        found = as_set(draw(images, wanted, np.random.default_rng(0)))
        assert found <= set(every)
        assert len(found) == min(wanted, most)
        assert max(couples(found, images).values(), default=0) <= cap

    @given(PEOPLE_AND_CELLS, st.integers(1, 4))
    def test_supply(self, images, cap):
        images = pool([person for person, _ in images], cap=cap)
        every = allowed(images, False)
        assert supply(images) == sum(min(cap, n) for n in couples(every, images).values())

    @pytest.mark.parametrize("shared", [False, True])
    def test_cells_give_in_proportion_to_their_images(self, shared):
        # 60, 30 and 10 images; nobody is in two cells, or everybody is.
        cell = np.repeat([0, 1, 2], [60, 30, 10])
        person = np.concatenate([np.arange(60), np.arange(30), np.arange(10)])
        images = pool(person if shared else person + 100 * cell, cell)
        left, _ = within(images, 100, np.random.default_rng(0))
        assert np.bincount(cell[left]).tolist() == [60, 30, 10]
        # The last cell has 45 pairs and not 60: the others give the rest, two to one.
        left, _ = within(images, 600, np.random.default_rng(0))
        assert np.bincount(cell[left]).tolist() == [370, 185, 45]

    def test_few_people_of_many_images_are_not_listed_pair_by_pair(self):
        # 45 couples of 25,000,000 image pairs each.
        person = np.repeat(np.arange(10), 5000)
        left, right = within(pool(person), 10**6, np.random.default_rng(0))
        assert set(couples(zip(left, right, strict=True), pool(person)).values()) == {10}
        assert len(left) == 450

    def test_two_people_who_have_most_images(self):
        # Nearly every draw would be of the same two people, whom the cap allows ten pairs.
        person = np.concatenate([np.repeat([0, 1], 100_000), np.arange(2, 202)])
        left, _ = within(pool(person), 9000, np.random.default_rng(0))
        assert len(left) == 9000

    def test_nobody_to_pair(self):
        assert as_set(within(pool([3, 3, 3]), 5, np.random.default_rng(0))) == set()
        assert as_set(across(pool([0, 1, 2]), 5, np.random.default_rng(0))) == set()
