"""Spline calibration."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.calibrators import SplineCalibrator, spline


def natural_basis(u, n_knots):
    """Return the textbook basis of natural cubic splines, and its derivative, at `u`.

    Truncated powers (Hastie, Tibshirani and Friedman, section 5.2.1), unlike the code under test.
    """
    knots = np.linspace(0, 1, n_knots)

    def part(k, power):
        cut = [np.maximum(u - knots[j], 0) ** power for j in (k, -1)]
        return (cut[0] - cut[1]) / (knots[-1] - knots[k])

    columns, slopes = [np.ones_like(u), u], [np.zeros_like(u), np.ones_like(u)]
    for k in range(n_knots - 2):
        columns.append(part(k, 3) - part(n_knots - 2, 3))
        slopes.append(3 * (part(k, 2) - part(n_knots - 2, 2)))
    return np.stack(columns, 1), np.stack(slopes, 1)


def by_position(scores, genuine, n_knots=6):
    """Follow the rule literally, pair by pair, for scores in [0, 1] without ties."""
    order = np.argsort(scores)
    scores, genuine = scores[order], genuine[order]
    n = len(scores)
    u = np.arange(n) / (n - 1)
    gap = (np.cumsum(genuine) - np.cumsum(scores)) / n
    columns, slopes = natural_basis(u, n_knots)
    return scores, scores + slopes @ np.linalg.lstsq(columns, gap)[0]


@pytest.mark.parametrize("n_knots", [2, 3, 6, 9])
@pytest.mark.parametrize("n", [10, 67, 1000])
def test_follows_the_rule(cosines, n, n_knots):
    scores, genuine = cosines(n)
    z = (scores + 1) / 2
    knots, values = by_position(z, genuine, n_knots)
    calibrator = SplineCalibrator(n_knots=n_knots).fit(scores, genuine)
    np.testing.assert_allclose(calibrator.values_, values, atol=1e-10)
    grid = np.linspace(0, 1, 333)
    expected = np.clip(np.interp(grid, knots, values), 0, 1)
    np.testing.assert_allclose(calibrator.predict(2 * grid - 1), expected, atol=1e-10)


def test_six_knots_unless_told(cosines):
    sample = cosines(67)
    default, six = SplineCalibrator().fit(*sample), SplineCalibrator(n_knots=6).fit(*sample)
    np.testing.assert_array_equal(default.values_, six.values_)


def test_two_pairs_by_hand():
    # z = 0.4, 0.6; H = 0, 1/2; S = 0.2, 0.5: the line from −0.2 to 0 has slope 0.2.
    calibrator = SplineCalibrator().fit([-0.2, 0.2], [False, True])
    np.testing.assert_allclose(calibrator.predict([-0.9, -0.2, 0.0, 0.2]), [0.6, 0.6, 0.7, 0.8])


def test_calibrated_scores_are_left_alone():
    # Labels spread as evenly as the scores say: fractional weights make H equal to S.
    z = np.linspace(0.05, 0.95, 50)
    calibrator = SplineCalibrator(score_range=(0.0, 1.0)).fit(
        np.tile(z, 2), np.repeat([1, 0], 50), np.concatenate((z, 1 - z))
    )
    np.testing.assert_allclose(calibrator.predict(z), z, atol=1e-12)


def test_equal_scores_take_the_mean_of_their_places():
    # Three places for two scores, u = 0, 1/2, 1; H = 1/6, 1/3, 2/3; S = 0.4/3, 0.8/3, 1.4/3.
    # The least-squares line has the slope of the ends: (2/3 − 1/6) − (1.4 − 0.4)/3 = 1/6.
    calibrator = SplineCalibrator(score_range=(0.0, 1.0)).fit([0.4, 0.4, 0.6], [0, 1, 1])
    np.testing.assert_allclose(calibrator.values_, [0.4 + 1 / 6, 0.6 + 1 / 6])


def test_fewer_distinct_scores_than_knots(cosines):
    scores, genuine = cosines(200)
    calibrator = SplineCalibrator(n_knots=50).fit(scores.round(1), genuine)
    assert np.isfinite(calibrator.values_).all()


def test_huge_weights_are_thinned(cosines, monkeypatch):
    scores, genuine = cosines(100)
    weight = np.random.default_rng(0).integers(50, 150, 100)
    expected = SplineCalibrator().fit(scores, genuine, weight).predict(scores)
    monkeypatch.setattr(spline, "MAX_POINTS", 2000)
    found = SplineCalibrator().fit(scores, genuine, weight).predict(scores)
    assert not np.array_equal(found, expected)
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("n_knots", [1, 0, 2.5, None])
def test_bad_n_knots(n_knots):
    with pytest.raises(ParameterError, match="n_knots: expected a whole number of 2 or more"):
        SplineCalibrator(n_knots=n_knots).fit([0.1, 0.2], [0, 1])
