"""Intervals of calibration errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from faircal import audit
from faircal.metrics import ece, ks
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dyadic import IdentifiedPairs


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
        assert curve.estimates["ks"] == pytest.approx(ks(said, identified.genuine), rel=0.02)
        assert curve.estimates["ece"] == pytest.approx(ece(said, identified.genuine), rel=1e-9)

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
            assert one.estimates[metric] == pytest.approx(two.estimates[metric])
            assert one.interval(metric, 0.95) == pytest.approx(two.interval(metric, 0.95), rel=1e-3)
        assert one.estimates["ks"] == pytest.approx(ks(said, identified.genuine))

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
            found = BinnedCurve.of(said, identified, 2, rng).estimates[metric]
            assert 0 < low < found < high < 2 * found


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
        assert 0 < low < curve.estimates[metric] < high < 2 * curve.estimates[metric]


def test_a_sum_that_does_not_vary_is_no_root_of_a_number_below_0():
    """Two probabilities that tell all labels: rounding takes the variance below 0."""
    genuine = np.arange(700) >= 400
    measured = audit(genuine=genuine, probability=0.2 + 0.6 * genuine)
    assert measured.interval("ece") == pytest.approx((measured.value("ece"),) * 2, rel=1e-6)
