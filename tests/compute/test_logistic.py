"""One pass over the points of many sets, against sums written out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from faircal.compute import logistic
from faircal.compute.logistic import logistic_sums

SIZES = [3, 0, 1, 700, 2, 40, 0]
STARTS = np.concatenate(([0], np.cumsum(SIZES)))


def problem(m):
    rng = np.random.default_rng(m)
    n = STARTS[-1]
    features = rng.normal(size=(m, n)) * 3
    return features, rng.random(n), rng.exponential(size=n)


def written_out(features, target, mass, theta):
    x = np.vstack([features, np.ones(features.shape[1])])
    eta = theta @ x
    p = expit(eta)
    loss = mass @ (np.logaddexp(0, eta) - target * eta)
    return loss, x @ (mass * (p - target)), (x * (mass * p * (1 - p))) @ x.T


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("block", [16, 1 << 14])
def test_against_sums_written_out(monkeypatch, m, block):
    monkeypatch.setattr(logistic, "_BLOCK", block)
    features, target, mass = problem(m)
    theta = np.random.default_rng(9).normal(size=(len(SIZES), m + 1))
    loss, gradient, hessian = logistic_sums(features, target, mass, STARTS)(
        theta, np.arange(len(SIZES))
    )
    for k, (start, stop) in enumerate(pairwise(STARTS)):
        part = slice(start, stop)
        expected = written_out(features[:, part], target[part], mass[part], theta[k])
        np.testing.assert_allclose(loss[k], expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient[k], expected[1], rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(hessian[k], expected[2], rtol=1e-12, atol=1e-11)


def test_other_sets_change_no_digit():
    features, target, mass = problem(2)
    theta = np.random.default_rng(9).normal(size=(len(SIZES), 3))
    sums = logistic_sums(features, target, mass, STARTS)
    everything = sums(theta, np.arange(len(SIZES)))
    which = np.array([0, 3, 5])
    for some, every in zip(sums(theta[which], which), everything, strict=True):
        np.testing.assert_array_equal(some, every[which])


def test_log_odds_beyond_the_range_of_exp():
    x = np.array([[-1.0, 1.0]])
    loss, gradient, hessian = logistic_sums(x, np.array([0.0, 1.0]), np.ones(2), np.array([0, 2]))(
        np.array([[-2000.0, 0.0]]), np.array([0])
    )
    assert loss[0] == 4000.0  # both are sure of the wrong class
    np.testing.assert_array_equal(gradient, [[-2.0, 0.0]])
    np.testing.assert_array_equal(hessian, np.zeros((1, 2, 2)))
