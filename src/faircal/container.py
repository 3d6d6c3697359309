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
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.errors import ModelFileError, ParameterError

MAGIC = b"FAIRCAL\n"
VERSION = 1
_FRONT = struct.Struct("<8sIQ")
_ALIGN = 64
_CHECKSUM = 32
_DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a file; the same content gives the same bytes."""
    specs = {key: [array.dtype.name, list(array.shape)] for key, array in arrays.items()}
    text = json.dumps({**header, "arrays": specs}, sort_keys=True, allow_nan=False).encode()
    text += b" " * _padding(_FRONT.size + len(text))
    parts = [_FRONT.pack(MAGIC, VERSION, len(text)), text]
    for key in sorted(arrays):
        if arrays[key].dtype.name not in _DTYPES:
            raise ParameterError(
                f"cannot save {key}: expected one of {', '.join(_DTYPES)}, "
                f"found {arrays[key].dtype.name}; convert it in _get_state"
            )
        raw = np.ascontiguousarray(arrays[key]).tobytes()
        parts += [raw, bytes(_padding(len(raw)))]
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def unpack(blob: bytes) -> tuple[dict[str, Any], memoryview]:
    """Check magic, version and checksum; return the header and the part with the arrays."""
    if len(blob) < _FRONT.size + _CHECKSUM or not blob.startswith(MAGIC):
        raise ModelFileError(
            "not a faircal model file, or cut off; give a file made by 'faircal fit'"
        )
    _, version, length = _FRONT.unpack_from(blob)
    if version > VERSION:
        raise ModelFileError(
            f"written in format {version} by a newer faircal; this one reads {VERSION}: upgrade"
        )
    if hashlib.sha256(blob[:-_CHECKSUM]).digest() != blob[-_CHECKSUM:]:
        raise ModelFileError("damaged: its checksum does not match; copy or fit it again")
    end = _FRONT.size + length
    if end > len(blob) - _CHECKSUM:
        raise ModelFileError("damaged: its header is longer than the file; copy or fit it again")
    try:
        header = json.loads(blob[_FRONT.size : end])
    except (ValueError, RecursionError) as error:
        raise ModelFileError("damaged: its header is not JSON; copy or fit it again") from error
    if not isinstance(header, dict):
        raise ModelFileError("damaged: its header is not an object; copy or fit it again")
    return header, memoryview(blob)[end:-_CHECKSUM]


def cut(specs: Mapping[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    """Cut the arrays out of `body`; sizes are checked before anything is read."""
    lengths = {key: _length(specs[key]) for key in sorted(specs)}
    if sum(length + _padding(length) for length in lengths.values()) != len(body):
        raise ModelFileError("damaged: its arrays do not fill it; copy or fit it again")
    arrays, start = {}, 0
    for key, length in lengths.items():
        dtype, shape = specs[key]
        arrays[key] = np.frombuffer(body[start : start + length], dtype=dtype).reshape(shape).copy()
        start += length + _padding(length)
    return arrays


def _padding(length: int) -> int:
    return -length % _ALIGN


def _length(spec: Any) -> int:
    dtype, shape = spec
    if dtype not in _DTYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ModelFileError("damaged: an array of unknown kind; copy or fit it again")
    return int(math.prod(shape) * np.dtype(dtype).itemsize)
