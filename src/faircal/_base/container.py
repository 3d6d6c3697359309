r"""Numbers in one file: a JSON header and raw arrays, checksummed, nothing to execute.

Model files and the checkpoints of a long training are such files. Layout (all integers
little-endian)::

    8 bytes   b"FAIRCAL\n"
    4 bytes   version of this layout
    8 bytes   length of the header
    header    JSON, with for each array its dtype and shape; filled up with blanks so that the
              arrays start at a multiple of 64 bytes
    arrays    sorted by name, each filled up with zeros to a multiple of 64 bytes
    32 bytes  SHA-256 of everything before
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ModelFileError, ParameterError

T = TypeVar("T")

MAGIC = b"FAIRCAL\n"
VERSION = 1
_FRONT = struct.Struct("<8sIQ")
_ALIGN = 64
_CHECKSUM = 32
_DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")
#: A header is text for people and programs; parsed, it takes up to some thirty times its length.
_LONGEST = 1 << 24
#: Lists and objects within each other in a header, and dimensions of an array, at most.
_DEEPEST, _MOST_DIMENSIONS = 16, 8
#: An array without elements takes no room, so its sizes are bounded by themselves.
_WIDEST_EMPTY = 1 << 20
#: Numbers of a model are no larger: products and squares of such stay finite.
_LARGEST = {"float64": 1e30, "float32": 1e16, "int64": 1 << 53}


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a file; the same content gives the same bytes."""
    specs = {key: [array.dtype.name, list(array.shape)] for key, array in arrays.items()}
    text = json.dumps({**header, "arrays": specs}, sort_keys=True, allow_nan=False).encode()
    if len(text) > _LONGEST:
        raise ParameterError(
            f"cannot save a header of {len(text):,} bytes: {_LONGEST:,} is the most; keep long "
            "lists of numbers as arrays"
        )
    text += b" " * (-(_FRONT.size + len(text)) % _ALIGN)
    parts = [_FRONT.pack(MAGIC, VERSION, len(text)), text]
    for key in sorted(arrays):
        if arrays[key].dtype.name not in _DTYPES:
            raise ParameterError(
                f"cannot save {key}: expected one of {', '.join(_DTYPES)}, "
                f"found {arrays[key].dtype.name}; convert it in _get_state"
            )
        raw = np.ascontiguousarray(arrays[key]).tobytes()
        parts += [raw, bytes(-len(raw) % _ALIGN)]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def divided(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what of a state goes into a header, and its arrays."""
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    return {key: value for key, value in state.items() if key not in arrays}, arrays


def prefixed(prefix: str, state: Mapping[str, T]) -> dict[str, T]:
    """Put `prefix` and a dot before every key."""
    return {f"{prefix}.{key}": value for key, value in state.items()}


def unprefixed(prefix: str, state: Mapping[str, T]) -> dict[str, T]:
    """Return the entries under `prefix`, without it and the dot."""
    start = f"{prefix}."
    return {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}


def unpack(blob: bytes) -> tuple[dict[str, Any], memoryview]:
    """Check magic, version and checksum; return the header and the part with the arrays."""
    length = front(blob)
    view = memoryview(blob)
    if hashlib.sha256(view[:-_CHECKSUM]).digest() != blob[-_CHECKSUM:]:
        raise ModelFileError("damaged: its checksum does not match; copy or fit it again")
    end = _FRONT.size + length
    if end > len(blob) - _CHECKSUM:
        raise ModelFileError("damaged: its header is longer than the file; copy or fit it again")
    if length > _LONGEST + _ALIGN:
        raise ModelFileError(
            f"damaged: its header of {length:,} bytes is longer than any; copy or fit it again"
        )
    return _header(blob[_FRONT.size : end]), view[end:-_CHECKSUM]


def front(blob: bytes) -> int:
    """Check what a file begins with, magic and version; return the length of its header."""
    if len(blob) < _FRONT.size + _CHECKSUM or not blob.startswith(MAGIC):
        raise ModelFileError(
            "not a faircal model file, or cut off; give a file made by 'faircal fit'"
        )
    _, version, length = _FRONT.unpack_from(blob)
    if version > VERSION:
        raise ModelFileError(
            f"written in format {version} by a newer faircal; this one reads {VERSION}: upgrade"
        )
    if version < VERSION:
        raise ModelFileError(f"damaged: there is no format {version}; copy or fit it again")
    return int(length)


#: As many bytes of a file tell whether it can be one of ours.
FRONT_SIZE = _FRONT.size + _CHECKSUM


def _header(text: bytes) -> dict[str, Any]:
    """Read the header: JSON as its standard has it, every name once, nothing nested deeply."""
    try:
        # Of bytes, json guesses the encoding and imports what reads it.
        header = json.loads(str(text, "utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ModelFileError("damaged: its header is not JSON; copy or fit it again") from error
    level: list[Any] = [header]
    for _ in range(_DEEPEST):  # what is in lists and objects, one level after the other
        # NaN and infinities, which Python reads and JSON does not have.
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            raise ModelFileError("damaged: its header is not JSON; copy or fit it again")
        inner = [
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        ]
        level = [item for items in inner for item in items]
    if not isinstance(header, dict):
        raise ModelFileError("damaged: its header is not an object; copy or fit it again")
    if level:
        raise ModelFileError(
            f"damaged: its header is nested more than {_DEEPEST} deep; copy or fit it again"
        )
    return header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def cut(specs: Any, body: memoryview) -> dict[str, NDArray[Any]]:
    """Cut the arrays out of `body`; sizes are checked before anything is read."""
    if not isinstance(specs, dict):
        raise ModelFileError("damaged: it does not list its arrays; copy or fit it again")
    lengths = {}
    for key in sorted(specs):
        spec = specs[key]
        if not (isinstance(spec, list) and len(spec) == 2 and isinstance(spec[1], list)):
            raise ModelFileError("damaged: an array of unknown kind; copy or fit it again")
        dtype, shape = spec
        sizes = [n for n in shape if type(n) is int and n >= 0]  # true and false are no sizes
        if dtype not in _DTYPES or len(sizes) < len(shape) or len(shape) > _MOST_DIMENSIONS:
            raise ModelFileError("damaged: an array of unknown kind; copy or fit it again")
        if 0 in sizes and max(sizes) > _WIDEST_EMPTY:
            raise ModelFileError("damaged: an empty array is too wide; copy or fit it again")
        lengths[key] = math.prod(sizes) * int(np.dtype(dtype).itemsize)
    if sum(-(-length // _ALIGN) * _ALIGN for length in lengths.values()) != len(body):
        raise ModelFileError("damaged: its arrays do not fill it; copy or fit it again")
    arrays, start = {}, 0
    for key, length in lengths.items():
        dtype, shape = specs[key]
        raw = body[start : start + length]
        if dtype == "bool" and np.frombuffer(raw, np.uint8).max(initial=0) > 1:
            raise ModelFileError("damaged: an array is neither true nor false; fit it again")
        arrays[key] = np.frombuffer(raw, dtype=dtype).reshape(shape).copy()
        start += -(-length // _ALIGN) * _ALIGN
    return arrays


def arrays_of(blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a container whose header says nothing else."""
    header, body = unpack(blob)
    return cut(header["arrays"], body)


def check_numbers(arrays: Mapping[str, NDArray[Any]], but: Collection[str] = ()) -> None:
    """Raise where an array has a number that is NaN, infinite or absurdly large.

    Examples
    --------
    >>> check_numbers({"slope": np.array([1.0, np.inf])})
    Traceback (most recent call last):
    ...
    faircal.DataError: slope: expected finite numbers up to 1e+30; fit it again
    """
    for key, array in arrays.items():
        most = _LARGEST.get(array.dtype.name)
        if most is None or key in but or not array.size:
            continue
        if not (array.min() >= -most and array.max() <= most):  # not where NaN
            raise DataError(f"{key}: expected finite numbers up to {most:g}; fit it again")
