"""The model file ``*.faircal``: a method's parameters and fitted state in one container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from faircal._version import __version__
from faircal.about import About, own_arrays
from faircal.calibrators import CALIBRATORS, Calibrator
from faircal.classifier import FairCalClassifier
from faircal.classifier.modelfile import KIND, decode_classifier
from faircal.container import cut, pack, unpack
from faircal.errors import FairCalError, ModelFileError, NotFittedError, ParameterError
from faircal.files import atomic_path, existing
from faircal.methods.base import Diagnostics, Method


def save_model(model: Method, path: str | Path) -> None:
    """Write a fitted method to `path`; the file appears whole or not at all."""
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    blob = encode(model)
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(blob)


def load_model(path: str | Path) -> Method | FairCalClassifier:
    """Read a model file; anything wrong with it is one clear `ModelFileError`.

    What is saved is what comes back: a method, or the calibration of a classifier.

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


def load_method(path: str | Path) -> Method:
    """Read the model file of a method; that of a classifier is one clear error."""
    model = load_model(path)
    if isinstance(model, FairCalClassifier):
        raise ModelFileError(
            f"{path}: expected a model of pairs, found one of a classifier; "
            "use it with 'faircal classify'"
        )
    return model


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
        "about": model.about_.header(),
    }
    return pack(header, {**arrays, **model.about_.arrays()})


def decode(blob: bytes) -> Method | FairCalClassifier:
    """Rebuild what is in the bytes of a model file."""
    from faircal.methods import METHODS, make_method

    header, body = unpack(blob)
    try:
        if KIND in header:
            return decode_classifier(header, cut(header["arrays"], body))
        parameters = {key: _lively(value) for key, value in header["parameters"].items()}
        model = make_method(header["method"], **parameters)
        low, high = header["score_range"]
        model.score_range_ = (float(low), float(high))
        model.diagnostics_ = Diagnostics(list(header["notes"]), dict(header["figures"]))
        arrays = cut(header["arrays"], body)
        model.about_ = About.restore(header.get("about"), arrays)
        model._set_state({**header["values"], **own_arrays(arrays)})
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


def _line(text: object, most: int = 200) -> str:
    """Return `text` as one short line: it comes from the file, so it can be anything."""
    return " ".join(str(text).split())[:most]


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
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _plain(item) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _lively(value: Any) -> Any:
    """Undo `_plain`; lists come back as tuples."""
    if isinstance(value, list):
        return tuple(map(_lively, value))
    if isinstance(value, dict) and "mapping" in value:
        return {key: _lively(item) for key, item in value["mapping"].items()}
    if isinstance(value, dict):
        parameters = {key: _lively(item) for key, item in value["parameters"].items()}
        return CALIBRATORS[value["calibrator"]](**parameters)
    return value
