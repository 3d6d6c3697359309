"""The nearest of centres that stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.compute.engine import Nearest

RNG = np.random.default_rng(0)


def exactly(vectors, centers):
    """Return the nearest centre by distances in long double precision."""
    x, c = vectors.astype(np.longdouble), centers.astype(np.longdouble)
    return np.stack([((x - one) ** 2).sum(axis=1) for one in c]).argmin(axis=0)


@pytest.mark.parametrize("away", [0.0, 0.3, 30.0])
def test_between_two_centres(away):
    """Vectors within rounding of half-way; `away` is how far everything is from the origin."""
    rng = np.random.default_rng(0)
    centers = (rng.standard_normal((12, 40)) / 8 + away).astype(np.float32)
    one, other = centers[rng.integers(12, size=(2, 5000))].astype(np.float64)
    middle = (one + other) / 2 + 1e-7 * rng.standard_normal((5000, 1)) * (one - other)
    vectors = middle.astype(np.float32)
    assert (Nearest.of(centers)(vectors) == exactly(vectors, centers)).all()


def test_first_of_equals():
    centers = np.array([[1, 0], [1, 0], [-1, 0]], np.float32)
    vectors = np.array([[1, 0], [0, 1], [-2, 1]], np.float32)
    assert Nearest.of(centers)(vectors).tolist() == [0, 0, 2]


@pytest.mark.parametrize("n", [0, 1, 3000])
def test_any_number_and_one_centre(n):
    vectors = np.ones((n, 3), np.float32)
    assert Nearest.of(np.zeros((1, 3), np.float32))(vectors).tolist() == [0] * n


def test_double_precision_decides_what_single_cannot():
    """Half way between two centres but for a hair: single precision sees none."""
    centers = RNG.normal(size=(2, 256)).astype(np.float32)
    middle = centers.mean(axis=0, dtype=np.float64)
    towards = (centers[1] - centers[0]).astype(np.float64)
    shifts = RNG.normal(size=400) * 1e-7
    vectors = (middle + shifts[:, None] * towards).astype(np.float32)
    exact = ((vectors[:, None].astype(np.float64) - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert 50 < exact.sum() < 350
    np.testing.assert_array_equal(Nearest.of(centers)(vectors), exact)


def test_it_does_not_matter_who_is_looked_at_together():
    centers = RNG.normal(size=(50, 128)).astype(np.float32)
    vectors = RNG.normal(size=(1500, 128)).astype(np.float32)
    nearest = Nearest.of(centers)
    whole = nearest(vectors)
    assert all(nearest(vectors[i : i + 1])[0] == whole[i] for i in range(0, 1500, 50))
