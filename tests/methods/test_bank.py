"""Many calibrators side by side."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.calibrators import CALIBRATORS
from faircal.errors import DataError
from faircal.methods.bank import CalibratorBank, prefixed, unprefixed

RANGE = (-1.0, 1.0)


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
def bank(request, sample, sets):
    return CalibratorBank(request.param, RANGE).fit(*sample, sets)


def test_which_sets_have_their_own(bank):
    assert bank.own.tolist() == [True, False, False, False, True]


def test_predict_by_set(bank, sample, sets):
    score, genuine = sample
    which = np.arange(300) % 8 - 3  # −3 … 4
    assert which.min() == -3
    overall = type(bank.fallback)(score_range=RANGE).fit(score, genuine)
    expected = []
    for s, k in zip(score, which, strict=True):
        one = overall
        if k in (0, 4):
            one = type(overall)(score_range=RANGE).fit(score[sets[k]], genuine[sets[k]])
        expected.append(one.predict([s])[0])
    np.testing.assert_allclose(bank.predict(score, which), expected, rtol=0, atol=1e-14)


def test_nothing_to_predict(bank):
    assert bank.predict(np.empty(0), np.empty(0, dtype=int)).shape == (0,)


def test_no_sets(sample):
    bank = CalibratorBank("beta", RANGE).fit(*sample, [])
    found = bank.predict(sample[0], np.full(300, -1))
    np.testing.assert_array_equal(found, bank.fallback.predict(sample[0]))


def test_state_restores_everything(bank, sample):
    which = np.arange(300) % 6 - 1
    name = next(name for name, kind in CALIBRATORS.items() if kind is type(bank.fallback))
    restored = CalibratorBank(name, RANGE).set_state(bank.get_state())
    np.testing.assert_array_equal(restored.own, bank.own)
    expected = bank.predict(sample[0], which)
    np.testing.assert_array_equal(restored.predict(sample[0], which), expected)


def test_state_is_arrays_only(bank):
    for value in bank.get_state().values():
        assert isinstance(value, np.ndarray)
        assert value.dtype != object


def test_state_of_another_calibrator(sample, sets):
    state = CalibratorBank("beta", RANGE).fit(*sample, sets).get_state()
    with pytest.raises(DataError, match="another kind of calibrator"):
        CalibratorBank("isotonic", RANGE).set_state(state)


def test_prefixes():
    assert prefixed("a", {"x": 1, "y.z": 2}) == {"a.x": 1, "a.y.z": 2}
    assert unprefixed("a", {"a.x": 1, "a.y.z": 2, "ab.x": 3, "x": 4}) == {"x": 1, "y.z": 2}
