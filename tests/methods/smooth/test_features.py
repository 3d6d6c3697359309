"""A mixture for pairs of strangers, against slow versions in plain loops.

How likely components make pairs is worked out in single precision: hence the tolerances.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.stats import multivariate_normal, ortho_group

from faircal.compute import CPU
from faircal.methods.smooth import features as mixture
from faircal.methods.smooth.features import PairMixture, fit_pair_mixture, shared_directions

COUPLING = np.array([[0.30, 0.02, 0.01], [0.02, 0.25, 0.05], [0.01, 0.05, 0.29]])
MEANS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 7.0]])


def white(rng, n, d):
    """Points of mean 0 and variance 1 in every direction, to the last digits."""
    points = rng.standard_normal((n, d))
    points -= points.mean(axis=0)
    return points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / n)).T


def alike(seed=0, n=600, d=5):
    """White points in pairs: along two directions the images of a pair resemble each other."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d))
    points[1::2, :2] = points[::2, :2] + [0.6, 1.0] * rng.standard_normal((n // 2, 2))
    points -= points.mean(axis=0)
    points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / n)).T
    return points, np.arange(0, n, 2), np.arange(1, n, 2)


def planted(seed=0, n=3000):
    """Pairs of images of three groups: points, rows of both images, groups of the points."""
    rng = np.random.default_rng(seed)
    couple = rng.choice(9, n, p=COUPLING.ravel() / COUPLING.sum())
    group = np.stack([couple // 3, couple % 3], axis=1).ravel()
    points = MEANS[group] + rng.standard_normal((2 * n, 2))
    return points, np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2), group


def messy(seed=0):
    """Pairs that overlap in images, some twice, some of an image with itself; unused points."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((60, 3)) * [1, 2, 0.5] + 3 * rng.integers(2, size=(60, 1))
    left, right = rng.integers(50, size=(2, 90))
    return points, left, right


def slow_mixture(points, share, coupled):
    """The mixture of given shares of points (n, J) and couples (J, J), number by number."""
    n, n_components = share.shape
    k = points.shape[1]
    means, spreads, sizes = [], [], []
    for j in range(n_components):
        size = sum(share[i, j] for i in range(n))
        mean = sum(share[i, j] * points[i] for i in range(n)) / size
        spread = np.zeros((k, k))
        for i in range(n):
            spread += share[i, j] * np.outer(points[i] - mean, points[i] - mean)
        means.append(mean), spreads.append(spread), sizes.append(size)
    pooled = sum(spreads) / sum(sizes)
    covariances = [
        (spread + 200 * pooled) / (size + 200) for spread, size in zip(spreads, sizes, strict=True)
    ]
    coupling = np.empty((n_components, n_components))
    for j in range(n_components):
        for m in range(n_components):
            coupling[j, m] = coupled[j, m] + coupled[m, j] + 2 / n_components**2
    return np.array(means), covariances, coupling / coupling.sum()


def slow_round(points, left, right, means, covariances, coupling):
    """One round of expectation-maximisation; the log-likelihood a pair before it, and the new."""
    n_components = len(means)
    share, coupled = np.zeros((len(points), n_components)), np.zeros_like(coupling)
    total = 0.0
    laws = [multivariate_normal(m, c) for m, c in zip(means, covariances, strict=True)]
    for a, b in zip(left, right, strict=True):
        joint = np.empty_like(coupling)
        for j in range(n_components):
            for m in range(n_components):
                joint[j, m] = coupling[j, m] * laws[j].pdf(points[a]) * laws[m].pdf(points[b])
        total += np.log(joint.sum())
        joint /= joint.sum()
        coupled += joint
        share[a] += joint.sum(axis=1)
        share[b] += joint.sum(axis=0)
    return total / len(left), slow_mixture(points, share, coupled)


def covariances_of(found):
    return [np.linalg.inv(factor.T @ factor) for factor in found.factors]


def log_likelihood(found, points, left, right):
    """The log-likelihood a pair, by densities of SciPy."""
    laws = zip(found.means, covariances_of(found), strict=True)
    density = np.stack([multivariate_normal(m, c).pdf(points) for m, c in laws], axis=1)
    return np.log(np.einsum("ij,jk,ik->i", density[left], found.coupling, density[right])).mean()


def rounds(monkeypatch, n):
    monkeypatch.setattr(mixture, "_ROUNDS", n)
    monkeypatch.setattr(mixture, "_GAIN", -np.inf)


def up_to_sign(found, expected, **tolerance):
    assert found.shape == expected.shape
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, **tolerance)


class TestSharedDirections:
    def test_against_a_generalised_eigenproblem(self):
        # What a pair shares against what it does not: C v = μ (I − C) v, with vᵀ(I − C)v = 1.
        points, left, right = alike()
        cross = np.zeros((5, 5))
        for a, b in zip(left, right, strict=True):
            cross += np.outer(points[a], points[b]) / len(left)
        cross = (cross + cross.T) / 2
        ratios, vectors = eigh(cross, np.eye(5) - cross)
        values = ratios / (1 + ratios)
        real = [i for i in range(5)[::-1] if values[i] > -values.min()]
        directions, shares = shared_directions(points, left, right)
        assert len(shares) == len(real) >= 2
        np.testing.assert_allclose(shares, values[real], rtol=1e-10)
        up_to_sign(directions, vectors[:, real], rtol=0, atol=1e-10)

    def test_what_a_pair_does_not_share_has_variance_one(self):
        points, left, right = alike()
        directions, _ = shared_directions(points, left, right)
        # Half the variance of the difference is what is not shared, images of pairs being all.
        apart = (points[left] - points[right]) @ directions
        np.testing.assert_allclose(np.square(apart).mean(axis=0) / 2, 1, rtol=1e-10)

    def test_left_and_right_are_the_same(self):
        points, left, right = alike()
        rng = np.random.default_rng(3)
        swap = rng.random(len(left)) < 0.5
        one, two = np.where(swap, right, left), np.where(swap, left, right)
        expected, found = (
            shared_directions(points, left, right),
            shared_directions(points, one, two),
        )
        up_to_sign(found[0], expected[0], rtol=0, atol=1e-10)

    def test_a_turn_of_the_space_turns_them(self):
        points, left, right = alike()
        turn = ortho_group.rvs(5, random_state=1)
        directions, shares = shared_directions(points, left, right)
        turned, same = shared_directions(points @ turn, left, right)
        np.testing.assert_allclose(same, shares, rtol=1e-10)
        up_to_sign(turn @ turned, directions, rtol=0, atol=1e-9)

    def test_strangers_who_are_unlike(self):
        points = white(np.random.default_rng(0), 50, 3)
        points = np.concatenate([points, -points])
        directions, shares = shared_directions(points, np.arange(50), np.arange(50, 100))
        assert directions.shape == (3, 0)
        assert shares.shape == (0,)

    def test_pairs_at_random_share_next_to_nothing(self):
        rng = np.random.default_rng(0)
        _, shares = shared_directions(white(rng, 4000, 4), *rng.integers(4000, size=(2, 10_000)))
        assert (shares < 0.05).all()

    def test_pairs_of_one_and_the_same_image(self):
        points = white(np.random.default_rng(0), 40, 3)
        here = np.arange(40)
        directions, shares = shared_directions(points, here, here)
        np.testing.assert_allclose(shares, 0.98)
        np.testing.assert_allclose(directions.T @ directions, np.eye(3) / 0.02, atol=1e-9)

    def test_no_pairs(self):
        none = np.empty(0, dtype=int)
        directions, shares = shared_directions(np.ones((4, 2)), none, none)
        assert directions.shape == (2, 0)
        assert shares.shape == (0,)


class TestAgainstPlainLoops:
    @pytest.mark.parametrize("n_components", [1, 2, 3])
    def test_one_round(self, monkeypatch, n_components):
        points, left, right = messy()
        used = np.unique([left, right])
        single = points[used].astype(np.float32)
        label = dict(
            zip(used, CPU.assign(single, CPU.kmeans(single, n_components).centers), strict=True)
        )
        share, coupled = np.zeros((60, n_components)), np.zeros((n_components, n_components))
        for a, b in zip(left, right, strict=True):
            share[a, label[a]] += 1
            share[b, label[b]] += 1
            coupled[label[a], label[b]] += 1
        expected = slow_mixture(points, share, coupled)
        for done in range(3):
            rounds(monkeypatch, done)
            found = fit_pair_mixture(points, left, right, n_components, random_state=0)
            np.testing.assert_allclose(found.means, expected[0], rtol=0, atol=1e-5)
            np.testing.assert_allclose(covariances_of(found), expected[1], rtol=0, atol=1e-5)
            np.testing.assert_allclose(found.coupling, expected[2], rtol=0, atol=1e-6)
            _, expected = slow_round(points, left, right, *expected)

    def test_the_search_says_how_likely_pairs_were(self, monkeypatch):
        points, left, right = messy()
        rounds(monkeypatch, 2)
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        pairs, _ = mixture._CountedPairs.begin(points, left, right, 3, 0)
        expected, _ = slow_round(
            points, left, right, found.means, covariances_of(found), found.coupling
        )
        k = points.shape[1]  # constants leave the normal density's (2π)^(−k/2) out, of two images
        assert pairs.step(found)[0] - k * np.log(2 * np.pi) == pytest.approx(expected, abs=1e-5)

    def test_likelihoods(self):
        points, left, right = messy()
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        laws = zip(found.means, covariances_of(found), strict=True)
        density = np.stack([multivariate_normal(m, c).pdf(points) for m, c in laws], axis=1)
        expected = density / density.max(axis=1, keepdims=True)
        np.testing.assert_allclose(found.likelihoods(points), expected, rtol=1e-6, atol=1e-12)

    def test_association(self):
        points, left, right = messy()
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        alone = found.coupling.sum(axis=1)
        laws = [
            multivariate_normal(m, c)
            for m, c in zip(found.means, covariances_of(found), strict=True)
        ]
        for a, b, value in zip(left, right, found.association(points, left, right), strict=True):
            one, two = (np.array([law.pdf(points[i]) for law in laws]) for i in (a, b))
            expected = np.log(one @ found.coupling @ two / (one @ alone) / (two @ alone))
            assert value == pytest.approx(expected, abs=1e-5)


class TestSearch:
    @pytest.mark.parametrize("seed", range(4))
    def test_likelihood_never_falls_without_what_is_imagined(self, monkeypatch, seed):
        monkeypatch.setattr(mixture, "_IMAGINED", 0.0)
        monkeypatch.setattr(mixture, "_COUPLED", 0.0)
        points, left, right, _ = planted(seed, n=400)
        found = []
        for done in range(12):
            rounds(monkeypatch, done)
            found.append(
                log_likelihood(fit_pair_mixture(points, left, right, 4, seed), points, left, right)
            )
        assert np.diff(found).min() > -1e-7
        assert found[-1] > found[0]

    def test_likelihood_hardly_falls_with_it(self, monkeypatch):
        points, left, right, _ = planted(n=400)
        pairs, now = mixture._CountedPairs.begin(points, left, right, 4, 0)
        found = []
        for _ in range(20):
            likelihood, now = pairs.step(now)
            found.append(likelihood)
        assert np.diff(found).min() > -1e-3
        assert found[-1] > found[0]

    def test_it_ends_where_nothing_is_gained(self, monkeypatch):
        points, left, right, _ = planted(n=400)
        ended = fit_pair_mixture(points, left, right, 3, 0)
        rounds(monkeypatch, 200)
        longest = fit_pair_mixture(points, left, right, 3, 0)
        gained = log_likelihood(longest, points, left, right) - log_likelihood(
            ended, points, left, right
        )
        assert abs(gained) < 3e-3

    def test_planted_groups_and_couples(self):
        points, left, right, group = planted()
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        order = min(
            permutations(range(3)), key=lambda one: np.abs(found.means[list(one)] - MEANS).sum()
        )
        order = list(order)
        np.testing.assert_allclose(found.means[order], MEANS, rtol=0, atol=0.15)
        np.testing.assert_allclose(
            found.coupling[np.ix_(order, order)], COUPLING / COUPLING.sum(), rtol=0, atol=0.02
        )
        for covariance in covariances_of(found):
            np.testing.assert_allclose(covariance, np.eye(2), rtol=0, atol=0.15)
        likeliest = np.argsort(order)[found.likelihoods(points).argmax(axis=1)]
        assert (likeliest == group).mean() > 0.99
        assert found.association(points, left, right).mean() > 0.5

    def test_pairs_at_random_tell_nothing(self):
        points, _, _, _ = planted()
        rng = np.random.default_rng(1)
        left, right, again, other = rng.integers(len(points), size=(4, 3000))
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        assert abs(found.association(points, again, other).mean()) < 0.01

    def test_left_and_right_are_the_same(self):
        points, left, right, _ = planted(n=400)
        one = fit_pair_mixture(points, left, right, 3, random_state=0)
        two = fit_pair_mixture(points, right, left, 3, random_state=0)
        np.testing.assert_array_equal(one.coupling, one.coupling.T)
        np.testing.assert_allclose(two.means, one.means, rtol=0, atol=1e-5)
        np.testing.assert_allclose(two.coupling, one.coupling, rtol=0, atol=1e-6)
        np.testing.assert_allclose(
            one.association(points, right, left), one.association(points, left, right), atol=1e-5
        )

    def test_points_of_no_pair_change_nothing(self):
        points, left, right, _ = planted(n=200)
        far = np.concatenate([np.full((7, 2), 1e3), points])
        one = fit_pair_mixture(points, left, right, 3, random_state=0)
        two = fit_pair_mixture(far, left + 7, right + 7, 3, random_state=0)
        np.testing.assert_array_equal(two.means, one.means)
        np.testing.assert_array_equal(two.coupling, one.coupling)

    def test_same_seed_same_bits(self):
        points, left, right, _ = planted(n=300)
        one, two = (fit_pair_mixture(points, left, right, 4, random_state=5) for _ in range(2))
        for key in ("means", "factors", "constants", "coupling"):
            np.testing.assert_array_equal(getattr(one, key), getattr(two, key))


def healthy(found: PairMixture, points):
    for key in ("means", "factors", "constants", "coupling"):
        assert np.isfinite(getattr(found, key)).all()
        assert getattr(found, key).dtype == np.float64  # as a model file gives it back
    assert (found.coupling > 0).all()
    assert found.coupling.sum() == pytest.approx(1)
    likely = found.likelihoods(points)
    assert np.isfinite(likely).all()
    np.testing.assert_array_equal(likely.max(axis=1), 1)


class TestDegenerate:
    def test_one_component(self):
        points, left, right = messy()
        found = fit_pair_mixture(points, left, right, 1, random_state=0)
        both = points[np.concatenate([left, right])]
        np.testing.assert_allclose(found.means, [both.mean(axis=0)])
        np.testing.assert_allclose(covariances_of(found)[0], np.cov(both.T, ddof=0))
        np.testing.assert_array_equal(found.coupling, [[1.0]])
        np.testing.assert_allclose(found.association(points, left, right), 0, atol=1e-6)

    def test_collinear_points(self):
        points, left, right, _ = planted(n=100)
        line = points[:, :1] * [1.0, 2.0, -1.0]
        healthy(fit_pair_mixture(line, left, right, 3, random_state=0), line)

    def test_a_constant_direction(self):
        points, left, right, _ = planted(n=100)
        flat = np.hstack([points, np.full((len(points), 1), 0.1)])
        healthy(fit_pair_mixture(flat, left, right, 3, random_state=0), flat)

    def test_identical_points(self):
        points = np.full((20, 2), 0.1)
        here = np.arange(10)
        healthy(fit_pair_mixture(points, here, here + 10, 1, random_state=0), points)

    def test_two_places_only(self):
        points = np.repeat([[0.0, 0.0], [1.0, 3.0]], 10, axis=0)
        left, right = np.arange(0, 20, 2), np.arange(1, 20, 2)
        found = fit_pair_mixture(points, left, right, 2, random_state=0)
        healthy(found, points)
        assert np.diag(found.coupling).sum() > 0.9

    def test_a_component_for_each_point(self):
        points, left, right, _ = planted(n=5)
        healthy(fit_pair_mixture(points, left, right, 10, random_state=0), points)

    @pytest.mark.parametrize("far", [1e3, 1e8, 1e30])
    def test_points_far_from_all(self, far):
        points, left, right, _ = planted(n=300)
        found = fit_pair_mixture(points, left, right, 3, random_state=0)
        away = far * np.array([[1.0, 0.0], [-1.0, 2.0]])
        healthy(found, away)
        assert np.isfinite(found.association(away, np.array([0, 1]), np.array([1, 1]))).all()
