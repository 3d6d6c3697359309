"""The extrapolated tail: laws against SciPy, intervals against known truth, and when it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from faircal._base.errors import DataError, ParameterError
from faircal.evaluation.thresholds.tail import fit_tail
from faircal.evaluation.thresholds.tail_fit import LAWS, LINEAR, PARETO, TailPeople, fit_above

RATE = 1e-5


def couples(n: int, images: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the people of all imposter pairs."""
    left, right = np.triu_indices(n * images, 1)
    strangers = left // images != right // images
    return left[strangers] // images, right[strangers] // images


def gaussian(seed: int, n: int = 100, images: int = 3, person: float = 0.1):
    """Return scores of variance 1 in which people have a share, and who they are."""
    rng = np.random.default_rng(seed)
    left, right = couples(n, images)
    effect = rng.normal(0, person**0.5, n)
    noise = rng.normal(0, (1 - 2 * person) ** 0.5, len(left))
    return effect[left] + effect[right] + noise, left, right


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.2])
def test_pareto_agrees_with_scipy(shape: float) -> None:
    excess = stats.genpareto(shape).rvs(2000, random_state=3)
    log_scale, found = PARETO.fit(excess)
    shape_, _, scale = stats.genpareto.fit(excess, floc=0)
    assert found == pytest.approx(shape_, abs=2e-3)
    assert math.exp(log_scale) == pytest.approx(scale, rel=2e-3)
    x = np.array([0.5, 1.0, 2.0])
    law = stats.genpareto(found, scale=math.exp(log_scale))
    assert PARETO.log_share(np.array([log_scale, found]), x) == pytest.approx(-law.logsf(x))


def test_linear_hazard_finds_its_parameters() -> None:
    log_share = np.random.default_rng(1).exponential(size=50_000)
    at = np.array([0.8, 0.3])
    assert LINEAR.fit(LINEAR.excess(at, log_share)) == pytest.approx(at, abs=0.03)


def test_linear_hazard_does_not_fall() -> None:
    heavy = stats.genpareto(0.4).rvs(2000, random_state=0)
    assert LINEAR.fit(heavy)[1] == 0.0


@pytest.mark.parametrize("family", LAWS, ids=lambda family: family.name)
def test_derivatives_are_those_of_the_likelihood(family) -> None:
    """Of log density = log hazard - log_share, by differences."""
    x = np.array([0.2, 0.9, 2.5])
    at = np.array([0.9, 0.2])
    h = 1e-4

    def log_density(theta):
        hazard = (family.log_share(theta, x + h) - family.log_share(theta, x - h)) / (2 * h)
        return np.log(hazard) - family.log_share(theta, x)

    def slopes(f):
        steps = h * np.eye(2)
        return [(f(at + step) - f(at - step)) / (2 * h) for step in steps]

    first, second = family.derivatives(at, x)
    np.testing.assert_allclose(first.T, slopes(log_density), atol=1e-5)
    both = np.array(slopes(lambda theta: family.derivatives(theta, x)[0].T))
    expected = [both[0, 0], both[0, 1], both[1, 1]]
    np.testing.assert_allclose(second.T, expected, atol=1e-5)
    assert family.excess(at, family.log_share(at, x)) == pytest.approx(x)


@pytest.mark.parametrize("which", [0, 1])
def test_leaving_out_a_person_is_fitting_without_them(which: int) -> None:
    scores, left, right = gaussian(0, n=60)
    rung = fit_above(scores, TailPeople.of(left, right), 0.05)
    over = scores > rung.threshold
    excess = (scores[over] - rung.threshold) / rung.unit
    person = int(np.argmax(np.bincount(left[over]))) if which else 5
    kept = (left[over] != person) & (right[over] != person)
    for fit in rung.fits:
        again = fit.family.fit(excess[kept])
        move = np.linalg.norm(again - fit.at)
        assert np.linalg.norm(fit.without_person[person] - again) < 0.2 * move + 1e-3
    share = kept.sum() / ((left != person) & (right != person)).sum()
    assert rung.person_share[person] == pytest.approx(share)


def test_interval_covers_at_1e5() -> None:
    """40 draws of 79,200 pairs, where ten errors are a rate of 1e-4; more in the study."""
    truth = stats.norm.isf(RATE)
    covered, held, widths = 0, 0, []
    for seed in range(40):
        tail = fit_tail(*gaussian(seed, images=4), upper=math.inf)
        value, low, high = tail.threshold(RATE)
        rate = tail.fpr(truth)
        assert low < value < high
        assert (low <= truth <= high) == (rate.low <= RATE <= rate.high)
        covered += low <= truth <= high
        held += tail.threshold_for(RATE, 0.9) >= truth
        widths.append(high - low)
    assert covered >= 37  # 95 % of 40 is 38
    assert held >= 34
    assert np.median(widths) < 1.3


def test_pairs_taken_as_independent_are_surer_than_they_should_be() -> None:
    scores, left, right = gaussian(1, n=150, person=0.2)
    known = fit_tail(scores, left, right, upper=math.inf)
    unknown = fit_tail(scores, upper=math.inf)
    assert unknown.rungs[0].independent and not known.rungs[0].independent
    narrow, wide = unknown.threshold(RATE), known.threshold(RATE)
    assert narrow.high - narrow.low < 0.8 * (wide.high - wide.low)
    assert narrow.value == pytest.approx(wide.value)


