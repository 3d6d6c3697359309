"""Probabilities for another share of genuine pairs, and that share without labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from faircal import DataError, ParameterError
from faircal.calibrators.prior import (
    estimate_prior,
    shift_prior,
)
from faircal.metrics import wilson

SHARES = st.floats(0.01, 0.99)
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def people_pairs(rng, n, share, apart, people=100, shared=0.15):
    """Return probabilities at a share of one half, labels, and the two people of each pair.

    `shared` is what each of two people adds to the variance of a score.
    """
    genuine = rng.random(n) < share
    left = rng.integers(0, people, n)
    right = np.where(genuine, left, (left + rng.integers(1, people, n)) % people)
    alone, together = rng.normal(size=(2, people))
    common = np.where(genuine, np.sqrt(2) * together[left], alone[left] + alone[right])
    score = apart * genuine + np.sqrt(shared) * common
    score += np.sqrt(1 - 2 * shared) * rng.normal(size=n)
    probability = 1 / (1 + np.exp(apart**2 / 2 - apart * score))
    return probability, genuine, left, right


class TestShift:
    def test_odds_by_hand(self):
        # From 1 : 1 to 1 : 999, odds of 999 : 1 become even.
        found = shift_prior([0.999, 0.5, 0.0, 1.0], calibrated_at=0.5, prior=0.001)
        np.testing.assert_allclose(found, [0.5, 0.001, 0.0, 1.0], rtol=1e-12)

    def test_bayes_with_known_densities(self):
        score = np.linspace(-4, 6, 50)
        genuine, imposter = norm.pdf(score, 2), norm.pdf(score)

        def posterior(share):
            return share * genuine / (share * genuine + (1 - share) * imposter)

        found = shift_prior(posterior(0.3), calibrated_at=0.3, prior=0.01)
        np.testing.assert_allclose(found, posterior(0.01), rtol=1e-9)

    @given(PROBABILITIES, SHARES, SHARES)
    def test_there_and_back_keeps_ranks_and_ends(self, said, before, after):
        said = np.array(said)
        moved = shift_prior(said, calibrated_at=before, prior=after)
        assert ((moved >= 0) & (moved <= 1)).all()
        assert (np.diff(moved[np.argsort(said, kind="stable")]) >= -1e-15).all()
        assert (moved[said == 0] == 0).all()
        assert (moved[said == 1] == 1).all()
        back = shift_prior(moved, calibrated_at=after, prior=before)
        # Odds go up to 10⁴ times as high, where a double has as many fewer digits below 1.
        np.testing.assert_allclose(back, said, atol=1e-11)

    def test_the_same_share_changes_no_bit(self):
        said = np.random.default_rng(0).random(1000)
        np.testing.assert_array_equal(shift_prior(said, calibrated_at=0.3, prior=0.3), said)

    @pytest.mark.parametrize("share", [0, 1, -0.1, 2, float("nan"), "half", None])
    def test_no_share(self, share):
        with pytest.raises(ParameterError, match="prior: expected a share"):
            shift_prior([0.5], calibrated_at=0.5, prior=share)
        with pytest.raises(ParameterError, match="calibrated_at: expected a share"):
            shift_prior([0.5], calibrated_at=share, prior=0.5)

    @pytest.mark.parametrize("said", [[0.2, 1.1], [0.2, float("nan")], [0.2, -0.1]])
    def test_no_probability(self, said):
        with pytest.raises(DataError, match="row 2"):
            shift_prior(said, calibrated_at=0.5, prior=0.1)


class TestEstimate:
    @pytest.mark.parametrize("share", [0.6, 0.1, 0.003])
    def test_maximum_of_the_likelihood(self, share):
        said, *_ = people_pairs(np.random.default_rng(1), 5000, share, 3)
        ratio = said / (1 - said) * (0.7 / 0.3)

        def loss(at):
            return -np.log1p(at * (ratio - 1)).sum()

        best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
        found = estimate_prior(said, calibrated_at=0.3)
        assert found.value == pytest.approx(best.x, rel=1e-4)
        assert loss(found.value) <= best.fun + 1e-9

    @pytest.mark.parametrize(("genuine", "pairs"), [(1, 40), (0, 500), (3, 5000), (40, 40)])
    def test_perfect_separation_is_wilson(self, genuine, pairs):
        said = np.repeat([1.0, 0.0], [genuine, pairs - genuine])
        found = estimate_prior(said, calibrated_at=0.2)
        assert found.value == pytest.approx(genuine / pairs)
        low, high = wilson(genuine, pairs)
        np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-5, atol=1e-9)

    def test_uninformative_probabilities_say_nothing(self):
        found = estimate_prior(np.full(100, 0.3), calibrated_at=0.3)
        assert (found.low, found.high) == (0, 1)
        assert np.isnan(found.value)
        assert found.design_effect == 1

    def test_no_genuine_pairs(self):
        """One-sided at 0; few imposters that look alike must not be taken for genuine pairs."""
        said, *_ = people_pairs(np.random.default_rng(2), 20_000, 0, 4)
        found = estimate_prior(said, calibrated_at=0.5)
        assert found.low == 0
        assert 0 < found.high < 1e-3

    def test_design_effect_by_hand(self):
        """Variance over couples of pairs that share a person, written out."""
        rng = np.random.default_rng(3)
        said, _, left, right = people_pairs(rng, 300, 0, 2, people=8, shared=0.3)
        found = estimate_prior(said, calibrated_at=0.5, left=left, right=right)
        ratio = said / (1 - said)
        share = max(found.value, 1 / 301)
        s = (ratio - 1) / (1 - share + share * ratio)
        s -= s.mean()
        sides = np.stack([left, right])
        shares = (sides[:, None, :, None] == sides[None, :, None, :]).any(axis=(0, 1))
        by_hand = s @ shares @ s / (s @ s)
        assert by_hand > 2
        totals = [s[(left == i) | (right == i)].sum() ** 2 for i in range(8)]
        weighing = np.sum(totals) ** 2 / np.sum(np.square(totals))
        expected = 1 + (by_hand - 1) * weighing / (weighing - 1)
        assert found.design_effect == pytest.approx(expected)
        assert found.people == 8

    def test_people_of_their_own_are_independent_pairs(self):
        said, *_ = people_pairs(np.random.default_rng(4), 1000, 0.1, 3)
        plain = estimate_prior(said, calibrated_at=0.5)
        rows = np.arange(1000)
        alone = estimate_prior(said, calibrated_at=0.5, left=rows, right=rows + 1000)
        unknown = estimate_prior(said, calibrated_at=0.5, left=-np.ones_like(rows), right=rows)
        assert (plain.low, plain.high) == (alone.low, alone.high) == (unknown.low, unknown.high)
        assert plain.people is None
        assert any("independent" in text for text in plain.notes)
        assert not any("independent" in text for text in alone.notes)

    @pytest.mark.parametrize("share", [0.5, 0.001])
    def test_coverage_where_pairs_share_people(self, share):
        """At least 93 % of 95 % intervals hold the share, but for three standard errors."""
        rng = np.random.default_rng(5)
        hits, narrow, runs = 0, 0, 120
        for _ in range(runs):
            said, _, left, right = people_pairs(rng, 5000, share, 2.5)
            found = estimate_prior(said, calibrated_at=0.5, left=left, right=right)
            plain = estimate_prior(said, calibrated_at=0.5)
            hits += found.low <= share <= found.high
            narrow += plain.low <= share <= plain.high
        slack = 3 * np.sqrt(0.93 * 0.07 / runs)
        assert hits / runs >= 0.93 - slack
        assert narrow < hits

    @pytest.mark.parametrize("said", [0.0, 0.4, 0.6, 1.0])
    def test_one_pair(self, said):
        found = estimate_prior([said], calibrated_at=0.5, left=[0], right=[1])
        assert 0 <= found.low <= found.value <= found.high <= 1

    def test_bad_input(self):
        with pytest.raises(DataError, match="found none"):
            estimate_prior([], calibrated_at=0.5)
        with pytest.raises(DataError, match="number them first"):
            estimate_prior([0.5], calibrated_at=0.5, left=["ann"], right=["bea"])
        with pytest.raises(ParameterError, match="found no right; give both"):
            estimate_prior([0.5], calibrated_at=0.5, left=[0])
        with pytest.raises(ParameterError, match="found no left; give both"):
            estimate_prior([0.5], calibrated_at=0.5, right=[0])
        with pytest.raises(ParameterError, match="level"):
            estimate_prior([0.5], calibrated_at=0.5, level=95)
