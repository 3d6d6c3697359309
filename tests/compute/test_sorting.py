"""Sorting by digits is a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal.compute import counting
from faircal.compute.counting import ascending


@given(
    numbers=st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.floats(-1, 1, width=32)
        | st.sampled_from([0.0, -0.0, 0.5, 2.0])
    )
)
def test_keeps_the_order_of_ties(numbers):
    values = np.array(numbers, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_FEW", 1)
        found = ascending(values)
    np.testing.assert_array_equal(found, np.argsort(values, kind="stable"))


@pytest.mark.parametrize("values", [[1e308, -1e308, 0.0], [0.5, 0.5], [1.0, 1.0 + 1e-15, 1.0]])
def test_extreme_ranges(monkeypatch, values):
    monkeypatch.setattr(counting, "_FEW", 1)
    found = ascending(np.array(values))
    np.testing.assert_array_equal(found, np.argsort(values, kind="stable"))


def test_very_many():
    values = np.random.default_rng(1).normal(size=100_000).round(3)
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))
