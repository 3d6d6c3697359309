"""Genuine pairs, strata and folds of people."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from faircal._base.errors import DataError
from faircal.data.folds import deal_people
from faircal.data.pairing import PairPlan, build_pairs
from faircal.data.pairing.people import PersonImages


def rng(seed=0):
    return np.random.default_rng(seed)


def test_images_of_known_people_in_order():
    who = PersonImages.of(np.array([7, -1, 3, 7, 3, -1, 9]))
    assert who.image.tolist() == [2, 4, 0, 3, 6]
    assert who.person.tolist() == [0, 0, 1, 1, 2]
    assert who.possible().tolist() == [1, 1, 0]


def test_nobody_known():
    with pytest.raises(DataError, match=r"expected images of known people, found none; give the"):
        PersonImages.of(np.array([-1, -1]))


class TestGenuine:
    def test_all(self):
        who = PersonImages.of(np.array([5, 5, 5, 8, 8, 9]))
        left, right = who.genuine_pairs(None, rng())
        pairs = set(zip(left.tolist(), right.tolist(), strict=True))
        assert pairs == {(0, 1), (0, 2), (1, 2), (3, 4)}

    def test_at_most_so_many_evenly(self):
        who = PersonImages.of(np.repeat(np.arange(5000), 5))
        left, right = who.genuine_pairs(2, rng(3))
        assert (np.bincount(who.person[left]) == 2).all()
        assert (who.person[left] == who.person[right]).all()
        counts = np.unique(left % 5 * 5 + right % 5, return_counts=True)[1]
        assert len(counts) == 10
        assert chisquare(counts).pvalue > 0.001

    def test_a_person_of_many_images_is_not_listed(self):
        left, right = PersonImages.of(np.zeros(200_000, dtype=np.int64)).genuine_pairs(300, rng())
        assert len(set(zip(left.tolist(), right.tolist(), strict=True))) == 300
        assert (left < right).all()


class TestStrata:
    def test_the_most_frequent_counts(self):
        who = PersonImages.of(np.array([0, 0, 0, 1, 1, 2]))
        stratum, several = who.strata(np.array([4, -1, 4, 4, -1, 9]))
        # −1, 4, 9 are 0, 1, 2; person 1 has one image of each, and the smaller is taken.
        assert stratum.tolist() == [1, 0, 2]
        assert several == 2


class TestDeal:
    def deal(self, count, stratum, n_folds, seed=0):
        who = PersonImages.of(np.repeat(np.arange(len(count)), count))
        return deal_people(
            np.asarray(stratum), who.possible(), who.count, n_folds=n_folds, rng=rng(seed)
        )

    def test_by_hand(self):
        # Pairs 6, 3, 1, 1: the heaviest two go one to each fold, then the lighter fold is first.
        fold = self.deal([4, 3, 2, 2], [0, 0, 0, 0], 2)
        assert fold[0] != fold[1]
        assert fold[2] != fold[3]
        # A second stratum begins where there is least: 10 pairs to the fold without the 15.
        fold = self.deal([6, 5, 3], [0, 1, 1], 2)
        assert fold.tolist() == [1, 2, 1]

    @given(
        st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=6, max_size=60),
        st.integers(2, 5),
        st.integers(0, 9),
    )
    def test_strata_are_spread_to_within_one_person(self, people, n_folds, seed):
        count, stratum = np.array(people).T
        count[:n_folds] += 1
        fold = self.deal(count, stratum, n_folds, seed)
        for one in set(stratum.tolist()):
            spread = np.bincount(fold[stratum == one], minlength=n_folds + 1)[1:]
            assert spread.max() - spread.min() <= 1
        # As many people with two images as folds are enough for a genuine pair in each.
        assert set(fold[count > 1].tolist()) == set(range(1, n_folds + 1))

    def test_folds_weigh_about_the_same(self):
        count = rng(5).integers(1, 30, size=400)
        fold = self.deal(count, rng(6).integers(4, size=400), 5)
        load = np.bincount(fold, count * (count - 1) // 2)[1:]
        assert load.max() / load.min() < 1.02

    def test_chance_decides_between_equals(self):
        folds = {tuple(self.deal([2] * 6, [0] * 6, 2, seed).tolist()) for seed in range(40)}
        assert len(folds) > 10

    def test_too_few_people(self):
        people = [0, 0, 1, 1, 2, 3]
        with pytest.raises(DataError, match=r"at least 3 people with two or more .* found 2; ask"):
            build_pairs(people, PairPlan(n_folds=3))


class TestGivenFolds:
    def test_kept(self):
        who = PersonImages.of(np.array([1, 0, 1, 0]))
        assert who.given_folds(np.array([9, 9, -4, -4])).tolist() == [9, -4]

    def test_leakage(self):
        codes = np.array(list(combinations(range(4), 2))).ravel()
        who = PersonImages.of(codes)
        with pytest.raises(DataError, match=r"found 2 of 4 people in several \(leakage\); correct"):
            fold = np.zeros(len(codes), dtype=np.int64)
            fold[[0, 5]] = 1
            who.given_folds(fold)
