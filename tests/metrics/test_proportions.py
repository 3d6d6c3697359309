"""Wilson intervals against SciPy's; how much data a rate needs, against its definition."""

import numpy as np
import pytest
from scipy.stats import binomtest

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import mad, wilson
from faircal.metrics.intervals.sufficient_data import DataNeeded
from faircal.metrics.proportions import gap_by_chance, joint_level


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 7, 595, 136_194])
def test_agrees_with_scipy(trials, level):
    errors = np.unique([0, 1, trials // 3, trials - 1, trials])
    low, high = wilson(errors, trials, level)
    for k, lo, hi in zip(errors, low, high, strict=True):
        expected = binomtest(int(k), trials).proportion_ci(level, method="wilson")
        np.testing.assert_allclose([lo, hi], [expected.low, expected.high], rtol=0, atol=1e-12)


def test_ends_are_exact():
    low, high = wilson([0, 9], [9, 9])
    assert low[0] == 0.0
    assert high[1] == 1.0


def test_ends_are_exact_for_a_single_trial():
    # At this level rounding alone would put the lower end at −5.6e-17.
    low, high = wilson([0, 1], 1, 0.99)
    assert low[0] == 0.0
    assert high[1] == 1.0


def test_no_trials_no_interval():
    low, high = wilson([0, 1], [0, 4])
    assert np.isnan([low[0], high[0]]).all()
    assert np.isfinite([low[1], high[1]]).all()


def test_broadcasts():
    low, high = wilson(np.zeros((3, 1)), [10, 20])
    assert low.shape == high.shape == (3, 2)
    assert wilson(1, 2)[0].shape == ()


@pytest.mark.parametrize(("errors", "trials"), [(3, 2), (-1, 2), (float("nan"), 2)])
def test_refuses_impossible_counts(errors, trials):
    with pytest.raises(DataError, match="0 <= errors <= trials"):
        wilson(errors, trials)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_refuses_a_level_outside(level):
    with pytest.raises(ParameterError, match="write 95 % as"):
        wilson(1, 2, level)


@pytest.mark.parametrize(
    ("rate", "needed"),
    [
        (None, 100),
        (0.5, 100),
        (0.03, 100),
        (0.01, 300),
        (0.001, 3000),
        (3e-4, 10_000),
        (0.007, 429),
    ],
)
def test_trials_needed(rate, needed):
    assert DataNeeded.of("fpr", rate).trials == needed


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.02])
def test_the_rule_of_three(rate):
    """Without an error, so many trials just show that the rate is lower, and no fewer do."""

    def shown(n):
        return binomtest(0, n, rate, alternative="less").pvalue <= 0.05

    needed = DataNeeded.of("fpr", rate).trials
    assert shown(needed)
    assert not shown(needed * 98 // 100)


@pytest.mark.parametrize("rate", [0, 1, 5, float("nan")])
def test_refuses_a_rate_outside(rate):
    with pytest.raises(ParameterError, match="write 1 % as"):
        DataNeeded.of("fpr", rate)


def test_intervals_that_hold_at_once():
    """Of 20 equal groups, all intervals of the joint level cover the rate in 95 of 100 cases."""
    rng = np.random.default_rng(0)
    errors = rng.binomial(2000, 0.1, (1000, 20))
    low, high = wilson(errors, 2000, joint_level(20))
    held = ((low <= 0.1) & (high >= 0.1)).all(axis=1).mean()
    assert held == pytest.approx(0.95, abs=0.02)
    assert joint_level(0) == pytest.approx(0.95)


def test_gap_by_chance_against_the_metric():
    rng = np.random.default_rng(7)
    trials = [100, 400, 1000]
    drawn = [mad(rng.binomial(trials, 0.05) / trials) for _ in range(4000)]
    assert gap_by_chance(trials, 0.05) == pytest.approx(np.mean(drawn), rel=0.05)
    assert gap_by_chance([*trials, 0], 0.05) == gap_by_chance(trials, 0.05)
    assert np.isnan(gap_by_chance([0], 0.05))
