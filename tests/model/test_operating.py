"""Operating points: what they decide, what they refuse, and what a file may say of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from faircal import DataError, ParameterError
from faircal.model import DEFAULT_POINT, OperatingPoint

SCORE, PROBABILITY = np.array([0.3, 0.4, 0.5]), np.array([0.2, 0.9, 0.4])


def point(**more):
    row = {"name": "global", "people": 80, "fpr": 0.0007, "fpr_low": None, "fpr_lacking": "few"}
    told = {"threshold": 0.4, "fpr": 1e-3, "confidence": 0.95, "within": "groups"}
    return OperatingPoint(
        **{**told, "data": "faces", "data_sha256": "ab", "measured": (row,), **more}
    )


@pytest.mark.parametrize(
    ("on", "decided"), [("score", [False, True, True]), ("probability", [False, True, True])]
)
def test_a_value_at_the_threshold_is_genuine(on, decided):
    np.testing.assert_array_equal(point(on=on).decide(SCORE, PROBABILITY), decided)


def test_the_default_is_more_likely_than_not():
    np.testing.assert_array_equal(DEFAULT_POINT.decide(SCORE, PROBABILITY), [False, True, False])
    assert not DEFAULT_POINT.promised


def test_a_rate_is_promised_of_something():
    assert point().promised
    assert not point(within="").promised
    assert not point(fpr=None).promised


def test_json_and_back():
    made = point()
    assert OperatingPoint.from_json(json.loads(json.dumps(made.as_json()))) == made


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": float("nan")},
        {"threshold": "0.4"},
        {"threshold": True},
        {"on": "cosine"},
        {"fpr": 0},
        {"fpr": "low"},
        {"confidence": 95},
        {"within": None},
        {"source": 3},
        {"data": ["faces"]},
    ],
)
def test_what_cannot_be(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        point(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"more": 1},
        {"measured": [3]},
        {"measured": [{"name": ["a"]}]},
        {"measured": [{"fpr": True}]},
        {"measured": "rows"},
    ],
)
def test_a_file_may_say_anything(wrong):
    with pytest.raises(DataError, match="operating point"):
        OperatingPoint.from_json({**point().as_json(), **wrong})


def test_a_file_may_hold_no_mapping():
    with pytest.raises(DataError, match="operating point"):
        OperatingPoint.from_json([1, 2])
