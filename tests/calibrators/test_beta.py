"""Beta calibration: numbers by hand, and the likelihood against other solvers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from betacal import BetaCalibration
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from faircal.calibrators import BetaCalibrator

EPS = np.finfo(float).eps


def terms(scores):
    z = np.clip((np.asarray(scores) + 1) / 2, EPS, 1 - EPS)
    return np.stack([np.log(z), -np.log1p(-z), np.ones_like(z)])


def loss(parameters, scores, genuine, weight=None):
    eta = np.asarray(parameters) @ terms(scores)
    return np.average(np.logaddexp(0, eta) - genuine * eta, weights=weight)


def fitted_loss(calibrator, scores, genuine, weight=None):
    return loss([calibrator.a_, calibrator.b_, calibrator.c_], scores, genuine, weight)


def least_loss(scores, genuine, weight=None):
    """Minimise the same loss under the same bounds with SciPy, from several starts."""
    x = terms(scores)
    w = np.ones(len(scores)) if weight is None else np.asarray(weight, float)
    w = w / w.sum()

    def objective(parameters):
        eta = parameters @ x
        value = w @ (np.logaddexp(0, eta) - genuine * eta)
        return value, x @ (w * (expit(eta) - genuine))

    results = [
        minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None), (0, None), (None, None)],
            options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000},
        )
        for start in ([0.0, 0.0, 0.0], [5.0, 5.0, 0.0])
    ]
    return min(result.fun for result in results)


def betacal_loss(scores, genuine):
    """Return the loss of betacal's map, or infinity where that map breaks a, b ≥ 0."""
    with warnings.catch_warnings():  # betacal changes the global filters
        calibration = BetaCalibration("abm").fit((scores + 1) / 2, genuine)
    a, b, _ = calibration.calibrator_.map_
    c = calibration.calibrator_.lr_.intercept_[0]
    return loss([a, b, c], scores, genuine) if min(a, b) >= 0 else np.inf


class TestByHand:
    def test_two_scores(self):
        # z = 1/4 with odds 1:3 and z = 3/4 with odds 3:1: a·log 3 = log 9, so a = 2 and
        # exp(c) = (1/3)·4² = 16/3. In the middle the odds are (16/3)/4.
        scores = np.repeat([-0.5, 0.5], 4)
        calibrator = BetaCalibrator().fit(scores, [0, 0, 0, 1, 0, 1, 1, 1])
        assert calibrator.a_ == pytest.approx(2.0)
        assert calibrator.b_ == 0.0
        assert calibrator.c_ == pytest.approx(np.log(16 / 3))
        assert calibrator.predict([0.0])[0] == pytest.approx(4 / 7)

    def test_three_scores(self):
        # Odds z/(1−z)² at three points: a = 1, b = 2, c = 0.
        z = np.array([0.2, 0.5, 0.8])
        odds = z / (1 - z) ** 2
        calibrator = BetaCalibrator(score_range=(0.0, 1.0)).fit(
            np.tile(z, 2), np.repeat([1, 0], 3), np.concatenate((odds, np.ones(3)))
        )
        found = [calibrator.a_, calibrator.b_, calibrator.c_]
        np.testing.assert_allclose(found, [1.0, 2.0, 0.0], atol=1e-9)

    def test_identity(self):
        # Calibrated scores are left as they are: a = b = 1, c = 0.
        z = np.linspace(0.05, 0.95, 19)
        calibrator = BetaCalibrator(score_range=(0.0, 1.0)).fit(
            np.tile(z, 2), np.repeat([1, 0], 19), np.concatenate((z, 1 - z))
        )
        np.testing.assert_allclose(calibrator.predict(z), z, atol=1e-10)

    def test_ends_of_the_range_are_finite(self):
        calibrator = BetaCalibrator().fit([-1.0, -1.0, 1.0, 1.0], [0, 1, 0, 1])
        np.testing.assert_allclose(calibrator.predict([-1.0, 0.0, 1.0]), 0.5, atol=1e-12)

    def test_one_class_has_finite_parameters(self):
        calibrator = BetaCalibrator().fit([0.1, 0.2], [True, True])
        assert (calibrator.a_, calibrator.b_, calibrator.c_) == (0.0, 0.0, 1000.0)


