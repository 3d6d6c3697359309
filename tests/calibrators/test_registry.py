"""Names, and calibrators made from them."""

from __future__ import annotations

import numpy as np
import pytest

from faircal import calibrators
from faircal._base.errors import NotFittedError, ParameterError
from faircal.calibrators import (
    CALIBRATORS,
    BetaCalibrator,
    HistogramCalibrator,
    make_calibrator,
)


def test_names_and_their_order():
    assert list(CALIBRATORS) == ["beta", "histogram", "isotonic", "platt", "temperature", "spline"]


def test_every_registered_class_is_public():
    assert {thing.__name__ for thing in CALIBRATORS.values()} < set(calibrators.__all__)
    assert all(hasattr(calibrators, name) for name in calibrators.__all__)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_make_by_name(name):
    calibrator = make_calibrator(name, (0.0, 2.0))
    assert type(calibrator) is CALIBRATORS[name]
    assert calibrator.score_range == (0.0, 2.0)


def test_make_from_a_calibrator_copies_parameters_but_not_the_fit():
    original = HistogramCalibrator(n_bins=3).fit(np.linspace(-1, 1, 9), np.arange(9) % 2)
    copy = make_calibrator(original, (0.0, 1.0))
    assert (copy.n_bins, copy.score_range) == (3, (0.0, 1.0))
    assert original.score_range == (-1.0, 1.0)
    with pytest.raises(NotFittedError):
        copy.predict([0.5])


def test_unknown_name():
    with pytest.raises(ParameterError, match="unknown calibrator 'bata'; did you mean beta"):
        make_calibrator("bata", (-1.0, 1.0))


def test_neither_name_nor_calibrator():
    with pytest.raises(ParameterError, match=r"calibrator: expected a name \(beta, "):
        make_calibrator(BetaCalibrator, (-1.0, 1.0))
