"""Wilson intervals against SciPy's."""

import numpy as np
import pytest
from scipy.stats import binomtest

from faircal.errors import DataError, ParameterError
from faircal.metrics import wilson


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
