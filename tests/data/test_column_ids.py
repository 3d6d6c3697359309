"""Images are found by their ids as Arrow, an independent search, finds them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal._base.errors import DataError
from faircal.data.columns import Index, Span, parse_ids

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=30)


def find(known, asked):
    return Index(pa.array(known)).find(pa.chunked_array([asked]), "left", "pairs").tolist()


def expected(known, asked):
    """Return positions found by their text, which all kinds of ids have."""
    known, asked = pa.array(known).cast(pa.string()), pa.array(asked).cast(pa.string())
    return pc.index_in(asked, value_set=known).fill_null(-1).to_pylist()


@given(
    known=st.lists(NUMBERS, min_size=1, max_size=40, unique=True)
    | st.lists(st.integers(-50, 50), min_size=1, max_size=40, unique=True)
    | st.lists(TEXTS, min_size=1, max_size=40, unique=True),
    more=st.lists(NUMBERS | st.integers(-60, 60), min_size=1, max_size=20)
    | st.lists(TEXTS | st.integers(-60, 60).map(str), min_size=1, max_size=20),
    data=st.data(),
)
def test_any_ids(known, more, data):
    """Whole numbers and text, in both places; what is not there is not found."""
    if isinstance(more[0], str):
        more += data.draw(st.lists(st.sampled_from([str(one) for one in known]), max_size=20))
    elif isinstance(known[0], int):
        more += data.draw(st.lists(st.sampled_from(known), max_size=20))
    assert find(known, more) == expected(known, more)


@pytest.mark.parametrize("known", [[0, 1, 2, 3], [3, 1, 0, 2], [5, 6, 7], [0, 1, 5], [-1, 0, 1]])
def test_numbers_without_large_gaps(known):
    asked = [-(2**63), -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2**63 - 1]
    assert find(known, asked) == expected(known, asked)


def test_what_is_found_can_be_written_to():
    for known in ([0, 1], [1, 0], [0, 10**9], ["a", "b"]):
        found = Index(pa.array(known)).find(pa.chunked_array([known]), "left", "pairs")
        found[0] = 7
        assert found.dtype == np.intp


def test_zeros_in_front_count():
    assert find(["007", "7"], ["7", "007", "07"]) == [1, 0, -1]
    assert find([7, 8], ["7", "007", "x"]) == [0, -1, -1]
    assert find([7, 8], ["7", "8"]) == [0, 1]
    assert find(["7", "8", "x"], [8, 7]) == [1, 0]


def test_many_texts():
    """A million would take a while; every bucket is full enough with these."""
    rng = np.random.default_rng(0)
    known = [f"person{n % 97}/{n}.jpg" for n in range(5000)]
    rows = rng.integers(0, 5000, 20_000)
    asked = pa.array(known).take(pa.array(rows))
    assert find(known, asked) == rows.tolist()


def test_texts_that_differ_in_what_a_hash_might_miss():
    known = ["", "\0", "\0\0", "a", "a\0", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "baaaaaaaa"]
    assert find(known, known) == list(range(len(known)))


def test_empty_id():
    column = pa.chunked_array([["a", None, None]])
    for span, said in ((Span(), "row 2: empty (2 such rows)"), (Span(10, 13), "row 12: empty")):
        with pytest.raises(DataError) as caught:
            Index(pa.array(["a"])).find(column, "left", "pairs", span)
        assert f"pairs, column 'left', {said}" in str(caught.value)
    assert "(2 such rows up to row 13)" in str(caught.value)


def test_numbers_beyond_64_bits_with_a_sign():
    ids = pa.chunked_array([pa.array([2**63 + 5, 7, 2**64 - 1], pa.uint64())])
    found = parse_ids(ids, "image_id", "images")
    assert found.to_pylist() == [str(2**63 + 5), "7", str(2**64 - 1)]
    asked = pa.chunked_array([pa.array([7, 2**63 + 5, 8], pa.uint64())])
    assert Index(found).find(asked, "left", "pairs").tolist() == [1, 0, -1]
