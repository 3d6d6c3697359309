"""Isotonic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from faircal.calibrators import IsotonicCalibrator


def test_by_hand():
    # 1, 0 at 0.2 and 0.3 are pooled to 1/2; the tie at 0.5 counts as its mean, 2/3.
    calibrator = IsotonicCalibrator().fit(
        [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.9], [0, 1, 0, 1, 0, 1, 1]
    )
    np.testing.assert_allclose(calibrator.knots_, [0.1, 0.2, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(calibrator.values_, [0, 1 / 2, 1 / 2, 2 / 3, 1])
    np.testing.assert_allclose(
        calibrator.predict([-0.5, 0.15, 0.25, 0.4, 0.7, 1.0]), [0, 1 / 4, 1 / 2, 7 / 12, 5 / 6, 1]
    )


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_agrees_with_scikit_learn(cosines, decimals):
    scores, genuine = cosines(400)
    scores = scores.round(decimals)
    weight = np.random.default_rng(3).exponential(size=400)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    reference.fit(scores, genuine, weight)
    grid = np.linspace(-1, 1, 999)
    found = IsotonicCalibrator().fit(scores, genuine, weight).predict(grid)
    np.testing.assert_allclose(found, reference.predict(grid), atol=1e-12)


def test_flat_stretches_keep_both_their_ends():
    calibrator = IsotonicCalibrator().fit([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 0, 0, 1, 1, 1])
    assert calibrator.knots_.tolist() == [0.1, 0.3, 0.4, 0.6]
    assert calibrator.values_.tolist() == [0, 0, 1, 1]


def test_only_the_knots_are_kept(cosines):
    scores, genuine = cosines(2000)
    calibrator = IsotonicCalibrator().fit(scores, genuine)
    inner = np.diff(calibrator.values_)
    assert not ((inner[1:] == 0) & (inner[:-1] == 0)).any()
    assert calibrator.knots_.size < 200
