"""Histogram binning."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.calibrators import HistogramCalibrator


def by_position(scores, genuine, m):
    """Follow the rule literally, pair by pair; return edges and values."""
    order = np.argsort(scores)
    scores, genuine = scores[order], genuine[order]
    n = len(scores)
    m = min(m, n)
    while True:
        cuts = [int(cut) + 1 for cut in np.linspace(0, n - 1, m + 1)]
        cuts[0] = 0
        edges = [-1.0]
        for cut in cuts[1:-1]:
            low, high = scores[cut - 1], scores[cut]
            copies = [*scores[scores == low], *(scores[scores == high] if high > low else [])]
            edges.append(low if high == low else float(np.mean(copies)))
        edges.append(1.0)
        if len(set(edges)) == len(edges):
            break
        m -= 1
    values = [genuine[i:j].mean() for i, j in pairwise(cuts)]
    return edges, values


def test_sizes_of_ten_pairs_in_four_bins():
    # Sizes 3, 2, 2, 3: one genuine pair per bin shows them.
    genuine = [1, 0, 0, 1, 0, 1, 0, 1, 0, 0]
    calibrator = HistogramCalibrator(n_bins=4).fit(np.arange(10) / 10, genuine)
    np.testing.assert_allclose(calibrator.values_, [1 / 3, 1 / 2, 1 / 2, 1 / 3])
    np.testing.assert_allclose(calibrator.edges_, [-1, 0.25, 0.45, 0.65, 1])


def test_bins_include_their_upper_edge():
    calibrator = HistogramCalibrator(n_bins=2).fit([-0.5, 0.5], [False, True])
    np.testing.assert_array_equal(calibrator.edges_, [-1, 0, 1])
    probabilities = calibrator.predict([-1.0, 0.0, np.nextafter(0, 1), 1.0, 1.0000001])
    np.testing.assert_array_equal(probabilities, [0, 0, 1, 1, 1])


def test_an_edge_is_the_mean_of_all_copies():
    calibrator = HistogramCalibrator(n_bins=2).fit([0.1, 0.1, 0.1, 0.5, 0.5], [0, 0, 1, 1, 1])
    assert calibrator.edges_[1] == pytest.approx((3 * 0.1 + 2 * 0.5) / 5)
    np.testing.assert_allclose(calibrator.values_, [1 / 3, 1])


def test_a_cut_through_a_tie_shares_it():
    # Bins hold (0.1, half of the tie) and (half of the tie, 0.3).
    calibrator = HistogramCalibrator(n_bins=2).fit([0.1, 0.2, 0.2, 0.3], [0, 0, 1, 1])
    np.testing.assert_array_equal(calibrator.edges_, [-1, 0.2, 1])
    np.testing.assert_allclose(calibrator.values_, [1 / 4, 3 / 4])
    assert calibrator.predict([0.2])[0] == 1 / 4


def test_coinciding_edges_cost_a_bin():
    # Three bins would be cut at 0.1 twice; two are cut after three of the four copies of 0.1.
    calibrator = HistogramCalibrator(n_bins=3).fit([0.1, 0.1, 0.1, 0.1, 0.5], [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(calibrator.edges_, [-1, 0.1, 1])
    np.testing.assert_allclose(calibrator.values_, [1 / 4, (1 / 4 + 1) / 2])


def test_an_edge_at_the_end_of_the_range_costs_a_bin():
    calibrator = HistogramCalibrator(n_bins=2).fit([-1.0, -1.0, -1.0, 0.5], [0, 0, 1, 1])
    np.testing.assert_array_equal(calibrator.edges_, [-1, 1])
    np.testing.assert_array_equal(calibrator.values_, [1 / 2])


def test_no_more_bins_than_pairs():
    calibrator = HistogramCalibrator(n_bins=10).fit([0.1, 0.2, 0.4], [0, 1, 0])
    np.testing.assert_allclose(calibrator.edges_, [-1, 0.15, 0.3, 1])
    np.testing.assert_array_equal(calibrator.values_, [0, 1, 0])


@pytest.mark.parametrize("low", [0.3, np.nextafter(0.3, 1)])
def test_neighbouring_floats_are_kept_apart(low):
    # Their mean rounds down for one of the two cases and up for the other.
    scores = [low, np.nextafter(low, 1)]
    calibrator = HistogramCalibrator(n_bins=2).fit(scores, [False, True])
    np.testing.assert_array_equal(calibrator.predict(scores), [0, 1])


@pytest.mark.parametrize("m", [1, 2, 7, 10, 25])
@pytest.mark.parametrize("n", [10, 24, 251, 1000])
def test_follows_the_rule(cosines, n, m):
    scores, genuine = cosines(n)
    edges, values = by_position(scores, genuine, m)
    calibrator = HistogramCalibrator(n_bins=m).fit(scores, genuine)
    np.testing.assert_allclose(calibrator.edges_, edges, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(calibrator.values_, values, rtol=1e-14)


@pytest.mark.parametrize("m", [2, 7, 10, 25])
def test_follows_the_rule_with_ties(cosines, m):
    scores, genuine = cosines(300)
    scores = scores.round(1)
    genuine = scores > 0.15  # ties of one label, so that the literal rule has one answer too
    edges, values = by_position(scores, genuine, m)
    calibrator = HistogramCalibrator(n_bins=m).fit(scores, genuine)
    np.testing.assert_allclose(calibrator.edges_, edges, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(calibrator.values_, values, rtol=1e-12)


def test_fractional_weights_are_cut_by_mass():
    calibrator = HistogramCalibrator(n_bins=2).fit(
        [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], [0.1, 0.2, 0.15, 0.15]
    )
    np.testing.assert_allclose(calibrator.edges_[1], (0.2 * 0.2 + 0.15 * 0.3) / 0.35)
    np.testing.assert_allclose(calibrator.values_, [2 / 3, 1 / 2])


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, "ten", None])
def test_bad_n_bins(n_bins):
    with pytest.raises(ParameterError, match="n_bins: expected a whole number of 1 or more"):
        HistogramCalibrator(n_bins=n_bins).fit([0.1, 0.2], [0, 1])
