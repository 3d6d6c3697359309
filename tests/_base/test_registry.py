"""Registries and their hints."""

from __future__ import annotations

import pytest

from faircal._base.errors import ParameterError
from faircal._base.registry import Registry, did_you_mean


@pytest.fixture
def shapes():
    registry = Registry("shape")
    registry.register("round", 1)
    registry.register("square", 2)
    return registry


def test_a_mapping_in_the_order_of_registration(shapes):
    shapes.register("oval", 3)
    assert dict(shapes) == {"round": 1, "square": 2, "oval": 3}
    assert list(shapes) == ["round", "square", "oval"]
    assert len(shapes) == 3
    assert "oval" in shapes
    assert "ovel" not in shapes


def test_unknown_name_with_a_hint(shapes):
    expected = r"^unknown shape 'sqare'; did you mean square\? \(known: round, square\)$"
    with pytest.raises(ParameterError, match=expected):
        shapes["sqare"]


def test_unknown_name_without_a_hint(shapes):
    with pytest.raises(ParameterError, match=r"^unknown shape 'xyz'; known: round, square$"):
        shapes["xyz"]


def test_look_up_errors_come_without_a_key_error(shapes):
    with pytest.raises(ParameterError) as caught:
        shapes["xyz"]
    assert caught.value.__context__ is None


def test_not_a_name(shapes):
    with pytest.raises(ParameterError, match="unknown shape 7"):
        shapes[7]
    assert shapes.get("round") == 1


def test_a_name_is_taken_once(shapes):
    with pytest.raises(ParameterError, match="shape 'round' is registered already"):
        shapes.register("round", 9)
    assert shapes["round"] == 1


def test_hint_where_there_is_nothing():
    assert did_you_mean("a", []) == "there are none"
