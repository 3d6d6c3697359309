"""Intervals of all that is measured, replicates, and what is kept over folds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import faircal
from faircal.auditing import Scored
from faircal.measures import Rankings, at_threshold, measure
from faircal.metrics import wilson
from faircal.uncertainty import Known, Uncertainty, known, over_folds
from faircal.uncertainty.replicates import replicates


@pytest.fixture(scope="module")
def pairs():
    data = faircal.simulate("small", seed=0)
    model = faircal.Baseline().fit(data)
    return Scored.of_data(data, model.apply(data), "ethnicity")


@pytest.fixture(scope="module")
def found(pairs):
    rankings = Rankings.of(pairs.ranked, pairs.probability, pairs.genuine, pairs.groups)
    return [*measure(rankings), *at_threshold(rankings, 0.3)]


@pytest.fixture(scope="module")
def sure(pairs, found):
    return pairs.uncertainty(found)


def test_every_value_is_within_its_interval(found, sure):
    missing = []
    for group, condition, metric, value in found:
        low, high = sure.interval(group, condition, metric)
        if metric == "threshold" or not math.isfinite(value):
            continue
        if math.isnan(low):
            missing.append((group, condition, metric))
        else:
            assert low - 1e-9 <= value <= high + 1e-9, (group, condition, metric)
    assert not missing


def test_higher_levels_are_wider(sure):
    for key in (("global", "", "fpr"), ("global", "", "ks"), ("all", "global_fpr=0.01", "fpr_aad")):
        narrow, wide = sure.interval(*key, 0.8), sure.interval(*key, 0.99)
        assert wide[0] <= narrow[0]
        assert narrow[1] < wide[1]


def test_people_make_rates_less_sure(pairs, found, sure):
    alone = Uncertainty(
        found, genuine=pairs.genuine, score=pairs.ranked, probability=pairs.probability,
        groups=pairs.groups,
    )  # fmt: skip
    assert alone.independent and not sure.independent
    key = "global", "", "fpr"
    trials = sure.trials("global", "fpr")
    assert alone.interval(*key) == pytest.approx(
        [float(end) for end in wilson(sure.values[key] * trials, trials)]
    )
    assert alone.effective_trials(*key) == trials
    assert sure.effective_trials(*key) < trials
    assert np.ptp(sure.interval(*key)) > np.ptp(alone.interval(*key))


def test_tpr_is_what_fnr_leaves(sure):
    low, high = sure.interval("global", "", "fnr")
    assert sure.interval("global", "", "tpr") == pytest.approx((1 - high, 1 - low))


def test_replicates_vary_as_the_spread_says(sure):
    keys = [("global", "", "auroc"), ("global", "", "nll"), ("global", "", "ks")]
    noise = sure.replicates(keys)
    assert noise.shape == (1000, 3)
    expected = [math.sqrt(sure.spread(*key).variance) for key in keys]
    np.testing.assert_allclose(noise.std(axis=0), expected, rtol=0.08)


def test_names_make_the_numbers():
    """Other people, or another order of them, change nothing for those who stay."""
    influence = np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]])
    whole = replicates(influence, ["ann", "bea", "cleo"], 500)
    turned = replicates(influence[::-1], ["cleo", "bea", "ann"], 500)
    np.testing.assert_allclose(whole, turned, atol=1e-5)
    one = replicates(influence[:1], ["ann"], 500) + replicates(influence[1:], ["bea", "cleo"], 500)
    np.testing.assert_allclose(whole, one, atol=1e-5)
    assert not np.allclose(whole, replicates(influence, ["ann", "bea", "dora"], 500))
    assert not np.allclose(whole, replicates(influence, ["ann", "bea", "cleo"], 500, seed=1))
    assert whole.std(axis=0) == pytest.approx(np.sqrt([5, 10]), rel=0.1)


def test_groups_of_few_people_have_no_interval():
    found = faircal.audit(
        score=[0.1, 0.4, 0.6, 0.9, 0.2], genuine=[0, 0, 1, 1, 0], groups=list("AABBC"),
        left_identity=list("aabbc"), right_identity=list("bcbbd"), threshold=0.5,
    )  # fmt: skip
    assert np.isnan(found.interval("fpr", group="A")).all()
    assert np.isfinite(found.interval("fpr")).all()


def test_all_rows(found, sure):
    rows = known(sure, found, 0.9)
    assert [row[:4] for row in rows] == [m for m in found if m.metric != "threshold"]
    for row in rows:
        rate = row.metric in ("fpr", "fnr", "tpr") and row.group != "all"
        assert math.isnan(row.trials) != rate
        if rate:
            assert row.effective <= row.trials


class TestOverFolds:
    def rate(self, value, trials, effective):
        low, high = wilson(value * effective, effective)
        return Known(
            "A", "", "fpr", value, float(low), float(high), value * trials, trials, effective
        )

    def test_a_rate_of_equal_folds_counts_them_together(self):
        found = over_folds([self.rate(0.04, 500, 100), self.rate(0.06, 500, 100)])
        low, high = wilson(10, 200)
        assert (found.low, found.high) == pytest.approx((float(low), float(high)))
        assert (found.value, found.counted, found.trials, found.effective) == (0.05, 50, 1000, 200)

    def test_a_fold_with_few_trials_counts_as_much_as_any(self):
        found = over_folds([self.rate(0.1, 1000, 1000), self.rate(0.1, 10, 10)])
        assert found.effective == pytest.approx(4 / (1 / 1000 + 1 / 10))

    def test_other_values(self):
        folds = [Known("A", "", "auroc", 0.9, 0.88, 0.93), Known("A", "", "auroc", 0.8, 0.76, 0.84)]
        found = over_folds(folds)
        assert found.value == pytest.approx(0.85)
        assert found.low == pytest.approx(0.85 - math.hypot(0.02, 0.04) / 2)
        assert found.high == pytest.approx(0.85 + math.hypot(0.03, 0.04) / 2)

    def test_an_error_that_may_be_0_in_each_fold_may_be_0(self):
        folds = [Known("A", "", "ks", 0.02, 0.0, 0.03), Known("A", "", "ks", 0.03, 0.0, 0.05)]
        assert over_folds(folds).low == pytest.approx(0.0)

    def test_folds_without_a_value_are_left_out(self):
        none = Known("A", "", "auroc", math.nan, math.nan, math.nan)
        one = Known("A", "", "auroc", 0.9, 0.88, 0.93)
        assert over_folds([none, one])[:6] == pytest.approx((*one[:3], 0.9, 0.88, 0.93))
        assert math.isnan(over_folds([none, none]).value)
