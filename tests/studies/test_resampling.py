"""Weighted metrics against the library's own, and against pairs written down several times."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal.data import Groups
from faircal.metrics.measures import Rankings, measure
from studies.resampling import REPLICATED, People, Weighted, replicate

KEYS = {
    "ks": ("global", "", "ks"),
    "ks_mean": ("all", "", "ks_mean"),
    "fpr_aad@0.001": ("all", "global_fpr=0.001", "fpr_aad"),
    "fpr_aad@0.01": ("all", "global_fpr=0.01", "fpr_aad"),
}


@pytest.fixture(scope="module")
def scored():
    """Scores, probabilities with ties, labels and groups of test pairs, and their people."""
    cal, test = faircal.simulate("small", seed=1).split(test_fold=1)
    output = faircal.Baseline().fit(cal).apply(test)
    # Rounded, so that equal values occur; some pairs are of no group.
    group = np.where(np.arange(len(test)) % 17, test.groups().pair, -1)
    return output.score, output.probability.round(2), test.genuine, group, People.of(test)


def library(score, probability, genuine, group):
    names = tuple(map(str, range(group.max() + 1)))
    rankings = Rankings.of(score, probability, genuine, Groups(names, group, group))
    found = {(m.group, m.condition, m.metric): m.value for m in measure(rankings)}
    return {name: found[key] for name, key in KEYS.items()}


def test_with_weight_one_it_is_what_the_library_measures(scored):
    *arrays, people = scored
    once = people.weights(np.ones(people.n, dtype=np.int64))
    assert (once == 1).all()
    assert Weighted(*arrays).measure(once) == pytest.approx(library(*arrays), abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_weight_is_as_good_as_repetition(scored, seed):
    *arrays, people = scored
    weight = people.weights(next(people.drawn(1, seed)))
    assert weight.max() > 1
    assert weight.min() == 0
    repeated = library(*(np.repeat(array, weight) for array in arrays))
    assert Weighted(*arrays).measure(weight) == pytest.approx(repeated, abs=1e-12)


def test_weights_worked_out_by_hand():
    people = People(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2]), 3)
    assert people.weights(np.array([3, 2, 0])).tolist() == [3, 6, 0, 0]


def test_as_many_people_are_drawn_as_there_are_and_the_seed_decides(scored):
    people = scored[-1]
    first, again, other = (list(people.drawn(3, seed)) for seed in (4, 4, 5))
    assert all(count.sum() == people.n for count in first)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_replicates_spread_around_what_was_measured(scored):
    *arrays, people = scored
    metrics = Weighted(*arrays)
    found = replicate(metrics, people, 30, seed=0)
    assert set(found) == set(REPLICATED)
    assert all(len(values) == 30 and np.std(values) > 0 for values in found.values())
    rate = library(*arrays)["fpr_aad@0.01"]
    assert min(found["fpr_aad@0.01"]) < 2 * rate
