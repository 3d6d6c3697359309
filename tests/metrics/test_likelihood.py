"""The log-likelihood-ratio cost, and the DET curve, by hand and against other libraries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import det_curve, log_loss

from faircal._base.errors import DataError, ParameterError
from faircal.calibrators.prior import shift_prior
from faircal.metrics import (
    EvidenceBounds,
    Ranking,
    calibration_loss,
    cllr,
    det,
    log_likelihood_ratio,
    min_cllr,
)

SHARES = st.floats(0.01, 0.99)


@pytest.fixture(params=[0, 1])
def pairs(request):
    """Probabilities with many ties, labels that follow them badly, one in four genuine."""
    rng = np.random.default_rng(request.param)
    probability = rng.integers(1, 40, size=500) / 40
    return probability, rng.random(500) < probability**3


def balanced(genuine):
    """Weights under which both classes count the same."""
    return np.where(genuine, 0.5 / genuine.mean(), 0.5 / (1 - genuine.mean()))


def test_by_hand():
    # Prior ½: the cost is the mean of −log₂ of what was given to the truth, each class alike.
    genuine_part = -(math.log2(0.6) + math.log2(0.9)) / 2
    imposter_part = -math.log2(0.7)
    expected = (genuine_part + imposter_part) / 2
    assert cllr([0.6, 0.3, 0.9], [1, 0, 1], prior=0.5) == pytest.approx(expected)
    # A likelihood ratio of 3 at a prior of ¼ is a probability of ½.
    assert log_likelihood_ratio([0.5], calibrated_at=0.25) == pytest.approx([math.log(3)])
    expected = (math.log2(1 + 1 / 3) + math.log2(1 + 3)) / 2
    assert cllr([0.5, 0.5], [0, 1], prior=0.25) == pytest.approx(expected)
    assert cllr([math.log(3)] * 2, [0, 1], of="llr") == pytest.approx(expected)


def test_agrees_with_lir():
    # Recorded from lir 1.3.1 of the Netherlands Forensic Institute (Apache 2.0), which would bring
    # 15 packages of 56 MB: cllr and cllr_min of LLRData(features=llr / log(10), labels=genuine).
    k = np.arange(400)
    score = (k * 7919 % 211) / 211
    genuine = k * 104729 % 97 < 90 * score**2
    llr = np.round(6 * score - 3.5, 1)
    assert genuine.sum() == 124
    assert cllr(llr, genuine, of="llr") == pytest.approx(0.652839737060323, abs=1e-12)
    assert min_cllr(llr, genuine) == pytest.approx(0.6132714038648042, abs=1e-12)
    assert cllr(-llr, genuine, of="llr") == pytest.approx(2.24595883661888, abs=1e-12)
    assert min_cllr(-llr, genuine) == pytest.approx(1.0)


def test_cost_is_scikit_learns_log_loss_with_balanced_classes(pairs):
    probability, genuine = pairs
    prior = 0.3
    ratio = probability / (1 - probability) / (prior / (1 - prior))
    expected = log_loss(genuine, ratio / (1 + ratio), sample_weight=balanced(genuine)) / math.log(2)
    assert cllr(probability, genuine, prior=prior) == pytest.approx(expected, rel=1e-12)


def test_least_cost_is_that_of_scikit_learns_isotonic_map(pairs):
    probability, genuine = pairs
    weight = balanced(genuine)
    mapped = IsotonicRegression().fit_transform(probability, genuine, sample_weight=weight)
    expected = log_loss(genuine, mapped, sample_weight=weight) / math.log(2)
    assert min_cllr(probability, genuine) == pytest.approx(expected, rel=1e-9)


def test_prior_is_the_share_measured_unless_told(pairs):
    probability, genuine = pairs
    share = genuine.mean()
    assert cllr(probability, genuine) == cllr(probability, genuine, prior=share)
    assert cllr(probability, genuine) != pytest.approx(cllr(probability, genuine, prior=0.5))
    # The share itself, for all pairs, is no evidence.
    assert cllr(np.full(500, share), genuine) == pytest.approx(1)


def test_order_and_map_of_scores_leave_the_least_cost(pairs):
    probability, genuine = pairs
    least = min_cllr(probability, genuine)
    shuffled = np.random.default_rng(1).permutation(500)
    assert min_cllr(probability[shuffled], genuine[shuffled]) == least
    assert min_cllr(np.exp(5 * probability), genuine) == least


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=30).filter(
        lambda rows: len({genuine for _, genuine in rows}) == 2
    ),
    st.floats(0.05, 0.95),
)
def test_no_calibration_beats_the_least_cost(rows, prior):
    values, genuine = zip(*rows, strict=True)
    probability = np.array(values) / 8
    loss = calibration_loss(probability, genuine, prior=prior)
    assert loss >= 0
    assert loss == pytest.approx(
        cllr(probability, genuine, prior=prior) - min_cllr(values, genuine)
    )
    assert 0 <= min_cllr(probability, genuine) <= 1 + 1e-12


def test_infinite_ratios_at_the_ends_cost_nothing():
    assert min_cllr([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]) == 0
    # Three blocks: one imposter, then one of each pooled, then one genuine. Half of each class is
    # sure, half is at a ratio of 1, which costs a bit.
    assert min_cllr([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1]) == 0.5
    assert min_cllr([0.3, 0.3], [0, 1]) == 1  # ties stay together


def test_certain_mistakes_have_a_price():
    assert cllr([0.0, 1.0], [1, 0]) == pytest.approx(math.log2(1 + 2.0**52))
    assert cllr([0.0, 1.0], [0, 1]) == pytest.approx(0, abs=1e-15)
    assert cllr([-5000.0, 5000.0], [1, 0], of="llr") == pytest.approx(5000 / math.log(2))


def test_counts_are_as_good_as_pairs(pairs):
    probability, genuine = pairs
    values = np.arange(0, 41) / 40  # some hold no pair
    counts = [
        np.bincount(np.rint(probability[of] * 40).astype(int), minlength=41)
        for of in (genuine, ~genuine)
    ]
    counted = Ranking.counted(values, *counts)
    for metric in (cllr, min_cllr, calibration_loss):
        assert metric(counted) == pytest.approx(metric(probability, genuine), rel=1e-12)


@pytest.mark.parametrize("metric", [cllr, min_cllr, calibration_loss])
def test_one_class_is_undefined(metric):
    assert math.isnan(metric([0.2, 0.4], [1, 1]))
    assert math.isnan(metric([0.2, 0.4], [0, 0]))
    assert math.isnan(metric(Ranking.of([0.5], [1]).subset([False])))


class TestRatio:
    @given(
        arrays(np.float64, 20, elements=st.floats(0, 1)),
        st.floats(0.01, 0.99),
        st.floats(0.01, 0.99),
    )
    def test_it_says_the_same_at_any_share(self, said, before, after):
        moved = shift_prior(said, calibrated_at=before, prior=after)
        one = log_likelihood_ratio(said, calibrated_at=before)
        other = log_likelihood_ratio(moved, calibrated_at=after)
        inside = (np.abs(one) < 20) & (np.abs(other) < 20)
        np.testing.assert_allclose(one[inside], other[inside], rtol=1e-6, atol=1e-6)

    def test_a_certain_pair_has_the_stated_ratio(self):
        found = log_likelihood_ratio([0.0, 1.0], calibrated_at=0.5)
        np.testing.assert_allclose(found, [-36.0437, 36.0437], atol=1e-4)


def test_errors_say_what_is_wrong():
    with pytest.raises(DataError, match=r"expected probabilities in \[0, 1\]"):
        cllr([-1.0, 2.0], [0, 1])
    with pytest.raises(ParameterError, match="prior: expected a share"):
        cllr([0.2, 0.4], [0, 1], prior=0)
    with pytest.raises(ParameterError, match="probability or llr; found 'score'"):
        cllr([0.2, 0.4], [0, 1], of="score")
    with pytest.raises(ParameterError, match="leave it out"):
        cllr([0.2, 0.4], [0, 1], of="llr", prior=0.5)
    with pytest.raises(ParameterError, match="calibrated_at: expected a share"):
        log_likelihood_ratio([0.5], calibrated_at=1.0)
    with pytest.raises(DataError, match=r"row 2: expected 0 to 1, found 1\.5"):
        log_likelihood_ratio([0.5, 1.5], calibrated_at=0.5)


def test_det_agrees_with_scikit_learn(pairs):
    probability, genuine = pairs
    ours = det(Ranking.of(probability, genuine))
    fpr, fnr, thresholds = det_curve(genuine, probability)
    at = {threshold: row for row, threshold in enumerate(ours.thresholds[1:], start=1)}
    # scikit-learn leaves out the flat ends, and may start above every score.
    rows = [at.get(threshold, 0) for threshold in thresholds]
    assert len(set(rows)) == len(rows) > 20
    np.testing.assert_allclose(ours.fpr[rows], fpr, rtol=0, atol=1e-15)
    np.testing.assert_allclose(ours.fnr[rows], fnr, rtol=0, atol=1e-15)


# --------------------------------------------------------------------------- bounds

RATIOS = arrays(float, st.integers(1, 40), elements=st.integers(-20, 20).map(float))
PEOPLE = st.floats(1, 1e4)


def test_bounds_by_hand():
    # Of 4 people's genuine pairs all reach log 3, of 9 people's imposters none: (4/5) / (1/10) = 8.
    ratio, genuine = np.log([3, 3, 50, 50, 1 / 20, 1 / 20]), [1, 1, 1, 1, 0, 0]
    bounds = EvidenceBounds.of(ratio, genuine, people=(4.0, 9.0))
    # At 50 half of them are left, (½ · 4/5) / (1/10) = 4, which does not bear 50 out: 4 is carried.
    assert math.exp(bounds.high) == pytest.approx(4)
    # Downwards all imposters are at 1/20: (9/10) / (1/5) = 4.5.
    assert math.exp(-bounds.low) == pytest.approx(4.5)
    # As much as it says is as far as it goes: more people would carry more.
    few = EvidenceBounds.of(np.log([3, 3, 1 / 2, 1 / 2]), [1, 1, 0, 0], people=(99.0, 99.0))
    assert [math.exp(end) for end in few[:2]] == pytest.approx([1 / 2, 3])
    # Scores that mislead, or one class alone, are no evidence.
    assert EvidenceBounds.of(-ratio, genuine, people=(4.0, 9.0))[:2] == (0, 0)
    assert EvidenceBounds.of([1.0, 2.0], [1, 1], people=(2.0, 0.0))[:2] == (0, 0)


def test_people_carry_what_their_pairs_do_not():
    """Of skewed people: is the share of genuine pairs at the bound that many times as large?"""
    rng = np.random.default_rng(1)

    def imposters(people, n):
        effect = 0.3 * (rng.exponential(size=people) - 1)
        left = rng.integers(people, size=n)
        right = (left + rng.integers(1, people, size=n)) % people
        return effect[left] + effect[right] + 0.8 * rng.standard_normal(n)

    def genuine(people):
        effect = 0.3 * (rng.exponential(size=people) - 1) + 0.5 * rng.standard_normal(people)
        return 4 + np.repeat(effect, 8) + 0.6 * rng.standard_normal(8 * people)

    truth = [np.concatenate(parts) for parts in zip(
        *((imposters(4000, 300_000), genuine(4000)) for _ in range(3)), strict=True
    )]  # fmt: skip
    broken = {"people": 0, "pairs": 0}
    for _ in range(30):
        low, high = imposters(60, 10_000), genuine(60)
        score = np.append(low, high)
        labels = np.repeat([0, 1], [len(low), len(high)])
        # The map by which the scores were drawn, were they normal: it does not know of the skew.
        slope = 4 / (low.var() + high.var()) * 2
        ratio = slope * (score - (low.mean() + high.mean()) / 2)
        for unit, people in (("people", (60, 60)), ("pairs", (len(high), len(low)))):
            bound = EvidenceBounds.of(ratio, labels, people=people).high
            at = bound / slope + (low.mean() + high.mean()) / 2
            fpr, tpr = ((scores >= at).mean() for scores in truth)
            broken[unit] += tpr < fpr * np.exp(bound)
    assert broken["people"] == 0
    assert broken["pairs"] > 5


@given(RATIOS, RATIOS, PEOPLE, PEOPLE, st.floats(1, 100))
def test_bounds_are_symmetric_and_widen_with_people(same, other, people, others, more):
    ratio, genuine = np.append(same, other), np.repeat([True, False], [len(same), len(other)])
    bounds = EvidenceBounds.of(ratio, genuine, people=(people, others))
    assert bounds.low <= 0 <= bounds.high
    # n people carry no more than n + 1 to one, nor more than the map says of anybody.
    assert bounds.high <= min(math.log(others + 1), max(ratio.max(), 0)) + 1e-9
    assert bounds.low >= max(-math.log(people + 1), min(ratio.min(), 0)) - 1e-9
    swapped = EvidenceBounds.of(-ratio, ~genuine, people=(others, people))
    assert (swapped.low, swapped.high) == pytest.approx((-bounds.high, -bounds.low))
    wider = EvidenceBounds.of(ratio, genuine, people=(people * more, others * more))
    assert wider.low <= bounds.low + 1e-9
    assert wider.high >= bounds.high - 1e-9
    assert EvidenceBounds.from_json(bounds._asdict()) == bounds


@given(arrays(float, 20, elements=st.floats(0, 1)), SHARES, st.floats(-9, 0), st.floats(0, 9))
def test_what_is_bounded_keeps_its_order(probability, share, low, high):
    bounds, p = EvidenceBounds(low, high, 10.0, 20.0), np.sort(probability)
    ratio = log_likelihood_ratio(p, calibrated_at=share, bounds=bounds)
    assert (np.diff(ratio) >= 0).all()
    assert ((ratio >= low) & (ratio <= high)).all()
    own = log_likelihood_ratio(p, calibrated_at=share)
    np.testing.assert_array_equal(ratio[~bounds.reached(own)], own[~bounds.reached(own)])
    # Probabilities cut at the ends are those of ratios cut at the bounds.
    cut = np.clip(p, *bounds.ends(share))
    again = log_likelihood_ratio(cut, calibrated_at=share)
    np.testing.assert_allclose(again, ratio, atol=1e-6)


@pytest.mark.parametrize(
    "value",
    [None, {}, {"low": 1, "high": 2, "genuine": 1, "imposter": 1, "unit": "people"},
     {"low": "x", "high": 2, "genuine": 1, "imposter": 1, "unit": "people"},
     {"low": -1, "high": math.inf, "genuine": 1, "imposter": 1, "unit": "people"},
     {"low": -1, "high": 2, "genuine": 1, "imposter": 1, "unit": "<b>"}],
)  # fmt: skip
def test_bounds_that_no_fit_wrote_are_refused(value):
    with pytest.raises(DataError, match="expected low <= 0 <= high"):
        EvidenceBounds.from_json(value)
