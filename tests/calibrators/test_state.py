"""The state of a fitted calibrator can be written to a model file and read back."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from faircal._base.errors import DataError

GRID = np.linspace(-1.0, 1.0, 501)


@pytest.mark.parametrize("n", [1, 10, 300])
def test_round_trip_is_exact(calibrator, cosines, n):
    scores, genuine = cosines(max(n, 2))
    calibrator.fit(scores[:n], genuine[:n])
    restored = clone(calibrator).set_state(calibrator.get_state())
    np.testing.assert_array_equal(restored.predict(GRID), calibrator.predict(GRID))


def test_arrays_are_plain_and_their_names_do_not_depend_on_the_data(calibrator, cosines):
    states = [
        clone(calibrator).fit([0.5], [True]).get_state(),
        clone(calibrator).fit(*cosines(300)).get_state(),
    ]
    assert list(states[0]) == list(states[1])
    for array in [*states[0].values(), *states[1].values()]:
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
        assert array.ndim == 1
        assert array.size > 0
        assert np.isfinite(array).all()


def test_state_is_a_copy(calibrator, cosines):
    calibrator.fit(*cosines(100))
    expected = calibrator.predict(GRID)
    state = calibrator.get_state()
    restored = clone(calibrator).set_state(state)
    for array in state.values():
        array[:] = -7.0
    np.testing.assert_array_equal(calibrator.predict(GRID), expected)
    np.testing.assert_array_equal(restored.predict(GRID), expected)


def test_foreign_state_is_refused(calibrator):
    with pytest.raises(DataError, match=r"expected \[.*\]; found \['alien'\]"):
        calibrator.set_state({"alien": [1.0]})


def test_state_of_a_wrong_shape_is_refused(calibrator, cosines):
    state = calibrator.fit(*cosines(100)).get_state()
    name = next(iter(state))
    with pytest.raises(DataError, match=rf"expected {name} of one dimension"):
        calibrator.set_state(state | {name: state[name][np.newaxis]})
    with pytest.raises(DataError, match=rf"expected {name} .*; found shape \(0,\)"):
        calibrator.set_state(state | {name: []})
