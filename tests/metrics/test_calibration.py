"""KS, ECE, Brier, NLL and reliability, worked out by hand."""

import math

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.metrics import Ranking, brier, ece, ks, mass_cuts, nll, reliability


class TestKs:
    def test_largest_gap_of_ascending_sums(self):
        # Ascending c − y: 0.2, 0.4 − 1, 0.9 − 1; sums 0.2, −0.4, −0.5.
        assert ks([0.9, 0.2, 0.4], [1, 0, 1]) == pytest.approx(0.5 / 3)

    def test_sums_from_below_not_from_above(self):
        # From below the sums are 0.3, −0.3; from above they would begin at −0.6.
        assert ks([0.3, 0.4], [0, 1]) == pytest.approx(0.3 / 2)

    def test_ties_count_at_the_end_of_their_block(self):
        half = [0.5] * 100
        ordered, alternating = [0] * 50 + [1] * 50, [0, 1] * 50
        assert ks(half, ordered) == ks(half, alternating) == 0.0
        assert ks(half, ordered, ties="order") == 0.25
        assert ks(half, alternating, ties="order") == pytest.approx(0.005)

    def test_order_rule_keeps_the_input_order_inside_ties(self):
        # Ascending and in input order: 0.1−0, 0.5−1, 0.5−0; sums 0.1, −0.4, 0.1.
        assert ks([0.5, 0.5, 0.1], [1, 0, 0], ties="order") == pytest.approx(0.4 / 3)
        # The other way round: sums 0.1, 0.6, 0.1.
        assert ks([0.5, 0.5, 0.1], [0, 1, 0], ties="order") == pytest.approx(0.6 / 3)

    def test_refuses_an_unknown_rule(self):
        with pytest.raises(ParameterError, match="ties to be blocks or order; found 'none'"):
            ks([0.5], [1], ties="none")


class TestMassCuts:
    @pytest.mark.parametrize(
        ("n", "n_bins", "sizes"),
        [(10, 4, [3, 2, 2, 3]), (9, 4, [3, 2, 2, 2]), (3, 3, [1, 1, 1]), (3, 10, [1, 1, 1])],
    )
    def test_sizes(self, n, n_bins, sizes):
        assert np.diff(mass_cuts(n, n_bins)).tolist() == sizes

    @pytest.mark.parametrize("n", [1, 2, 7, 24, 25, 26, 1000])
    def test_cover_everything_once_without_an_empty_bin(self, n):
        cuts = mass_cuts(n, 25)
        assert (cuts[0], cuts[-1], len(cuts)) == (0, n, min(n, 25) + 1)
        assert np.diff(cuts).min() >= 1

    def test_no_values_no_bins(self):
        assert mass_cuts(0, 4).tolist() == [0]
        empty = Ranking.of([0.5], [1]).subset([False])
        assert reliability(empty, n_bins=4).count.shape == (0,)


class TestEce:
    def test_equal_mass(self):
        # n = 5, two bins: sizes 3 and 2. Means 0.2 against 1/3 and 0.8 against 1/2.
        p, y = [0.1, 0.2, 0.3, 0.7, 0.9], [0, 1, 0, 1, 0]
        assert ece(p, y, n_bins=2) == pytest.approx(3 / 5 * (1 / 3 - 0.2) + 2 / 5 * 0.3)

    def test_equal_width_is_closed_on_the_right(self):
        # (0, 0.5] holds 0, 0.2 and 0.5, one of them genuine; (0.5, 1] holds 0.6.
        bins = reliability([0.0, 0.2, 0.5, 0.6], [0, 0, 1, 1], n_bins=2, binning="width")
        assert bins.count.tolist() == [3, 1]
        np.testing.assert_allclose(bins.confidence, [0.7 / 3, 0.6])
        np.testing.assert_allclose(bins.fraction_genuine, [1 / 3, 1])
        assert bins.error == pytest.approx(3 / 4 * 0.1 + 1 / 4 * 0.4)

    def test_empty_bins_are_nan_and_weigh_nothing(self):
        bins = reliability([0.1, 0.9], [0, 1], n_bins=4, binning="width")
        assert bins.count.tolist() == [1, 0, 0, 1]
        assert np.isnan(bins.confidence).tolist() == [False, True, True, False]
        assert bins.error == pytest.approx(0.1)

    def test_fewer_pairs_than_bins(self):
        assert ece([0.25, 0.75], [0, 1], n_bins=10) == pytest.approx(0.25)
        assert ece([0.25], [0], n_bins=10) == 0.25

    def test_divided_ties_share_their_labels(self):
        # Four equal probabilities cut in the middle: each bin gets half of the one genuine pair.
        bins = reliability([0.5] * 4, [1, 0, 0, 0], n_bins=2)
        assert bins.count.tolist() == [2, 2]
        assert bins.fraction_genuine.tolist() == [0.25, 0.25]

    def test_is_calibrated_when_frequencies_agree(self):
        assert ece([0.25] * 4 + [0.5] * 2, [1, 0, 0, 0, 1, 0], n_bins=3) == 0.0

    @pytest.mark.parametrize("n_bins", [0, -1, 2.5])
    def test_refuses_a_number_of_bins(self, n_bins):
        with pytest.raises(ParameterError, match="n_bins to be a whole number"):
            ece([0.5], [1], n_bins=n_bins)

    def test_refuses_an_unknown_binning(self):
        with pytest.raises(ParameterError, match="binning to be mass or width"):
            ece([0.5], [1], binning="depth")


class TestBrier:
    def test_of_the_label(self):
        # Integer labels must not be taken for positions: the paper's code gives 0.0067 here.
        assert brier([0.1, 0.2, 0.9], [0, 0, 1]) == pytest.approx(0.06 / 3)

    def test_of_correctness_differs_below_one_half(self):
        # 0.2 for an imposter is a correct "different": (1 − 0.2)²; for a genuine pair 0.2².
        assert brier([0.2], [0], of="correctness") == pytest.approx(0.64)
        assert brier([0.2], [1], of="correctness") == pytest.approx(0.04)
        # From 0.5 on the two agree.
        assert brier([0.5, 0.9], [0, 0], of="correctness") == brier([0.5, 0.9], [0, 0])

    def test_refuses_an_unknown_target(self):
        with pytest.raises(ParameterError, match="of to be label or correctness"):
            brier([0.5], [1], of="class")


class TestNll:
    def test_in_nats(self):
        expected = -(math.log(0.8) + math.log(0.5)) / 2
        assert nll([0.2, 0.5], [0, 1]) == pytest.approx(expected)

    def test_certain_mistakes_stay_finite(self):
        assert nll([0.0], [1], eps=1e-3) == pytest.approx(-math.log(1e-3))
        assert 36 < nll([1.0, 0.0], [0, 1]) < 37

    def test_refuses_eps(self):
        with pytest.raises(ParameterError, match="expected eps"):
            nll([0.5], [1], eps=0.0)


def test_everything_is_nan_without_pairs():
    empty = Ranking.of([0.5], [1]).subset([False])
    for value in (ks(empty), ks(empty, ties="order"), ece(empty), brier(empty), nll(empty)):
        assert math.isnan(value)
    assert math.isnan(ece(empty, binning="width"))
