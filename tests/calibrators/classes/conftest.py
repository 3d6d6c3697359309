"""Rows of a classifier that is too sure of itself, with the true probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax


@pytest.fixture(scope="session")
def overconfident():
    """Return a function from (n, n_classes, seed) to (given, codes, true probabilities)."""

    def make(n=2000, n_classes=4, seed=0):
        rng = np.random.default_rng(seed)
        logits = 2.0 * rng.normal(size=(n, n_classes))
        true = softmax(logits + np.linspace(-0.5, 0.5, n_classes), axis=1)
        codes = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        return softmax(1.8 * logits, axis=1), np.minimum(codes, n_classes - 1), true

    return make
