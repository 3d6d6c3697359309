"""Logistic regression with a ridge, against solvers that see the whole design at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from faircal.compute import ridge
from faircal.compute.ridge import BLOCK, Regression


def problem(n=500, p=4, seed=0):
    """Features, t, target; the first feature is a constant."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x[:, 0] = 1.0
    t = rng.normal(size=n) * 2
    eta = x @ rng.normal(size=p) + (x @ rng.normal(size=p)) * t / 2
    return x, t, (rng.random(n) < expit(eta)).astype(float)


def regression(x, t, target):
    """Half of the features are a pair's own; the others the mean of two rows that deviate."""
    n, own = len(x), (x.shape[1] + 1) // 2
    off = np.random.default_rng(0).normal(size=(n, x.shape[1] - own))
    shared = np.concatenate([x[:, own:] + off, x[:, own:] - off])
    return Regression(x[:, :own], shared, np.stack([np.arange(n), n + np.arange(n)]), t, target)


def wide(x, t):
    """The design written out: x, then x · t."""
    return np.hstack([x, x * t[:, None]])


def penalised(theta, x, t, target, penalty):
    """Loss and gradient, all at once; `theta` is (2p,)."""
    design = wide(x, t)
    eta = design @ theta
    loss = (np.logaddexp(0, eta) - target * eta).sum() + penalty.ravel() @ theta**2 / 2
    return loss, design.T @ (expit(eta) - target) + penalty.ravel() * theta


def is_the_best(found, *arguments):
    """The problem is strictly convex: where the gradient is 0 is the only minimum."""
    _, gradient = penalised(found.ravel(), *arguments)
    assert np.abs(gradient).max() < 1e-5 * len(arguments[0])


