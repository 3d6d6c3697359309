"""Embeddings as people give them: numbers in a text, or a small file."""

from __future__ import annotations

import io
import json
import re

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.production.serving.store.base import MOST_DIMENSIONS

Float32 = NDArray[np.float32]

#: Beyond it the length of an embedding is no number in 32 bits.
_MOST_SQUARE = float(np.finfo(np.float32).max)
_SEPARATORS = re.compile(r"[\s,;]+")
_EXPECTED = "expected numbers, as [0.1, -0.2, …] or apart by commas or spaces"


def read_numbers(text: str) -> Float32:
    r"""Read an embedding from a text: a JSON list, or numbers apart by commas or spaces.

    What is wrong is said without the numbers themselves: they are biometric data.

    Examples
    --------
    >>> read_numbers("[0.5, -1]"), read_numbers("0.5 -1"), read_numbers("0.5;-1,\n")
    (array([ 0.5, -1. ], dtype=float32), array([ 0.5, -1. ], dtype=float32),
     array([ 0.5, -1. ], dtype=float32))
    """
    text = text.strip().lstrip("\ufeff")
    if not text:
        raise DataError(f"{_EXPECTED}; found nothing")
    if text.startswith(("[", "{")):
        return _checked(_from_json(text))
    words = [word for word in _SEPARATORS.split(text) if word]
    for place, word in enumerate(words):
        if not _is_number(word):
            raise DataError(f"{_EXPECTED}; value {place + 1} is not a number")
    return _checked([float(word) for word in words])


def read_file(content: bytes) -> Float32:
    """Read an embedding from a file: NumPy's (.npy), or a text as `read_numbers` takes it."""
    if content.startswith(b"\x93NUMPY"):
        return _checked(_from_npy(content))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("the file: expected .npy, .json or a text with numbers") from None
    return read_numbers(text)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _from_json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{_EXPECTED}; this list is not complete, or no JSON") from None
    if isinstance(found, dict):  # as our own service takes it
        found = found.get("embedding")
    numbers = found if isinstance(found, list) else []
    if not numbers or any(type(one) not in (int, float) for one in numbers):
        raise DataError(f"{_EXPECTED}; this is JSON, and no plain list of numbers")
    return numbers


def _from_npy(content: bytes) -> NDArray[np.float64]:
    """Read an array without taking the file's word for how large it is."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, RecursionError, MemoryError):
        raise DataError(
            "the file: it begins as .npy and goes on otherwise; save it again"
        ) from None
    size = int(np.prod(np.asarray(shape, dtype=object))) if shape else 1
    left = content[stream.tell() :]
    if dtype.kind not in "fiu" or size * dtype.itemsize != len(left):
        raise DataError("the file: expected .npy with one row of numbers, all of them there")
    if size != max(shape, default=1):
        raise DataError(f"the file: expected one embedding, found an array of shape {shape}")
    return np.frombuffer(left, dtype=dtype).astype(np.float64)


def _checked(values: object) -> Float32:
    """Return the numbers as an embedding; what no face network gives is refused."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (OverflowError, ValueError):
        raise DataError(f"{_EXPECTED}; one of them is too large") from None
    if not 2 <= len(numbers) <= MOST_DIMENSIONS:
        raise DataError(f"expected 2 to {MOST_DIMENSIONS:,} numbers, found {len(numbers):,}")
    with np.errstate(over="ignore"):
        vector = numbers.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(vector))
    if len(bad):
        raise DataError(f"value {int(bad[0]) + 1}: expected a finite number; embed it again")
    if not 0 < float(np.dot(numbers, numbers)) < _MOST_SQUARE:
        raise DataError("expected numbers of moderate size, not all 0; embed it again")
    return vector
