"""Histograms: what they count is what the decision at an edge does."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from faircal import DataError
from faircal.metrics import (
    Histogram,
    Ranking,
    probability_edges,
    rates_at_threshold,
    score_edges,
)

EDGES = [-1.0, -0.5, 0.0, 0.25, 0.5]


def histogram(scores, genuine, edges=EDGES):
    return Histogram.of(Ranking.of(scores, genuine), edges)


def test_counts_by_hand():
    found = histogram([-0.7, -0.5, 0.1, 0.25, 0.26, 0.5, 0.9], [0, 0, 1, 0, 1, 1, 1])
    assert found.imposter.tolist() == [1, 1, 0, 1, 0]
    assert found.genuine.tolist() == [0, 0, 1, 1, 2]
    assert found.total == pytest.approx([-0.7, -0.5, 0.1, 0.51, 1.4])
    assert found.fpr == pytest.approx([1, 2 / 3, 1 / 3, 1 / 3, 0])
    assert found.fnr == pytest.approx([0, 0, 0, 1 / 4, 2 / 4])


def test_what_lies_outside_is_counted_in_the_end_bins():
    found = histogram([-7.0, 7.0], [0, 1])
    assert found.imposter.tolist() == [1, 0, 0, 0, 0]
    assert found.genuine.tolist() == [0, 0, 0, 0, 1]


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.booleans()), min_size=1, max_size=60),
    st.lists(st.integers(-100, 100), min_size=1, max_size=10, unique=True),
)
def test_rates_at_edges_are_counted_rates(pairs, places):
    scores, genuine = zip(*pairs, strict=True)
    edges = np.array([-101, *sorted(places)]) / 100
    ranking = Ranking.of(scores, genuine)
    found = Histogram.of(ranking, edges)
    counted = rates_at_threshold(ranking, edges)
    np.testing.assert_array_equal(found.fpr, counted.fpr)
    np.testing.assert_array_equal(found.fnr, counted.fnr)
    assert found.total.sum() == pytest.approx(sum(scores), abs=1e-9)


def test_rates_against_scikit_learn():
    rng = np.random.default_rng(0)
    genuine = rng.random(500) < 0.4
    scores = np.clip(rng.normal(0.3 * genuine, 0.3), -1, 1)
    edges = score_edges(-1, 1)
    found = histogram(scores, genuine, edges)
    for i in rng.choice(len(edges), 20, replace=False):
        tn, fp, fn, tp = confusion_matrix(genuine, scores >= edges[i], labels=[0, 1]).ravel()
        assert found.fpr[i] == fp / (fp + tn)
        assert found.fnr[i] == fn / (fn + tp)


def test_one_class_leaves_the_other_rate_undefined():
    found = histogram([0.1, 0.3], [1, 1])
    assert np.isnan(found.fpr).all()
    assert found.fnr.tolist() == [0, 0, 0, 0.5, 1]
    assert np.isnan(found.threshold_at_fpr(0.1))


def test_adding_is_counting_together():
    rng = np.random.default_rng(1)
    scores, genuine = rng.uniform(-1, 1, 80), rng.random(80) < 0.5
    whole = histogram(scores, genuine)
    parts = histogram(scores[:30], genuine[:30]) + histogram(scores[30:], genuine[30:])
    assert parts.genuine.tolist() == whole.genuine.tolist()
    assert parts.imposter.tolist() == whole.imposter.tolist()
    assert parts.total == pytest.approx(whole.total)


def test_other_edges_cannot_be_added():
    with pytest.raises(DataError, match="different edges"):
        histogram([0.1], [1]) + histogram([0.1], [1], EDGES[1:])


def test_threshold_is_the_edge_with_the_nearest_rate_the_highest_of_several():
    found = histogram([-0.7, -0.3, 0.1, 0.6], [0, 0, 0, 0])  # rates 1, .75, .5, .25, .25
    assert found.threshold_at_fpr(0.3) == 0.5
    assert found.threshold_at_fpr(0.7) == -0.5
    assert found.threshold_at_fpr(0.0) == 0.5


def test_no_scores_are_no_counts():
    empty = Histogram.of(Ranking.of([0.1], [1]).subset([False]), EDGES)
    assert (empty.n_genuine, empty.n_imposter) == (0, 0)
    assert not empty.genuine.any()
    assert np.isnan([*empty.fpr, *empty.fnr]).all()


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        (-1, 1, "0.002"),
        (0, 1, "0.001"),
        (0, 100, "0.1"),
        (-3.5, 0.5, "0.01"),
        (0, 1e-3, "0.000001"),
        (0, 7e5, "1000"),
        (-20, 20, "0.1"),
    ],
)
def test_score_edges_are_round_numbers_that_print_exactly(low, high, step):
    edges = score_edges(low, high)
    whole = [Decimal(repr(float(edge))) / Decimal(step) for edge in edges]
    assert all(number == number.to_integral_value() for number in whole)
    assert np.diff([int(number) for number in whole]).tolist() == [1] * (len(edges) - 1)
    assert edges[0] <= low - (high - low) / 2 <= edges[1]
    assert edges[-2] <= high + (high - low) / 2 <= edges[-1]


def test_probability_edges_are_exact_decimals_and_finer_towards_the_ends():
    edges = probability_edges()
    assert (np.diff(edges) > 0).all()
    assert set(np.arange(1001) / 1000) <= set(edges)
    assert edges[0] == 0
    assert edges[-1] == 1
    assert {0.9991, 0.99999, 0.00003, 1e-8, 0.99999999} <= set(edges)
    assert max(len(repr(float(edge))) for edge in edges) <= 10
