"""Groups of pairs, one attribute or several crossed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal._base.errors import DataError
from faircal.data import Dataset, Groups
from faircal.data.columns import Column
from faircal.data.types import cross

NAMES = ("A", "B")
CODES = st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1)


def groups_of(pairs):
    left, right = np.array(pairs, dtype=np.int32).T
    return Groups(NAMES, left, right)


def test_by_hand():
    groups = groups_of([(0, 0), (1, 1), (0, 1), (1, -1), (-1, -1)])
    assert groups.pair.tolist() == [0, 1, -1, -1, -1]
    assert groups.cross.tolist() == [False, False, True, False, False]
    assert groups.unknown.tolist() == [False, False, False, True, True]
    assert len(groups) == 5


@given(CODES)
def test_every_pair_is_in_a_group_or_cross_or_unknown(pairs):
    groups = groups_of(pairs)
    inside = groups.pair >= 0
    assert (inside.astype(int) + groups.cross + groups.unknown == 1).all()


@given(CODES)
def test_swapping_left_and_right_changes_nothing(pairs):
    groups, swapped = groups_of(pairs), groups_of([pair[::-1] for pair in pairs])
    for name in ("pair", "cross", "unknown"):
        np.testing.assert_array_equal(getattr(groups, name), getattr(swapped, name))


def test_renamed():
    groups = groups_of([(0, 0), (1, 1), (0, 1), (-1, 0)]).renamed(["C", "B"])
    assert groups.names == ("C", "B")
    assert groups.left.tolist() == [-1, 1, -1, -1]
    assert groups.right.tolist() == [-1, 1, 1, -1]


class TestParts:
    @pytest.fixture
    def data(self):
        return Dataset(
            embeddings=np.eye(4),
            pairs={"left": [0, 1, 2], "right": [1, 2, 3], "genuine": [1, 0, 0], "fold": [1, 2, 2]},
            attributes={
                "ethnicity": ["Asian", "Black", "Asian", "Asian"],
                "gender": ["F", "F", "M", ""],
                "age": ["old", "old", "old", "young"],
            },
        )

    def test_each_attribute_alone(self, data):
        groups = data.groups("gender+ethnicity")
        assert groups.names == ("F Asian", "F Black", "M Asian")
        assert list(groups.parts) == ["gender", "ethnicity"]
        gender, ethnicity = groups.parts.values()
        assert gender.names == ("F", "M")
        assert gender.left.tolist() == [0, 0, 1]
        assert gender.right.tolist() == [0, 1, -1]
        assert ethnicity.names == ("Asian", "Black")
        assert ethnicity.left.tolist() == [0, 1, 0]
        assert ethnicity.right.tolist() == [1, 0, 0]

    def test_what_one_attribute_leaves_unknown_the_other_may_tell(self, data):
        groups = data.groups("ethnicity+gender")
        assert groups.unknown.tolist() == [False, False, True]
        assert groups.parts["gender"].unknown.tolist() == [False, False, True]
        assert groups.parts["ethnicity"].unknown.tolist() == [False, False, False]

    def test_three(self, data):
        assert list(data.groups().parts) == ["ethnicity", "gender", "age"]
        assert all(not part.parts for part in data.groups().parts.values())

    @pytest.mark.parametrize("attribute", ["ethnicity", "gender"])
    def test_one_attribute_has_none(self, data, attribute):
        assert data.groups(attribute).parts == {}

    def test_none_unless_told(self):
        assert groups_of([(0, 0)]).parts == {}


def test_cross_of_three_keeps_what_occurs():
    columns = {
        "a": Column.of(["x", "y", "x", ""]),
        "b": Column.of(["1", "2", "2", "1"]),
        "c": Column.of(["p", "p", "q", "p"]),
    }
    crossed = cross(columns, "a+b+c")
    assert crossed.names == ("x 1 p", "x 2 q", "y 2 p")
    assert crossed.codes.tolist() == [0, 2, 1, -1]
    assert cross(columns, "b+a").names == ("1 x", "2 x", "2 y")
    assert cross(columns, "a").names == ("x", "y")


def test_cross_with_an_empty_column():
    columns = {"a": Column.of(["x", "y"]), "b": Column.of([None, None])}
    for attribute in ("a+b", "b+a", "b"):
        crossed = cross(columns, attribute)
        assert crossed.names == ()
        assert crossed.codes.tolist() == [-1, -1]


@pytest.mark.parametrize("attribute", ["gendr", "ethnicity+gendr", "gendr+ethnicity"])
def test_unknown_attribute(attribute):
    columns = {"ethnicity": Column.of(["x"]), "gender": Column.of(["F"])}
    with pytest.raises(DataError, match="'gendr' is not in the data; did you mean gender"):
        cross(columns, attribute)


def test_groups_are_the_same_only_when_they_are_one_object():
    codes = np.array([0, 1, 0], dtype=np.int32)
    groups = Groups(("a", "b"), codes, codes)
    assert groups == groups
    assert groups != Groups(("a", "b"), codes, codes)
