"""Probabilities against labels."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from faircal.production.monitoring.calibration import (
    compare_labels,
    count_labels,
    recalibrate,
    tabulate,
)


def labels(odds, genuine, person=None):
    return tabulate(count_labels(expit(odds), genuine, person, 0, 1 << 40)[0])


def test_intercept_and_slope_are_those_of_logistic_regression():
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 3, 20_000)
    genuine = rng.random(20_000) < expit(0.8 + 0.6 * odds)
    found = recalibrate(labels(odds, genuine))
    fitted = LogisticRegression(C=np.inf).fit(odds[:, None], genuine)
    at_zero = found.intercept + (1 - found.slope) * found.center
    assert at_zero == pytest.approx(float(fitted.intercept_[0]), abs=0.02)
    assert found.slope == pytest.approx(float(fitted.coef_[0, 0]), abs=0.02)


def test_probabilities_that_hold_raise_few_alarms():
    rng = np.random.default_rng(1)
    chances = []
    for _ in range(300):
        odds = rng.normal(-1, 4, 400)
        genuine = rng.random(400) < expit(odds)
        chances.append(compare_labels(labels(odds, genuine))[0].p_value)
    assert np.mean(np.array(chances) <= 0.01) <= 0.01


@pytest.mark.parametrize(("intercept", "slope"), [(1.5, 1.0), (0.0, 0.4), (0.0, 2.0)])
def test_those_that_do_not_are_found(intercept, slope):
    rng = np.random.default_rng(2)
    odds = rng.normal(-1, 3, 3000)
    genuine = rng.random(3000) < expit(intercept + slope * odds)
    told, fitted = compare_labels(labels(odds, genuine))
    assert told.p_value < 1e-6
    at_zero = fitted.intercept + (1 - fitted.slope) * fitted.center
    assert at_zero == pytest.approx(intercept, abs=0.3)
    assert fitted.slope == pytest.approx(slope, abs=0.3)


def test_labels_of_the_same_people_count_for_less():
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(60), 50)
    odds = rng.normal(0, 2, 3000)
    genuine = rng.random(3000) < expit(odds + rng.normal(0, 1.5, 60)[person])
    alone, known = (recalibrate(labels(odds, genuine, who)) for who in (None, person))
    assert known.covariance[0, 0] > 2 * alone.covariance[0, 0]


def test_sure_and_wrong_is_found_though_nothing_was_expected():
    odds = np.full(200, -11.0)
    genuine = np.arange(200) < 60
    assert compare_labels(labels(odds, genuine))[0].p_value < 1e-4
