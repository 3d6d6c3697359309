"""Samples that leave little or nothing to learn, and scores out of range."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from faircal.calibrators import CALIBRATORS, PlattCalibrator

GRID = np.linspace(-1.0, 1.0, 41)


def constant(calibrator, n_genuine, n_imposter):
    """Return the constant that the contract promises."""
    n = n_genuine + n_imposter
    if isinstance(calibrator, PlattCalibrator):
        genuine_target, imposter_target = (n_genuine + 1) / (n_genuine + 2), 1 / (n_imposter + 2)
        return (n_genuine * genuine_target + n_imposter * imposter_target) / n
    return n_genuine / n


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("n", [1, 10])
def test_one_class(calibrator, label, n):
    calibrator.fit(np.linspace(-0.4, 0.5, n), np.full(n, label))
    expected = constant(calibrator, n * label, n * (not label))
    np.testing.assert_allclose(calibrator.predict(GRID), expected, rtol=1e-14, atol=0)


def test_one_class_left_by_zero_weights(calibrator):
    calibrator.fit([0.1, 0.2, 0.3], [False, True, True], [0, 1, 1])
    np.testing.assert_allclose(calibrator.predict(GRID), constant(calibrator, 2, 0), rtol=1e-14)


def test_all_scores_equal(calibrator):
    calibrator.fit(np.full(8, 0.3), [True] * 6 + [False] * 2)
    np.testing.assert_allclose(calibrator.predict(GRID), constant(calibrator, 6, 2), rtol=1e-14)


def test_all_scores_equal_with_weights(calibrator):
    calibrator.fit([0.3, 0.3], [True, False], [3.0, 5.0])
    np.testing.assert_allclose(calibrator.predict(GRID), constant(calibrator, 3, 5), rtol=1e-14)


def test_all_scores_equal_after_clipping(calibrator):
    calibrator.fit([1.0, 1.5, 7.0, 1.0000001], [True, False, True, True])
    np.testing.assert_allclose(calibrator.predict(GRID), constant(calibrator, 3, 1), rtol=1e-14)


def test_ten_points(calibrator):
    scores = np.linspace(-0.4, 0.5, 10)
    calibrator.fit(scores, [0, 0, 0, 1, 0, 1, 0, 1, 1, 1])
    probabilities = calibrator.predict(scores)
    assert probabilities[-3:].mean() > probabilities[:3].mean()


def test_perfectly_separable(calibrator):
    scores = np.linspace(-0.5, 0.5, 40)
    genuine = scores > 0
    probabilities = calibrator.fit(scores, genuine).predict(scores)
    assert all(np.isfinite(array).all() for array in calibrator.get_state().values())
    # A spline is smooth and gives the two scores next to the gap some of each other's.
    assert probabilities[scores > 0.05].min() > 0.5
    assert probabilities[scores < -0.05].max() < 0.5


@pytest.mark.parametrize("name", ["beta", "temperature"])
def test_likelihood_of_separable_scores_is_all_but_perfect(name):
    scores = np.linspace(-0.5, 0.5, 40)
    probabilities = CALIBRATORS[name]().fit(scores, scores > 0).predict(scores)
    assert -np.log(np.where(scores > 0, probabilities, 1 - probabilities)).mean() < 1e-9


def test_wrong_way_round(calibrator):
    scores = np.linspace(-0.5, 0.5, 40)
    probabilities = calibrator.fit(scores, scores < 0).predict(scores)
    if type(calibrator).__name__ in {"HistogramCalibrator", "SplineCalibrator"}:
        assert probabilities[0] > probabilities[-1]  # these may decrease
    else:
        np.testing.assert_allclose(probabilities, 0.5, rtol=0, atol=1e-12)


@pytest.mark.parametrize("outside", [1.0000001, 1.5, 1e300])
def test_scores_outside_the_range_count_as_its_ends(calibrator, cosines, outside):
    scores, genuine = cosines(100)
    scores[:2] = [1.0, -1.0]
    expected = clone(calibrator).fit(scores, genuine).predict([-1.0, 1.0])
    scores[:2] = [outside, -outside]
    calibrator.fit(scores, genuine)
    np.testing.assert_array_equal(calibrator.predict([-outside, outside]), expected)


def test_scores_that_differ_by_next_to_nothing(calibrator):
    calibrator.fit([0.2, np.nextafter(0.2, 1.0), 0.2], [False, True, True])
    probabilities = calibrator.predict(GRID)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


@pytest.mark.parametrize("weight", [[1e-300, 1, 1, 1], [1e-12, 1, 1, 1e12], [1e-320] * 4])
def test_extreme_weights(calibrator, weight):
    probabilities = calibrator.fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], weight).predict(GRID)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
