"""Intervals of a classifier's values, and of differences between methods on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from faircal.evaluation.classes import audit_classes
from faircal.metrics import Ranking, wilson
from faircal.metrics.classes import CLASS_METRICS
from faircal.metrics.intervals.unit_noise import UnitNoise


def sharpen(p, power):
    return p**power / (p**power).sum(axis=1, keepdims=True)


def draw(n=600, seed=0, each=1):
    """Return calibrated probabilities of three classes, labels and units of `each` like rows."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(n // each), each)
    p = rng.dirichlet([1, 1, 1], size=n // each)[units]
    codes = np.minimum((rng.random(n // each)[units][:, None] > p.cumsum(axis=1)).sum(axis=1), 2)
    return p, codes, units


@pytest.fixture(scope="module")
def two():
    p, codes, _ = draw()
    said = {"calibrated": p, "sharp": sharpen(p, 2.5)}
    return audit_classes(said, codes, groups=["x", "y", "z"] * 200)


def test_accuracy_of_independent_rows_has_wilsons_interval(two):
    right = two.value("accuracy", method="sharp") * 600
    low, high = wilson(right, 600)
    assert two.interval("accuracy", method="sharp") == pytest.approx((float(low), float(high)))


def by_units(values, units):
    """Return the standard error of a mean, and its degrees of freedom, by a loop over units."""
    sums = np.array([(values - values.mean())[units == u].sum() for u in np.unique(units)])
    m = len(sums)
    error = np.sqrt((sums**2).sum() * m / (m - 1)) / len(values)
    kurtosis = m * (sums**4).sum() / (sums**2).sum() ** 2
    return error, max(2 * m / max(kurtosis - 1, 1), 3)


def test_nll_by_a_loop_over_units():
    rng = np.random.default_rng(3)
    p, codes, _ = draw(300)
    units = rng.integers(0, 40, 300)
    found = audit_classes(p, codes, identity=units)
    losses = -np.log(p[np.arange(300), codes])
    error, freedom = by_units(losses, units)
    times = np.exp(student.ppf(0.975, freedom) * error / losses.mean())
    expected = losses.mean() / times, losses.mean() * times
    assert found.interval("nll") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", list(CLASS_METRICS))
def test_rows_that_a_unit_repeats_tell_nothing_new(metric):
    p, codes, units = draw(1000, each=5)
    p = sharpen(p, 1.6)
    once = audit_classes(p[::5], codes[::5]).interval(metric)
    five = audit_classes(p, codes, identity=units).interval(metric)
    alone = audit_classes(p, codes).interval(metric)
    assert five == pytest.approx(once, rel=0.12, abs=0.004)
    assert alone[1] - alone[0] < 0.65 * (five[1] - five[0])


def test_a_calibrated_method_may_have_no_error_and_a_sharp_one_must(two):
    for metric in ("top_ks", "top_ece", "class_ks", "class_ece"):
        assert two.interval(metric, method="calibrated")[0] == 0
        low, high = two.interval(metric, method="sharp")
        assert 0.03 < low < two.value(metric, method="sharp") < high < 1


def test_intervals_hold_their_values(two):
    for row in two.rows:
        if row.low != row.low or (row.group == "all" and not row.metric.endswith("_mean")):
            continue  # a deviation's lower end may be 0, its upper end is above all the same
        assert row.low <= row.value + 1e-12
        assert row.value <= row.high + 1e-12


def test_groups_that_differ_by_chance_alone_may_be_alike(two):
    for name in ("aad", "mad", "std"):
        low, high = two.interval(f"top_ks_{name}", method="calibrated")
        assert low == 0
        assert high > two.value(f"top_ks_{name}", method="calibrated")


def test_groups_that_do_differ_are_told_apart():
    p, codes, _ = draw(3000)
    groups = np.arange(3000) % 2
    said = np.where(groups[:, None] == 0, p, sharpen(p, 4))
    found = audit_classes(said, codes, groups=groups)
    assert found.interval("top_ks_mad")[0] > 0.03
    assert found.interval("nll_mad")[0] > 0.03


@pytest.mark.parametrize("metric", ["nll", "accuracy", "top_ks"])
def test_groups_of_the_same_units_tell_no_more_than_one_of_them(metric):
    p, codes, _ = draw(400)
    p, twice = sharpen(p, 2), np.repeat(np.arange(400), 2)
    found = audit_classes(p[twice], codes[twice], groups=["x", "y"] * 400, identity=twice)
    low, high = found.interval(metric, group="x")
    assert found.interval(f"{metric}_mean") == pytest.approx((low, high), rel=0.03)


def test_with_fewer_than_four_units_nothing_is_said():
    p, codes, _ = draw(300)
    groups = np.where(np.arange(300) < 200, "many", "few")
    units = np.where(groups == "few", np.arange(300) % 3, np.arange(300))
    said = {"a": p, "b": sharpen(p, 2)}
    found = audit_classes(said, codes, groups=groups, identity=units)
    for metric in CLASS_METRICS:
        assert all(np.isnan(found.interval(metric, method="a", group="few")))
        assert all(np.isnan(found.difference(metric, "b", "a", group="few")[1:]))
        assert not np.isnan(found.difference(metric, "b", "a", group="few")[0])
        assert all(np.isfinite(found.interval(metric, method="a", group="many")))
        assert all(np.isnan(found.interval(f"{metric}_mean", method="a")))


def test_perfect_and_certain_rows_have_an_accuracy_below_1_perhaps():
    p = np.eye(2)[[0, 1] * 50]
    found = audit_classes(p, [0, 1] * 50)
    assert found.value("nll") == 0
    low, high = found.interval("accuracy")
    assert (round(low, 3), high) == (0.963, 1.0)
    # All rows of a unit may be right together: ten units are ten trials.
    low, _ = audit_classes(p, [0, 1] * 50, identity=np.arange(100) // 10).interval("accuracy")
    assert round(low, 3) == 0.722


def test_differences_of_row_means_by_a_loop_over_units():
    rng = np.random.default_rng(5)
    p, codes, _ = draw(300)
    q, units = sharpen(p, 1.5), rng.integers(0, 50, 300)
    group = units % 2  # a unit has one group
    found = audit_classes({"p": p, "q": q}, codes, groups=group, identity=units)
    apart = -np.log(q[np.arange(300), codes]) + np.log(p[np.arange(300), codes])
    error, freedom = by_units(apart, units)
    half = student.ppf(0.975, freedom) * error
    expected = apart.mean(), apart.mean() - half, apart.mean() + half
    assert found.difference("nll", "q", "p") == pytest.approx(expected, rel=1e-9)
    means, errors = zip(
        *[
            (apart[group == g].mean(), by_units(apart[group == g], units[group == g]))
            for g in (0, 1)
        ],
        strict=True,
    )
    difference, low, high = found.difference("nll_mean", "q", "p")
    assert difference == pytest.approx(np.mean(means))
    both = np.sqrt(sum(error**2 for error, _ in errors)) / 2
    assert (high - low) / 2 == pytest.approx(2 * both, rel=0.06)


def test_differences_are_turned_around_with_the_methods(two):
    for metric in (*CLASS_METRICS, "top_ks_mean", "class_ks_aad", "nll_mean", "nll_std"):
        difference, low, high = two.difference(metric, "sharp", "calibrated")
        back = two.difference(metric, "calibrated", "sharp")
        assert back == pytest.approx((-difference, -high, -low), abs=1e-12)
        assert low <= difference <= high


def test_a_clear_difference_is_told_and_none_is_not(two):
    for metric in ("nll", "brier", "top_ks", "class_ks", "top_ks_mean", "class_ks_mean"):
        assert two.difference(metric, "sharp", "calibrated")[1] > 0
    p, codes, _ = draw(seed=4)
    same = audit_classes({"a": p, "b": p}, codes, groups=["x", "y"] * 300)
    assert same.difference("nll", "b", "a") == (0, 0, 0)
    for row in same.differences:
        assert row.low <= 0 <= row.high
        assert row.difference == 0


def test_parts_and_classes_have_no_interval_of_a_difference(two):
    assert all(np.isnan(two.interval("brier_uncertainty", method="sharp")))
    found = two.difference("class_ks", "sharp", "calibrated", condition="class=1")
    assert found[0] > 0
    assert all(np.isnan(found[1:]))


@pytest.mark.parametrize("n", [1500, 6000])
def test_noise_of_a_curve_varies_as_units_do(n):
    """Also where units are more than there are buckets."""
    p, codes, _ = draw(n, seed=7)
    units = np.random.default_rng(0).permutation(n) // 2
    probability, true = sharpen(p, 2)[:, 0], codes == 0
    noise = UnitNoise.of(units, replicates=4000)
    curve = noise.curve(Ranking.of(probability, true), n // 2)
    gaps = probability - true
    moved = np.array([gaps.mean()])  # the end of the curve: the mean gap
    assert np.cumsum(curve.bins)[-1] == pytest.approx(moved[0])
    sums = np.bincount(units, gaps - gaps.mean())
    error = np.sqrt((sums**2).sum()) / n
    assert np.cumsum(curve.noise, axis=1)[:, -1].std() == pytest.approx(error, rel=0.06)


def test_the_same_rows_give_the_same_intervals():
    p, codes, _ = draw(200)
    one, again = (audit_classes({"a": p, "b": sharpen(p, 2)}, codes) for _ in range(2))
    assert repr(one.rows) == repr(again.rows)
    assert repr(one.differences) == repr(again.differences)
