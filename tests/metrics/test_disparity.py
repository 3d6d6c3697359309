"""How far groups are apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import (
    DEVIATIONS,
    Ranking,
    aad,
    cells,
    equal_opportunity,
    mad,
    mean,
    predictive_equality,
    rates_at_threshold,
    std,
)

NAN = float("nan")


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


@pytest.fixture
def scene():
    """All pairs, and the pairs of groups A and B; the last pair is in neither."""
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    genuine = np.array([1, 1, 0, 1, 0, 1, 0, 0, 0])
    overall = Ranking.of(scores, genuine)
    in_a = np.array([True, False, True, True, False, False, True, False, False])
    in_b = np.array([False, True, False, False, True, True, False, True, False])
    return overall, {"A": overall.subset(in_a), "B": overall.subset(in_b)}


def test_predictive_equality(scene):
    overall, groups = scene
    # Overall FPR is 1/5 from 0.7 down to 0.6, 2/5 from 0.5 down to 0.4.
    result = predictive_equality(overall, groups, [0.2, 0.4])
    assert result.groups == ("A", "B")
    np.testing.assert_allclose(result.thresholds, [0.6, 0.4])
    # A at 0.4: from 1/2 (0.6) to 1 (0.3), two thirds of the way. B at 0.6: from 0 (0.8) to
    # 1/2 (0.5), two thirds.
    np.testing.assert_allclose(result.values, [[1 / 2, 5 / 6], [1 / 3, 1 / 2]])
    np.testing.assert_allclose(result.deviation("mean"), [5 / 12, 2 / 3])
    np.testing.assert_allclose(result.deviation("aad"), [1 / 12, 1 / 6])


def test_equal_opportunity(scene):
    overall, groups = scene
    # FNR 1/4 is TPR 3/4, reached at 0.6 and kept down to 0.5.
    result = equal_opportunity(overall, groups, [0.25])
    np.testing.assert_allclose(result.thresholds, [0.5])
    # A accepts both of its genuine pairs by then, B one of two.
    np.testing.assert_allclose(result.values, [[0], [1 / 2]])
    np.testing.assert_allclose(result.deviation("mad"), [1 / 4])


def test_at_scores_of_a_group_the_rates_are_counted(scene):
    overall, groups = scene
    result = predictive_equality(overall, groups, [0.2])
    assert result.values[0] == rates_at_threshold(groups["A"], result.thresholds).fpr


def test_a_group_without_imposters_is_nan_and_left_out(scene):
    overall, groups = scene
    only_genuine = overall.subset(np.arange(9) < 2)
    result = predictive_equality(overall, {**groups, "C": only_genuine}, [0.2])
    assert np.isnan(result.values[2]).all()
    expected = predictive_equality(overall, groups, [0.2]).deviation("std")
    np.testing.assert_array_equal(result.deviation("std"), expected)


def test_no_groups_and_no_threshold(scene):
    overall, groups = scene
    assert predictive_equality(overall, {}, [0.2, 0.4]).values.shape == (0, 2)
    assert np.isnan(predictive_equality(overall, {}, [0.2]).deviation("aad")).all()
    genuine_only = Ranking.of([0.5], [1])
    assert np.isnan(predictive_equality(genuine_only, groups, 0.2).values).all()


def test_unknown_deviation(scene):
    overall, groups = scene
    with pytest.raises(ParameterError, match="unknown deviation 'max'"):
        predictive_equality(overall, groups, [0.2]).deviation("max")


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_cells_are_numbered_like_the_upper_triangle(n):
    upper, lower = np.triu_indices(n)
    np.testing.assert_array_equal(cells(upper, lower, n), np.arange(n * (n + 1) // 2))
    np.testing.assert_array_equal(cells(lower, upper, n), cells(upper, lower, n))
    np.testing.assert_array_equal(cells([-1, 0, -1], [0, -1, -1], n), [-1, -1, -1])


def test_errors_say_what_is_wrong():
    with pytest.raises(DataError, match="from -1 to 2; found 0 to 3 as right"):
        cells([0, 1], [0, 3], 3)
    with pytest.raises(DataError, match="found -2 to 1 as left"):
        cells([-2, 1], [0, 1], 3)
    with pytest.raises(DataError, match="found float64 of shape"):
        cells([0.0], [1.0], 3)
    with pytest.raises(DataError, match="as right"):
        cells([0, 1], [0], 3)
