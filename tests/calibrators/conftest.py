"""Data that look like cosines of face pairs."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.calibrators import CALIBRATORS


@pytest.fixture
def cosines():
    """Return a function that draws (scores, genuine): overlapping classes, no ties."""

    def draw(n, seed=0, *, gap=0.25, spread=0.15, genuine_part=0.5):
        rng = np.random.default_rng(seed)
        genuine = rng.random(n) < genuine_part
        genuine[:2] = [True, False]
        scores = rng.normal(np.where(genuine, gap, 0.0), spread)
        return np.clip(scores, -0.99, 0.99), genuine

    return draw


@pytest.fixture(params=list(CALIBRATORS))
def calibrator(request):
    """Each registered calibrator in turn, unfitted."""
    return CALIBRATORS[request.param]()
