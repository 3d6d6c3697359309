"""All calibrators of a model fitted at once, against one fit at a time."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from betacal import BetaCalibration
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from faircal._base.errors import DataError, ParameterError
from faircal.calibrators import (
    CALIBRATORS,
    BetaCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    Samples,
    TemperatureCalibrator,
    logistic,
)
from faircal.compute import threads
from faircal.compute.logistic import logistic_sums

GRID = np.linspace(-1.0, 1.0, 401)
FAMILY = [BetaCalibrator, PlattCalibrator, TemperatureCalibrator]


def alone(kind, sample):
    """The map of one set, by the search that takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic, "_MANY", np.inf)
        return kind()._learn(sample)


@pytest.fixture
def no_other_solver(monkeypatch):
    """Fail where a set is left to the slow search."""

    def fail(*_, **__):
        raise AssertionError("a regular set was left to the slow search")

    monkeypatch.setattr(logistic, "fit_nonnegative", fail)


@pytest.fixture
def regular(cosines):
    """Six overlapping sets of some thousand pairs, and all of them."""
    score, genuine = cosines(30_000, genuine_part=0.3)
    left, right = np.random.default_rng(1).integers(0, 6, (2, 30_000))
    return Samples.of(score, genuine, left, right, n_sets=6)


class TestRegularData:
    @pytest.mark.parametrize("kind", FAMILY)
    def test_agrees_with_one_fit_at_a_time(self, kind, regular):
        for k, fitted in enumerate(kind().fit_sets(regular)):
            expected = alone(kind, regular[k])
            np.testing.assert_allclose(
                fitted.predict(GRID), expected.predict(GRID), rtol=0, atol=1e-9
            )

    @pytest.mark.usefixtures("no_other_solver")
    @pytest.mark.parametrize("kind", FAMILY)
    def test_needs_no_other_solver(self, kind, regular):
        assert len(kind().fit_sets(regular)) == 7

    @pytest.mark.parametrize(("gap", "spread", "part"), [(0.6, 0.1, 0.05), (0.3, 0.2, 0.002)])
    def test_few_genuine_pairs_or_well_apart(self, cosines, request, gap, spread, part):
        score, genuine = cosines(20_000, gap=gap, spread=spread, genuine_part=part)
        samples = Samples.of(score, genuine, n_sets=0)
        expected = alone(BetaCalibrator, samples[0]).predict(GRID)
        request.getfixturevalue("no_other_solver")
        (fitted,) = BetaCalibrator().fit_sets(samples)
        np.testing.assert_allclose(fitted.predict(GRID), expected, rtol=0, atol=1e-9)

    def test_few_passes_over_all_points(self, regular):
        passes = []

        def counting(features, target, mass, starts):
            sums = logistic_sums(features, target, mass, starts)

            def counted(theta, which):
                passes.append((features.shape[1], len(which)))
                return sums(theta, which)

            return counted

        BetaCalibrator().fit_sets(regular, engine=SimpleNamespace(logistic_sums=counting))
        n = regular.scores.size
        assert 1 <= sum(points == n for points, _ in passes) <= 4
        assert passes[-1][0] == n

    def test_a_slope_at_its_bound(self, cosines):
        # Odds z²·e^c, and beyond z = 1/2 fewer genuine pairs than that: b would be negative.
        rng = np.random.default_rng(0)
        z = rng.uniform(0.05, 0.95, 20_000)
        p = 1 / (1 + 0.2 / z**2) * np.where(z > 0.5, 1.5 - z, 1.0)
        samples = Samples.of(2 * z - 1, rng.random(20_000) < p, n_sets=0)
        (fitted,) = BetaCalibrator().fit_sets(samples)
        assert fitted.b_ == 0.0
        assert fitted.a_ > 0.0
        expected = alone(BetaCalibrator, samples[0]).coefficients
        np.testing.assert_allclose(fitted.coefficients, expected, rtol=0, atol=1e-8)

    def test_wrong_way_round(self, cosines):
        score, genuine = cosines(5000)
        for kind in FAMILY:
            (fitted,) = kind().fit_sets(Samples.of(score, ~genuine, n_sets=0))
            np.testing.assert_array_equal(fitted.coefficients[:-1], 0.0)

    def test_against_scipy(self, regular):
        fitted = BetaCalibrator().fit_sets(regular)[2]
        sample = regular[2]
        z = (sample.scores + 1) / 2
        x = np.stack([np.log(z), -np.log1p(-z), np.ones_like(z)])

        def objective(theta):
            eta = theta @ x
            value = sample.mass @ np.logaddexp(0, eta) - sample.genuine @ eta
            gradient = x @ (sample.mass / (1 + np.exp(-eta)) - sample.genuine)
            return value / sample.mass.sum(), gradient / sample.mass.sum()

        best = minimize(
            objective,
            [1.0, 1.0, 0.0],
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None), (0, None), (None, None)],
            options={"ftol": 1e-16, "gtol": 1e-10},
        )
        assert objective(fitted.coefficients)[0] <= best.fun + 1e-14
        np.testing.assert_allclose(fitted.coefficients, best.x, rtol=1e-3)

    def test_against_betacal(self, cosines):
        score, genuine = cosines(20_000)
        (fitted,) = BetaCalibrator().fit_sets(Samples.of(score, genuine, n_sets=0))
        # Theirs is the same model, fitted with a penalty and less closely.
        with warnings.catch_warnings():  # betacal changes the global filters
            theirs = BetaCalibration("abm").fit((score + 1) / 2, genuine).predict((score + 1) / 2)
        losses = [
            -np.log(np.where(genuine, p, 1 - p)).mean() for p in (fitted.predict(score), theirs)
        ]
        assert losses[0] <= losses[1] + 1e-12
        assert losses[0] == pytest.approx(losses[1], abs=1e-3)

    @pytest.mark.parametrize("kind", FAMILY)
    def test_a_single_fit_of_many_scores_is_the_same(self, kind, regular):
        sample = regular[6]
        single = kind().fit(sample.scores, sample.genuine, sample.mass)
        expected = alone(kind, sample).predict(GRID)
        np.testing.assert_allclose(single.predict(GRID), expected, rtol=0, atol=1e-9)


