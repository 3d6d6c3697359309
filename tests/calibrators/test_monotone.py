"""A higher score never means a lower probability, for the maps that promise it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.calibrators import CALIBRATORS

GRID = np.linspace(-1.0, 1.0, 1001)

cosine = st.floats(-1.0, 1.0, allow_nan=False)
samples = st.lists(st.tuples(cosine, st.booleans()), min_size=1, max_size=60)


@pytest.mark.parametrize("name", ["beta", "isotonic", "platt", "temperature"])
@settings(max_examples=100)
@given(sample=samples)
def test_non_decreasing(name, sample):
    scores, genuine = zip(*sample, strict=True)
    grid = np.sort(np.concatenate((GRID, scores)))
    probabilities = CALIBRATORS[name]().fit(scores, genuine).predict(grid)
    assert np.diff(probabilities).min() >= -1e-12