@pytest.mark.parametrize("n", [67, 335])
def test_small_clusters_reach_the_constrained_optimum(cosines, n):
    faces = {"a": 0, "b": 0, "inside": 0}
    for seed in range(25):
        scores, genuine = cosines(n, seed, gap=0.3)
        calibrator = BetaCalibrator().fit(scores, genuine)
        assert fitted_loss(calibrator, scores, genuine) <= least_loss(scores, genuine) + 1e-9
        free = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        a, b = free.fit(terms(scores)[:2].T, genuine).coef_[0]
        # The sign pattern of the free optimum tells on which face the constrained one lies.
        assert (calibrator.a_ == 0) == (a < 0)
        assert (calibrator.b_ == 0) == (b < 0)
        faces["a" if a < 0 else "b" if b < 0 else "inside"] += 1
    assert min(faces.values()) >= 1, faces


@pytest.mark.parametrize("n", [20, 67, 335, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_library_has_a_lower_loss(cosines, n, seed):
    scores, genuine = cosines(n, seed)
    found = fitted_loss(BetaCalibrator().fit(scores, genuine), scores, genuine)
    assert found <= betacal_loss(scores, genuine) + 1e-9
    assert found <= least_loss(scores, genuine) + 1e-9


def test_agrees_with_scikit_learn_where_the_bounds_do_not_bind():
    z = np.random.default_rng(0).uniform(0.01, 0.99, 4000)
    genuine = np.random.default_rng(1).random(4000) < expit(np.log(z) - 2 * np.log1p(-z) - 0.5)
    calibrator = BetaCalibrator(score_range=(0.0, 1.0)).fit(z, genuine)
    free = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    free.fit(terms(2 * z - 1)[:2].T, genuine)
    found = [calibrator.a_, calibrator.b_, calibrator.c_]
    np.testing.assert_allclose(found, [*free.coef_[0], free.intercept_[0]], rtol=1e-6)


@pytest.mark.parametrize("margin", [0.2, 0.01, 1e-6])
def test_separable_scores(margin):
    scores = np.concatenate((np.linspace(-0.3, 0.1, 50), np.linspace(0.1 + margin, 0.6, 30)))
    genuine = np.arange(80) >= 50
    calibrator = BetaCalibrator().fit(scores, genuine)
    found = fitted_loss(calibrator, scores, genuine)
    assert np.isfinite([calibrator.a_, calibrator.b_, calibrator.c_]).all()
    assert found <= betacal_loss(scores, genuine) + 1e-9
    assert found < 1e-9


def test_separable_but_for_one_tie():
    # Only the score 0 holds both classes; its own loss, log 2, is all that can remain.
    scores, genuine = np.array([-0.2, -0.1, 0.0, 0.0, 0.1, 0.3]), np.array([0, 0, 0, 1, 1, 1])
    calibrator = BetaCalibrator().fit(scores, genuine)
    assert fitted_loss(calibrator, scores, genuine) == pytest.approx(2 / 6 * np.log(2), abs=1e-9)


def test_lopsided_weights():
    # A rare class between two others, one of them all but weightless: a full Newton step from the
    # constant map overshoots to where every probability is 0 or 1 and the curvature is gone.
    scores, genuine = np.array([0.38095882, -0.45764537, -0.21151852]), np.array([0, 0, 1])
    weight = [1.3e-4, 2.1e2, 3.6e-2]
    calibrator = BetaCalibrator().fit(scores, genuine, weight)
    found = fitted_loss(calibrator, scores, genuine, weight)
    assert found <= least_loss(scores, genuine, weight) + 1e-9


def test_tiny_spread(cosines):
    scores, genuine = cosines(335)
    scores = 0.4 + 1e-6 * scores
    calibrator = BetaCalibrator().fit(scores, genuine)
    assert fitted_loss(calibrator, scores, genuine) <= least_loss(scores, genuine) + 1e-9


grid_pairs = st.lists(
    st.tuples(st.integers(-10, 10), st.booleans(), st.integers(-3, 3)), min_size=2, max_size=25
)


@settings(max_examples=60)
@given(rows=grid_pairs)
def test_never_above_scipy(rows):
    scores, genuine, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    scores, weight = scores / 10, 10**weight
    calibrator = BetaCalibrator().fit(scores, genuine, weight)
    found = fitted_loss(calibrator, scores, genuine, weight)
    assert found <= least_loss(scores, genuine, weight) + 1e-9


def test_an_imposter_of_next_to_no_weight_leaves_no_nan():
    # The weighted fraction of genuine pairs rounds to a hair above 1 here.
    weight = [1.64157316370002e-15, 3.5, 4.2, 0.3, 3.1, 0.7, 0.2]
    scores = np.arange(7) / 10
    fitted = BetaCalibrator().fit(scores, [0, 1, 1, 1, 1, 1, 1], sample_weight=weight)
    np.testing.assert_allclose(fitted.predict(scores)[1:], 1.0, atol=1e-9)
