"""Columns at the door: categories, labels, folds, scores, ids."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal._base.errors import DataError
from faircal.data.build import parse_ids
from faircal.data.columns import Column, parse_fold, parse_genuine, parse_scores

GROUPS = ["b", "a", None, "b", ""]


@pytest.mark.parametrize(
    "values",
    [
        GROUPS,
        np.array(GROUPS, dtype=object),
        np.array(["b", " a ", "", "b ", "  "]),
        pa.array(GROUPS),
        pa.chunked_array([GROUPS[:2], GROUPS[2:]]),
        pa.array(GROUPS, pa.large_string()),
        pa.array(GROUPS).dictionary_encode(),
        pa.chunked_array([pa.array(GROUPS).dictionary_encode()]),
        pd.Series(GROUPS),
        pd.Series(GROUPS, dtype="category"),
        pl.Series(GROUPS),
        pl.Series(GROUPS, dtype=pl.Categorical),
    ],
)
def test_categories_of_every_kind(values):
    column = Column.of(values)
    assert column.names == ("a", "b")
    assert column.codes.tolist() == [1, 0, -1, 1, -1]
    assert column.codes.dtype == np.int32
    assert len(column) == 5
    assert column.take(np.array([3, 1])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([2, 10, 2], ("10", "2")),
        ([2.0, float("nan"), 10.0], ("10", "2")),
        ([1.5, 2.0, 1.5], ("1.5", "2")),
        ([True, False, True], ("false", "true")),
        ([datetime.date(2020, 1, 2)] * 3, ("2020-01-02",)),
        ([None, None, None], ()),
        (pa.chunked_array([], pa.string()), ()),
        (pa.array([b"x", b"y", b"x"]), ("x", "y")),
    ],
)
def test_categories_by_name(values, names):
    assert Column.of(values).names == names


@given(st.permutations(["x", "y", "z", "x", "", "w"]))
def test_codes_do_not_depend_on_the_order_of_rows(values):
    column = Column.of(values)
    assert column.names == ("w", "x", "y", "z")
    assert [column.names[c] if c >= 0 else "" for c in column.codes] == values


@pytest.mark.parametrize(
    "values", [pa.array([[1], [2]]), pa.array([b"\xff"]), [object()], ["a", 1]]
)
def test_no_categories(values):
    with pytest.raises(DataError, match="images, column 'x': "):
        Column.of(values, "images, column 'x'")


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1],
        [True, False, True],
        [1.0, 0.0, 1.0],
        ["1", "0", "1"],
        ["true", "false", "true"],
        ["True", "FALSE", " true "],
        ["1.0", "0.0", "1"],
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([True, False, True], dtype=object),
        pd.Series([True, False, True]),
        pl.Series([1, 0, 1]),
        pa.chunked_array([[True, False], [True]]),
        pa.array(["1", "0", "1"]).dictionary_encode(),
    ],
)
def test_labels_of_every_kind(values):
    found = parse_genuine(values, "pairs")
    assert found.dtype == bool
    assert found.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 0, 2], "row 3: .* found 2"),
        ([1, None, 0], "row 2: .* found None"),
        ([True, None, False], "row 2"),
        ([0.5, 1.0], "row 1: .* found 0.5"),
        (["yes", "no"], r"row 1: .* found 'yes' \(2 such rows\)"),
        ([None, None], "row 1"),
        ([[1], [0]], "expected text or numbers, found list"),
        ([1, "x"], "cannot be read"),
        (np.ones((2, 2)), "cannot be read"),
    ],
)
def test_labels_refused(values, found):
    with pytest.raises(DataError, match=f"^pairs, column 'genuine'(, |: ).*{found}|{found}"):
        parse_genuine(values, "pairs")


@pytest.mark.parametrize(
    ("values", "folds"),
    [
        ([1, 2, 1], [1, 2, 1]),
        ([1.0, 2.0, 1.0], [1, 2, 1]),
        (["1", "2", "1"], [1, 2, 1]),
        (["a", "b", "a"], ["a", "b", "a"]),
        (["1", "b", "1"], ["1", "b", "1"]),
        (pd.Series(["a", "b", "a"], dtype="category"), ["a", "b", "a"]),
    ],
)
def test_folds(values, folds):
    assert parse_fold(values, "pairs").tolist() == folds


@pytest.mark.parametrize("values", [[1, None], [1.0, float("nan")], ["a", None]])
def test_fold_missing(values):
    with pytest.raises(DataError, match="pairs, column 'fold', row 2: empty"):
        parse_fold(values, "pairs")


@pytest.mark.parametrize("values", [[0, 1], ["0", "1"], np.array([0, 1], np.float16), [-1e-4, 1.0]])
def test_scores(values):
    found = parse_scores(values, "s", "pairs", (0, 1))
    assert found.dtype == np.float64
    assert found.tolist() == [0, 1]  # rounding beyond the end is clipped


def test_scores_of_any_range_for_measuring():
    assert parse_scores([-7.0, 300.0], "s", "pairs", None).tolist() == [-7, 300]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([0.5, 1.5], "row 2: expected a score in .0, 1., found 1.5"),
        ([float("nan"), 0.5], "row 1: expected a finite score"),
        ([0.5, None], "row 2: expected a finite score"),
        ([0.5, float("-inf")], "row 2: expected a finite score, found -inf"),
        (["high"], "expected numbers"),
        ([[0.5]], "expected numbers"),
    ],
)
def test_scores_refused(values, found):
    with pytest.raises(DataError, match=f"pairs, column 's'.*{found}"):
        parse_scores(values, "s", "pairs", (0, 1))


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([3, 1, 2], [3, 1, 2]),
        (["3", "1", "2"], [3, 1, 2]),
        ([3.0, 1.0], [3, 1]),
        (["007", "1"], ["007", "1"]),
        (["+1", "2"], ["+1", "2"]),
        (["-1", "2"], [-1, 2]),
        (["a.jpg", "b.jpg"], ["a.jpg", "b.jpg"]),
        (["99999999999999999999"], ["99999999999999999999"]),
        ([], []),
    ],
)
def test_ids(values, ids):
    column = pa.chunked_array([pa.array(values)]) if values else pa.chunked_array([], pa.string())
    assert parse_ids(column, "left", "pairs").to_pylist() == ids


def test_ids_as_categories():
    column = pa.chunked_array([pa.array(["x", "y", "x"]).dictionary_encode()])
    assert parse_ids(column, "left", "pairs").to_pylist() == ["x", "y", "x"]


def test_id_missing():
    with pytest.raises(DataError, match="pairs, column 'left', row 2: empty"):
        parse_ids(pa.chunked_array([["a", None]]), "left", "pairs")
