"""How far groups are apart: deviations, and unequal rates by hand and by second derivations.

No published table of inputs and results was at hand, so the values are worked out from the papers'
formulas: de Freitas Pereira and Marcel (2021) for FDR, Grother (NIST, 2021/22) for the inequity
rate and max over geometric mean, Howard et al. (2022) for Gini and GARBE.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import DEVIATIONS, FAIRNESS, aad, cells, mad, mean, std, unfairness
from faircal.metrics.disparity import fdr, gap, garbe, gini, ir, max_geomean, max_min

NAN = float("nan")
SINGLE = [name for name, measure in FAIRNESS.items() if measure.of == "rate"]
BOTH = [name for name, measure in FAIRNESS.items() if measure.of == "both"]

#: Four groups at one threshold; all that follows is by hand.
FPR = [0.001, 0.002, 0.004, 0.008]
FNR = [0.05, 0.02, 0.02, 0.03]


def test_deviations_by_hand():
    values = [1.0, 2.0, 3.0, 6.0]  # mean 3, deviations 2, 1, 0, 3
    assert mean(values) == 3.0
    assert aad(values) == 1.5
    assert mad(values) == 3.0
    assert std(values) == pytest.approx(math.sqrt(14 / 4))


def test_stand_in_the_order_of_the_tables():
    assert list(DEVIATIONS) == ["mean", "aad", "mad", "std"]


@pytest.mark.parametrize("name", DEVIATIONS)
def test_groups_without_a_value_are_left_out(name):
    deviation = DEVIATIONS[name]
    assert deviation([1.0, NAN, 4.0]) == deviation([1.0, 4.0])
    assert math.isnan(deviation([NAN, NAN]))
    assert math.isnan(deviation([]))


@pytest.mark.parametrize("name", ["aad", "mad", "std"])
def test_equal_groups_do_not_deviate(name):
    assert DEVIATIONS[name]([0.25, 0.25, 0.25]) == 0.0


def test_a_table_is_refused():
    with pytest.raises(DataError, match="one value per group"):
        aad([[1.0, 2.0]])


def test_one_rate_by_hand():
    assert gap(FPR) == pytest.approx(0.007)
    assert max_min(FPR) == pytest.approx(8)
    # (1 · 2 · 4 · 8)^¼ = 64^¼ = 2√2, in thousandths; 8 / 2√2 = 2√2
    assert max_geomean(FPR) == pytest.approx(2 * math.sqrt(2))
    # The six differences 1, 3, 7, 2, 6, 4 sum to 23, twice that over all i, j; the mean is 15/4:
    # 4/3 · 46 / (2 · 16 · 15/4) = 23/45
    assert gini(FPR) == pytest.approx(23 / 45)


def test_both_rates_by_hand():
    # A = 0.007, B = 0.03
    assert fdr(FPR, FNR) == pytest.approx(1 - 0.0185)
    assert fdr(FPR, FNR, alpha=0.9) == pytest.approx(1 - 0.0093)
    # 8 and 2.5
    assert ir(FPR, FNR) == pytest.approx(math.sqrt(20))
    assert ir(FPR, FNR, alpha=1, beta=1) == pytest.approx(20)
    # Differences of FNR: 3, 3, 2, 0, 1, 1 sum to 10; mean 3: 4/3 · 20 / (2 · 16 · 3) = 5/18
    assert garbe(FPR, FNR) == pytest.approx((23 / 45 + 5 / 18) / 2)
    assert garbe(FPR, FNR, alpha=0.25) == pytest.approx(23 / 180 + 5 / 24)


def test_measures_stand_in_the_order_of_the_tables():
    assert list(FAIRNESS) == ["gap", "max_min", "max_geomean", "gini", "fdr", "ir", "garbe"]
    rows = [f"{rate}_{name}" for rate in ("fpr", "fnr") for name in SINGLE]
    measures = unfairness(FPR, FNR, alpha=0.25)
    assert list(measures) == rows + BOTH
    assert measures["fnr_max_min"] == max_min(FNR)
    assert measures["garbe"] == garbe(FPR, FNR, alpha=0.25)


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=8))
def test_gini_is_its_double_sum(rates):
    n, mean = len(rates), sum(rates) / len(rates)
    total = sum(abs(a - b) for a, b in itertools.product(rates, rates))
    expected = n / (n - 1) * total / (2 * n**2 * mean)
    assert gini(rates) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", FAIRNESS)
def test_equal_groups_are_fair(name):
    measure = FAIRNESS[name]
    equal = [[0.02] * 5] * (1 if measure.of == "rate" else 2)
    assert measure.function(*equal) == pytest.approx(measure.fair, abs=1e-12)


@pytest.mark.parametrize("name", FAIRNESS)
def test_better_is_nearer_to_fair(name):
    measure = FAIRNESS[name]
    count = 1 if measure.of == "rate" else 2
    near, far = (measure.function(*[rates] * count) for rates in ([0.02, 0.03], [0.02, 0.09]))
    assert far < near if measure.better == "higher" else near < far


@pytest.mark.parametrize("name", SINGLE)
def test_groups_without_a_rate_are_left_out(name):
    function = FAIRNESS[name].function
    assert function([0.1, NAN, 0.4, 0.2]) == pytest.approx(function([0.1, 0.4, 0.2]))
    for too_few in ([], [0.1], [NAN, 0.1], [NAN, NAN]):
        assert math.isnan(function(too_few))


def test_each_rate_leaves_out_its_own_groups():
    assert fdr([0.1, 0.3, NAN], [NAN, 0.3, 0.7]) == pytest.approx(1 - (0.2 + 0.4) / 2)


@pytest.mark.parametrize("name", ["max_min", "max_geomean"])
def test_a_ratio_to_no_error_is_no_number(name):
    function = FAIRNESS[name].function
    assert function([0.0, 0.1, 0.2]) == math.inf
    assert math.isnan(function([0.0, 0.0, 0.0]))
    assert ir([0.0, 0.1], [0.1, 0.2]) == math.inf


def test_no_error_anywhere_is_no_share():
    assert math.isnan(gini([0.0, 0.0]))
    assert math.isnan(garbe([0.0, 0.0], FNR))
    assert gini([0.0, 0.0, 0.2]) == pytest.approx(1)  # one group has all errors
    assert fdr([0.0, 0.0], [0.0, 0.0]) == 1


def test_what_weighs_nothing_may_be_undefined():
    assert garbe([0.0, 0.0], FNR, alpha=0) == gini(FNR)
    assert ir([0.0, 0.1], [0.1, 0.2], alpha=0) == pytest.approx(2)
    assert ir([0.1, 0.2], [0.0, 0.2], alpha=1) == pytest.approx(2)


@pytest.mark.parametrize("name", FAIRNESS)
def test_many_draws_are_one_call(name):
    measure = FAIRNESS[name]
    draws = np.random.default_rng(0).random((2, 3, 5, 4))
    draws[0, 0, 0, 1] = NAN
    draws[1, 2, 1] = 0.0
    given_ = draws[:1] if measure.of == "rate" else draws
    found = measure.function(*given_)
    assert found.shape == (3, 5)
    for at in np.ndindex(3, 5):
        np.testing.assert_allclose(found[at], measure.function(*given_[(slice(None), *at)]))


def test_rates_say_what_is_wrong():
    with pytest.raises(DataError, match=r"write 1 % as 0\.01"):
        gap([1, 5])
    with pytest.raises(DataError, match="found a single number"):
        gini(0.5)
    with pytest.raises(ParameterError, match=r"alpha: expected a weight in \[0, 1\], found 2"):
        garbe(FPR, FNR, alpha=2)
    with pytest.raises(ParameterError, match="beta"):
        ir(FPR, FNR, beta=-1)


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_cells_are_numbered_like_the_upper_triangle(n):
    upper, lower = np.triu_indices(n)
    np.testing.assert_array_equal(cells(upper, lower, n), np.arange(n * (n + 1) // 2))
    np.testing.assert_array_equal(cells(lower, upper, n), cells(upper, lower, n))
    np.testing.assert_array_equal(cells([-1, 0, -1], [0, -1, -1], n), [-1, -1, -1])


def test_cells_say_what_is_wrong():
    with pytest.raises(DataError, match="from -1 to 2; found 0 to 3 as right"):
        cells([0, 1], [0, 3], 3)
    with pytest.raises(DataError, match="found -2 to 1 as left"):
        cells([-2, 1], [0, 1], 3)
    with pytest.raises(DataError, match="found float64 of shape"):
        cells([0.0], [1.0], 3)
    with pytest.raises(DataError, match="as right"):
        cells([0, 1], [0], 3)
