r"""The model file ``*.faircal``: one file, a JSON header and raw arrays, nothing to execute.

Layout (all integers little-endian)::

    8 bytes   b"FAIRCAL\n"
    4 bytes   version of this layout
    8 bytes   length of the header
    header    JSON: method, parameters, score range, values, and for each array its dtype, shape;
              filled up with blanks so that the arrays start at a multiple of 64 bytes
    arrays    sorted by name, each filled up with zeros to a multiple of 64 bytes
    32 bytes  SHA-256 of everything before
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from faircal._version import __version__
from faircal.calibrators import CALIBRATORS, Calibrator
from faircal.errors import FairCalError, ModelFileError, NotFittedError, ParameterError
from faircal.files import atomic_path, existing
from faircal.methods.base import Diagnostics, Method

MAGIC = b"FAIRCAL\n"
VERSION = 1
_FRONT = struct.Struct("<8sIQ")
_ALIGN = 64
_CHECKSUM = 32
_DTYPES = ("float64", "float32", "int64", "int32", "bool")


def save_model(model: Method, path: str | Path) -> None:
    """Write a fitted method to `path`; the file appears whole or not at all."""
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    blob = encode(model)
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(blob)


def load_model(path: str | Path) -> Method:
    """Read a model file; anything wrong with it is one clear `ModelFileError`.

    Examples
    --------
    >>> import tempfile
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.Baseline().fit(cal)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/m.faircal")
    ...     again = faircal.load_model(f"{folder}/m.faircal")
    >>> bool((again.predict_proba(test) == model.predict_proba(test)).all())
    True
    """
    source = existing(path)
    if source.is_dir():
        raise ModelFileError(
            f"{source}: expected a model file, found a folder; give the .faircal file"
        )
    try:
        return decode(source.read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from error


def encode(model: Method) -> bytes:
    """Return the bytes of a model file; the same model gives the same bytes."""
    values: dict[str, Any] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for key, value in model._get_state().items():
        (arrays if isinstance(value, np.ndarray) else values)[key] = value
    header = {
        "faircal": __version__,
        "method": model.name,
        "parameters": {key: _plain(value) for key, value in model.get_params(deep=False).items()},
        "score_range": list(model.score_range_),
        "values": values,
        "notes": model.diagnostics_.notes,
        "figures": model.diagnostics_.figures,
        "arrays": {key: [array.dtype.name, list(array.shape)] for key, array in arrays.items()},
    }
    text = json.dumps(header, sort_keys=True, allow_nan=False).encode()
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


def decode(blob: bytes) -> Method:
    """Rebuild a method from the bytes of a model file."""
    from faircal.methods import METHODS, make_method

    header, body = _open(blob)
    try:
        parameters = {key: _lively(value) for key, value in header["parameters"].items()}
        model = make_method(header["method"], **parameters)
        low, high = header["score_range"]
        model.score_range_ = (float(low), float(high))
        model.diagnostics_ = Diagnostics(list(header["notes"]), dict(header["figures"]))
        model._set_state({**header["values"], **_arrays(header["arrays"], body)})
        model._fitted = True
    except (
        FairCalError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
    ) as error:
        writer = str(header.get("faircal", "?"))
        foreign = isinstance(header.get("method"), str) and header["method"] not in METHODS
        remedy = "import the file with its method first (--plugin)" if foreign else "fit it again"
        raise ModelFileError(
            f"the model cannot be rebuilt ({_line(error)}); it was written by faircal "
            f"{_line(writer)}, this is {__version__}: {remedy}"
        ) from error
    return model


def _open(blob: bytes) -> tuple[dict[str, Any], memoryview]:
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


def _arrays(specs: dict[str, Any], body: memoryview) -> dict[str, np.ndarray[Any, Any]]:
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


def _line(text: object, most: int = 200) -> str:
    """Return `text` as one short line: it comes from the file, so it can be anything."""
    return " ".join(str(text).split())[:most]


def _padding(length: int) -> int:
    return -length % _ALIGN


def _length(spec: Any) -> int:
    dtype, shape = spec
    if dtype not in _DTYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ModelFileError("damaged: an array of unknown kind; copy or fit it again")
    return int(math.prod(shape) * np.dtype(dtype).itemsize)


def _plain(value: Any) -> Any:
    """Turn a parameter into JSON; a calibrator becomes its name and parameters."""
    if isinstance(value, Calibrator):
        names = [name for name, kind in CALIBRATORS.items() if kind is type(value)]
        if not names:
            raise ParameterError(
                f"cannot save a model with a {type(value).__name__}: it is not registered; "
                "add it to faircal.calibrators.CALIBRATORS first"
            )
        parameters = {k: _plain(v) for k, v in value.get_params(deep=False).items()}
        return {"calibrator": names[0], "parameters": parameters}
    return value.item() if isinstance(value, np.generic) else value


def _lively(value: Any) -> Any:
    if isinstance(value, dict):
        parameters = {
            k: tuple(v) if isinstance(v, list) else v for k, v in value["parameters"].items()
        }
        return CALIBRATORS[value["calibrator"]](**parameters)
    return value
