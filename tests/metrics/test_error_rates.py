"""ROC curves, thresholds for a wanted rate, and rates at a threshold."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.metrics import (
    Ranking,
    auroc,
    det,
    find_threshold,
    fnr_at_threshold,
    fpr_at_threshold,
    rates_at_threshold,
    roc,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_at_threshold,
)

NAN = float("nan")


@pytest.fixture
def tied_ranking():
    # Descending: genuine, imposter, genuine + imposter tied, imposter, genuine.
    return Ranking.of([0.9, 0.8, 0.6, 0.6, 0.4, 0.2], [1, 0, 1, 0, 0, 1])


def test_roc_keeps_every_distinct_score(tied_ranking):
    fpr, tpr, thresholds = roc(tied_ranking)
    np.testing.assert_allclose(fpr, [0, 0, 1 / 3, 2 / 3, 1, 1])
    np.testing.assert_allclose(tpr, [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1])
    assert thresholds.tolist() == [1.0, 0.9, 0.8, 0.6, 0.4, 0.2]


def test_det_is_the_roc_with_misses(tied_ranking):
    np.testing.assert_allclose(det(tied_ranking).fnr, [1, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_array_equal(det(tied_ranking).fpr, roc(tied_ranking).fpr)


@pytest.mark.parametrize(("upper", "first"), [(1.0, 1.0), (2.0, 2.0), (0.9, 0.9), (0.5, 0.9)])
def test_artificial_point_sits_at_the_upper_end_or_the_largest_score(tied_ranking, upper, first):
    thresholds = roc(tied_ranking, upper=upper).thresholds
    assert thresholds[0] == first
    assert thresholds[1:].tolist() == [0.9, 0.8, 0.6, 0.4, 0.2]


def test_scores_above_the_upper_end_stay(tied_ranking):
    shifted = Ranking.of([1.3, 1.1, 0.4], [1, 0, 0])
    assert roc(shifted).thresholds.tolist() == [1.3, 1.3, 1.1, 0.4]


def test_auroc_counts_ties_half(tied_ranking):
    # Of 9 genuine-imposter pairs: 0.9 wins 3, 0.6 wins 1 and ties 1, 0.2 wins none.
    assert auroc(tied_ranking) == 4.5 / 9
    assert auroc([0.5, 0.5, 0.5], [1, 0, 1]) == 0.5
    assert auroc([0.1, 0.2], [1, 0]) == 0.0


def test_tpr_interpolates_between_points_and_takes_the_highest_at_a_shared_fpr(tied_ranking):
    # At FPR 0 there are TPR 0 and 1/3; at FPR 1 there are 2/3 and 1; half way from 1/3 to 2/3.
    np.testing.assert_allclose(tpr_at_fpr(tied_ranking, [0, 0.5, 1]), [1 / 3, 1 / 2, 1])


def test_tpr_has_the_shape_of_the_rates(tied_ranking):
    assert tpr_at_fpr(tied_ranking, 0.5).shape == ()
    assert tpr_at_fpr(tied_ranking, [[0.1, 0.2]]).shape == (1, 2)


@pytest.mark.parametrize("rates", [-0.1, 1.1, NAN, [0.1, 2.0]])
def test_rates_are_fractions(tied_ranking, rates):
    with pytest.raises(ParameterError, match=r"expected rates in \[0, 1\]"):
        tpr_at_fpr(tied_ranking, rates)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_leaves_nan(label):
    one = Ranking.of([0.2, 0.6], [label, label])
    assert np.isnan(auroc(one))
    assert np.isnan(tpr_at_fpr(one, [0.1, 0.2])).all()
    fpr, tpr, _ = roc(one)
    absent, present = (tpr, fpr) if label == 0 else (fpr, tpr)
    assert np.isnan(absent).all()
    assert present.tolist() == [0, 0.5, 1]


def test_nothing_leaves_nan():
    empty = Ranking.of([0.2], [0]).subset([False])
    assert np.isnan(roc(empty).fpr).all()
    assert roc(empty).thresholds.tolist() == [1.0]
    assert np.isnan(tpr_at_fpr(empty, 0.1))


NAN = float("nan")
RULES = ["nearest", "interpolate", "conservative"]


@pytest.fixture
def ranking():
    # FPR 0, 1/4 at 0.7, 1/2 at 0.5, 3/4 at 0.3, 1 at 0.1; TPR 1/2 at 0.9, 1 at 0.6.
    return Ranking.of([0.9, 0.7, 0.6, 0.5, 0.3, 0.1], [1, 0, 1, 0, 0, 0])


@pytest.fixture
def imposter_first():
    return Ranking.of([0.8, 0.7, 0.5, 0.3], [0, 1, 1, 0])


class TestInterpolatedThresholds:
    def test_over_fpr(self, ranking):
        # 0.125 lies half way from (0, 0.9) to (1/4, 0.7); at 1/4 the lowest threshold is 0.6.
        got = threshold_at_fpr(ranking, [0, 0.125, 0.25, 0.5, 1])
        np.testing.assert_allclose(got, [0.9, 0.8, 0.6, 0.5, 0.1])

    def test_over_tpr_for_fnr(self, ranking):
        # FNR 0.25 is TPR 0.75, half way from (1/2, 0.7) to (1, 0.6).
        np.testing.assert_allclose(threshold_at_fnr(ranking, [0.25, 0.5]), [0.65, 0.7])

    def test_below_the_first_imposter_the_upper_end_counts(self, imposter_first):
        # Half way from the artificial (0, upper) to (1/2, 0.8).
        np.testing.assert_allclose(threshold_at_fpr(imposter_first, 0.25), 0.9)
        np.testing.assert_allclose(threshold_at_fpr(imposter_first, 0.25, upper=2.0), 1.4)

    def test_one_class(self):
        genuine, imposter = Ranking.of([0.4, 0.8], [1, 1]), Ranking.of([0.4, 0.8], [0, 0])
        assert np.isnan(threshold_at_fpr(genuine, [0.1, 0.5])).all()
        assert np.isnan(threshold_at_fnr(imposter, [0.1, 0.5])).all()
        assert threshold_at_fpr(imposter, 0.5) == 0.8
        assert threshold_at_fnr(genuine, 0.5) == 0.8


class TestInterpolatedRates:
    def test_between_and_at_scores(self, ranking):
        # 0.4 lies half way from FPR 1/2 (0.5) to 3/4 (0.3).
        got = fpr_at_threshold(ranking, [0.95, 0.7, 0.6, 0.4, 0.0])
        np.testing.assert_allclose(got, [0, 0.25, 0.25, 0.625, 1])

    def test_tpr_and_fnr(self, ranking):
        # 0.95 lies half way from the artificial (1, 0) to (0.9, 1/2); 0.65 half way to 1.
        np.testing.assert_allclose(tpr_at_threshold(ranking, [0.95, 0.65, 0.2]), [0.25, 0.75, 1])
        np.testing.assert_allclose(fnr_at_threshold(ranking, [0.95, 0.65, 0.2]), [0.75, 0.25, 0])

    @pytest.mark.parametrize("scores", [[1.0, 0.5], [1.5, 0.5], [30.0, 0.5]])
    def test_largest_score_at_or_above_the_upper_end_is_counted(self, scores):
        top = scores[0]
        got = fpr_at_threshold(Ranking.of(scores, [0, 0]), [top, np.nextafter(top, np.inf)])
        assert got.tolist() == [0.5, 0.0]

    def test_undefined_and_infinite_thresholds(self, ranking):
        got = fpr_at_threshold(ranking, [NAN, np.inf, -np.inf])
        assert np.isnan(got[0])
        assert got[1:].tolist() == [0.0, 1.0]

    def test_absent_class_is_nan(self):
        assert np.isnan(fpr_at_threshold(Ranking.of([0.4], [1]), [0.1])).all()
        assert np.isnan(fnr_at_threshold(Ranking.of([0.4], [0]), [0.1])).all()


class TestCountedRates:
    def test_accepts_at_the_threshold(self, ranking):
        counts = rates_at_threshold(ranking, [0.95, 0.7, 0.4, 0.1])
        assert counts.false_positives.tolist() == [0, 1, 2, 4]
        assert counts.imposters.tolist() == [4, 4, 4, 4]
        assert counts.false_negatives.tolist() == [2, 1, 0, 0]
        assert counts.genuine.tolist() == [2, 2, 2, 2]
        assert counts.fpr.tolist() == [0, 0.25, 0.5, 1]
        assert counts.tpr.tolist() == [0, 0.5, 1, 1]

    def test_threshold_that_does_not_exist_decides_nothing(self, ranking):
        counts = rates_at_threshold(ranking, NAN)
        assert counts.imposters == counts.genuine == 0
        assert counts.false_positives == counts.false_negatives == 0
        assert np.isnan(counts.fpr)
        assert np.isnan(counts.fnr)

    def test_absent_class_is_nan(self):
        counts = rates_at_threshold(Ranking.of([0.4, 0.6], [1, 1]), [0.5])
        assert np.isnan(counts.fpr).all()
        assert counts.fnr.tolist() == [0.5]


class TestFindThreshold:
    def test_nearest_takes_the_lowest_score_above_the_first_imposter(self):
        ranking = Ranking.of([0.9, 0.8, 0.7, 0.6, 0.2], [1, 1, 0, 1, 0])
        assert find_threshold(ranking, 0.001) == 0.8

    def test_nearest_takes_the_lowest_threshold_of_equally_near_points(self, imposter_first):
        # FPR 0 (nothing accepted) and 1/2 (down to 0.5) are equally near to 1/4.
        assert find_threshold(imposter_first, 0.25) == 0.5

    @pytest.mark.parametrize("rule", ["nearest", "conservative"])
    def test_imposter_on_top_falls_back_to_just_above_it(self, imposter_first, rule):
        threshold = find_threshold(imposter_first, 0.001, rule=rule)
        assert threshold == np.nextafter(0.8, 1)
        assert rates_at_threshold(imposter_first, threshold).false_positives == 0

    def test_imposter_on_top_interpolated_stays_at_it(self, imposter_first):
        threshold = find_threshold(imposter_first, 0.001, rule="interpolate")
        assert threshold == pytest.approx(0.8, abs=1e-12)
        assert find_threshold(imposter_first, 0.0, rule="interpolate") == np.nextafter(0.8, 1)

    def test_nearest_looks_at_corners_only(self):
        # Four imposters in a row after a genuine pair: FPR 1/2 and 3/4 lie on a straight line.
        ranking = Ranking.of([0.9, 0.8, 0.7, 0.6, 0.5], [1, 0, 0, 0, 0])
        assert find_threshold(ranking, 0.45) == 0.9
        assert find_threshold(ranking, 0.45, rule="conservative") == 0.8
        # 0.45 lies a fifth of the way back from 1/2 (0.7) to 1/4 (0.8).
        assert find_threshold(ranking, 0.45, rule="interpolate") == pytest.approx(0.72)

    def test_conservative_takes_the_lowest_threshold_of_the_largest_allowed_fpr(self, ranking):
        assert find_threshold(ranking, 0.25, rule="conservative") == 0.6
        assert find_threshold(ranking, 0.49, rule="conservative") == 0.6
        assert find_threshold(ranking, 0.50, rule="conservative") == 0.5

    @pytest.mark.parametrize("rule", RULES)
    def test_without_imposters_there_is_no_threshold(self, rule):
        assert np.isnan(find_threshold(Ranking.of([0.4, 0.6], [1, 1]), 0.001, rule=rule))

    @pytest.mark.parametrize("rule", RULES)
    def test_without_genuine_pairs_imposters_decide(self, rule):
        ranking = Ranking.of([0.9, 0.8, 0.7, 0.6, 0.5], [0] * 5)
        assert find_threshold(ranking, 0.4, rule=rule) == 0.8

    def test_refuses_an_unknown_rule_and_a_percentage(self, ranking):
        with pytest.raises(ParameterError, match="did you mean nearest"):
            find_threshold(ranking, 0.001, rule="neares")
        with pytest.raises(ParameterError, match=r"write 1 % as 0\.01"):
            find_threshold(ranking, 5.0)
