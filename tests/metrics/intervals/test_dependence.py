"""Design effects of error rates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from faircal.metrics.intervals.dependence import (
    AurocDependence,
    Dependence,
    ThresholdRungs,
    binary_correlation,
    heaviness_of,
)
from faircal.metrics.intervals.dyadic import Dyads, IdentifiedPairs


@pytest.mark.parametrize("rate", [0.3, 0.01, 0.001])
@pytest.mark.parametrize("latent", [0.0, 0.2, 0.7])
def test_correlation_of_exceeding(rate, latent):
    level = norm.isf(rate)
    joint = multivariate_normal([0, 0], [[1, latent], [latent, 1]]).cdf([-level, -level])
    expected = (joint - rate**2) / (rate * (1 - rate))
    assert binary_correlation(np.array(latent), np.array(rate)) == pytest.approx(expected, abs=2e-6)


def test_independent_pairs_have_none():
    rng = np.random.default_rng(0)
    shared = Dyads(np.arange(4000) * 2, np.arange(4000) * 2 + 1)
    found = Dependence.of(rng.normal(size=4000), shared)
    np.testing.assert_array_equal(found.design_effect([0.001, 0.1]), 1.0)


@pytest.mark.parametrize(("person", "couple"), [(0.0, 0.5), (0.1, 0.3), (0.2, 0.0)])
@pytest.mark.parametrize("rate", [0.1, 0.01])
def test_variance_over_draws(draw, person, couple, rate):
    """The mean design effect is that of the rates of many draws."""
    level, rates, effects = norm.isf(rate), [], []
    for seed in range(250):
        pairs = draw(seed, n=25, images=2, person=person, couple=couple)
        rates.append((pairs.scores >= level).mean())
        found = Dependence.of(pairs.scores, Dyads(pairs.left, pairs.right))
        effects.append(float(found.design_effect(rate)))
    true = np.var(rates) / (rate * (1 - rate) / len(pairs.scores))
    assert np.mean(effects) == pytest.approx(true, rel=0.3)


def test_genuine_pairs_of_a_person_go_together():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(400), 10)
    scores = np.repeat(rng.normal(size=400), 10)  # all of a person the same
    found = Dependence.of(-scores, Dyads(who, who))
    assert float(found.design_effect(0.1)) == pytest.approx(10, rel=0.05)


def test_a_rate_and_what_is_left_of_it_are_as_sure(draw):
    pairs = draw(0)
    found = Dependence.of(pairs.scores, Dyads(pairs.left, pairs.right))
    assert found.design_effect(0.02) == pytest.approx(float(found.design_effect(0.98)))


def test_few_people_make_most_of_it():
    """Where the errors are one person's, little is known of how they vary."""
    rng = np.random.default_rng(0)
    one, two = np.triu_indices(60, 1)
    even = Dependence.of(rng.normal(size=len(one)), Dyads(one, two))
    wolf = Dependence.of(rng.normal(size=len(one)) + 5.0 * (one == 0), Dyads(one, two))
    assert wolf.degrees_of_freedom(0.01) < even.degrees_of_freedom(0.01) / 3


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_few_people(n):
    one, two = np.triu_indices(n, 1)
    found = Dependence.of(np.zeros(len(one)), Dyads(one, two))
    assert float(found.design_effect(0.01)) == 1.0
    assert found.degrees_of_freedom(0.01) == 3.0


def test_all_scores_the_same():
    one, two = np.triu_indices(10, 1)
    found = Dependence.of(np.zeros(len(one)), Dyads(one, two))
    assert float(found.design_effect(0.01)) == 1.0


def test_rungs_are_used_from_the_rate_upwards_until_errors_suffice():
    """As said in words, rung by rung; of one rate or of many."""
    rng = np.random.default_rng(0)
    rates = np.sort(rng.random(9))[::-1]
    weights = rng.exponential(12.0, 9)
    wanted = np.concatenate([rng.random(50), rates, rates / 0.7, [1e-9]])
    ladder = ThresholdRungs(rates, weights, np.zeros((9, 1)), np.zeros(9))
    found = ladder.use(wanted)
    for rate, use in zip(wanted, found, strict=True):
        above = [k for k in range(9) if rates[k] >= rate * 0.7] or [0]
        expected, left = np.zeros(9), 30.0
        for k in reversed(above):
            expected[k] = min(weights[k], left)
            left -= expected[k]
        np.testing.assert_allclose(use, expected / expected.sum(), rtol=1e-14)
        np.testing.assert_array_equal(ladder.use(np.asarray(rate)), use)


def test_scores_that_are_all_the_same_tell_no_correlation():
    genuine = np.arange(600) % 2 == 0
    found = AurocDependence.of(np.zeros(600), IdentifiedPairs.of(genuine, None))
    assert not len(found.rates)
    assert float(found.design_effect(0.3)) == 0.0
    assert found.degrees_of_freedom(0.3) == 3.0


def test_heavy_tails_are_those_of_people_on_any_scale_of_scores():
    rng = np.random.default_rng(3)
    one, other = np.triu_indices(150, 1)
    noise, dyads = rng.normal(size=len(one)), Dyads(one, other)
    normal, heavy = 0.4 * rng.normal(size=150), 0.3 * rng.standard_t(3, size=150)
    for person, least, most in ((normal, -2.0, 1.75), (heavy, 3.0, np.inf)):
        scores = person[one] + person[other] + noise
        found = heaviness_of(scores, dyads)
        assert least < found < most
        assert heaviness_of(np.exp(3 * scores), dyads) == pytest.approx(found)
        dependence = Dependence.of(scores, dyads)
        assert dependence.wider == min(max(found - 0.75, 1), 4)
    genuine = np.arange(150)
    assert heaviness_of(heavy, Dyads(genuine, genuine)) == 0
    assert heaviness_of(np.zeros(len(one)), dyads) == 0


def test_decisions_make_no_heavy_tails_by_chance():
    # Errors that fall on people at random: few have two, which is no sign of a kind of people.
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        left, right = rng.integers(0, 60, (2, 600))
        apart = left != right
        decisions = (rng.random(apart.sum()) < 0.02).astype(float)
        found.append(heaviness_of(decisions, Dyads(left[apart], right[apart])))
    assert np.mean(np.array(found) > 1.75) < 0.05
    assert abs(np.median(found)) < 1
