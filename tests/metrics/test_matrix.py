"""Errors between every two groups."""

import numpy as np
import pytest

from faircal._base.errors import DataError
from faircal.metrics import cells, group_matrix

GROUPS = ["A", "B", "C"]


@pytest.fixture
def scene():
    """Scores, labels and groups of 3,000 pairs; some groups are unknown."""
    rng = np.random.default_rng(2)
    left, right = rng.integers(-1, 3, size=(2, 3000))
    return rng.random(3000), rng.random(3000) < 0.3, left, right


def test_by_hand():
    scores = [0.9, 0.4, 0.5, 0.1, 0.7, 0.2, 0.6, 0.9]
    genuine = [0, 0, 0, 0, 1, 1, 1, 0]
    left = [0, 0, 1, 2, 0, 0, 0, -1]
    right = [0, 1, 0, 1, 0, 0, 1, 0]
    found = group_matrix(scores, genuine, left, right, 0.5, groups=GROUPS)
    assert found.groups == ("A", "B", "C")
    # A with B: 0.4 is rejected, 0.5 is accepted. C with B: 0.1. The genuine pair of A and B, and
    # the pair with an unknown group, count nowhere.
    np.testing.assert_array_equal(found.trials, [[1, 2, 0], [2, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(found.errors, [[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    nan = np.nan
    np.testing.assert_array_equal(found.fpr, [[1, 0.5, nan], [0.5, nan, 0], [nan, 0, nan]])
    np.testing.assert_array_equal(found.genuine_errors, [1, 0, 0])
    np.testing.assert_array_equal(found.fnr, [0.5, nan, nan])


def test_is_what_masks_count(scene):
    scores, genuine, left, right = scene
    found = group_matrix(*scene, 0.6, groups=GROUPS)
    for i, j in np.ndindex(3, 3):
        here = ((left == i) & (right == j)) | ((left == j) & (right == i))
        imposters = scores[here & ~genuine]
        assert found.trials[i, j] == len(imposters)
        assert found.errors[i, j] == (imposters >= 0.6).sum()
    for i in range(3):
        own = scores[(left == i) & (right == i) & genuine]
        assert (found.genuine_trials[i], found.genuine_errors[i]) == (len(own), (own < 0.6).sum())


def test_sides_do_not_matter(scene):
    scores, genuine, left, right = scene
    one = group_matrix(scores, genuine, left, right, 0.5, groups=GROUPS)
    other = group_matrix(scores, genuine, right, left, 0.5, groups=GROUPS)
    np.testing.assert_array_equal(one.errors, other.errors)
    np.testing.assert_array_equal(one.errors, one.errors.T)
    np.testing.assert_array_equal(one.trials, one.trials.T)


def test_parts_add_up(scene):
    whole = group_matrix(*scene, 0.5, groups=GROUPS)
    halves = [
        group_matrix(*(column[rows] for column in scene), 0.5, groups=GROUPS)
        for rows in (slice(None, 1000), slice(1000, None))
    ]
    added = halves[0] + halves[1]
    for name in ("errors", "trials", "genuine_errors", "genuine_trials"):
        np.testing.assert_array_equal(getattr(added, name), getattr(whole, name))
    with pytest.raises(DataError, match="the same groups; found A, B, C and A, B"):
        whole + group_matrix([0.5], [0], [0], [1], 0.5, groups=["A", "B"])


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_cells_are_numbered_like_the_upper_triangle(n):
    upper, lower = np.triu_indices(n)
    np.testing.assert_array_equal(cells(upper, lower, n), np.arange(n * (n + 1) // 2))
    np.testing.assert_array_equal(cells(lower, upper, n), cells(upper, lower, n))
    np.testing.assert_array_equal(cells([-1, 0, -1], [0, -1, -1], n), [-1, -1, -1])


def test_no_pairs_are_no_trials():
    found = group_matrix([], [], np.zeros(0, int), np.zeros(0, int), 0.5, groups=GROUPS)
    assert not found.trials.any()
    assert np.isnan(found.fpr).all()


def test_errors_say_what_is_wrong():
    with pytest.raises(DataError, match="from -1 to 2; found 0 to 3 as right"):
        cells([0, 1], [0, 3], 3)
    with pytest.raises(DataError, match="found -2 to 1 as left"):
        cells([-2, 1], [0, 1], 3)
    with pytest.raises(DataError, match="found float64 of shape"):
        cells([0.0], [1.0], 3)
    with pytest.raises(DataError, match="as right"):
        cells([0, 1], [0], 3)
    with pytest.raises(DataError, match="one value per pair in scores"):
        group_matrix([0.5], [0, 1], [0, 1], [0, 1], 0.5, groups=GROUPS)
    with pytest.raises(DataError, match="one value per pair in genuine"):
        group_matrix([0.5, 0.1], [0], [0, 1], [0, 1], 0.5, groups=GROUPS)
