"""Intervals of rates, and lower ends of what cannot be negative."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from faircal.metrics import wilson
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads
from faircal.metrics.intervals.inversion import lowest_scale, rate_interval


def none(p):
    return np.ones(np.shape(p))


@pytest.mark.parametrize("errors", [10, 50, 500])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_independent_pairs_have_wilsons(errors, level):
    expected = [float(end) for end in wilson(errors, 1000, level)]
    assert rate_interval(errors / 1000, 1000, none, level=level) == pytest.approx(expected)


def test_a_design_effect_takes_trials_away():
    found = rate_interval(0.05, 4000, lambda p: 4 * none(p))
    assert found == pytest.approx([float(end) for end in wilson(50, 1000)])


def test_no_errors():
    low, high = rate_interval(0.0, 1000, none)
    assert low == 0
    assert high == pytest.approx(float(wilson(0, 1000)[1]))
    low, high = rate_interval(1.0, 1000, none)
    assert high == 1


def test_few_errors_reach_further_down():
    """Wilson's lower end of one error is too high: 0.18 errors; so many are seen in 16 %."""
    low, _ = rate_interval(0.001, 1000, none)
    assert low < 0.06e-3
    assert low < float(wilson(1, 1000)[0])


@given(
    st.integers(0, 200),
    st.floats(1, 50),
    st.floats(3, 1000),
    st.floats(0.5, 0.99),
)
def test_order(errors, effect, freedom, level):
    low, high = rate_interval(
        errors / 200, 200, lambda p: effect * none(p), level=level, freedom=freedom
    )
    assert 0 <= low <= errors / 200 <= high <= 1
    wider = rate_interval(errors / 200, 200, lambda p: 2 * effect * none(p), level=level)
    narrow = rate_interval(errors / 200, 200, lambda p: effect * none(p), level=level)
    assert wider[0] <= narrow[0] + 1e-12 and narrow[1] <= wider[1] + 1e-12
    assert low <= narrow[0] + 1e-12 and narrow[1] <= high + 1e-12


@pytest.mark.parametrize(
    ("rate", "n", "images", "person"), [(0.01, 30, 4, 0.15), (0.001, 40, 4, 0.1)]
)
def test_coverage_where_people_are_shared(draw, rate, n, images, person):
    """The study has many more draws and models; this one would notice a mistake."""
    level, ours, theirs = norm.isf(rate), 0, 0
    for seed in range(200):
        pairs = draw(seed, n=n, images=images, person=person)
        counted = (pairs.scores >= level).mean()
        found = Dependence.of(pairs.scores, Dyads(pairs.left, pairs.right))
        trials = len(pairs.scores)
        freedom = found.degrees_of_freedom(counted)
        low, high = rate_interval(counted, trials, found.design_effect, freedom=freedom)
        ours += low <= rate <= high
        low, high = wilson(counted * trials, trials)
        theirs += low <= rate <= high
    assert 183 <= ours <= 199  # 95 % of 200 is 190
    assert theirs < 160


class TestLowest:
    def test_far_from_0_it_is_the_usual_end(self):
        noise = np.random.default_rng(0).normal(size=100_000)
        low = lowest_scale(lambda part: np.abs(20 * part + noise), 20.0, 0.9)
        assert 20 * low == pytest.approx(20 - 1.645, abs=0.02)

    def test_what_noise_alone_makes_is_0(self):
        noise = np.random.default_rng(0).normal(size=(10_000, 5))
        found = np.abs(noise[0]).max()
        part = lowest_scale(lambda p: np.abs(p * noise[0] + noise[1:]).max(axis=1), found)
        assert part == 0.0
