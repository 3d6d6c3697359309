"""The tools that pairs are drawn with."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from faircal.data.pairing.people import choose, occurrence, share, triangle, under_cap


class TestShare:
    def test_by_hand(self):
        # 8 · (1/2, 1/4, 1/4); then 10 of which the first part takes 1: 9 over the others.
        assert share(8, np.array([2, 1, 1]), np.array([9, 9, 9])).tolist() == [4, 2, 2]
        assert share(10, np.array([2, 1, 1]), np.array([1, 9, 9])).tolist() == [1, 5, 4]
        assert share(13, np.array([6, 1, 1, 1, 1]), np.full(5, 99)).tolist() == [8, 2, 1, 1, 1]

    def test_nothing_to_give_or_to_take(self):
        assert share(0, np.array([1, 1]), np.array([5, 5])).tolist() == [0, 0]
        assert share(5, np.array([1, 1]), np.array([0, 0])).tolist() == [0, 0]

    @given(
        st.integers(0, 500),
        st.lists(st.tuples(st.integers(1, 99), st.integers(0, 99)), min_size=1, max_size=9),
    )
    def test_all_is_given_and_proportions_hold(self, n, parts):
        weight, most = np.array(parts).T
        given_out = share(n, weight, most)
        assert given_out.sum() == min(n, most.sum())
        assert (given_out >= 0).all()
        assert (given_out <= most).all()
        free = given_out < most  # parts that are not full are in proportion, to within one
        if free.sum() > 1:
            per_weight = (given_out[free] - 1) / weight[free]
            assert (per_weight <= ((given_out[free] + 1) / weight[free]).min() + 1e-9).all()


class TestChoose:
    @pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 3), (5, 5), (6, 1), (9, 2)])
    def test_every_set_is_equally_likely(self, n, k):
        # n ≤ 2k orders all numbers, n > 2k draws again where numbers repeat.
        chosen = np.sort(choose(np.full(20_000, n), k, np.random.default_rng(1)), axis=1)
        code = (chosen * n ** np.arange(k)).sum(axis=1)
        counts = np.unique(code, return_counts=True)[1]
        assert len(counts) == comb(n, k)
        assert len(counts) == 1 or chisquare(counts).pvalue > 0.001

    def test_rows_of_different_length(self):
        n = np.array([4, 10**15, 8, 9])
        chosen = choose(n, 4, np.random.default_rng(0))
        assert (chosen < n[:, None]).all()
        assert all(len(set(row)) == 4 for row in chosen.tolist())
        assert sorted(chosen[0].tolist()) == [0, 1, 2, 3]

    def test_no_rows(self):
        assert choose(np.empty(0, dtype=np.int64), 3, np.random.default_rng(0)).shape == (0, 3)


@given(st.lists(st.integers(0, 5), max_size=40))
def test_occurrence(codes):
    expected = [codes[:i].count(code) for i, code in enumerate(codes)]
    assert occurrence(np.array(codes, dtype=np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60), st.integers(1, 4))
def test_under_cap_against_a_loop(pairs, cap):
    person = np.array([0, 0, 1, 1, 1, 2])
    code = [min(p) * 6 + max(p) for p in pairs if person[p[0]] != person[p[1]]]
    kept, couples = [], []
    for one in code:
        couple = sorted(person[list(divmod(one, 6))].tolist())
        if one not in kept and couples.count(couple) < cap:
            kept.append(one)
            couples.append(couple)
    assert under_cap(np.array(code, dtype=np.int64), person, cap).tolist() == kept


def test_triangle_lists_all_pairs():
    low, high = triangle(np.arange(45))
    assert set(zip(low.tolist(), high.tolist(), strict=True)) == set(combinations(range(10), 2))


def test_triangle_where_roots_are_rounded():
    high = np.array([2, 94_906_267, 1_000_000_007])
    for first in (high * (high - 1) // 2, high * (high - 1) // 2 + high - 1):
        low, found = triangle(first)
        np.testing.assert_array_equal(found, high)
        np.testing.assert_array_equal(low, first - high * (high - 1) // 2)
