"""ROC, DET, AUROC and TPR at FPR, worked out by hand."""

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.metrics import Ranking, auroc, det, roc, tpr_at_fpr

NAN = float("nan")


@pytest.fixture
def ranking():
    # Descending: genuine, imposter, genuine + imposter tied, imposter, genuine.
    return Ranking.of([0.9, 0.8, 0.6, 0.6, 0.4, 0.2], [1, 0, 1, 0, 0, 1])


def test_roc_keeps_every_distinct_score(ranking):
    fpr, tpr, thresholds = roc(ranking)
    np.testing.assert_allclose(fpr, [0, 0, 1 / 3, 2 / 3, 1, 1])
    np.testing.assert_allclose(tpr, [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 1])
    assert thresholds.tolist() == [1.0, 0.9, 0.8, 0.6, 0.4, 0.2]


def test_det_is_the_roc_with_misses(ranking):
    np.testing.assert_allclose(det(ranking).fnr, [1, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_array_equal(det(ranking).fpr, roc(ranking).fpr)


@pytest.mark.parametrize(("upper", "first"), [(1.0, 1.0), (2.0, 2.0), (0.9, 0.9), (0.5, 0.9)])
def test_artificial_point_sits_at_the_upper_end_or_the_largest_score(ranking, upper, first):
    thresholds = roc(ranking, upper=upper).thresholds
    assert thresholds[0] == first
    assert thresholds[1:].tolist() == [0.9, 0.8, 0.6, 0.4, 0.2]


def test_scores_above_the_upper_end_stay(ranking):
    shifted = Ranking.of([1.3, 1.1, 0.4], [1, 0, 0])
    assert roc(shifted).thresholds.tolist() == [1.3, 1.3, 1.1, 0.4]


def test_auroc_counts_ties_half(ranking):
    # Of 9 genuine-imposter pairs: 0.9 wins 3, 0.6 wins 1 and ties 1, 0.2 wins none.
    assert auroc(ranking) == 4.5 / 9
    assert auroc([0.5, 0.5, 0.5], [1, 0, 1]) == 0.5
    assert auroc([0.1, 0.2], [1, 0]) == 0.0


def test_tpr_interpolates_between_points_and_takes_the_highest_at_a_shared_fpr(ranking):
    # At FPR 0 there are TPR 0 and 1/3; at FPR 1 there are 2/3 and 1; half way from 1/3 to 2/3.
    np.testing.assert_allclose(tpr_at_fpr(ranking, [0, 0.5, 1]), [1 / 3, 1 / 2, 1])


def test_tpr_has_the_shape_of_the_rates(ranking):
    assert tpr_at_fpr(ranking, 0.5).shape == ()
    assert tpr_at_fpr(ranking, [[0.1, 0.2]]).shape == (1, 2)


@pytest.mark.parametrize("rates", [-0.1, 1.1, NAN, [0.1, 2.0]])
def test_rates_are_fractions(ranking, rates):
    with pytest.raises(ParameterError, match=r"expected rates in \[0, 1\]"):
        tpr_at_fpr(ranking, rates)


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
