"""Baseline: the raw score and one calibrator (method-details 2.1)."""

from __future__ import annotations

import numpy as np
import pytest

from faircal import Baseline, BetaCalibrator
from faircal.calibrators import CALIBRATORS


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_one_calibrator_on_all_pairs(parts, calibrator):
    calibration, test = parts
    model = Baseline(calibrator).fit(calibration)
    alone = CALIBRATORS[calibrator]().fit(calibration.scores, calibration.genuine)
    np.testing.assert_allclose(
        model.predict_proba(test), alone.predict(test.scores), rtol=0, atol=1e-9
    )
    np.testing.assert_array_equal(model.decision_scores(test), test.scores)


def test_calibrator_takes_the_range_of_the_scores(parts, changed):
    calibration = changed(parts[0], scores_only=True, score_range=(-3.0, 2.0))
    model = Baseline(BetaCalibrator(score_range=(0.0, 1.0))).fit(calibration)
    assert model.calibrator_.score_range == (-3.0, 2.0)
