"""A population whose groups no method is told of, though their features tell them apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import softmax


class Population(NamedTuple):
    given: np.ndarray
    codes: np.ndarray
    features: np.ndarray
    groups: np.ndarray
    true: np.ndarray


@pytest.fixture(scope="session")
def population():
    """Return a function from (n, n_classes, seed, apart) to rows of six groups.

    `apart` is how far what the classifier says is from the truth of each group, in log-odds.
    """

    def make(n=3000, n_classes=3, seed=0, apart=0.7):
        fixed, rng = np.random.default_rng(99), np.random.default_rng(seed)
        places = 2.0 * fixed.normal(size=(6, 5))
        shift = apart * fixed.normal(size=(6, n_classes))
        sure = np.exp(apart * fixed.normal(size=6))
        groups = rng.integers(0, 6, n)
        logits = 2.0 * rng.normal(size=(n, n_classes))
        true = softmax(logits * sure[groups, None] + shift[groups], axis=1)
        codes = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        features = places[groups] + rng.normal(size=(n, 5))
        given = softmax(1.4 * logits, axis=1)
        return Population(given, np.minimum(codes, n_classes - 1), features, groups, true)

    return make
