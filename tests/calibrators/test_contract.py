"""What holds for every registered calibrator."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from faircal.calibrators import CALIBRATORS, Calibrator

GRID = np.linspace(-1.0, 1.0, 201)

# Scores on a coarse grid make ties common; weights include zero.
pairs = st.lists(
    st.tuples(st.integers(-20, 20), st.booleans(), st.integers(0, 4)), min_size=1, max_size=30
).filter(lambda rows: any(weight for _, _, weight in rows))


def columns(rows):
    scores, genuine, weight = (np.array(column) for column in zip(*rows, strict=True))
    return scores / 20, genuine, weight


@pytest.mark.parametrize("name", CALIBRATORS)
class TestAnySample:
    @settings(max_examples=40)
    @given(rows=pairs)
    def test_probabilities_are_finite_and_between_0_and_1(self, name, rows):
        scores, genuine, weight = columns(rows)
        probabilities = CALIBRATORS[name]().fit(scores, genuine, weight).predict(GRID)
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1

    @settings(max_examples=40)
    @given(rows=pairs)
    def test_weights_are_repetitions(self, name, rows):
        scores, genuine, weight = columns(rows)
        weighted = CALIBRATORS[name]().fit(scores, genuine, weight)
        repeated = CALIBRATORS[name]().fit(np.repeat(scores, weight), np.repeat(genuine, weight))
        np.testing.assert_array_equal(weighted.predict(GRID), repeated.predict(GRID))

    @settings(max_examples=40)
    @given(rows=pairs, data=st.data())
    def test_order_does_not_matter(self, name, rows, data):
        scores, genuine, weight = columns(rows)
        shuffled = columns(data.draw(st.permutations(rows)))
        expected = CALIBRATORS[name]().fit(scores, genuine, weight).predict(GRID)
        found = CALIBRATORS[name]().fit(*shuffled).predict(GRID)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_order_does_not_matter_with_fractional_weights(calibrator, cosines):
    scores, genuine = cosines(500)
    scores = scores.round(2)
    weight = np.random.default_rng(1).exponential(size=500)
    shuffle = np.random.default_rng(2).permutation(500)
    expected = clone(calibrator).fit(scores, genuine, weight).predict(GRID)
    found = calibrator.fit(scores[shuffle], genuine[shuffle], weight[shuffle]).predict(GRID)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_follows_the_scores(calibrator, cosines):
    scores, genuine = cosines(2000)
    probabilities = calibrator.fit(scores, genuine).predict(scores)
    # Temperature scaling cannot do much on cosines, but every map must tell the classes apart.
    assert probabilities[genuine].mean() > probabilities[~genuine].mean() + 0.1


def test_predict_returns_float64_of_one_dimension(calibrator, cosines):
    scores, genuine = cosines(50)
    calibrator.fit(scores.astype(np.float32), genuine)
    probabilities = calibrator.predict(scores.astype(np.float32)[:7])
    assert probabilities.dtype == np.float64
    assert probabilities.shape == (7,)


def test_predicting_nothing_gives_nothing(calibrator, cosines):
    assert calibrator.fit(*cosines(50)).predict([]).shape == (0,)


def test_a_column_is_as_good_as_a_vector(calibrator, cosines):
    scores, genuine = cosines(50)
    expected = clone(calibrator).fit(scores, genuine).predict(scores)
    found = calibrator.fit(scores[:, None], genuine).predict(scores[:, None])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [int, float, np.uint8, object])
def test_labels_may_be_numbers(calibrator, cosines, dtype):
    scores, genuine = cosines(50)
    expected = clone(calibrator).fit(scores, genuine).predict(GRID)
    found = calibrator.fit(scores, genuine.astype(dtype)).predict(GRID)
    np.testing.assert_array_equal(found, expected)


def test_input_is_left_alone(calibrator, cosines):
    scores, genuine = cosines(50)
    scores[0] = 1.5
    weight = np.ones(50)
    copies = scores.copy(), genuine.copy(), weight.copy()
    calibrator.fit(scores, genuine, weight).predict(scores)
    for array, copy in zip((scores, genuine, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_read_only_input_is_fine(calibrator, cosines):
    scores, genuine = cosines(50)
    scores.flags.writeable = genuine.flags.writeable = False
    probabilities = calibrator.fit(scores, genuine).predict(scores)
    probabilities[:] = 0.5  # the result is the caller's own
    assert calibrator.predict(scores).std() > 0


def test_a_second_fit_forgets_the_first(calibrator, cosines):
    expected = clone(calibrator).fit(*cosines(60, seed=1)).predict(GRID)
    calibrator.fit([0.0, 0.1], [True, True])
    found = calibrator.fit(*cosines(60, seed=1)).predict(GRID)
    np.testing.assert_array_equal(found, expected)


def test_other_score_ranges_give_the_same_map(calibrator, cosines):
    scores, genuine = cosines(200)
    expected = clone(calibrator).fit(scores, genuine).predict(GRID)
    # A power of two keeps the change of units exact.
    stretched = calibrator.set_params(score_range=(-4.0, 4.0)).fit(4 * scores, genuine)
    np.testing.assert_allclose(stretched.predict(4 * GRID), expected, rtol=0, atol=1e-9)


def test_parameters_are_stored_and_cloned(calibrator):
    calibrator.set_params(score_range=(0.0, 1.0))
    assert calibrator.get_params()["score_range"] == (0.0, 1.0)
    assert clone(calibrator).get_params() == calibrator.get_params()
    assert calibrator.__dict__ == calibrator.get_params()


def test_parameters_are_keyword_only(calibrator):
    parameters = inspect.signature(type(calibrator)).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_is_a_calibrator_with_a_runnable_example(calibrator):
    assert isinstance(calibrator, Calibrator)
    assert ">>> " in type(calibrator).__doc__
