"""Scored pairs whose figures can be worked out from the raw scores."""

from __future__ import annotations

import numpy as np
import pytest

import faircal


class Scored:
    """Raw scores of pairs in groups, and the curves of their audit.

    Scores lie on edges of the histograms, so histograms lose nothing.
    """

    def __init__(self, names, n=1000, seed=0):
        rng = np.random.default_rng(seed)
        self.groups = np.array([names[i % len(names)] for i in range(n)])
        self.genuine = rng.random(n) < 0.5
        shift = np.array([0.05 * names.index(name) for name in self.groups])
        raw = rng.normal(0.3 + 0.35 * self.genuine + shift, 0.15)
        self.score = np.round(np.clip(raw, 0, 1), 2)
        self.genuine = self.genuine.copy()

    def audit(self, **more):
        given = {"score": self.score, "genuine": self.genuine, "groups": self.groups.tolist()}
        return faircal.audit(**{**given, **more})

    def of(self, group, genuine):
        return self.score[(self.groups == group) & (self.genuine == genuine)]


@pytest.fixture
def scored():
    return Scored


@pytest.fixture
def four():
    return Scored(["A", "B", "C", "D"])


@pytest.fixture
def texts():
    """All that is written on a Matplotlib figure."""
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    return lambda canvas: [text.get_text() for text in canvas.findobj(Text)]