# Ties, sets of one class, tiny, separable and empty ones: all that hypothesis makes of this.
few = st.lists(
    st.tuples(
        st.integers(-9, 9), st.booleans(), st.integers(0, 3), st.integers(-1, 3), st.integers(-1, 3)
    ),
    min_size=1,
    max_size=60,
).filter(lambda rows: any(weight for _, _, weight, _, _ in rows))


def mean_loss(calibrator, sample):
    eta = calibrator.coefficients @ [*calibrator._terms(sample.scores), np.ones(len(sample.scores))]
    low, high = calibrator._targets(sample.genuine.sum(), (sample.mass - sample.genuine).sum())
    hits = sample.genuine * high + (sample.mass - sample.genuine) * low
    return (sample.mass @ np.logaddexp(0, eta) - hits @ eta) / sample.mass.sum()


@pytest.mark.parametrize("kind", FAMILY)
class TestAnySets:
    @settings(max_examples=60)
    @given(rows=few)
    def test_agrees_with_one_fit_at_a_time(self, kind, rows):
        score, genuine, times, left, right = (np.array(of) for of in zip(*rows, strict=True))
        score, genuine, left, right = (np.repeat(of, times) for of in (score, genuine, left, right))
        samples = Samples.of(score / 8, genuine, left, right, n_sets=4)
        within = samples.clipped(-1.0, 1.0)
        some = np.flatnonzero(samples.sizes).tolist()
        for k, fitted in zip(some, kind().fit_sets(samples, some), strict=True):
            expected = alone(kind, within[k])
            np.testing.assert_allclose(
                fitted.predict(GRID), expected.predict(GRID), rtol=0, atol=1e-6
            )
            assert mean_loss(fitted, within[k]) <= mean_loss(expected, within[k]) + 1e-12

    @settings(max_examples=40)
    @given(seed=st.integers(0, 10_000), steep=st.sampled_from([0.0, 3.0, 20.0, 200.0]))
    def test_random_weights(self, kind, seed, steep):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 400))
        score = rng.uniform(-1, 1, n)
        genuine = rng.random(n) < 1 / (1 + np.exp(-steep * (score - 0.2)))
        mass = rng.exponential(size=n)
        samples = Samples.of(score, genuine, n_sets=0)
        samples = replace(samples, genuine=samples.genuine * mass, mass=mass)
        (fitted,) = kind().fit_sets(samples)
        expected = alone(kind, samples[0])
        assert mean_loss(fitted, samples[0]) <= mean_loss(expected, samples[0]) + 1e-12
        np.testing.assert_allclose(fitted.predict(GRID), expected.predict(GRID), rtol=0, atol=1e-5)


