"""Shifts and tilts of pairs, in NumPy and in Numba, against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.compute import _numpy, kernels


@pytest.fixture(params=["numpy", "numba"])
def kernel(request):
    if request.param == "numpy":
        return _numpy
    return pytest.importorskip("faircal.compute._numba")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def profiles(rng, n, n_components):
    """Own shift and tilt of images, how likely components make them, and their partners'."""
    likely = rng.random((n, n_components)) ** 4
    coupling = rng.random((n_components, n_components))
    return np.hstack([rng.normal(size=(n, 2)), likely, likely @ (coupling + coupling.T)])


def tilts(kernel, *arguments):
    shift, tilt = np.full((2, len(arguments[2])), 7.0)
    kernel.tilts(*arguments, shift, tilt)
    return np.stack([shift, tilt])


def written_out(profiles, effects, left, right):
    n = effects.shape[1]
    found = []
    for i, k in zip(left, right, strict=True):
        a, b = profiles[i], profiles[k]
        share = [a[2 + j] * b[2 + n + j] + a[2 + n + j] * b[2 + j] for j in range(n)]
        for row in range(2):
            effect = sum(share[j] * effects[row, j] for j in range(n)) / (sum(share) or 1.0)
            found.append((a[row] + b[row]) / 2 + effect)
    return np.reshape(found, (-1, 2)).T


def test_numba_is_used_where_it_is_installed():
    assert kernels.tilts is pytest.importorskip("faircal.compute._numba").tilts


@pytest.mark.parametrize("n_components", [0, 1, 2, 7, 32])
def test_against_a_plain_loop(kernel, rng, n_components):
    images, effects = profiles(rng, 40, n_components), rng.normal(size=(2, n_components))
    left, right = rng.integers(40, size=(2, 600))  # more than are gathered at a time
    found = tilts(kernel, images, effects, left, right)
    expected = written_out(images, effects, left, right)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_components", [0, 1, 7, 32])
def test_left_and_right_are_the_same_to_the_last_bit(kernel, rng, n_components):
    images, effects = profiles(rng, 40, n_components), rng.normal(size=(2, n_components))
    left, right = rng.integers(40, size=(2, 600))
    one, two = (tilts(kernel, images, effects, *s) for s in ((left, right), (right, left)))
    np.testing.assert_array_equal(one, two)


def test_without_components_the_mean_of_both_images(kernel):
    images = np.array([[1.0, 2.0], [3.0, -4.0]])
    rows = np.array([0, 0]), np.array([1, 0])
    np.testing.assert_array_equal(
        tilts(kernel, images, np.empty((2, 0)), *rows), [[2.0, 1.0], [-1.0, 2.0]]
    )


def test_effects_of_a_component_that_both_are_surely_in(kernel):
    # Components 1 and 2 are never coupled; both images are in the second.
    images = np.array([[0.5, 0.0, 0.0, 1.0, 0.0, 0.5]])
    here = np.array([0])
    found = tilts(kernel, images, np.array([[10.0, 3.0], [20.0, -4.0]]), here, here)
    np.testing.assert_array_equal(found, [[3.5], [-4.0]])


def test_how_likely_is_a_matter_of_proportion(kernel, rng):
    images, effects = profiles(rng, 30, 5), rng.normal(size=(2, 5))
    left, right = rng.integers(30, size=(2, 100))
    expected = tilts(kernel, images, effects, left, right)
    images[:, 2:] *= 2.0 ** rng.integers(-300, 300, size=(30, 1))  # loses no digit
    found = tilts(kernel, images, effects, left, right)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_cannot_be_written_to_is_read(kernel, rng):
    arrays = profiles(rng, 20, 3), rng.normal(size=(2, 3)), *rng.integers(20, size=(2, 30))
    expected = tilts(kernel, *arrays)
    for array in arrays:
        array.flags.writeable = False
    np.testing.assert_array_equal(tilts(kernel, *arrays), expected)


def test_no_pairs(kernel, rng):
    none = np.empty(0, dtype=np.intp)
    assert tilts(kernel, profiles(rng, 2, 3), np.ones((2, 3)), none, none).shape == (2, 0)
