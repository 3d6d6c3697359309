"""Intervals of what cannot be negative: calibration errors, deviations, unfairness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from faircal.metrics import DEVIATIONS, FAIRNESS, ece, ks
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dyadic import IdentifiedPairs
from faircal.metrics.intervals.inversion import lowest_scale
from faircal.metrics.intervals.over_groups import (
    deviation_of,
    lower_end,
    rate_noise,
    unfairness_interval,
    upper_end,
)

NAMES = (*DEVIATIONS, "gap")
groups = st.lists(st.floats(0, 1), min_size=2, max_size=6).map(np.array)


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
        simulate = rate_noise([lambda _: 500.0] * 4, 2000, rng)
        values = np.array([0.05, 0.055, 0.06, 0.045])
        assert lower_end(name, values, simulate, 0.95) == 0.0

    @pytest.mark.parametrize("name", NAMES[1:])
    def test_lower_end_is_above_0_where_they_differ(self, name):
        rng = np.random.default_rng(0)
        simulate = rate_noise([lambda _: 5000.0] * 4, 2000, rng)
        values = np.array([0.05, 0.05, 0.05, 0.2])
        low = lower_end(name, values, simulate, 0.95)
        assert 0.5 * deviation_of(name, values) < low < deviation_of(name, values)

    @pytest.mark.parametrize("apart", [0.0, 0.1])
    def test_coverage(self, apart):
        rng, hits = np.random.default_rng(1), dict.fromkeys(NAMES[1:], 0)
        truth = np.array([0.05, 0.05, 0.05, 0.05 + apart])
        for _ in range(150):
            counted = rng.binomial(400, truth) / 400
            simulate = rate_noise([lambda _: 400.0] * 4, 500, rng)
            half = 1.96 * np.sqrt(np.maximum(counted, 0.005) * (1 - counted) / 400)
            for name in hits:
                low = lower_end(name, counted, simulate, 0.95)
                high = upper_end(name, counted, counted - half, counted + half)
                hits[name] += low - 1e-12 <= float(deviation_of(name, truth)) <= high
        assert min(hits.values()) >= 136


class TestCurve:
    def identified(self, rng, n=40, each=6):
        one, two = (side.repeat(4) for side in np.triu_indices(n, 1))
        who = np.arange(n).repeat(each)
        genuine = np.arange(len(one) + len(who)) >= len(one)
        return IdentifiedPairs(genuine, np.append(one, who), np.append(two, who), n)

    def probabilities(self, rng, identified, tilt):
        return expit(
            rng.normal(size=len(identified.genuine)) * 1.5 + 4 * identified.genuine - 3.5 + tilt
        )

    def test_its_norms_are_the_metrics(self):
        rng = np.random.default_rng(0)
        identified = self.identified(rng)
        said = self.probabilities(rng, identified, 1.0)
        curve = BinnedCurve.of(said, identified, 50, rng)
        assert curve.estimate("ks") == pytest.approx(ks(said, identified.genuine), rel=0.02)
        assert curve.estimate("ece") == pytest.approx(ece(said, identified.genuine), rel=1e-9)

    def test_noise_is_that_of_other_people(self):
        """Over draws, the curve varies as its noise says."""
        ends, noises = [], []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            identified = self.identified(rng, n=20)
            lift = np.where(identified.genuine, 0, 0.5 * rng.normal(size=20)[identified.left])
            said = expit(np.log(0.1) + lift + rng.normal(size=len(lift)))
            curve = BinnedCurve.of(said, identified, 200, rng)
            ends.append(curve.bins.sum())
            noises.append(curve.noise.sum(axis=1).std())
        assert np.mean(noises) == pytest.approx(np.std(ends), rel=0.15)

    def test_equal_probabilities_stay_together(self):
        """Neither the curve nor its noise depends on the order of the rows."""
        rng = np.random.default_rng(0)
        identified = self.identified(rng)
        said = np.round(self.probabilities(rng, identified, 0.5), 1)
        order = rng.permutation(len(said))
        turned = IdentifiedPairs(
            identified.genuine[order], identified.left[order], identified.right[order], 40
        )
        one = BinnedCurve.of(said, identified, 400, np.random.default_rng(1))
        two = BinnedCurve.of(said[order], turned, 400, np.random.default_rng(1))
        for metric in ("ks", "ece"):
            assert one.estimate(metric) == pytest.approx(two.estimate(metric))
            assert one.interval(metric, 0.95) == pytest.approx(two.interval(metric, 0.95), rel=1e-3)
        assert one.estimate("ks") == pytest.approx(ks(said, identified.genuine))

    def test_where_calibration_is_right_the_lower_end_is_0(self):
        missed = 0
        for seed in range(100):
            rng = np.random.default_rng(seed)
            identified = self.identified(rng)
            said = rng.random(len(identified.genuine))
            identified = IdentifiedPairs(
                rng.random(len(said)) < said, identified.left, identified.right, identified.n_people
            )
            curve = BinnedCurve.of(said, identified, 300, rng)
            missed += curve.interval("ks", 0.95)[0] > 0
        assert missed <= 8

    def test_where_it_is_wrong_it_is_not(self):
        rng = np.random.default_rng(0)
        identified = self.identified(rng)
        said = 0.5 + 0.01 * rng.random(len(identified.genuine))
        for metric in ("ks", "ece"):
            low, high = BinnedCurve.of(said, identified, 500, rng).interval(metric, 0.95)
            found = BinnedCurve.of(said, identified, 2, rng).estimate(metric)
            assert 0 < low < found < high < 2 * found


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
        simulate = rate_noise([lambda _: 2000.0] * 4, 1000, rng)
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
            [rate_noise([lambda _: 1000.0] * 2, 500, rng)],
            level=0.95,
            replicates=500,
            rng=rng,
        )
        assert high == np.inf
        assert 15 < low < 40


@pytest.mark.parametrize("floor", [1e-3, 1e-6, 1e-9])
def test_a_genuine_pair_below_all_imposters_does_not_blow_up_the_upper_end(floor):
    """What next to no mass of imposters could become says nothing of a missed genuine pair."""
    rng, people = np.random.default_rng(0), np.arange(40)
    left, right = (side[rng.permutation(780)[:700]] for side in np.triu_indices(40, 1))
    genuine = np.repeat([True, False], [120, 700])
    said = np.where(genuine, rng.uniform(0.6, 1, 820), floor)
    said[0] = floor / 2
    own = np.repeat(people, 3)
    identified = IdentifiedPairs(genuine, np.r_[own, left], np.r_[own, right], 40)
    curve = BinnedCurve.of(said, identified, 400, np.random.default_rng(0))
    for metric in ("ks", "ece"):
        low, high = curve.interval(metric, 0.95)
        assert 0 < low < curve.estimate(metric) < high < 2 * curve.estimate(metric)
