"""Dirichlet calibration and scalings against independent fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as given_that
from hypothesis import settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from faircal import BetaCalibrator
from faircal.calibrators.classes import (
    DirichletCalibrator,
    MatrixScaling,
    Strength,
    TemperatureScaling,
    VectorScaling,
)
from faircal.metrics import multiclass_nll


def by_lbfgs(z, codes, penalty, rough=False):
    """Fit (W, b) with scipy: mean log-loss plus what `penalty` says of the matrix."""
    c = z.shape[1]

    def loss(flat):
        matrix = flat.reshape(c, c + 1)
        eta = z @ matrix[:, :-1].T + matrix[:, -1]
        away = np.exp(log_softmax(eta, axis=1))
        away[np.arange(len(z)), codes] -= 1
        value, slope = penalty(matrix)
        slope = slope + np.column_stack([away.T @ z, away.sum(axis=0)]) / len(z)
        told = -log_softmax(eta, axis=1)[np.arange(len(z)), codes].mean()
        return told + value, slope.ravel()

    start = np.eye(c, c + 1).ravel()
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10000}
    if rough:
        options |= {"ftol": 1e-11, "gtol": 1e-7}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(c, c + 1)


def odir(off, intercept):
    def penalty(matrix):
        weight = off * (1 - np.eye(len(matrix), len(matrix) + 1))
        weight[:, -1] = intercept
        return (weight * matrix**2).sum(), 2 * weight * matrix

    return penalty


@pytest.mark.parametrize(("off", "intercept"), [(0.01, 0.01), (0.1, 0.0), (1e-4, 1.0)])
def test_dirichlet_is_what_lbfgs_finds(overconfident, off, intercept):
    p, codes, _ = overconfident(1500)
    found = DirichletCalibrator(off_diagonal=off, intercept=intercept).fit(p, codes)
    told = by_lbfgs(np.log(p), codes, odir(off, intercept))
    # With free intercepts a constant in all of them changes nothing.
    ours, theirs = (m - m[:, -1:].mean() * (np.arange(5) == 4) for m in (found.coefficients_, told))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_matrix_scaling_is_what_lbfgs_finds(overconfident):
    p, codes, _ = overconfident(1500)
    z = np.log(p)
    z -= z.mean(axis=1, keepdims=True)
    found = MatrixScaling(off_diagonal=0.05).fit(p, codes)
    np.testing.assert_allclose(found.coefficients_, by_lbfgs(z, codes, odir(0.05, 0.05)), atol=1e-4)


def test_temperature_is_scikit_learns(overconfident):
    p, codes, _ = overconfident(3000, 3)
    x = np.log(p)

    class Logits:
        """A classifier whose logits are its input."""

        def __init__(self):
            self.classes_ = np.arange(3)

        def fit(self, X, y):
            return self

        def decision_function(self, X):
            return X

        def predict(self, X):
            return X.argmax(axis=1)

        def __sklearn_tags__(self):
            return LogisticRegression().__sklearn_tags__()

    reference = CalibratedClassifierCV(FrozenEstimator(Logits()), method="temperature")
    reference.fit(x, codes)
    found = TemperatureScaling().fit(p, codes)
    np.testing.assert_allclose(found.predict(p), reference.predict_proba(x), atol=2e-4)


def test_temperature_is_the_best_of_all(overconfident):
    p, codes, _ = overconfident(1000)
    found = TemperatureScaling().fit(p, codes)
    best = multiclass_nll(found.predict(p), codes)
    for other in (0.999, 1.001):
        warmer = p ** (other / found.temperature_)
        assert multiclass_nll(warmer / warmer.sum(axis=1, keepdims=True), codes) > best
    assert found.temperature_ == pytest.approx(1.8, abs=0.15)


@settings(max_examples=40)
@given_that(st.integers(0, 10_000), st.floats(0.2, 4), st.floats(-2, 2))
def test_two_classes_are_beta_calibration(seed, slope, shift):
    rng = np.random.default_rng(seed)
    p = rng.random(300)
    likely = 1 / (1 + np.exp(-(slope * np.log(p / (1 - p)) + shift)))
    codes = (rng.random(300) < likely).astype(int)
    beta = BetaCalibrator(score_range=(0, 1)).fit(p, codes).predict(p)
    both = np.column_stack([1 - p, p])
    for form in ("full", "diagonal"):
        found = DirichletCalibrator(form=form).fit(both, codes).predict(both)
        np.testing.assert_allclose(found[:, 1], beta, atol=1e-6)


def test_two_classes_in_parts_are_found_by_the_solver_of_many(overconfident):
    """A pull of nothing gives beta calibration of the part, by other means than beta's own."""
    p, codes, _ = overconfident(1000, 2)
    overall = DirichletCalibrator().fit(p, codes)
    part = slice(0, 400)
    own = overall.towards(p[part], codes[part], [Strength(0.0)])[0].own
    beta = BetaCalibrator(score_range=(0, 1)).fit(p[part, 1], codes[part])
    np.testing.assert_allclose(own.predict(p)[:, 1], beta.predict(p[:, 1]), atol=1e-6)