def test_rate_and_threshold_are_the_same_curve() -> None:
    tail = fit_tail(*gaussian(2), upper=math.inf)
    for rate in (1e-3, 1e-4, 1e-5):
        value, _, _ = tail.threshold(rate)
        assert tail.fpr(value).value == pytest.approx(rate, rel=1e-4)
        strict = tail.threshold_for(rate, 0.99)
        assert tail.upper_bound(strict, 0.99) == pytest.approx(rate, rel=1e-4)
        assert strict > tail.threshold_for(rate, 0.9) > value


def test_order_sides_and_scale_do_not_matter() -> None:
    scores, left, right = gaussian(3)
    first = fit_tail(scores, left, right, upper=math.inf).threshold(RATE)
    order = np.random.default_rng(0).permutation(len(scores))
    again = fit_tail(scores[order], right[order], left[order], upper=math.inf).threshold(RATE)
    assert again == pytest.approx(first, rel=1e-6)
    moved = fit_tail(0.1 * scores + 2, left, right, upper=math.inf).threshold(RATE)
    assert moved == pytest.approx(tuple(0.1 * np.array(first) + 2), rel=1e-5)


def test_thresholds_stay_below_upper() -> None:
    scores, left, right = gaussian(4, person=0.25)
    upper = float(scores.max()) + 0.05
    tail = fit_tail(scores, left, right, upper=upper)
    assert tail.threshold_for(RATE, 0.99) == upper
    assert tail.fpr(upper).high > 0


def test_too_few_people_or_pairs() -> None:
    scores, left, right = gaussian(5, n=30, images=6)
    tail = fit_tail(scores, left, right, upper=math.inf)
    assert not tail.fits
    assert tail.reason == "too few people: expected 80, found 30 people (effective)"
    assert all(math.isnan(v) for v in (*tail.threshold(RATE), *tail.fpr(4.0)))
    assert math.isnan(tail.threshold_for(RATE)) and math.isnan(tail.upper_bound(4.0))
    scores, left, right = gaussian(5, n=100, images=1)
    few = fit_tail(scores, left, right, upper=math.inf)
    assert few.reason == "too few imposter pairs: expected 10000, found 4950"
    assert fit_tail([], upper=math.inf).reason.endswith("found 0")


def test_wolves_are_refused() -> None:
    """Three people in 150 who are like everybody else: at 1e-5 it is all about them."""
    scores, left, right = gaussian(6, n=150, images=2)
    scores = scores + 3.0 * ((left < 3).astype(float) + (right < 3))
    assert "too few people" in fit_tail(scores, left, right, upper=math.inf).reason


def test_a_law_that_does_not_fit_is_refused() -> None:
    """A second bump far out: no law that starts at 3 % or at 1 % can tell of it."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(40_000)
    scores[:300] = rng.normal(6, 0.2, 300)
    reason = fit_tail(scores, upper=math.inf).reason
    assert reason.startswith(("no law fits", "the tail's shape", "the tail changes"))


def test_goodness_of_fit_has_its_level_under_shared_people() -> None:
    """In 60 draws, 3 should be refused by each law; taken as independent, far more would be."""
    people, alone = 0, 0
    for seed in range(60):
        scores, left, right = gaussian(seed, n=80, images=2, person=0.25)
        people += fit_above(scores, TailPeople.of(left, right), 0.03).fits[1].p_value < 0.05
        alone += fit_above(scores, TailPeople.of(None, None), 0.03).fits[1].p_value < 0.05
    assert people <= 7
    assert alone > people


def test_goodness_of_fit_of_independent_pairs_is_uniform() -> None:
    rng = np.random.default_rng(8)
    p_values = []
    for _ in range(100):
        scores = stats.genpareto(-0.1).rvs(2000, random_state=rng)
        p_values.append(fit_above(scores, TailPeople.of(None, None), 0.5).fits[0].p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_ties_are_refused() -> None:
    scores, left, right = gaussian(9)
    assert "tied" in fit_tail(np.round(scores, 1), left, right, upper=math.inf).reason
    assert "tied" in fit_tail(np.minimum(scores, 2.0), left, right, upper=2.0).reason


def test_a_rate_that_is_too_low_is_refused_and_bounded() -> None:
    tail = fit_tail(*gaussian(10), upper=math.inf)
    assert "200 times below" in tail.why_not(1e-8)
    assert all(math.isnan(v) for v in tail.threshold(1e-8))
    far = tail.fpr(12.0)
    assert math.isnan(far.value) and far.low == 0 and far.high == tail.lowest
    assert tail.upper_bound(12.0) == tail.lowest


def test_what_can_be_counted_is_not_extrapolated() -> None:
    tail = fit_tail(*gaussian(11), upper=math.inf)
    with pytest.raises(ParameterError, match="count the errors"):
        tail.threshold(0.01)
    with pytest.raises(ParameterError, match="count the errors"):
        tail.fpr(1.0)


def test_bad_input() -> None:
    scores, left, right = gaussian(12)
    with pytest.raises(ParameterError, match="upper"):
        fit_tail(scores, left, right)
    with pytest.raises(DataError, match="finite"):
        fit_tail(np.append(scores, np.nan), upper=math.inf)
    with pytest.raises(DataError, match="give both sides or neither"):
        fit_tail(scores, left, upper=math.inf)
    with pytest.raises(DataError, match="right"):
        fit_tail(scores, left, right.astype(float), upper=math.inf)
    with pytest.raises(ParameterError, match="confidence"):
        fit_tail(scores, left, right, upper=math.inf, confidence=95)
