"""The pairs of many sets side by side."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal._base.errors import DataError, ParameterError
from faircal.calibrators import Samples
from faircal.calibrators.samples import tally
from faircal.compute.counting import ScoreCounts

rows = st.lists(
    st.tuples(
        st.integers(-6, 6), st.booleans(), st.integers(0, 3), st.integers(-1, 3), st.integers(-1, 3)
    ),
    min_size=1,
    max_size=40,
).filter(lambda found: any(weight for _, _, weight, _, _ in found))


def check_same(found, expected):
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.genuine, expected.genuine)
    np.testing.assert_array_equal(found.mass, expected.mass)


class TestOf:
    def test_by_hand(self):
        # Pair 0 is in set 1 twice and counts once; pair 2 is in none; pair 3 in sets 0 and 1.
        samples = Samples.of(
            [0.4, 0.1, 0.3, 0.2], [1, 0, 1, 0], [1, 0, -1, 0], [1, -1, -1, 1], n_sets=3
        )
        assert len(samples) == 4
        np.testing.assert_array_equal(samples.starts, [0, 2, 4, 4, 8])
        np.testing.assert_array_equal(samples.sizes, [2, 2, 0, 4])
        np.testing.assert_array_equal(samples.scores, [0.1, 0.2, 0.2, 0.4, 0.1, 0.2, 0.3, 0.4])
        np.testing.assert_array_equal(samples.genuine, [0, 0, 0, 1, 0, 0, 1, 1])
        np.testing.assert_array_equal(samples.mass, np.ones(8))

    @given(rows=rows)
    def test_a_set_is_the_sample_of_its_pairs(self, rows):
        score, genuine, times, left, right = (np.array(of) for of in zip(*rows, strict=True))
        score, genuine, left, right = (np.repeat(of, times) for of in (score, genuine, left, right))
        samples = Samples.of(score / 6, genuine, left, right, n_sets=4)
        for k in range(5):
            inside = (left == k) | (right == k) | (k == 4)
            assert samples.sizes[k] == inside.sum()
            if inside.any():
                check_same(samples[k], tally(score[inside] / 6, genuine[inside] * 1.0, None))

    def test_totals(self):
        samples = Samples.of([0.1, 0.2, 0.3], [1, 0, 1], [1, 1, -1], n_sets=3)
        genuine, mass = samples.totals()
        np.testing.assert_array_equal(genuine, [0, 1, 0, 2])
        np.testing.assert_array_equal(mass, [0, 2, 0, 3])

    def test_without_codes_there_is_one_set(self):
        assert Samples.of([0.1, 0.2], [1, 0], n_sets=0).sizes.tolist() == [2]

    def test_clipped(self):
        samples = Samples.of([-1.5, 0.0, 1.5], [0, 1, 1], n_sets=0)
        np.testing.assert_array_equal(samples.clipped(-1.0, 1.0).scores, [-1.0, 0.0, 1.0])
        assert samples.clipped(-2.0, 2.0) is samples

    def test_bad_codes(self):
        with pytest.raises(ParameterError, match="sets from -1 to 1; found 0 to 2"):
            Samples.of([0.1, 0.2], [1, 0], [0, 2], n_sets=2)
        with pytest.raises(DataError, match=r"2 of them; found int64 of shape \(3,\)"):
            Samples.of([0.1, 0.2], [1, 0], [0, 1, 1], n_sets=2)
        with pytest.raises(DataError, match="found float64"):
            Samples.of([0.1, 0.2], [1, 0], [0.0, 1.0], n_sets=2)

    def test_an_empty_set_has_no_sample(self):
        with pytest.raises(DataError, match="set 0: expected at least one pair"):
            Samples.of([0.1], [1], [-1], n_sets=1)[0]


class TestFromCounts:
    def test_a_label_of_a_bin_stands_at_its_mean(self):
        counts = ScoreCounts.zeros(2, [0.0, 0.5, 1.0])
        counts.add([0.1, 0.3, 0.4, 0.6, 0.7], [0, 0, 1, 1, 0], [0, 0, 0, -1, -1], 1)
        samples = Samples.from_counts(counts)
        np.testing.assert_array_equal(samples.sizes, [3, 5])
        np.testing.assert_allclose(samples[0].scores, [0.2, 0.4], atol=1e-6)
        np.testing.assert_array_equal(samples[0].genuine, [0, 1])
        np.testing.assert_array_equal(samples[0].mass, [2, 1])
        np.testing.assert_allclose(samples[1].scores, [0.2, 0.4, 0.6, 0.7], atol=1e-6)
        np.testing.assert_array_equal(samples[1].genuine, [0, 1, 1, 0])

    def test_sets_of_nothing(self):
        counts = ScoreCounts.zeros(3, [0.0, 0.5])
        counts.add([0.1], [True], [2])
        samples = Samples.from_counts(counts)
        np.testing.assert_array_equal(samples.sizes, [0, 0, 1])
        np.testing.assert_array_equal(samples.starts, [0, 0, 0, 1])


class TestCoarse:
    @pytest.fixture(params=[False, True])
    def samples(self, request, cosines):
        score, genuine = cosines(9000)
        rng = np.random.default_rng(1)
        samples = Samples.of(score, genuine, rng.integers(0, 3, 9000), n_sets=4)
        if not request.param:
            return samples
        mass = rng.exponential(size=len(samples.scores))
        return replace(samples, genuine=samples.genuine * mass, mass=mass)

    def test_keeps_mass_mean_and_variance_of_each_label(self, samples):
        coarse = samples.coarse(16, least=100)
        for k in (0, 1, 2, 4):
            of, few = samples[k], coarse[k]
            assert few.scores.size <= 4 * of.scores.size / 16 + 4
            for part in ("genuine", "imposter"):
                for power, closely in ((0, 1e-12), (1, 1e-9), (2, 1e-3)):
                    sums = [
                        (one.genuine if part == "genuine" else one.mass - one.genuine)
                        @ one.scores**power
                        for one in (of, few)
                    ]
                    assert sums[1] == pytest.approx(sums[0], rel=closely)

    def test_ascends_inside_each_set(self, samples):
        coarse = samples.coarse(16, least=100)
        for start, stop in pairwise(coarse.starts):
            assert (np.diff(coarse.scores[start:stop]) >= 0).all()

    def test_small_sets_are_left_alone(self, samples):
        coarse = samples.coarse(16, least=9001)
        for k in (0, 4):
            np.testing.assert_allclose(coarse[k].scores, samples[k].scores, atol=1e-7)
            np.testing.assert_allclose(coarse[k].mass, samples[k].mass)


def test_ties_are_gathered_and_zero_weights_dropped():
    sample = tally(
        np.array([0.3, 0.1, 0.3, 0.2, 0.1]),
        np.array([1.0, 0.0, 0.0, 1.0, 1.0]),
        np.array([2.0, 1.0, 0.5, 0.0, 4.0]),
    )
    np.testing.assert_array_equal(sample.scores, [0.1, 0.3])
    np.testing.assert_array_equal(sample.genuine, [4.0, 2.0])
    np.testing.assert_array_equal(sample.mass, [5.0, 2.5])
    assert sample.fraction == 0.8
