"""Figures made by hand."""

from __future__ import annotations

import pytest


@pytest.fixture
def guarded():
    """A maker of guarded figures."""
    from benchmarks.figure import ratio

    def make(value, better="higher", name="speed-up", goal=None):
        return ratio(name, f"{name} of something", value, better, goal)

    return make
