"""Metrics of counted scores stay within their bounds of those of the scores, on any pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.compute.counting import ScoreCounts, fine_edges
from faircal.metrics import (
    DEVIATIONS,
    METRICS,
    Histogram,
    Ranking,
    auroc,
    ece,
    fpr_at_threshold,
    ks,
    probability_edges,
    rates_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_at_threshold,
)
from faircal.metrics.bounds import (
    as_counted,
    counted_range,
    deviation_bound,
    largest_error,
    rate_range,
    threshold_range,
    tpr_range,
)

probabilities = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e-9, 1 - 1e-9]),
    st.integers(0, 20).map(lambda k: k / 20),
)
rates = st.floats(0.001, 0.999)

#: A metric need not have a bound: an audit of counted scores then says that it is not known.
BOUNDED = {name: metric for name, metric in METRICS.items() if metric.bound is not None}


@st.composite
def counted_pairs(draw):
    """Pairs, and the bins of coarse edges that they are counted in: the bounds are at work."""
    rows = draw(st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=60))
    scores, genuine = map(np.array, zip(*rows, strict=True))
    inner = draw(st.lists(probabilities, max_size=12))
    if draw(st.booleans()):  # bins of one score among others
        inner += [*scores[::3], *np.nextafter(scores[::6], 2)]
    edges = np.unique([0.0, 1.0, *inner])
    counts = ScoreCounts.zeros(1, edges)
    counts.add(scores, genuine)
    return scores, genuine, edges, counts.means(0)


def within(low, value, high):
    return low - 1e-12 <= value <= high + 1e-12 or np.isnan([low, value, high]).all()


@settings(max_examples=150)
@given(counted_pairs(), rates, st.sampled_from([0.3, 1.0, 2.0]))
def test_every_value_of_one_set_is_within_its_bound(data, rate, upper):
    scores, genuine, _, bins = data
    exact, counted = Ranking.of(scores, genuine), as_counted(bins)
    for metric in BOUNDED.values():
        values = metric.function(exact), metric.function(counted)
        bound = metric.bound(bins)
        assert abs(values[0] - values[1]) <= bound or np.isnan([*values, bound]).all()
    for ranking in (exact, counted):
        low, high = tpr_range(bins, rate)
        assert within(low, float(tpr_at_fpr(ranking, rate)), high)
        for threshold_at, of in ((threshold_at_fpr, "fpr"), (threshold_at_fnr, "fnr")):
            low, high = threshold_range(bins, rate, of, upper)
            assert within(low, float(threshold_at(ranking, rate, upper=upper)), high)


@settings(max_examples=100)
@given(counted_pairs(), st.floats(-0.2, 1.2), st.floats(0, 0.4), st.sampled_from([0.3, 1.0, 2.0]))
def test_rates_at_thresholds_lie_in_their_range(data, low, width, upper):
    scores, genuine, edges, bins = data
    exact, counted = Ranking.of(scores, genuine), as_counted(bins)
    places = np.concatenate([[low, low + width], scores, edges])
    inside = places[(places >= low) & (places <= low + width)]
    for rate, label in ((fpr_at_threshold, "imposter"), (tpr_at_threshold, "genuine")):
        ends = rate_range(bins, label, low, low + width, upper)
        for ranking in (exact, counted):
            for value in rate(ranking, inside, upper=upper):
                assert within(ends[0], float(value), ends[1])
    at_all = rates_at_threshold(exact, places)
    for values, label in ((at_all.fpr, "imposter"), (at_all.tpr, "genuine")):
        for at, value in zip(places, values, strict=True):
            ends = counted_range(bins, label, at)
            assert within(ends[0], float(value), ends[1])
            if at in edges[1:]:  # exact there
                assert ends[0] == ends[1] or np.isnan(value)


@settings(max_examples=100)
@given(counted_pairs(), st.data())
def test_histograms_of_counts_are_those_of_the_scores(data, draw):
    scores, genuine, edges, bins = data
    chosen = draw.draw(st.lists(st.sampled_from(edges.tolist()), unique=True)) or [0.0]
    exact = Histogram.of(Ranking.of(scores, genuine), np.sort(chosen))
    counted = Histogram.of(as_counted(bins), np.sort(chosen))
    np.testing.assert_array_equal(counted.genuine, exact.genuine)
    np.testing.assert_array_equal(counted.imposter, exact.imposter)
    np.testing.assert_allclose(counted.total, exact.total, atol=1e-5)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 0.3), st.floats(-1, 1)), min_size=1, max_size=8
    )
)
def test_deviations_over_groups(groups):
    values, errors, moves = np.array(groups).T
    for name, function in DEVIATIONS.items():
        moved = function(values + moves * errors)
        assert abs(moved - function(values)) <= deviation_bound(name, errors) + 1e-12


def test_a_group_without_a_value_is_left_out():
    assert deviation_bound("mean", [0.1, np.nan, 0.3]) == pytest.approx(0.2)
    assert np.isnan(deviation_bound("std", [np.nan]))
    assert deviation_bound("unheard of", [0.1]) == np.inf


def test_largest_error_is_the_way_to_the_farther_end():
    assert largest_error(0.4, (0.1, 0.5)) == pytest.approx(0.3)
    assert largest_error(0.4, (0.4, 0.4)) < 1e-11
    assert np.isnan(largest_error(float("nan"), (float("nan"), float("nan"))))


def test_bounds_by_hand():
    # Both bins hold one pair of each label: half of each could be ordered otherwise.
    counts = ScoreCounts.zeros(1, [0.0, 0.5])
    counts.add([0.1, 0.3, 0.6, 0.9], [1, 0, 0, 1])
    bins = counts.means(0)
    assert METRICS["auroc"].bound(bins) == pytest.approx((1 + 1) / 2 / 4)
    # From 0 the sum rises by 0.3 at most or falls by 0.9; the whole bin gives 0.4 − 1 = −0.6; then
    # from there up by 0.6 or down by 0.1; in the end −0.1. Known: 0.6.
    assert METRICS["ks"].bound(bins) == pytest.approx((0.9 - 0.6) / 4, abs=1e-5)


def test_fine_edges_leave_little_open():
    rng = np.random.default_rng(0)
    n = 200_000
    genuine = rng.random(n) < 0.3
    logit = rng.normal(np.where(genuine, 3.0, -4.0), 2.5)
    probability = 1 / (1 + np.exp(-logit))
    counts = ScoreCounts.zeros(1, fine_edges(0, 1, also=probability_edges()))
    counts.add(probability, genuine)
    bins = counts.means(0)
    most = {"auroc": 1e-4, "ks": 1e-4, "ece": 1e-3, "brier": 1e-6, "nll": 2e-5}
    for name, metric in BOUNDED.items():
        error = metric.function(as_counted(bins)) - metric.function(
            Ranking.of(probability, genuine)
        )
        assert abs(error) <= metric.bound(bins) <= most[name]
        assert metric.bound(bins) > 1e-12


def test_scores_in_bins_of_one_number_are_exact():
    scores, genuine = np.repeat([0.0, 0.25, 0.5, 1.0], 5), np.arange(20) % 3 == 0
    singles = [0.0, 0.25, 0.5, 1.0]
    counts = ScoreCounts.zeros(1, np.sort([*singles, *np.nextafter(singles, 2)]))
    counts.add(scores, genuine)
    bins = counts.means(0)
    exact = Ranking.of(scores, genuine)
    for metric in BOUNDED.values():
        assert metric.function(as_counted(bins)) == pytest.approx(metric.function(exact), abs=1e-15)
        assert metric.bound(bins) < 1e-11


def test_more_pairs_than_products_of_them_fit_into_integers():
    counts = ScoreCounts.zeros(1, [0.0, 0.5])
    counts.add([0.1, 0.6, 0.2, 0.7], [0, 1, 1, 1])
    expected = auroc(as_counted(counts.means(0)))
    for _ in range(38):
        counts = counts + counts
    many = as_counted(counts.means(0))
    assert many.n_genuine == 3 * 2**38
    assert auroc(many) == expected
    assert ks(many) == pytest.approx(0.35, abs=1e-6)  # (0.1 + 0.2 + 0.6 + 0.7 − 3) / 4
    assert ece(many) == pytest.approx(0.35, abs=1e-6)
