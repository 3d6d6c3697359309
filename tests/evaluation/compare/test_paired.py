"""Differences of two values: intervals by hand, p-values, correction, coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from faircal.data import Groups
from faircal.evaluation.compare import Estimate, difference, holm
from faircal.evaluation.compare.paired import common_noise, of_results
from faircal.metrics import gini
from faircal.metrics.intervals import Uncertainty
from faircal.metrics.measures import Rankings, at_threshold, measure
from faircal.metrics.results import Result


def noises(r, spread=(1.0, 1.0), n=4000, seed=0):
    """Replicates with exactly this correlation, mean 0 and these standard deviations."""
    both = np.random.default_rng(seed).standard_normal((n, 2))
    both -= both.mean(axis=0)
    both = np.linalg.qr(both)[0] * math.sqrt(n)
    mixed = both @ np.array([[1, r], [0, math.sqrt(1 - r**2)]])
    return [(mixed[:, i] * spread[i]).astype(np.float32) for i in (0, 1)]


def symmetric(value, spread, noise):
    half = stats.norm.ppf(0.975) * spread
    return Estimate(value, value - half, value + half, noise)


@pytest.mark.parametrize("r", [-0.5, 0.0, 0.6, 0.99])
def test_symmetric_intervals_make_the_normal_interval_of_a_paired_difference(r):
    a, b = (symmetric(v, s, n) for v, s, n in zip((5, 7), (1, 2), noises(r, (1, 2)), strict=True))
    found = difference(a, b)
    error = math.sqrt(1 + 4 - 2 * r * 1 * 2)
    assert found.value == 2
    assert found.correlation == pytest.approx(r, abs=1e-5)
    assert (found.low, found.high) == pytest.approx(
        stats.norm.interval(0.95, 2, error), rel=2e-4, abs=2e-4
    )
    assert found.p_value() == pytest.approx(2 * stats.norm.sf(2 / error), rel=1e-3)
    assert found.p_value(tolerance=0.5) == pytest.approx(2 * stats.norm.sf(1.5 / error), rel=1e-3)
    wider = difference(a, b, level=0.99)
    assert wider.high - 2 == pytest.approx(stats.norm.ppf(0.995) * error, rel=1e-3)
    shows = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * error  # 2.8 standard errors
    assert found.detectable(1, 0.05) == pytest.approx(shows, rel=1e-3)


def test_pairing_makes_it_much_narrower_where_two_agree():
    a, b = (symmetric(0.01, 0.004, n) for n in noises(0.95, (0.004, 0.004)))
    together, alone = difference(a, b), difference(a, b, correlation=0.0)
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(math.sqrt(0.05), rel=0.01)


def test_the_same_value_twice_differs_by_nothing():
    noise = noises(0.0)[0] * 0.01
    lopsided = Estimate(0.02, 0.013, 0.034, noise)
    found = difference(lopsided, lopsided)
    assert (found.value, found.p_value()) == (0, 1)
    assert (found.low, found.high) == pytest.approx((0, 0), abs=1e-9)


def test_no_error_in_either_leaves_open_what_their_intervals_do():
    none = np.zeros(100, np.float32)
    found = difference(Estimate(0.0, 0.0, 0.004, none), Estimate(0.0, 0.0, 0.003, none))
    assert (found.low, found.high) == pytest.approx((-0.004, 0.003))
    assert found.p_value() == 1


def test_an_undefined_value_has_no_difference():
    found = difference(Estimate(math.nan, math.nan, math.nan), Estimate(1.0, 0.0, 2.0))
    assert math.isnan(found.value)
    assert found.p_value() == 1


def test_wide_intervals_of_little_noise_are_students():
    half = stats.t.ppf(0.975, 9)
    noise = noises(0.0)[0]
    one = Estimate(3.0, 3 - half, 3 + half, noise)
    assert one.freedom == pytest.approx(9, rel=0.01)
    nothing = Estimate(0.0, 0.0, 0.0, noise * 0)
    assert difference(nothing, one).p_value() == pytest.approx(2 * stats.t.sf(3, 9), rel=0.01)


def test_what_noise_inflates_by_the_same_amount_cancels():
    noise = noises(0.9, (0.01, 0.01))
    a, b = (
        Estimate(v, v - 0.05, v + 0.0196, n, inflated=True)
        for v, n in zip((0.10, 0.07), noise, strict=True)
    )
    found = difference(a, b)
    half = 0.0196 * math.sqrt(2 * 0.1)
    assert (found.low, found.high) == pytest.approx((-0.03 - half, -0.03 + half), rel=0.01)


def test_holm_is_that_of_statsmodels_rule():
    p = [0.04, 0.001, 0.03, 0.2]
    # ascending: 0.001·4, 0.03·3, 0.04·2 but no less than before, 0.2·1
    assert holm(p) == pytest.approx([0.09, 0.004, 0.09, 0.2])
    assert holm([]) == []


def result(what, value, low=math.nan, high=math.nan):
    group, under, metric = what
    return Result(group=group, condition=under, metric=metric, value=value, low=low, high=high)


def test_noise_of_a_number_over_groups_comes_from_the_groups():
    rng = np.random.default_rng(1)
    noise = {(g, "x", "fpr"): rng.normal(0, 0.001, 300).astype(np.float32) for g in "FM"}
    rates = [
        result(("F", "x", "fpr"), 0.02, 0.018, 0.022),
        result(("M", "x", "fpr"), 0.05, 0.048, 0.052),
    ]
    over = [result(("all", "x", f"fpr_{name}"), 0.03) for name in ("gap", "aad", "gini")]
    found = of_results([*rates, *over, result(("all", "x", "novel"), 1.0)], noise)
    gap = noise["M", "x", "fpr"] - noise["F", "x", "fpr"]
    assert common_noise(found["all", "x", "fpr_gap"].noise, gap) == pytest.approx(1, abs=1e-4)
    assert found["all", "x", "fpr_aad"].noise == pytest.approx(gap / 2, abs=1e-7)
    f, m = 0.02 + noise["F", "x", "fpr"], 0.05 + noise["M", "x", "fpr"]
    by_hand = gini(np.stack([f, m], axis=-1)) - gini([0.02, 0.05])
    assert found["all", "x", "fpr_gini"].noise == pytest.approx(by_hand, abs=1e-6)
    assert not found["all", "x", "novel"].has_interval


THRESHOLD, N = 2.0, 30
KEYS = [("global", "", "fpr"), ("global", "", "auroc"), ("global", "", "ks")]


def scores(rng, shared):
    """Two correlated scores of all pairs of N people, two genuine pairs each."""
    left, right = np.triu_indices(N, 1)
    own = np.arange(N).repeat(2)
    both = []
    person, rest = rng.standard_normal((3, N)), rng.standard_normal((3, len(left)))
    genuine = rng.standard_normal((3, len(own)))
    for i in (1, 2):
        a, e, g = (
            math.sqrt(shared) * x[0] + math.sqrt(1 - shared) * x[i] for x in (person, rest, genuine)
        )
        imposter = math.sqrt(0.1) * (a[left] + a[right]) + math.sqrt(0.8) * e
        both.append(np.concatenate([imposter, 3.5 + g]))
    people = [np.concatenate(side).astype(np.int32) for side in ((left, own), (right, own))]
    return both, np.arange(len(left) + len(own)) >= len(left), people


def sure(score, genuine, people, slope):
    prior = math.log(2 * N / (N * (N - 1) / 2))
    probability = 1 / (1 + np.exp(-(slope * (3.5 * score - 3.5**2 / 2) + prior)))
    rankings = Rankings.of(score, probability, genuine, None, 20.0)
    found = [*measure(rankings, rates=()), *at_threshold(rankings, THRESHOLD)]
    groups = Groups(tuple(f"p{i}" for i in range(N)), *people)
    made = Uncertainty(
        found, genuine=genuine, people=groups, score=score, probability=probability, replicates=300
    )
    noise = made.replicates(KEYS).T
    values = [result(key, made.values[key], *made.interval(*key)) for key in KEYS]
    return of_results(values, dict(zip(KEYS, noise, strict=True)))


def test_paired_intervals_cover_and_are_narrower():
    """A second score with its scores moved up by 0.2, and less sure of itself."""
    rng = np.random.default_rng(5)
    rounds, up, slopes = 25, 0.2, (0.8, 0.6)
    truth = {}
    draw = rng.standard_normal((2, 400_000))
    share = 2 / ((N - 1) / 2 + 2)
    imposters, genuines = draw[0], 3.5 + draw[1][: int(400_000 * share / (1 - share))]
    for i in (0, 1):
        score = np.concatenate([imposters, genuines]) + i * up
        genuine = np.arange(len(score)) >= len(imposters)
        logit = slopes[i] * (3.5 * score - 3.5**2 / 2) + math.log(2 * N / (N * (N - 1) / 2))
        rankings = Rankings.of(score, 1 / (1 + np.exp(-logit)), genuine, None, 20.0)
        found = [*measure(rankings, rates=()), *at_threshold(rankings, THRESHOLD)]
        truth[i] = {(m.group, m.condition, m.metric): m.value for m in found}
    covered, widths = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0.0)
    for _ in range(rounds):
        (a, b), genuine, people = scores(rng, 0.9)
        one, two = sure(a, genuine, people, slopes[0]), sure(b + up, genuine, people, slopes[1])
        for key in KEYS:
            paired = difference(one[key], two[key])
            alone = difference(one[key], two[key], correlation=0.0)
            true = truth[1][key] - truth[0][key]
            covered[key] += paired.low <= true <= paired.high
            widths[key] += (paired.high - paired.low) / (alone.high - alone.low) / rounds
    assert min(covered.values()) >= 20, covered  # of 25: fewer with 95 % each is 1 in 5,000
    assert max(widths.values()) < 0.8, widths
