"""Temperature scaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from faircal.calibrators import TemperatureCalibrator


def test_by_hand():
    # z = 0.9 (log-odds log 9), three genuine of four (log-odds log 3): 1/T = 1/2.
    calibrator = TemperatureCalibrator().fit([0.8] * 4 + [-0.8] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    assert calibrator.inverse_temperature_ == pytest.approx(0.5)
    assert calibrator.offset_ == 0.0
    np.testing.assert_allclose(calibrator.predict([-0.8, 0.0, 0.8]), [0.25, 0.5, 0.75])


def test_is_the_optimum(cosines):
    scores, genuine = cosines(300)
    feature = logit((scores + 1) / 2)
    reference = minimize_scalar(
        lambda slope: np.mean(np.logaddexp(0, slope * feature) - genuine * slope * feature)
    )
    calibrator = TemperatureCalibrator().fit(scores, genuine)
    assert calibrator.inverse_temperature_ == pytest.approx(reference.x, rel=1e-6)
    np.testing.assert_allclose(calibrator.predict(scores), expit(reference.x * feature), atol=1e-6)


def test_scores_that_point_the_wrong_way_give_one_half():
    calibrator = TemperatureCalibrator().fit([-0.5, 0.5, 0.6], [True, False, False])
    assert calibrator.inverse_temperature_ == 0.0
    np.testing.assert_array_equal(calibrator.predict([-1.0, 0.3, 1.0]), 0.5)


def test_the_middle_of_the_range_stays_one_half(cosines):
    calibrator = TemperatureCalibrator(score_range=(0.0, 4.0)).fit([1.0, 2.5, 3.0], [0, 0, 1])
    assert calibrator.predict([2.0])[0] == 0.5
