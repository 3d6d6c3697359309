"""Small groups that borrow from others: what it gains, and whether its intervals hold."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from faircal.errors import DataError, ParameterError
from faircal.metrics import shrink, shrinkage, wilson

#: Effective trials of 16 groups around a rate of 1 %: from 20, a fifth of an error, to 2,000; small
#: and large ones stand beside each other in every attribute.
TRIALS = np.round(np.geomspace(20, 2000, 16))[np.arange(16) * 7 % 16]
SMALL = TRIALS < 200
ETHNICITY, GENDER = np.repeat(np.arange(8), 2), np.tile([0, 1], 8)
PARTS = [ETHNICITY, GENDER]


def simulate(spread, *, of_parts=0.0, draws, seed, parts=()):
    """Return squared errors of own and shrunk rates of small groups, and what intervals hold."""
    rng = np.random.default_rng(seed)
    own, shrunk, held = [], [], []
    for _ in range(draws):
        odds = logit(0.01) + rng.normal(0, spread, 16)
        odds += rng.normal(0, of_parts, 8)[ETHNICITY] + rng.normal(0, of_parts, 2)[GENDER]
        truth = expit(odds)
        errors = rng.binomial(TRIALS.astype(int), truth)
        found = shrink(errors, TRIALS, parts=parts)
        own.append(((errors / TRIALS - truth) ** 2)[SMALL].mean())
        shrunk.append(((found.rate - truth) ** 2)[SMALL].mean())
        held.append(((found.low <= truth) & (truth <= found.high)).mean())
    return np.mean(own), np.mean(shrunk), np.mean(held)


# Equal groups are a limit: there, intervals from an even prior on the spread hold too often.
@pytest.mark.parametrize(("spread", "gain", "most"), [(0.0, 10, 1.0), (0.7, 3, 0.97)])
def test_gains_in_small_groups_and_its_intervals_hold(spread, gain, most):
    own, shrunk, held = simulate(spread, draws=250, seed=3)
    assert shrunk < own / gain
    assert 0.93 <= held <= most


def test_attributes_help_where_they_matter():
    crossed = simulate(0.2, of_parts=0.7, draws=120, seed=4)
    by_parts = simulate(0.2, of_parts=0.7, draws=120, seed=4, parts=PARTS)
    assert by_parts[0] == crossed[0]  # the same draws
    assert by_parts[1] < 0.9 * crossed[1] < 0.9 * crossed[0]
    assert by_parts[2] >= 0.93


def test_one_group_is_the_integral_it_stands_for(monkeypatch):
    # With one spread s alone, log-odds are normal around the overall rate's with the variance
    # s² + 3² beforehand; its mean rate is a ratio of two integrals.
    monkeypatch.setattr(shrinkage, "SPREADS", np.array([0.5]))
    errors, trials = 3.5, 40.25
    prior = norm(logit((errors + 0.5) / (trials + 1)), np.sqrt(0.5**2 + 3**2))

    def posterior(x):
        return prior.pdf(x) * np.exp(errors * x - trials * np.logaddexp(0, x) + 12)

    mass, mean = (
        quad(f, -30, 20, limit=500)[0] for f in (posterior, lambda x: posterior(x) * expit(x))
    )
    found = shrink([errors], [trials])
    assert found.rate[0] == pytest.approx(mean / mass, rel=1e-3)
    below = quad(posterior, -30, logit(found.low[0]), limit=500)[0] / mass
    assert below == pytest.approx(0.025, abs=1e-3)


def test_large_groups_keep_their_own():
    errors, trials = np.array([1000.0, 3000, 9000, 27000]), np.full(4, 1e6)
    found = shrink(errors, trials)
    np.testing.assert_allclose(found.rate, errors / trials, rtol=0.002)
    low, high = wilson(errors, trials)
    np.testing.assert_allclose(found.low, low, rtol=0.005)
    np.testing.assert_allclose(found.high, high, rtol=0.005)
    assert (found.weight > 0.99).all()
    assert found.spread_low > 0.5  # log-odds 1.1 apart


def test_small_groups_go_to_the_others():
    found = shrink([100, 100, 100, 100, 3], [10000] * 4 + [30])
    assert 0.01 < found.rate[4] < 0.05  # its own is 0.1
    assert found.weight[4] < 0.2 < found.weight[0]
    assert found.low[4] < found.rate[4] < found.high[4]
    assert found.spread_low < 0.1


def test_a_group_without_trials_gets_what_the_others_say():
    found = shrink([40, 60, 0], [4000, 4000, 0])
    assert found.weight[2] == 0
    assert found.low[2] < 0.01 < found.high[2]
    assert found.high[2] - found.low[2] > 3 * (found.high[0] - found.low[0])


def test_attributes_tell_of_a_crossed_group_without_trials():
    # The second gender's rate is four times the first's everywhere.
    rates = np.tile([0.01, 0.04], 4)
    trials = np.array([2e4] * 7 + [0])
    parts = [np.repeat(np.arange(4), 2), np.tile([0, 1], 4)]
    found = shrink(rates * trials, trials, parts=parts)
    assert found.low[7] < 0.04 < found.high[7]
    assert found.low[7] > 0.015
    assert shrink(rates * trials, trials).low[7] < 0.01


def test_no_error_at_all_is_bounded_away_from_certainty():
    found = shrink([0, 0, 0], [300, 300, 300])
    assert (found.high > 1e-3).all()
    assert (found.high < 0.02).all()
    assert (found.low >= 0).all()


def test_order_of_groups_and_level():
    errors, trials = np.array([2.0, 30, 7, 0]), np.array([100.0, 900, 300, 50])
    found = shrink(errors, trials)
    turned = shrink(errors[::-1], trials[::-1])
    np.testing.assert_allclose(turned.rate[::-1], found.rate, rtol=1e-9)
    narrower = shrink(errors, trials, level=0.5)
    assert (narrower.low > found.low).all()
    assert (narrower.high < found.high).all()
    np.testing.assert_array_equal(narrower.rate, found.rate)


def test_nothing_gives_nothing():
    found = shrink([0, 0], [0, 0])
    assert np.isnan(found.rate).all()
    assert np.isnan(found.spread)


def test_errors_say_what_is_wrong():
    with pytest.raises(DataError, match="found 5 of 4 in group 1; pass 0 of 0"):
        shrink([1, 5], [4, 4])
    with pytest.raises(DataError, match="found nan of nan in group 0"):
        shrink([np.nan, 1], [np.nan, 4])
    with pytest.raises(DataError, match="errors and trials of each group"):
        shrink([1], [4, 4])
    with pytest.raises(DataError, match=r"one code per group \(2\)"):
        shrink([1, 1], [4, 4], parts=[[0, 1, 2]])
    with pytest.raises(ParameterError, match="level"):
        shrink([1, 1], [4, 4], level=95)
