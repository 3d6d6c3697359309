"""Gathering pairs by score."""

from __future__ import annotations

import numpy as np

from faircal.calibrators.weighted_scores import tally


def test_ties_are_gathered_and_zero_weights_dropped():
    sample = tally(
        np.array([0.3, 0.1, 0.3, 0.2, 0.1]),
        np.array([1.0, 0.0, 0.0, 1.0, 1.0]),
        np.array([2.0, 1.0, 0.5, 0.0, 4.0]),
    )
    np.testing.assert_array_equal(sample.scores, [0.1, 0.3])
    np.testing.assert_array_equal(sample.genuine, [4.0, 2.0])
    np.testing.assert_array_equal(sample.mass, [5.0, 2.5])
    assert sample.fraction == 0.8
    assert not sample.is_constant


def test_constant_samples():
    assert tally(np.array([0.3, 0.3]), np.array([1.0, 0.0]), None).is_constant
    assert tally(np.array([0.3, 0.4]), np.array([0.0, 0.0]), None).is_constant
    assert tally(np.array([0.3, 0.4]), np.array([1.0, 1.0]), None).is_constant
