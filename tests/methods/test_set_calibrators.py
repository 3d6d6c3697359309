"""A calibrator for each set of pairs, side by side."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import DataError
from faircal.calibrators import CALIBRATORS, Samples, make_calibrator
from faircal.compute.counting import ScoreCounts, fine_edges
from faircal.methods.set_calibrators import SetCalibrators

RANGE = (-1.0, 1.0)


def samples_of(score, genuine, sets):
    """Samples of sets given by the rows of each, however many a pair is in."""
    codes = np.full((len(sets), len(score)), -1)
    for k, rows in enumerate(sets):
        codes[k, rows] = k
    return Samples.of(score, genuine, *codes, n_sets=len(sets))


def predicted(fitted, score, which):
    """The probability of each score under the calibrator of its set."""
    (probability,) = fitted.predict(score, which)
    return probability


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    genuine = rng.random(300) < 0.4
    return np.clip(rng.normal(np.where(genuine, 0.4, 0.0), 0.2), -1, 1), genuine


@pytest.fixture
def sets(sample):
    """Two sets of both classes, one of imposters only, one too small, one empty."""
    genuine = sample[1]
    return [
        np.arange(100),
        np.flatnonzero(~genuine),
        np.arange(9),
        np.empty(0, dtype=int),
        np.arange(50, 300),
    ]


@pytest.fixture(params=list(CALIBRATORS))
def fitted(request, sample, sets):
    return SetCalibrators.fit(make_calibrator(request.param, RANGE), samples_of(*sample, sets))


def test_which_sets_have_their_own(fitted):
    assert fitted.own.tolist() == [True, False, False, False, True]


def test_predict_by_set(fitted, sample, sets):
    score, genuine = sample
    which = np.arange(300) % 8 - 3  # −3 … 4
    assert which.min() == -3
    overall = type(fitted.fallback)(score_range=RANGE).fit(score, genuine)
    expected = []
    for s, k in zip(score, which, strict=True):
        one = overall
        if k in (0, 4):
            one = type(overall)(score_range=RANGE).fit(score[sets[k]], genuine[sets[k]])
        expected.append(one.predict([s])[0])
    np.testing.assert_allclose(predicted(fitted, score, which), expected, rtol=0, atol=1e-9)


def test_nothing_to_predict(fitted):
    assert predicted(fitted, np.empty(0), np.empty(0, dtype=int)).shape == (0,)


def test_no_sets(sample):
    fitted = SetCalibrators.fit(make_calibrator("beta", RANGE), samples_of(*sample, []))
    found = predicted(fitted, sample[0], np.full(300, -1))
    np.testing.assert_array_equal(found, fitted.fallback.predict(sample[0]))


def test_state_restores_everything(fitted, sample):
    which = np.arange(300) % 6 - 1
    name = next(name for name, kind in CALIBRATORS.items() if kind is type(fitted.fallback))
    restored = SetCalibrators.restore(make_calibrator(name, RANGE), fitted.get_state())
    np.testing.assert_array_equal(restored.own, fitted.own)
    expected = predicted(fitted, sample[0], which)
    np.testing.assert_array_equal(predicted(restored, sample[0], which), expected)


def test_state_is_arrays_only(fitted):
    for value in fitted.get_state().values():
        assert isinstance(value, np.ndarray)
        assert value.dtype != object


def test_state_of_another_calibrator(sample, sets):
    state = SetCalibrators.fit(
        make_calibrator("beta", RANGE), samples_of(*sample, sets)
    ).get_state()
    with pytest.raises(DataError, match="another kind of calibrator"):
        SetCalibrators.restore(make_calibrator("isotonic", RANGE), state)


@pytest.fixture
def clusters():
    """Left and right clusters of the pairs; the last of four is empty."""
    return np.random.default_rng(3).integers(0, 3, (2, 300))


@pytest.fixture(params=list(CALIBRATORS))
def mixed(request, sample, clusters):
    """Calibrators of four clusters, one of them on the global map, and their sizes."""
    samples = Samples.of(*sample, *clusters, n_sets=4)
    return SetCalibrators.fit(make_calibrator(request.param, RANGE), samples), samples.sizes[:-1]


class TestSamples:
    def test_the_last_set_is_the_global_one(self, mixed, sample):
        fitted, _ = mixed
        assert fitted.own.tolist() == [True, True, True, False]
        overall = type(fitted.fallback)(score_range=RANGE).fit(*sample)
        expected = overall.predict(sample[0])
        for which in (3, -1):
            found = predicted(fitted, sample[0], np.full(300, which))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

    def test_as_rows_of_each_set(self, mixed, sample, clusters):
        left, right = clusters
        sets = [np.flatnonzero((left == k) | (right == k)) for k in range(4)]
        name = next(name for name, kind in CALIBRATORS.items() if kind is type(mixed[0].fallback))
        other = SetCalibrators.fit(make_calibrator(name, RANGE), samples_of(*sample, sets))
        np.testing.assert_array_equal(
            predicted(other, sample[0], left), predicted(mixed[0], sample[0], left)
        )

    def test_too_few_pairs_or_one_class(self, sample):
        score, genuine = sample
        codes = np.full(300, -1)
        codes[np.flatnonzero(genuine)[:50]] = 0
        codes[np.flatnonzero(~genuine)[:5]] = codes[np.flatnonzero(genuine)[50:54]] = 1
        samples = Samples.of(score, genuine, codes, n_sets=2)
        fitted = SetCalibrators.fit(make_calibrator("beta", RANGE), samples)
        assert fitted.own.tolist() == [False, False]
        fitted = SetCalibrators.fit(make_calibrator("beta", RANGE), samples, 9)
        assert fitted.own.tolist() == [False, True]


class TestMix:
    def test_by_its_formula(self, mixed, sample, clusters):
        fitted, sizes = mixed
        left, right = clusters
        right = np.where(np.arange(300) % 7, right, 3)
        p1, p2 = fitted.predict(sample[0], left, right)
        theta = sizes[left] / (sizes[left] + sizes[right])
        expected = theta * p1 + (1 - theta) * p2
        found = fitted.mix(sample[0], left, right, sizes)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)

    def test_the_same_bits_with_left_and_right_swapped(self, mixed, sample, clusters):
        fitted, sizes = mixed
        left, right = clusters
        np.testing.assert_array_equal(
            fitted.mix(sample[0], left, right, sizes),
            fitted.mix(sample[0], right, left, sizes),
        )

    def test_two_clusters_without_pairs(self, mixed, sample):
        fitted, sizes = mixed
        empty = np.full(300, 3)
        assert sizes[3] == 0
        np.testing.assert_array_equal(
            fitted.mix(sample[0], empty, empty, sizes), predicted(fitted, sample[0], empty)
        )

    def test_block_by_block_is_the_same(self, mixed, sample, clusters):
        fitted, sizes = mixed
        out = np.empty(300)
        for start in range(0, 300, 7):
            part = slice(start, start + 7)
            out[part] = fitted.mix(sample[0][part], *clusters[:, part], sizes)
        np.testing.assert_array_equal(out, fitted.mix(sample[0], *clusters, sizes))

    def test_many_blocks(self, mixed):
        fitted, sizes = mixed
        rng = np.random.default_rng(5)
        score = rng.uniform(-1.2, 1.2, 40_000)
        left, right = rng.integers(0, 4, (2, 40_000))
        whole = fitted.mix(score, left, right, sizes)
        few = slice(17_000, 17_010)
        np.testing.assert_array_equal(
            whole[few], fitted.mix(score[few], left[few], right[few], sizes)
        )

    def test_nothing_to_mix(self, mixed):
        none = np.empty(0, dtype=int)
        assert mixed[0].mix(np.empty(0), none, none, mixed[1]).shape == (0,)


def test_counted_scores_are_as_good(sample, clusters):
    counts = ScoreCounts.zeros(5, fine_edges(*RANGE))
    counts.add(*sample, *clusters, 4)
    counted = SetCalibrators.fit(make_calibrator("beta", RANGE), Samples.from_counts(counts))
    exact = SetCalibrators.fit(
        make_calibrator("beta", RANGE), Samples.of(*sample, *clusters, n_sets=4)
    )
    np.testing.assert_array_equal(counted.own, exact.own)
    scores = np.tile(np.linspace(-1, 1, 501), 5)
    which = np.repeat(np.arange(-1, 4), 501)
    difference = np.abs(predicted(counted, scores, which) - predicted(exact, scores, which)).max()
    assert difference <= 1e-5