class TestEveryCalibrator:
    def test_one_for_each_set_and_the_first_unfitted(self, calibrator, regular):
        fitted = calibrator.fit_sets(regular)
        assert len(fitted) == 7
        with pytest.raises(NotFittedError):
            check_is_fitted(calibrator)
        sample = regular[3]
        expected = type(calibrator)().fit(sample.scores, sample.genuine, sample.mass)
        np.testing.assert_allclose(
            fitted[3].predict(GRID), expected.predict(GRID), rtol=0, atol=1e-9
        )

    def test_only_some(self, calibrator, regular):
        every = calibrator.fit_sets(regular)
        for k, fitted in zip([5, 0], calibrator.fit_sets(regular, only=[5, 0]), strict=True):
            np.testing.assert_array_equal(fitted.predict(GRID), every[k].predict(GRID))

    def test_parameters_are_those_of_the_first(self, calibrator, regular):
        calibrator.set_params(score_range=(-0.3, 0.4))
        sample = regular[0]
        expected = type(calibrator)(score_range=(-0.3, 0.4)).fit(
            sample.scores, sample.genuine, sample.mass
        )
        fitted = calibrator.fit_sets(regular)[0]
        assert fitted.score_range == (-0.3, 0.4)
        np.testing.assert_allclose(fitted.predict(GRID), expected.predict(GRID), rtol=0, atol=1e-9)

    def test_bad_parameters(self, calibrator, regular):
        with pytest.raises(ParameterError, match="score_range"):
            calibrator.set_params(score_range=(1.0, 0.0)).fit_sets(regular)

    def test_an_empty_set(self, calibrator):
        samples = Samples.of([0.1, 0.2], [0, 1], [0, 0], n_sets=2)
        with pytest.raises(DataError, match="set 1: expected at least one pair"):
            calibrator.fit_sets(samples)
        assert len(calibrator.fit_sets(samples, only=[0, 2])) == 2


def test_every_calibrator_is_there():
    assert {kind for kind in CALIBRATORS.values() if issubclass(kind, LogisticCalibrator)} == {
        *FAMILY
    }


@pytest.fixture
def use_threads(monkeypatch):
    """Return a function that sets the number of threads; all are let go of afterwards."""

    def use(n):
        monkeypatch.setenv(threads.VARIABLE, str(n))
        threads.n_threads.cache_clear()
        threads._pool.cache_clear()

    yield use
    monkeypatch.undo()
    threads.n_threads.cache_clear()
    threads._pool.cache_clear()


def test_the_number_of_threads_changes_no_digit(use_threads):
    rng = np.random.default_rng(0)
    genuine = rng.random(60_000) < 0.3
    score = np.clip(rng.normal(genuine * 0.3, 0.15), -1, 1)
    codes = rng.integers(0, 9, (2, 60_000))

    def run(n):
        use_threads(n)
        samples = Samples.of(score, genuine, *codes, n_sets=9)
        fitted = BetaCalibrator().fit_sets(samples)
        return [one.coefficients.tobytes() for one in fitted], fitted[-1].predict(score).tobytes()

    assert run(1) == run(3)