class TestAgainstOtherSolvers:
    @pytest.mark.parametrize("seed", range(3))
    def test_scipy(self, seed):
        x, t, target = problem(seed=seed)
        penalty = np.random.default_rng(seed).exponential(size=(2, 4)) * [[0.1, 1, 10, 100]]
        expected = minimize(
            penalised, np.zeros(8), (x, t, target, penalty), jac=True, tol=1e-10
        ).x.reshape(2, 4)
        found = regression(x, t, target).fit(penalty, np.zeros((2, 4)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("price", [1e-3, 1.0, 1000.0])
    def test_scikit_learn(self, price):
        x, t, target = problem()
        other = LogisticRegression(C=1 / price, fit_intercept=False, tol=1e-10, max_iter=10_000)
        expected = other.fit(wide(x, t), target).coef_.reshape(2, 4)
        found = regression(x, t, target).fit(np.full((2, 4), price), np.zeros((2, 4)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)

    def test_a_mean_worked_out_by_hand(self):
        # No slope can help where t = 0, and without a price the constant is the log-odds.
        x, target = np.ones((8, 1)), np.array([1.0] * 6 + [0.0] * 2)
        found = regression(x, np.zeros(8), target).fit(np.array([[1e-12], [1.0]]), np.zeros((2, 1)))
        np.testing.assert_allclose(found, [[np.log(3)], [0.0]], atol=1e-9)


class TestSearch:
    @pytest.mark.parametrize("start", [0.0, 1.0, -40.0, 40.0])
    def test_where_it_starts_does_not_matter(self, start):
        x, t, target = problem()
        penalty = np.full((2, 4), 0.5)
        found = regression(x, t, target).fit(penalty, np.full((2, 4), start))
        expected = regression(x, t, target).fit(penalty, np.zeros((2, 4)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)

    def test_the_start_is_left_as_it_was(self):
        x, t, target = problem()
        penalty, start = np.ones((2, 4)), np.ones((2, 4))
        regression(x, t, target).fit(penalty, start)
        np.testing.assert_array_equal(start, 1)
        np.testing.assert_array_equal(penalty, 1)

    @pytest.mark.parametrize("price", [1e-6, 0.1])
    def test_classes_that_a_line_separates(self, price):
        x, t, _ = problem()
        target = (t > 0).astype(float)
        penalty = np.full((2, 4), price)
        found = regression(x, t, target).fit(penalty, np.zeros((2, 4)))
        assert np.isfinite(found).all()
        is_the_best(found, x, t, target, penalty)

    def test_one_class_only(self):
        x, t, _ = problem()
        penalty = np.full((2, 4), 0.1)
        found = regression(x, t, np.ones(500)).fit(penalty, np.zeros((2, 4)))
        is_the_best(found, x, t, np.ones(500), penalty)

    def test_features_that_say_the_same(self):
        x, t, target = problem()
        twice = np.hstack([x, x[:, 1:2]])
        found = regression(twice, t, target).fit(np.full((2, 5), 0.1), np.zeros((2, 5)))
        np.testing.assert_allclose(found[:, 1], found[:, 4], atol=1e-7)
        is_the_best(found, twice, t, target, np.full((2, 5), 0.1))

    def test_what_is_too_dear_is_left_at_nothing(self):
        x, t, target = problem()
        penalty = np.full((2, 4), 1e12)
        penalty[:, 0] = 1e-6
        found = regression(x, t, target).fit(penalty, np.zeros((2, 4)))
        np.testing.assert_allclose(found[:, 1:], 0, atol=1e-9)
        alone = regression(x[:, :1], t, target).fit(penalty[:, :1], np.zeros((2, 1)))
        np.testing.assert_allclose(found[:, :1], alone, atol=1e-8)

    def test_features_that_add_up_to_the_constant(self):
        """As components and regions do; the constant itself is hardly held back."""
        n = 3 * BLOCK
        rng = np.random.default_rng(0)
        parts, t = rng.dirichlet(np.full(20, 0.2), n), 6 * rng.normal(size=n)
        x = np.hstack([np.ones((n, 1)), parts, 7 * parts])
        target = (rng.random(n) < expit(t)).astype(float)
        penalty = np.full((2, 41), 0.1)
        penalty[:, 0] = 1e-6
        found = regression(x, t, target).fit(penalty, np.zeros((2, 41)))
        is_the_best(found, x, t, target, penalty)

    def test_more_features_than_pairs(self):
        x, t, target = problem(n=20, p=30)
        penalty = np.full((2, 30), 0.1)
        found = regression(x, t, target).fit(penalty, np.zeros((2, 30)))
        is_the_best(found, x, t, target, penalty)

    def test_order_of_pairs(self):
        x, t, target = problem()
        shuffle = np.random.default_rng(1).permutation(500)
        penalty = np.full((2, 4), 0.1)
        found = regression(x[shuffle], t[shuffle], target[shuffle]).fit(penalty, np.zeros((2, 4)))
        expected = regression(x, t, target).fit(penalty, np.zeros((2, 4)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


class TestBlocks:
    @pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
    def test_they_do_not_matter(self, monkeypatch, n):
        x, t, target = problem(n, p=3)
        penalty = np.full((2, 3), 0.1)
        found = regression(x, t, target).fit(penalty, np.zeros((2, 3)))
        lines = regression(x, t, target).lines(found)
        monkeypatch.setattr(ridge, "BLOCK", 10**9)
        expected = regression(x, t, target).fit(penalty, np.zeros((2, 3)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(lines, expected @ x.T, rtol=0, atol=1e-8)

    def test_rows_of_many_pairs(self):
        """As if their features were written out for each pair."""
        rng = np.random.default_rng(0)
        _, t, target = problem()
        own, shared, sides = (
            rng.normal(size=(500, 2)),
            rng.normal(size=(9, 3)),
            rng.integers(9, size=(2, 500)),
        )
        x = np.hstack([own, (shared[sides[0]] + shared[sides[1]]) / 2])
        penalty = np.full((2, 5), 0.1)
        found = Regression(own, shared, sides, t, target).fit(penalty, np.zeros((2, 5)))
        expected = regression(x, t, target).fit(penalty, np.zeros((2, 5)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        is_the_best(found, x, t, target, penalty)

    @pytest.mark.parametrize("n", [BLOCK + 1, 3 * BLOCK])
    def test_threads_do_not_change_a_bit(self, use_threads, n):
        x, t, target = problem(n, p=3)
        found = []
        for threads in (1, 2, 3):
            use_threads(threads)
            one = regression(x, t, target)
            theta = one.fit(np.full((2, 3), 0.1), np.zeros((2, 3)))
            found.append((theta, *one.lines(theta)))
        for others in found[1:]:
            for expected, array in zip(found[0], others, strict=True):
                np.testing.assert_array_equal(array, expected)
