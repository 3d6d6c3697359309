"""The container: sizes and JSON are checked before anything is made of them."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import pytest

from faircal import DataError, ModelFileError, ParameterError
from faircal._base.container import (
    MAGIC,
    VERSION,
    check_numbers,
    cut,
    front,
    pack,
    prefixed,
    unpack,
    unprefixed,
)

FRONT = struct.Struct("<8sIQ")


def built(text, arrays=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    body = FRONT.pack(MAGIC, VERSION, len(text)) + text + arrays
    return body + hashlib.sha256(body).digest()


def test_what_goes_in_comes_out():
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.empty((0, 5)),
    }
    header, body = unpack(pack({"x": [1, "é"]}, arrays))
    assert header["x"] == [1, "é"]
    found = cut(header["arrays"], body)
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype


class TestHeader:
    @pytest.mark.parametrize(
        "text",
        [
            b'{"a": NaN}',
            b'{"a": Infinity}',
            b'{"a": -Infinity}',
            b'{"a": 1e999}',
            b'{"a": 1, "a": 2}',
            b'{"a": {"b": 1, "b": 1}}',
            b'{"a": ' + b"9" * 5000 + b"}",
            '{"a": 1}'.encode("utf-16"),
            '{"a": 1}'.encode("utf-32"),
            b'\xef\xbb\xbf{"a": 1}',
            b'{"a": "\xff"}',
            b"[" * 100_000,
        ],
    )
    def test_what_json_does_not_have(self, text):
        with pytest.raises(ModelFileError, match="header is not JSON"):
            unpack(built(text))

    @pytest.mark.parametrize(("depth", "fine"), [(15, True), (16, False), (900, False)])
    def test_nested(self, depth, fine):
        blob = built(b'{"a": ' + b"[" * depth + b"]" * depth + b"}")
        if fine:
            assert list(unpack(blob)[0]) == ["a"]
        else:
            with pytest.raises(ModelFileError, match="nested more than 16 deep"):
                unpack(blob)

    def test_too_long(self):
        blob = built(b'{"a": "' + b"x" * ((1 << 24) + 100) + b'"}')
        with pytest.raises(ModelFileError, match="longer than any"):
            unpack(blob)
        with pytest.raises(ParameterError, match="16,777,216 is the most"):
            pack({"a": "x" * (1 << 24)}, {})

    def test_memory_follows_the_length(self):
        blob = built(b'{"a": [' + b"[]," * 60_000 + b"[]]}")
        tracemalloc.start()
        unpack(blob)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 40 * len(blob)

    def test_the_front_alone_tells(self):
        with pytest.raises(ModelFileError, match="not a faircal model"):
            front(b"\x89PNG" + bytes(100))
        with pytest.raises(ModelFileError, match="format 2 by a newer faircal"):
            front(FRONT.pack(MAGIC, 2, 0) + bytes(32))
        with pytest.raises(ModelFileError, match="no format 0"):
            front(FRONT.pack(MAGIC, 0, 0) + bytes(32))


class TestArrays:
    @pytest.mark.parametrize(
        "spec",
        [
            ["float64", [10**18]],
            ["float64", [2**62, 4]],
            ["float64", [-1]],
            ["float64", [True]],
            ["float64", [1.0]],
            ["float64", [None]],
            ["float64", "8"],
            ["float64", [0, 10**7]],
            ["float64", [10**18, 0]],
            ["float64", [1] * 9],
            ["float64"],
            ["float64", [1], 2],
            [["float64"], [1]],
            ["object", [1]],
            [None, [1]],
            {"dtype": "float64"},
            "float64",
            None,
        ],
    )
    def test_sizes_that_cannot_be(self, spec):
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="damaged"):
            cut({"a": spec}, memoryview(bytes(64)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100_000

    @pytest.mark.parametrize("specs", [None, [], "a", 3])
    def test_no_list_of_arrays(self, specs):
        with pytest.raises(ModelFileError, match="does not list its arrays"):
            cut(specs, memoryview(b""))

    def test_neither_true_nor_false(self):
        with pytest.raises(ModelFileError, match="neither true nor false"):
            cut({"a": ["bool", [2]]}, memoryview(b"\x01\x02" + bytes(62)))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e31])
    def test_numbers(self, value):
        check_numbers({"a": np.array([1e29]), "b": np.empty(0)})
        check_numbers({"a": np.array([value])}, but=("a",))
        with pytest.raises(DataError, match="a: expected finite numbers"):
            check_numbers({"a": np.array([0.0, value])})
        with pytest.raises(DataError, match="a: expected finite numbers"):
            check_numbers({"a": np.array([value], np.float32)})

    def test_whole_numbers(self):
        with pytest.raises(DataError, match="a: expected"):
            check_numbers({"a": np.array([-(2**63)])})


def test_prefixes():
    assert prefixed("a", {"x": 1, "y.z": 2}) == {"a.x": 1, "a.y.z": 2}
    assert unprefixed("a", {"a.x": 1, "a.y.z": 2, "ab.x": 3, "x": 4}) == {"x": 1, "y.z": 2}
