"""Pairs of strangers in a tile, against going through all pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from faircal.production.spark.strangers import drawing
from faircal.production.spark.strangers.dealing import cut, deal, hypergeometric, ranges
from faircal.production.spark.strangers.drawing import Strangers, some_of
from faircal.production.spark.strangers.headcount import Headcount, Items

KINDS = ("any", "within", "across")


def allowed(person, group, groups, first=None):
    """Return the allowed pairs, one after the other."""
    found = set()
    for one, two in itertools.combinations(range(len(person)), 2):
        known = min(person[one], person[two]) >= 0
        known &= groups == "any" or min(group[one], group[two]) >= 0
        apart = person[one] != person[two]
        apart &= groups == "any" or (group[one] == group[two]) == (groups == "within")
        met = first is None or one < first <= two
        if known and apart and met:
            found.add((one, two))
    return found


def numbered(person, group, groups, first=None):
    cell = None if groups == "any" else group
    return Strangers.of(person, cell, first, groups == "across")


def as_list(pairs):
    return [tuple(sorted(pair)) for part in pairs for pair in zip(*map(list, part), strict=True)]


def some_images(rng):
    """Return people and groups of a few images; some are unknown, some people in many groups."""
    n = int(rng.integers(0, 15))
    person = rng.integers(-1, rng.integers(1, 8), n)
    group = rng.integers(-1, rng.integers(1, 5), n)
    if rng.random() < 0.3:
        group = np.where(person < 0, -1, person % 3)  # a person is of one group
    first = None if rng.random() < 0.4 else int(rng.integers(0, n + 1))
    return person.astype(np.int32), group.astype(np.int32), first


@pytest.mark.parametrize("groups", KINDS)
@pytest.mark.parametrize("sparse", [0, 10**9])  # pairs listed by number, or by rectangle
def test_each_pair_comes_once(groups, sparse, monkeypatch):
    monkeypatch.setattr(drawing, "_EDGE", 3)
    monkeypatch.setattr(drawing, "_SPARSE", sparse)
    monkeypatch.setattr(drawing, "PART", 5)
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(400):
        person, group, first = some_images(rng)
        expected = allowed(person, group, groups, first)
        pairs = numbered(person, group, groups, first)
        assert len(pairs) == len(expected)
        by_number = as_list([pairs.numbered(np.arange(len(pairs)))])
        assert sorted(by_number) == sorted(expected)
        ends = np.sort(rng.integers(0, len(pairs) + 1, 2)).tolist()
        thirds = itertools.pairwise([0, *ends, len(pairs)])
        listed = as_list(part for third in thirds for part in pairs.listed(*third))
        assert sorted(listed) == sorted(expected)
        drawn = as_list(pairs.drawn(0, len(pairs), len(pairs), rng))
        assert sorted(drawn) == sorted(expected)
        seen += len(expected)
    assert seen > 500


def test_few_are_made_at_a_time(monkeypatch):
    person = np.arange(300)
    for name, part in (("_EDGE", 16), ("PART", 256)):
        monkeypatch.setattr(drawing, name, part)
    pairs = Strangers.of(person)
    sizes = [len(left) for left, _ in pairs.listed(0, len(pairs))]
    assert sum(sizes) == len(pairs) == 300 * 299 // 2
    assert max(sizes) <= 256
    rng = np.random.default_rng(0)
    drawn = [len(left) for left, _ in pairs.drawn(0, len(pairs), 5000, rng)]
    assert sum(drawn) == 5000
    assert max(drawn) < 2 * 256


def test_a_range_has_as_many_pairs_as_numbers_but_for_an_image():
    pairs = Strangers.of(np.arange(100))
    for start, stop in ((0, 1000), (1000, 2000), (2000, len(pairs))):
        found = sum(len(left) for left, _ in pairs.listed(start, stop))
        assert abs(found - (stop - start)) < 100


@pytest.mark.parametrize("groups", KINDS)
def test_all_samples_are_equally_likely(groups, monkeypatch):
    """All sets of 3 pairs of a small tile are drawn equally often, also where parts are dealt."""
    monkeypatch.setattr(drawing, "PART", 2)
    person, group = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 1])
    pairs = numbered(person, group, groups)
    sets = [frozenset(of) for of in itertools.combinations(allowed(person, group, groups), 3)]
    assert len(sets) >= 1
    place = {of: number for number, of in enumerate(sets)}
    rng = np.random.default_rng(1)
    runs = 40 * len(sets)
    counts = np.zeros(len(sets), dtype=int)
    for _ in range(runs):
        counts[place[frozenset(as_list(pairs.drawn(0, len(pairs), 3, rng)))]] += 1
    assert len(sets) == 1 or stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("n", "k"), [(6, 2), (6, 3), (6, 5), (6, 6), (7, 1)])
def test_some_numbers(n, k):
    sets = list(itertools.combinations(range(n), k))
    place = {of: number for number, of in enumerate(sets)}
    rng = np.random.default_rng(0)
    counts = np.zeros(len(sets), dtype=int)
    for _ in range(100 * len(sets)):
        counts[place[tuple(some_of(n, k, rng).tolist())]] += 1
    assert len(sets) == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_many_numbers_of_very_many():
    found = some_of(10**15, 100_000, np.random.default_rng(0))
    assert len(np.unique(found)) == 100_000
    assert (np.diff(found) > 0).all()
    assert stats.kstest(found / 1e15, "uniform").pvalue > 1e-3
    dense = some_of(150_000, 100_000, np.random.default_rng(0))
    assert len(np.unique(dense)) == 100_000
    assert dense.max() < 150_000


# ------------------------------------------------------------------ dealing


@pytest.mark.parametrize(
    ("good", "bad", "n"),
    [(5, 7, 4), (5, 7, 9), (30, 3, 20), (2, 1000, 500), (300, 700, 450), (1, 1, 1), (40, 2, 41)],
)
def test_hypergeometric_numbers(good, bad, n):
    runs = 50_000
    sides = (np.full(runs, value) for value in (good, bad, n))
    found = hypergeometric(*sides, np.random.default_rng(0))
    chance = stats.hypergeom(good + bad, good, n).pmf(np.arange(good + 1))
    counts = np.bincount(found, minlength=good + 1)
    assert counts[chance == 0].sum() == 0
    often = runs * chance > 5
    expected = runs * np.append(chance[often], chance[~often].sum())
    observed = np.append(counts[often], counts[~often].sum())
    some = expected > 1e-9
    expected = expected[some] * observed[some].sum() / expected[some].sum()
    assert stats.chisquare(observed[some], expected).pvalue > 1e-3


@pytest.mark.parametrize(
    ("good", "bad", "n"),
    [(10**14, 3 * 10**14, 10**9), (10**10, 10**10, 10**10), (5 * 10**9, 10**4, 10**9)],
)
def test_hypergeometric_numbers_beyond_numpy(good, bad, n):
    runs, total = 20_000, good + bad
    rng = np.random.default_rng(0)
    found = hypergeometric(*(np.full(runs, value) for value in (good, bad, n)), rng)
    mean = n * good / total
    variance = mean * (bad / total) * (total - n) / (total - 1)
    standard = (found - mean + rng.uniform(-0.5, 0.5, runs)) / np.sqrt(variance)
    assert stats.kstest(standard, "norm").pvalue > 1e-3


def test_dealing_is_drawing_without_replacement():
    sizes, n = np.array([3, 0, 1, 4, 2]), 4
    rng = np.random.default_rng(0)
    dealt = np.array([deal(n, sizes, rng) for _ in range(1500)])
    assert (dealt.sum(axis=1) == n).all()
    assert (dealt <= sizes).all()
    seen, counts = np.unique(dealt, axis=0, return_counts=True)
    chance = stats.multivariate_hypergeom(sizes[sizes > 0], n).pmf(seen[:, sizes > 0])
    assert chance.sum() == pytest.approx(1)
    assert stats.chisquare(counts, 1500 * chance / chance.sum()).pvalue > 1e-3


@pytest.mark.parametrize("parts", [1, 2, 7, 64, 1000])
def test_all_are_dealt(parts):
    sizes = np.random.default_rng(parts).integers(0, 10**13, parts)
    n = int(sizes.sum() // 10**6)
    dealt = deal(n, sizes, np.random.default_rng(0))
    assert dealt.shape == (parts,)
    assert dealt.sum() == n
    assert (dealt[sizes == 0] == 0).all()
    np.testing.assert_array_equal(deal(int(sizes.sum()), sizes, np.random.default_rng(0)), sizes)


def test_ranges_and_pieces():
    begin, end = ranges(3, 103, 7)
    assert begin[0] == 3
    assert end[-1] == 103
    np.testing.assert_array_equal(begin[1:], end[:-1])
    assert np.ptp(end - begin) <= 1
    counts, pieces = np.array([10, 0, 3]), np.array([4, 0, 3])
    row, start, stop = cut(counts, pieces)
    np.testing.assert_array_equal(np.bincount(row, stop - start, 3), counts)
    np.testing.assert_array_equal(np.bincount(row, minlength=3), pieces)


# ------------------------------------------------------------------ headcount


@pytest.mark.parametrize("groups", KINDS)
def test_a_headcount_counts_the_pairs_of_each_tile(groups):
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, n_blocks = int(rng.integers(1, 25)), int(rng.integers(1, 5))
        person, group = rng.integers(-1, 6, n), rng.integers(-1, 3, n)
        block = rng.integers(0, n_blocks, n)
        expected = np.zeros((n_blocks, n_blocks), dtype=int)
        for one, two in allowed(person, group, groups):
            expected[tuple(sorted((block[one], block[two])))] += 1
        cell = None if groups == "any" else group
        found = Headcount.of(n_blocks, block, person, cell).strangers(groups)
        np.testing.assert_array_equal(found, expected)
        # The same from lines that count images.
        lines, images = np.unique(np.stack([block, person, group]), axis=1, return_counts=True)
        cell = None if groups == "any" else lines[2]
        again = Headcount.of(n_blocks, lines[0], lines[1], cell, images).strangers(groups)
        np.testing.assert_array_equal(again, expected)


def test_counts_are_not_rounded():
    person = np.arange(4)
    images = np.full(4, 10**7)
    found = Headcount.of(2, np.array([0, 0, 1, 1]), person, None, images).strangers("any")
    assert found.tolist() == [[10**14, 4 * 10**14], [0, 10**14]]


@pytest.mark.parametrize("n", [None, 10**9])
def test_items_are_of_equal_size_and_have_all(n):
    strangers = np.triu(np.full((8, 8), 10**9)) - np.diag(np.full(8, 5 * 10**8))
    items = Items.of(strangers, n, 0)
    total = int(strangers.sum())
    assert items.take.sum() == (n or total)
    assert items.take.max() < 1.01e7
    if n is None:
        np.testing.assert_array_equal(items.take, items.stop - items.start)
        assert items.take.min() > 0.9e7
    found = np.zeros_like(strangers)
    np.add.at(found, (items.i, items.j), items.stop - items.start)
    np.testing.assert_array_equal(found, strangers)
    again = Items.of(strangers, n, 0)
    np.testing.assert_array_equal(again.take, items.take)
    if n is not None:
        assert (Items.of(strangers, n, 1).take != items.take).any()


def test_little_work_is_shared_out_too():
    items = Items.of(np.array([[64 << 18]]), None, 0)
    assert len(items) == 64
    assert len(Items.of(np.array([[1000]]), None, 0)) == 1
