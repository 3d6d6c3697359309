"""Maps by traits: against a generic optimiser, and which of them is taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from faircal.calibrators import PlattCalibrator
from faircal.methods.trait_maps import LabelledTraits, TraitMap, choose_map


def drawn(n=3000, closer=1.0, steeper=0.0, told=1.0, seed=0):
    """Return pairs of people in ten parts.

    Strangers look as much more alike as the first trait of both images says, times `closer`; it
    is told by `told`, the rest of what is told is noise.
    """
    rng = np.random.default_rng(seed)
    genuine = rng.random(n) < 0.4
    traits = rng.normal(size=(2, n, 3)) * (0.1, 0.05, 0.2) + (0.3, 0.2, 0.1)
    trust = np.where(rng.random((2, n, 1)) < 0.1, rng.random((2, n, 1)), 1.0)
    z = 0.4 * genuine + 0.1 * rng.normal(size=n) * (1 + steeper * traits[:, :, 2].sum(axis=0))
    alike = traits[:, :, 0].mean(axis=0)
    shown = np.where(rng.random((2, n, 3)) < told, traits, traits[:, rng.permutation(n)])
    return LabelledTraits(
        score=z + closer * alike,
        left=np.concatenate([shown[0], trust[0]], axis=1),
        right=np.concatenate([shown[1], trust[1]], axis=1),
        genuine=genuine,
        weight=np.where(genuine, 1.0, rng.uniform(0.5, 1.5, n)),
        part=rng.integers(0, 10, (n, 1)).repeat(2, axis=1),
        unit=2.0,
    )


@pytest.fixture(scope="module")
def pairs():
    return drawn(closer=0.7, steeper=1.0)


@pytest.fixture(scope="module")
def learned(pairs):
    return TraitMap.fit("learned", pairs, "beta")


def standardised(pairs):
    """Return φ + φ' of each pair."""
    weight = np.where(pairs.genuine, 0, pairs.weight)
    sides = [side[:, :3] for side in (pairs.left, pairs.right)]
    mean = np.average((sides[0] + sides[1]) / 2, axis=0, weights=weight)
    var = np.average(sum((side - mean) ** 2 for side in sides) / 2, axis=0, weights=weight)
    return sum(
        doubted(np.clip((side[:, :3] - mean) / np.sqrt(var), -3, 3)) * side[:, 3:]
        for side in (pairs.left, pairs.right)
    )


def doubted(traits):
    return np.where(traits < -0.9, -0.9 + (traits + 0.9) / 4, traits)


def shift(fitted, pairs, part=0.5):
    """Return h + h': a quarter of a standard deviation where an image is not trusted at all."""
    away = 0.0
    for side in (pairs.left, pairs.right):
        first, trust = (side[:, 0] - fitted.mean[0]) / fitted.scale[0], side[:, 3]
        away = away + trust * doubted(first) + (1 - trust) / 4
    return part * fitted.scale[0] * away


def test_learned_is_the_least_penalised_loss(pairs, learned):
    both, y = standardised(pairs), np.where(pairs.genuine, 1.0, -1.0)
    t = learned.calibrator.log_odds(pairs.score - shift(learned, pairs))

    def loss(theta):
        u0, u, v0, v = theta[0], theta[1:4], theta[4], theta[5:]
        log_odds = u0 + both @ u + (v0 + both @ v) * t
        price = 1e-6 * (u0**2 + v0**2) + 60 * pairs.unit * (u @ u + v @ v)
        return pairs.weight @ np.logaddexp(0, -y * log_odds) + price / 2

    def slope(theta):
        u0, u, v0, v = theta[0], theta[1:4], theta[4], theta[5:]
        off = -y * pairs.weight / (1 + np.exp(y * (u0 + both @ u + (v0 + both @ v) * t)))
        ridge = 60 * pairs.unit
        parts = off.sum() + 1e-6 * u0, off @ both + ridge * u
        return np.hstack([*parts, off @ t + 1e-6 * v0, (off * t) @ both + ridge * v])

    best = minimize(loss, np.zeros(8), jac=slope, method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(learned.effects.ravel(), best.x, rtol=0, atol=1e-6)
    assert np.abs(learned.effects[:, 1:]).max() > 0.05  # there is something to be learned


def test_log_odds_as_written(pairs, learned):
    score = pairs.score - shift(learned, pairs)
    both, (u, v) = standardised(pairs), learned.effects
    slope = np.maximum(v[0] + both @ v[1:], 0)
    expected = u[0] + both @ u[1:] + slope * learned.calibrator.log_odds(score)
    added = learned.of_images(pairs.left) + learned.of_images(pairs.right)
    np.testing.assert_allclose(learned.log_odds(pairs.score, added), expected, rtol=0, atol=1e-9)


numbers = st.tuples(
    *[st.floats(-2, 2, allow_subnormal=False)] * 3, st.floats(0, 1, allow_subnormal=False)
)


@given(left=numbers, right=numbers, scores=st.tuples(*[st.floats(-1, 1)] * 2))
def test_monotone_and_symmetric(learned, left, right, scores):
    """Of any two images, however far off their traits are."""
    one, two = (learned.of_images(np.array([side])) for side in (left, right))
    low, high = (learned.log_odds(np.array([score]), one + two) for score in sorted(scores))
    assert low[0] <= high[0]
    assert learned.log_odds(np.array([max(scores)]), two + one)[0] == high[0]


def test_an_image_without_trust_shifts_scores_whatever_it_looks_like(learned):
    untrusted = np.array([[5.0, -3.0, 2.0, 0.0]])
    added = [[0.5 * 0.25 * learned.scale[0], 0, 0]]
    np.testing.assert_allclose(learned.of_images(untrusted), added, rtol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "shifted"])
