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
from faircal.data.pairing.imposters import Pool, across, nearest, supply, within

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
        runs = 12 * len(chance)
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
        found = Counter(as_set(within(pool(PERSON, cap=99), wanted, rng)) for _ in range(660))
        assert len(found) == 11
        assert chisquare(list(found.values())).pvalue > 0.001

    def test_many_of_many(self):
        # 40 people of 3 images: 7,020 pairs of strangers, of which 3,000 are drawn.
        person = np.repeat(np.arange(40), 3)
        times = np.zeros((120, 120))
        for seed in range(20):
            left, right = within(pool(person), 3000, np.random.default_rng(seed))
            times[left, right] += 1
        counts = times[np.triu(person[:, None] != person)]
        # Drawn without repeats, so the spread is that of a binomial with p = 3000 / 7020.
        p = 3000 / 7020
        assert counts.mean() == pytest.approx(20 * p)
        assert counts.var() == pytest.approx(20 * p * (1 - p), rel=0.05)


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


def brute_force(person, vectors, wanted, cap):
    """Every image's nearest stranger, the most similar first; then every second nearest, …."""
    similarity = vectors @ vectors.T
    ranked = []
    for i in range(len(person)):
        strangers = [j for j in range(len(person)) if person[j] != person[i]]
        strangers.sort(key=lambda j: (-similarity[i, j], j))
        ranked += [
            (rank, -similarity[i, j], min(i, j), max(i, j)) for rank, j in enumerate(strangers)
        ]
    kept, times = [], Counter()
    for _, _, i, j in sorted(ranked):
        couple = frozenset((int(person[i]), int(person[j])))
        if (i, j) not in kept and times[couple] < cap and len(kept) < wanted:
            kept.append((i, j))
            times[couple] += 1
    return kept


def found(person, vectors, wanted, cap, progress=lambda *step: None):
    person = np.asarray(person)
    pool = Pool(person, np.zeros_like(person), cap, vectors, progress, "fold 1")
    left, right = nearest(pool, wanted, np.random.default_rng(0))
    return list(zip(left.tolist(), right.tolist(), strict=True))


def test_by_hand():
    # Angles in degrees; people a a b b c.
    angle = np.radians([0, 50, 8, 90, 60])
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    person = [0, 0, 1, 1, 2]
    # First: 0→2 (8°), 1→4 (10°), 2→0, 3→4 (30°), 4→1. Then: 1→3 (40°), 1 and 3 the same pair.
    assert found(person, vectors, 3, 9) == [(0, 2), (1, 4), (3, 4)]
    assert found(person, vectors, 4, 9)[3] == (1, 3)
    # With one pair a couple, a and b have had theirs.
    assert found(person, vectors, 9, 1) == [(0, 2), (1, 4), (3, 4)]


@given(
    st.integers(0, 999),
    st.integers(2, 24),
    st.integers(1, 80),
    st.integers(1, 5),
    st.sampled_from([1, 3]),
)
def test_against_brute_force(seed, n, wanted, cap, values):
    # Small whole numbers: products are exact, and there are many ties.
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-values, values + 1, size=(n, 3)).astype(np.float32)
    _, person = np.unique(rng.integers(6, size=n), return_inverse=True)
    assert found(person, vectors, wanted, cap) == brute_force(person, vectors, wanted, cap)


@pytest.mark.parametrize("wanted", [30, 300, 10**6])
@pytest.mark.parametrize("alike", [False, True])
def test_blocks_change_nothing(monkeypatch, wanted, alike):
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(12), 8)
    vectors = rng.integers(-9, 10, size=(96, 4)).astype(np.float32)
    if alike:  # neighbours come person by person: the search has to go deeper
        vectors = 100 * vectors[person] + rng.integers(-1, 2, size=(96, 4)).astype(np.float32)
    expected = brute_force(person, vectors, wanted, 3)
    assert found(person, vectors, wanted, 3) == expected
    monkeypatch.setattr(imposters, "_ROWS", 7)
    monkeypatch.setattr(imposters, "_RANKS", 5)
    steps = []
    assert found(person, vectors, wanted, 3, lambda *step: steps.append(step)) == expected
    assert steps[0] == ("looking for similar strangers", 0, 14, "fold 1")
    assert steps[-1] == ("looking for similar strangers", 14, 14, "fold 1")
