"""Platt scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration

from faircal.calibrators import PlattCalibrator


def smoothed(genuine):
    n_genuine, n_imposter = genuine.sum(), (~genuine).sum()
    return np.where(genuine, (n_genuine + 1) / (n_genuine + 2), 1 / (n_imposter + 2))


def loss(slope, intercept, scores, genuine):
    eta = slope * scores + intercept
    return np.mean(np.logaddexp(0, eta) - smoothed(genuine) * eta)


def test_by_hand():
    # One pair each: targets 2/3 and 1/3, met exactly, so the log-odds are ±log 2 at ±0.5.
    calibrator = PlattCalibrator().fit([-0.5, 0.5], [False, True])
    assert calibrator.slope_ == pytest.approx(2 * np.log(2))
    assert calibrator.intercept_ == pytest.approx(0.0, abs=1e-12)


def test_targets_use_weights_as_counts():
    # Weights 3 and 1: targets 4/5 and 1/3.
    calibrator = PlattCalibrator().fit([0.0, 1.0], [False, True], [1.0, 3.0])
    np.testing.assert_allclose(calibrator.predict([0.0, 1.0]), [1 / 3, 4 / 5])


def test_one_class_by_hand():
    np.testing.assert_allclose(PlattCalibrator().fit([0.1, 0.4], [1, 1]).predict([0.0]), 3 / 4)


@pytest.mark.parametrize("seed", range(3))
def test_is_the_optimum(cosines, seed):
    scores, genuine = cosines(200, seed)

    def objective(parameters):
        eta = parameters[0] * scores + parameters[1]
        error = (expit(eta) - smoothed(genuine)) / 200
        return loss(*parameters, scores, genuine), np.array([error @ scores, error.sum()])

    reference = minimize(objective, [1.0, 0.0], jac=True, method="BFGS", options={"gtol": 1e-9})
    calibrator = PlattCalibrator().fit(scores, genuine)
    np.testing.assert_allclose([calibrator.slope_, calibrator.intercept_], reference.x, rtol=1e-5)


def test_not_above_scikit_learn(cosines):
    scores, genuine = cosines(400)
    reference = _SigmoidCalibration().fit(scores, genuine)
    calibrator = PlattCalibrator().fit(scores, genuine)
    found = loss(calibrator.slope_, calibrator.intercept_, scores, genuine)
    assert found <= loss(-reference.a_, -reference.b_, scores, genuine) + 1e-12
    np.testing.assert_allclose(calibrator.predict(scores), reference.predict(scores), atol=1e-3)


def test_a_falling_relation_gives_the_mean_target():
    genuine = np.array([True, True, False, False, False])
    calibrator = PlattCalibrator().fit([-0.2, -0.1, 0.0, 0.1, 0.2], genuine)
    assert calibrator.slope_ == 0.0
    np.testing.assert_allclose(calibrator.predict([0.0]), smoothed(genuine).mean())