def test_plainer_maps_are_a_calibrator_of_a_score(kind, pairs):
    fitted = TraitMap.fit(kind, pairs, PlattCalibrator())
    part = {"plain": 0.0, "shifted": 0.5}[kind]
    score = pairs.score - shift(fitted, pairs, part)
    again = PlattCalibrator(score_range=fitted.calibrator.score_range)
    again.fit(score, pairs.genuine, pairs.weight)
    added = fitted.of_images(pairs.left) + fitted.of_images(pairs.right)
    np.testing.assert_allclose(
        fitted.log_odds(pairs.score, added), again.log_odds(score), rtol=0, atol=1e-9
    )


class TestChoice:
    @pytest.mark.parametrize("seed", range(3))
    def test_traits_that_tell_nothing(self, seed):
        """As of one population, or of people mixed up: the shift would be noise."""
        noise = drawn(closer=1.0, told=0.0, seed=seed)
        assert choose_map(noise, "platt")[0] == "plain"

    def test_a_shift_that_says_all(self):
        assert choose_map(drawn(closer=1.0), "platt")[0] == "shifted"

    def test_more_than_a_shift(self):
        kind, trials = choose_map(drawn(closer=1.6), "platt")
        assert kind == "learned"
        plain, shifted, learned = (trial.losses.mean() for trial in trials)
        assert learned < shifted < plain

    def test_shuffled_labels(self):
        """Nothing is learned by heart."""
        pairs = drawn()
        order = np.random.default_rng(0).permutation(len(pairs.score))
        shuffled = LabelledTraits(**{**vars(pairs), "genuine": pairs.genuine[order]})
        kind, trials = choose_map(shuffled, "platt")
        assert kind != "learned"
        losses = [trial.losses.mean() for trial in trials]
        assert max(losses) - min(losses) < 0.002

    @pytest.mark.parametrize("part", [0, -1])
    def test_nobody_can_be_held_out(self, part):
        pairs = drawn(100)
        alone = LabelledTraits(**{**vars(pairs), "part": np.full((100, 2), part)})
        kind, trials = choose_map(alone, "platt")
        assert kind == "plain"
        assert [len(trial.losses) for trial in trials] == [0, 0, 0]

    def test_people_held_out_are_in_no_pair_of_the_fit(self, monkeypatch):
        pairs, fit, fitted = drawn(300), TraitMap.fit, []
        parts = np.random.default_rng(0).integers(-1, 3, (300, 2))
        pairs = LabelledTraits(**{**vars(pairs), "part": parts})

        def spy(kind, some, calibrator):
            fitted.append(some)
            return fit(kind, some, calibrator)

        monkeypatch.setattr(TraitMap, "fit", spy)
        choose_map(pairs, "platt")
        for number, some in enumerate(fitted[:3]):
            assert not (some.part == number).any()
            assert len(some.part) == (parts != number).all(axis=1).sum()


def test_classes_that_scores_tell_apart():
    """No map is steep beyond all numbers."""
    pairs = drawn(400)
    apart = LabelledTraits(**{**vars(pairs), "score": np.where(pairs.genuine, 0.9, 0.1)})
    fitted = TraitMap.fit("learned", apart, "beta")
    added = fitted.of_images(pairs.left) + fitted.of_images(pairs.right)
    assert np.isfinite(fitted.log_odds(pairs.score, added)).all()


def test_traits_of_no_variance():
    pairs = drawn(400)
    flat = LabelledTraits(**{**vars(pairs), "left": np.ones((400, 4)), "right": np.ones((400, 4))})
    fitted = TraitMap.fit("learned", flat, "platt")
    np.testing.assert_allclose(fitted.effects[:, 1:], 0, atol=1e-9)