@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("soft", [0.0, 1e-13, 1e-8])
def test_certain_rows_without_regularisation(n_classes, soft):
    """Next to no curvature at the start, and none in most directions at the end."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, 1000)
    said = np.where(rng.random(1000) < 0.3, rng.integers(0, n_classes, 1000), codes)
    p = (1 - n_classes * soft) * np.eye(n_classes)[said] + soft
    found = DirichletCalibrator(off_diagonal=0.0).fit(p, codes).predict(p)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (said, codes), 1)
    best = -np.log((counts / counts.sum(axis=1, keepdims=True))[said, codes]).mean()
    assert multiclass_nll(found, codes) == pytest.approx(best, abs=1e-6)


def test_rows_that_are_all_alike_leave_the_temperature_alone():
    found = TemperatureScaling().fit(np.full((50, 4), 0.25), np.arange(50) % 4)
    assert found.temperature_ == pytest.approx(1.0, abs=1e-3)


def test_units_are_held_out_together_in_choosing(overconfident):
    p, codes, _ = overconfident(200, 6)
    ten, units = np.repeat(np.arange(200), 10), np.repeat(np.arange(200), 10)
    single = DirichletCalibrator().fit(p, codes).regularization_[0]
    blind = DirichletCalibrator().fit(p[ten], codes[ten]).regularization_[0]
    aware = DirichletCalibrator().fit(p[ten], codes[ten], units=units).regularization_[0]
    assert blind < aware
    assert aware == single


def test_nothing_is_chosen_where_there_is_nothing_to_choose(overconfident):
    p, codes, _ = overconfident(300)
    found = VectorScaling(intercept=0.3).fit(p, codes)
    np.testing.assert_array_equal(found.regularization_, [0.0, 0.3])


def test_a_set_is_pulled_by_what_rows_tell_of_each_coefficient(overconfident):
    """The pull against an L-BFGS of the same: half of rows · h · (θ − θ0)², over the set's rows."""
    p, codes, _ = overconfident(2000, 3)
    overall = DirichletCalibrator(off_diagonal=0.01).fit(p, codes)
    theta, z = overall.coefficients_, np.log(p)
    eta = z @ theta[:, :-1].T + theta[:, -1]
    said = np.exp(log_softmax(eta, axis=1))
    x = np.column_stack([z, np.ones(2000)])
    told = ((said * (1 - said)).T @ x**2) / 2000
    few, rows = slice(0, 150), 40.0
    own = overall.towards(p[few], codes[few], [Strength(rows, 10.0)])[0].own
    weight = rows / 150 * told * np.where(np.eye(3, 4) + (np.arange(4) == 3) > 0, 1.0, 10.0)

    def penalty(matrix):
        away = matrix - theta
        return 0.5 * (weight * away**2).sum(), weight * away

    best = by_lbfgs(z[few], codes[few], penalty)
    np.testing.assert_allclose(own.coefficients_, best, atol=2e-3)


def test_regularisation_is_chosen_and_is_kept(overconfident):
    p, codes, _ = overconfident(400, 8)
    new, labels, _ = overconfident(4000, 8, seed=5)
    chosen = DirichletCalibrator().fit(p, codes)
    free = DirichletCalibrator(off_diagonal=0.0).fit(p, codes)
    assert chosen.regularization_[0] > 0
    assert multiclass_nll(chosen.predict(new), labels) < multiclass_nll(free.predict(new), labels)
    assert chosen.settled().off_diagonal == chosen.regularization_[0]


def test_more_classes_than_newton_takes(overconfident):
    """33 classes are 1,122 coefficients: L-BFGS."""
    p, codes, _ = overconfident(400, 33)
    found = DirichletCalibrator(off_diagonal=0.1).fit(p, codes).coefficients_
    told = by_lbfgs(np.log(p), codes, odir(0.1, 0.1), rough=True)
    eta = [np.log(p) @ m[:, :-1].T + m[:, -1] for m in (found, told)]
    ours, theirs = (np.exp(log_softmax(e, axis=1)) for e in eta)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_vector_scaling_leaves_the_off_diagonal_alone(overconfident):
    p, codes, _ = overconfident(500)
    slopes = VectorScaling().fit(p, codes).coefficients_[:, :-1]
    assert not slopes[~np.eye(4, dtype=bool)].any()


def test_a_map_that_is_right_stays(overconfident):
    _, codes, true = overconfident(20000, 3)
    found = DirichletCalibrator().fit(true, codes).predict(true)
    assert np.abs(found - true).mean() < 0.01
