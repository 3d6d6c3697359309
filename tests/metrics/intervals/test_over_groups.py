"""Intervals of numbers over groups: deviations and unfairness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.metrics import DEVIATIONS, FAIRNESS
from faircal.metrics.intervals.over_groups import (
    deviation_of,
    lower_end,
    unfairness_interval,
    upper_end,
)

NAMES = (*DEVIATIONS, "gap")


def rate_noise(trials, replicates, rng):
    """Return a function that simulates rates of so many trials each, with the same noise."""
    normal = rng.standard_normal((replicates, len(trials)))
    return lambda rates: rates + normal * np.sqrt(rates * (1 - rates) / np.array(trials))


groups = st.lists(st.floats(0, 1), min_size=2, max_size=6).map(np.array)


class TestDeviations:
    @given(groups)
    def test_they_are_the_metrics(self, values):
        for name, function in DEVIATIONS.items():
            assert deviation_of(name, values) == pytest.approx(function(values), abs=1e-12)
        assert deviation_of("gap", values) == pytest.approx(np.ptp(values), abs=1e-12)

    @settings(max_examples=50)
    @given(groups, st.floats(0, 0.2), st.floats(0, 0.2))
    def test_upper_end_is_no_lower_than_any_sum(self, values, down, up):
        low, high = values - down, values + up
        for name in NAMES:
            end = upper_end(name, values, low, high)
            assert end >= float(deviation_of(name, values)) - 1e-12
            if name == "gap":
                i, j = np.argmax(values), np.argmin(values)
                assert end >= values[i] - values[j] + (i != j) * np.hypot(up, down) - 1e-12

    def test_upper_end_of_a_mean(self):
        values = np.array([0.1, 0.2, 0.6])
        end = upper_end("mean", values, values - 0.1, values + np.array([0.03, 0.04, 0.12]))
        assert end == pytest.approx(0.3 + 0.13 / 3)

    @pytest.mark.parametrize("name", NAMES)
    def test_upper_end_of_what_is_known(self, name):
        """Alike but for rounding: what divides by their spread must not make something of it."""
        values = np.full(7, 0.006221318504799249)
        end = upper_end(name, values, values, values)
        assert end == pytest.approx(float(deviation_of(name, values)), abs=1e-15)

    def test_upper_end_finds_the_uncertain_group(self):
        """The group that may be worst is not the one that was found to be."""
        values = np.array([0.01, 0.01, 0.02, 0.01])
        low, high = values - 0.001, values + 0.001
        high[0] = 0.2
        expected = 0.01 - values.mean() + np.sqrt((0.75 * 0.19) ** 2 + 3 * (0.25 * 0.001) ** 2)
        assert upper_end("mad", values, low, high) == pytest.approx(expected)

    @pytest.mark.parametrize("name", NAMES[1:])
    def test_lower_end_is_0_where_groups_may_be_alike(self, name):
        rng = np.random.default_rng(0)
        simulate = rate_noise([500.0] * 4, 2000, rng)
        values = np.array([0.05, 0.055, 0.06, 0.045])
        assert lower_end(name, values, simulate, 0.95) == 0.0

    @pytest.mark.parametrize("name", NAMES[1:])
    def test_lower_end_is_above_0_where_they_differ(self, name):
        rng = np.random.default_rng(0)
        simulate = rate_noise([5000.0] * 4, 2000, rng)
        values = np.array([0.05, 0.05, 0.05, 0.2])
        low = lower_end(name, values, simulate, 0.95)
        assert 0.5 * deviation_of(name, values) < low < deviation_of(name, values)

    @pytest.mark.parametrize("apart", [0.0, 0.1])
    def test_coverage(self, apart):
        rng, hits = np.random.default_rng(1), dict.fromkeys(NAMES[1:], 0)
        truth = np.array([0.05, 0.05, 0.05, 0.05 + apart])
        for _ in range(150):
            counted = rng.binomial(400, truth) / 400
            simulate = rate_noise([400.0] * 4, 500, rng)
            half = 1.96 * np.sqrt(np.maximum(counted, 0.005) * (1 - counted) / 400)
            for name in hits:
                low = lower_end(name, counted, simulate, 0.95)
                high = upper_end(name, counted, counted - half, counted + half)
                hits[name] += low - 1e-12 <= float(deviation_of(name, truth)) <= high
        assert min(hits.values()) >= 136


class TestUnfairness:
    @pytest.mark.parametrize("name", FAIRNESS)
    def test_of_equal_groups_it_reaches_fair(self, name):
        self.check(name, np.array([0.05, 0.052, 0.048, 0.051]), reaches=True)

    @pytest.mark.parametrize("name", FAIRNESS)
    def test_of_unequal_ones_it_does_not(self, name):
        self.check(name, np.array([0.05, 0.05, 0.06, 0.3]), reaches=False)

    def check(self, name, rates, *, reaches):
        rng = np.random.default_rng(0)
        kinds = 1 if FAIRNESS[name].of == "rate" else 2
        half = 1.96 * np.sqrt(rates * (1 - rates) / 2000)
        simulate = rate_noise([2000.0] * 4, 1000, rng)
        low, high = unfairness_interval(
            name,
            [rates] * kinds,
            [(rates - half, rates + half)] * kinds,
            [simulate] * kinds,
            level=0.95,
            replicates=1000,
            rng=rng,
        )
        value = float(FAIRNESS[name].function(*[rates] * kinds))
        assert low <= value <= high
        fair = FAIRNESS[name].fair
        assert (low <= fair <= high) == reaches

    def test_a_group_without_an_error(self):
        """A ratio to it has no upper end, and yet a lower one."""
        rng = np.random.default_rng(0)
        rates = np.array([0.0, 0.1])
        low, high = unfairness_interval(
            "max_min",
            [rates],
            [(np.array([0.0, 0.08]), np.array([0.004, 0.12]))],
            [rate_noise([1000.0] * 2, 500, rng)],
            level=0.95,
            replicates=500,
            rng=rng,
        )
        assert high == np.inf
        assert 15 < low < 40
