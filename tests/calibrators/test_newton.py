"""The logistic solver, apart from any calibrator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from faircal.calibrators import newton
from faircal.calibrators.newton import finite_logit, fit_nonnegative


def test_recovers_exact_parameters():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2, 200))
    target = expit(0.7 * features[0] + 2.0 * features[1] - 1.5)
    fit = fit_nonnegative(features, target, rng.exponential(size=200))
    np.testing.assert_allclose(fit.slopes, [0.7, 2.0], rtol=1e-9)
    assert fit.intercept == pytest.approx(-1.5, rel=1e-9)


def test_nearly_collinear_features():
    x = np.random.default_rng(0).normal(size=300)
    features = np.stack([x, x + 1e-5 * x**2]) + 3.0
    target = expit(features[0] + 2.0 * features[1] - 9.0)
    fit = fit_nonnegative(features, target, np.ones(300))
    np.testing.assert_allclose(expit(fit.slopes @ features + fit.intercept), target, atol=1e-10)
    np.testing.assert_allclose(fit.slopes, [1.0, 2.0], rtol=1e-4)


def test_a_repeated_feature_is_used_once():
    x = np.array([0.0, 1.0, 2.0])
    fit = fit_nonnegative(np.stack([x, 2 * x + 1]), expit(x), np.ones(3))
    np.testing.assert_allclose(fit.slopes, [1.0, 0.0], atol=1e-9)


def test_a_repeated_feature_with_a_zero_is_used_once():
    # 3x − 3·mean leaves 7e-17 here: rounding, measured by the largest value and not the smallest.
    x = np.array([0.0, 0.1, 0.2, 0.7])
    fit = fit_nonnegative(np.stack([x, 3 * x]), expit(x), np.ones(4))
    np.testing.assert_allclose(fit.slopes, [1.0, 0.0], atol=1e-9)


def test_a_constant_feature_gets_no_slope():
    x = np.array([[0.3, 0.3, 0.3]])
    fit = fit_nonnegative(x, np.array([0.0, 1.0, 1.0]), np.ones(3))
    assert fit.slopes[0] == 0.0
    assert fit.intercept == pytest.approx(np.log(2))


def test_both_slopes_negative_leave_the_constant():
    x = np.random.default_rng(0).normal(size=(2, 100))
    target = expit(-x[0] - 2 * x[1])
    fit = fit_nonnegative(x, target, np.ones(100))
    np.testing.assert_array_equal(fit.slopes, [0.0, 0.0])
    assert expit(fit.intercept) == pytest.approx(target.mean())


def test_of_two_negative_slopes_the_better_is_dropped():
    # The free slopes solve a − b = −log 3, a + b = −log 9: both are negative. Without the first
    # feature the mean target at x₁ = 1 is (0.1 + 4 · 0.75)/5 = 0.62, a slope of log(62/38);
    # without the second the mean at x₀ = 1 is 0.22, which leaves the constant, and a higher loss.
    x = np.array([[1.0, 1.0, -1.0, -1.0], [-1.0, 1.0, 1.0, -1.0]])
    target, mass = np.array([0.25, 0.1, 0.75, 0.9]), np.array([4.0, 1.0, 4.0, 1.0])
    fit = fit_nonnegative(x, target, mass)
    np.testing.assert_allclose(fit.slopes, [0.0, np.log(62 / 38)], atol=1e-9)
    assert fit.loss == pytest.approx(-0.62 * np.log(0.62) - 0.38 * np.log(0.38))


def test_without_intercept():
    x = np.array([[-1.0, 0.5, 2.0]])
    fit = fit_nonnegative(x, expit(1.7 * x[0]), np.ones(3), intercept=False)
    assert fit.slopes[0] == pytest.approx(1.7)
    assert fit.intercept == 0.0


def test_nothing_to_fit():
    fit = fit_nonnegative(np.zeros((1, 3)), np.array([0.0, 1.0, 1.0]), np.ones(3), intercept=False)
    assert fit.slopes[0] == 0.0
    assert fit.loss == pytest.approx(np.log(2))


def test_loss_is_the_mean_log_loss():
    x = np.array([[0.0, 1.0]])
    fit = fit_nonnegative(x, np.array([0.25, 0.75]), np.array([1.0, 3.0]))
    assert fit.loss == pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75))


@pytest.mark.parametrize("n_genuine", [3, 9000])
def test_thinning_changes_the_start_only(monkeypatch, n_genuine):
    # With 3 genuine pairs the thinned problem holds none of them and is no help; it must not harm.
    rng = np.random.default_rng(0)
    n = 20_000
    x = np.sort(rng.normal(size=n))
    target = np.zeros(n)
    target[rng.permutation(n)[:n_genuine] | 1] = 1.0
    features = np.stack([x, np.exp(x)])
    thinned = fit_nonnegative(features, target, np.ones(n))
    monkeypatch.setattr(newton, "THINNED", n)
    full = fit_nonnegative(features, target, np.ones(n))
    np.testing.assert_allclose(thinned.slopes, full.slopes, rtol=1e-6, atol=1e-9)
    assert thinned.loss == pytest.approx(full.loss, abs=1e-12)


def test_usually_few_steps(monkeypatch, cosines):
    steps = []
    search = newton._line_search
    monkeypatch.setattr(newton, "_line_search", lambda *args: steps.append(1) or search(*args))
    scores, genuine = cosines(1500)
    fit_nonnegative(np.sort(scores)[np.newaxis], genuine[np.argsort(scores)] * 1.0, np.ones(1500))
    assert len(steps) <= 8


@pytest.mark.parametrize(("p", "expected"), [(0.0, -1000.0), (0.5, 0.0), (1.0, 1000.0)])
def test_finite_logit(p, expected):
    assert finite_logit(p) == expected
    assert expit(expected) == p
