"""Softmax regressions against finite differences, and against an L-BFGS written here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from faircal.compute import softmax as softmax_module
from faircal.compute.softmax import Diagonal, Full, Pull, Scalar, SoftmaxRows, fit

FORMS = [Scalar, Diagonal, Full]


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def rows(request):
    rng = np.random.default_rng(3)
    z = np.log(rng.dirichlet([0.7, 0.7, 0.7, 0.7], 500))
    likely = softmax(0.6 * z + [0.3, 0.0, -0.4, 0.1], axis=1)
    codes = (likely.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    return SoftmaxRows(request.param(4), z, codes)


def value(rows, theta):
    eta = rows.form.log_odds(theta, rows.z)
    return -log_softmax(eta, axis=1)[np.arange(len(rows.z)), rows.codes].mean()


def test_derivatives_are_those_of_the_loss(rows):
    theta = rows.form.identity + 0.1 * np.random.default_rng(0).normal(size=rows.form.size)
    found = rows.sums(theta, second=True)
    assert found.loss == pytest.approx(value(rows, theta), rel=1e-12)
    steps = 1e-5 * np.eye(rows.form.size)
    slope = [(value(rows, theta + s) - value(rows, theta - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(found.gradient, slope, atol=1e-8)
    bent = [
        (rows.sums(theta + s, second=False).gradient - rows.sums(theta - s, second=False).gradient)
        / 2e-5
        for s in steps
    ]
    np.testing.assert_allclose(found.hessian, bent, atol=1e-7)
    np.testing.assert_allclose(rows.curvature(theta), np.diag(found.hessian), atol=1e-12)


def test_newton_finds_what_lbfgs_finds(rows):
    center = rows.form.identity
    pull = Pull(center, np.full(rows.form.size, 0.02))
    found = fit(rows, pull, center)

    def penalised(theta):
        away = theta - center
        return value(rows, theta) + 0.01 * away @ away

    told = minimize(penalised, center, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    assert penalised(found) <= told.fun + 1e-12
    np.testing.assert_allclose(found, told.x, atol=2e-5)


def test_many_coefficients_come_out_alike(rows, monkeypatch):
    """Above `MOST_NEWTON` L-BFGS does the work; a limit of none makes it do this."""
    pull = Pull(rows.form.identity, np.full(rows.form.size, 0.02))
    newton = fit(rows, pull, rows.form.identity)
    monkeypatch.setattr(softmax_module, "MOST_NEWTON", 0)
    np.testing.assert_allclose(fit(rows, pull, rows.form.identity), newton, atol=1e-5)


def test_bounds_hold_and_are_left_where_they_need_not():
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    z = np.log(np.column_stack([1 - p, p]))
    codes = (rng.random(2000) < 1 - p**2).astype(int)  # the wrong way round
    rows = SoftmaxRows(Diagonal(2), z, codes)
    least = np.array([0.0, 0.0, -np.inf, -np.inf])
    free = fit(rows, Pull(np.ones(4), np.full(4, 1e-9)), rows.form.identity)
    bound = fit(rows, Pull(np.ones(4), np.full(4, 1e-9)), rows.form.identity, least=least)
    assert free[:2].min() < 0
    assert bound[:2].min() == 0
    # At the bounds only the intercept is left: the share of each class.
    share = softmax(rows.form.log_odds(bound, z[:1]), axis=1)[0, 1]
    assert share == pytest.approx(codes.mean(), abs=1e-6)


def test_classes_that_can_be_told_apart_end_finite():
    z = np.log([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
    rows = SoftmaxRows(Full(2), z, np.array([0, 0, 1]))
    theta = fit(rows, Pull(np.zeros(6), np.zeros(6)), rows.form.identity)
    assert np.isfinite(theta).all()
    assert value(rows, theta) < 1e-8


def test_a_step_that_is_far_too_long_is_cut_at_once():
    """Where every row is certain there is no curvature, and Newton's step has no sense of scale."""
    tried = []

    class Watched(SoftmaxRows):
        def sums(self, theta, *, second):
            tried.append(theta)
            return super().sums(theta, second=second)

    z = np.array([[30.0, -30.0]])
    rows = Watched(Scalar(2), np.repeat(z, 4, axis=0), np.array([0, 0, 0, 1]))
    found = fit(rows, Pull(np.ones(1), np.zeros(1)), np.ones(1))
    start, first, second = tried[:3]
    assert rows.reach(first - start) > 1e6
    assert 0 < rows.reach(second - start) <= 40.0
    # A quarter of the rows are of the other class: 60 θ are the log-odds of ¾.
    assert found[0] == pytest.approx(np.log(3) / 60)


def test_a_form_and_its_matrix_belong_together():
    for form in (kind(3) for kind in FORMS):
        theta = np.arange(1.0, form.size + 1)
        np.testing.assert_array_equal(form.flat(form.matrix(theta)), theta)
        matrix = form.matrix(theta)
        z = np.random.default_rng(0).normal(size=(5, 3))
        np.testing.assert_allclose(form.log_odds(theta, z), z @ matrix[:, :-1].T + matrix[:, -1])
