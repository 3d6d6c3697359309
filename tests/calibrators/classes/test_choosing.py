"""Choosing on rows held out."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.calibrators.classes.base import choose, drawn_folds, log_losses


def test_folds_cover_all_rows_once():
    folds = drawn_folds(103, None, 0)
    assert sorted(np.bincount(folds)) == [20, 20, 21, 21, 21]
    np.testing.assert_array_equal(folds, drawn_folds(103, None, 0))
    assert (folds != drawn_folds(103, None, 1)).any()


def test_units_stay_together_and_many_rows_are_thinned():
    units = np.arange(1000) // 10
    folds = drawn_folds(1000, units, 0)
    assert all(len(set(folds[units == unit])) == 1 for unit in range(100))
    some = drawn_folds(1000, None, 0, most=200)
    assert (some >= 0).sum() == 200
    assert set(some) == {-1, 0, 1, 2, 3, 4}


def pick(losses, folds, **options):
    """Choose among candidates whose losses of each row are known, whatever they were fitted on."""
    seen = []

    def held(train, test):
        seen.append((train, test))
        return losses[:, test]

    found = choose(len(losses), folds, held, **options)
    for train, test in seen:
        assert not set(train) & set(test)
    assert sorted(np.concatenate([test for _, test in seen])) == list(range(losses.shape[1]))
    return found


@pytest.mark.parametrize(("gain", "cautious", "chosen"), [
    (0.5, False, 1), (0.5, True, 1), (0.01, False, 1), (0.01, True, 0), (-0.1, False, 0),
    (0.0, False, 0),
])  # fmt: skip
def test_the_safest_is_left_for_more_than_a_standard_error(gain, cautious, chosen):
    noise = np.tile([1.0, -1.0], 200)  # a standard error of 0.05
    losses = np.stack([np.ones(400), 1.0 - gain - (noise if gain else 0 * noise)])
    assert pick(losses, drawn_folds(400, None, 0), cautious=cautious) == chosen


def test_rows_of_a_unit_count_as_one():
    """A gain of two standard errors over rows is less than one over units of 16 rows."""
    noise = np.repeat(np.tile([1.0, -1.0], 50), 16)
    losses = np.stack([np.ones(1600), 1.0 - 0.05 - noise])
    units = np.repeat(np.arange(100), 16)
    folds = drawn_folds(1600, units, 0)
    assert pick(losses, folds, cautious=True) == 1
    assert pick(losses, folds, cautious=True, units=units) == 0


def test_too_few_rows_to_hold_any_out():
    assert choose(2, np.array([0]), lambda train, test: np.zeros((2, 1))) == 0


def test_a_certain_mistake_is_finite():
    np.testing.assert_allclose(
        log_losses(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 1])), [36.04365, 0.69315], 1e-5
    )
