"""Intervals of all that is measured, replicates, and what is kept over folds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import faircal
from faircal.evaluation.audit import ScoredPairs
from faircal.metrics import wilson
from faircal.metrics.intervals import Uncertainty, as_reported
from faircal.metrics.intervals.dyadic import replicates
from faircal.metrics.intervals.reported import over_folds
from faircal.metrics.measures import Rankings, at_threshold, measure
from faircal.metrics.results import Result


@pytest.fixture(scope="module")
def pairs():
    data = faircal.simulate("small", seed=0)
    model = faircal.Baseline().fit(data)
    return ScoredPairs.of_data(data, model.apply(data), "ethnicity")


@pytest.fixture(scope="module")
def found(pairs):
    rankings = Rankings.of(pairs.ranked, pairs.probability, pairs.genuine, pairs.groups)
    return [*measure(rankings), *at_threshold(rankings, 0.3)]


@pytest.fixture(scope="module")
def sure(pairs, found):
    return pairs.uncertainty(found)


def test_every_value_is_within_its_interval(found, sure):
    missing = []
    for (group, condition, metric), value in ((each.what, each.value) for each in found):
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
    trials = sure.sets["global"].identified.trials["fpr"].pairs
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
    rows = as_reported(found, sure, level=0.9)
    assert [row.what for row in rows] == [each.what for each in found]
    for row in (row for row in rows if row.metric != "threshold"):
        rate = row.metric in ("fpr", "fnr", "tpr") and row.group != "all"
        assert math.isnan(row.effective) != rate
        if rate:
            assert row.effective <= row.trials


def drawn(n=40, each=20, share=0.15, seed=0):
    """Genuine pairs of `n` people, some of whom are often missed, and imposters of all of them."""
    rng = np.random.default_rng(seed)
    who = np.arange(n).repeat(each)
    one, two = (side.repeat(3) for side in np.triu_indices(n, 1))
    bad = rng.random(n)[who] < share
    score = np.append(rng.normal(2, 1, len(who)) - 3 * bad, rng.normal(-1, 1, len(one)))
    return {
        "score": score / 10,
        "genuine": np.arange(len(score)) < len(who),
        "left_identity": np.append(who, one).astype(str),
        "right_identity": np.append(who, two).astype(str),
        "threshold": 0.05,
    }


def test_too_few_people_in_the_pairs_that_are_counted():
    """Genuine pairs of two people say nothing of how people vary, whoever the imposters are."""
    pairs = drawn()
    keep = ~pairs["genuine"] | np.isin(pairs["left_identity"], ["0", "1"])
    few = {k: v[keep] if isinstance(v, np.ndarray) else v for k, v in pairs.items()}
    found = faircal.audit(**few)
    assert np.isnan(found.interval("fnr")).all()
    assert np.isnan(found.interval("tpr")).all()
    assert np.isnan(found.interval("auroc")).all()
    assert np.isfinite(found.interval("fpr")).all()
    assert not found.result("fnr").reportable
    assert math.isnan(found.uncertainty.effective_trials("global", "", "fnr"))


@pytest.mark.parametrize("side", ["left_identity", "right_identity"])
def test_one_side_of_a_genuine_pair_names_both(side):
    pairs = drawn()
    blank = np.where(pairs["genuine"], "", pairs[side])
    expected = faircal.audit(**pairs).interval("fnr")
    assert faircal.audit(**{**pairs, side: blank}).interval("fnr") == pytest.approx(expected)


def test_nobody_named_is_pair_wise():
    pairs = drawn()
    nobody = np.full(len(pairs["score"]), "")
    found = faircal.audit(**{**pairs, "left_identity": nobody, "right_identity": nobody})
    assert "pair-wise" in found.interval_kind
    assert found.effective_people() is None


def test_names_that_contradict_the_labels():
    """An imposter pair of one person: the right side is taken as somebody else."""
    pairs = drawn()
    wrong = {**pairs, "right_identity": pairs["right_identity"].copy()}
    at = np.flatnonzero(~pairs["genuine"])[:5]
    wrong["right_identity"][at] = wrong["left_identity"][at]
    low, high = faircal.audit(**wrong).interval("fpr")
    assert 0 <= low < high < 1


def test_scores_upside_down():
    pairs = drawn()
    found = faircal.audit(**pairs).interval("auroc")
    turned = faircal.audit(**{**pairs, "score": -pairs["score"]}).interval("auroc")
    assert turned == pytest.approx((1 - found[1], 1 - found[0]))


def test_tied_scores_are_no_surer():
    """Person-driven decisions, most of them wrong: as unsure as with a hair between them."""
    rng = np.random.default_rng(0)
    one, two = (side.repeat(9) for side in np.triu_indices(40, 1))
    rate = rng.random(40)
    wrong = rng.random(len(one)) < np.sqrt(rate[one] * rate[two]) * 1.2
    names = {"left_identity": one.astype(str), "right_identity": two.astype(str)}
    hair = 1e-3 * rng.random(len(one))
    ends = [
        faircal.audit(
            score=wrong * 0.5 + more, genuine=np.zeros(len(one)), threshold=0.4, **names
        ).interval("fpr")
        for more in (0, hair)
    ]
    widths = np.ptp(ends, axis=1)
    assert widths[0] > 0.6 * widths[1]


def test_a_given_threshold_is_not_moved(pairs, found):
    """Where other pairs set the threshold, a TPR at it is as sure as at any threshold."""
    given = Uncertainty(
        found, genuine=pairs.genuine, people=pairs.people, score=pairs.ranked,
        groups=pairs.groups, threshold_given=True,
    )  # fmt: skip
    own = pairs.uncertainty(found)
    key = "global", "fpr=0.01", "tpr"
    assert np.ptp(given.interval(*key)) < np.ptp(own.interval(*key))


def test_one_fold_is_as_sure_as_it_was(found, sure):
    for row in as_reported(found, sure):
        if row.metric == "tpr" or (row.metric == "fpr" and row.value > 0.005):
            again = over_folds([row])
            if row.group != "all":
                width = row.high - row.low
                assert again.high - again.low == pytest.approx(width, rel=0.45), row


def value_of(metric, value, low, high):
    return Result(group="A", metric=metric, value=value, low=low, high=high, level=0.95)


class TestOverFolds:
    def rate(self, value, trials, effective):
        low, high = wilson(value * effective, effective)
        counts = {"errors": value * trials, "trials": trials, "effective": effective}
        return value_of("fpr", value, float(low), float(high))._replace(**counts)

    def test_a_rate_of_equal_folds_counts_them_together(self):
        found = over_folds([self.rate(0.04, 500, 100), self.rate(0.06, 500, 100)])
        low, high = wilson(10, 200)
        assert (found.low, found.high) == pytest.approx((float(low), float(high)))
        assert (found.value, found.errors, found.trials, found.effective) == (0.05, 50, 1000, 200)

    def test_a_fold_with_few_trials_counts_as_much_as_any(self):
        found = over_folds([self.rate(0.1, 1000, 1000), self.rate(0.1, 10, 10)])
        assert found.effective == pytest.approx(4 / (1 / 1000 + 1 / 10))

    def test_other_values(self):
        folds = [
            value_of("auroc", 0.9, 0.88, 0.93),
            value_of("auroc", 0.8, 0.76, 0.84),
        ]
        found = over_folds(folds)
        assert found.value == pytest.approx(0.85)
        assert found.low == pytest.approx(0.85 - math.hypot(0.02, 0.04) / 2)
        assert found.high == pytest.approx(0.85 + math.hypot(0.03, 0.04) / 2)

    def test_an_error_that_may_be_0_in_each_fold_may_be_0(self):
        folds = [
            value_of("ks", 0.02, 0.0, 0.03),
            value_of("ks", 0.03, 0.0, 0.05),
        ]
        assert over_folds(folds).low == pytest.approx(0.0)

    def test_folds_without_a_value_are_left_out(self):
        none = value_of("auroc", math.nan, math.nan, math.nan)
        one = value_of("auroc", 0.9, 0.88, 0.93)
        assert over_folds([none, one])[11:14] == pytest.approx((0.9, 0.88, 0.93))
        assert math.isnan(over_folds([none, none]).value)
