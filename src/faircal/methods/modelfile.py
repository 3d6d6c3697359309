"""The model file ``*.faircal``: parameters and fitted state in one container, no pickle, no code.

A file holds a method, or a classifier's calibration: clusters and maps, no estimator. Which of the
two says its header, where either ``method`` or ``classifier`` stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from faircal._base.container import FRONT_SIZE, check_numbers, cut, divided, front, pack, unpack
from faircal._base.errors import DataError, ModelFileError, NotFittedError, ParameterError
from faircal._base.files import atomic_path, existing
from faircal._base.registry import short
from faircal._version import __version__
from faircal.calibrators import CALIBRATORS, Calibrator
from faircal.calibrators.classes import CLASS_CALIBRATORS, ClassCalibrator
from faircal.methods.base import Diagnostics, Method
from faircal.methods.classifier import FairCalClassifier
from faircal.model import SCHEMA, About, one_line

#: Scores are within this of 0, and their range is no narrower, beside the scores or 1e-9.
_WIDEST, _NARROWEST = 1e30, 1e-9

#: In the header of a classifier's file, in the place of a method's name.
_CLASSIFIER = "classifier"
#: Its parameters that say how the calibration was made; the others are of the estimator.
_OF_CALIBRATION = ("n_clusters", "calibrator", "shrinkage", "n_init", "random_state")
#: Its arrays in which NaN and infinity say something.
_UNBOUNDED = ("maps/weights", "maps/pull")
#: Letters of all classes, were they all as long as the longest: as NumPy keeps them.
_MOST_LETTERS = 1 << 24


def save_model(model: Method | FairCalClassifier, path: str | Path) -> None:
    """Write a fitted model to `path`; the file appears whole or not at all."""
    if isinstance(model, FairCalClassifier):
        model._check_fitted()
    elif not model._fitted:
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
    return read_model(path)[0]


def read_model(path: str | Path) -> tuple[Method | FairCalClassifier, bytes]:
    """Read a model file as `load_model` does; return its bytes, too, for who must know them."""
    source = existing(path)
    if source.is_dir():
        raise ModelFileError(
            f"{source}: expected a model file, found a folder; give the .faircal file"
        )
    if not source.is_file():  # a pipe or a device may have no end
        raise ModelFileError(f"{source}: expected a model file, found none; give the .faircal file")
    try:
        with source.open("rb") as file:
            begin = file.read(FRONT_SIZE)
            front(begin)  # what is no model need not be read
            blob = begin + file.read()
        return decode(blob), blob
    except ModelFileError as error:
        raise ModelFileError(f"{source}: {error}") from error
    except (OSError, MemoryError, OverflowError) as error:
        raise ModelFileError(
            f"{source}: cannot be read ({short(error)}); copy it and try again"
        ) from error


def load_method(path: str | Path) -> Method:
    """Read the model file of a method; that of a classifier is one clear error."""
    model, _ = read_model(path)
    if isinstance(model, FairCalClassifier):
        raise ModelFileError(
            f"{path}: expected a model of pairs, found one of a classifier; "
            "use it with 'faircal classify'"
        )
    return model


def encode(model: Method | FairCalClassifier) -> bytes:
    """Return the bytes of a model file; the same model gives the same bytes."""
    if isinstance(model, FairCalClassifier):
        state, arrays = _classifier_parts(model)
    else:
        values, arrays = divided(model._get_state())
        check_numbers(arrays)
        parameters = model.get_params(deep=False).items()
        state = {
            "method": model.name,
            "parameters": {key: _to_json(value) for key, value in parameters},
            "score_range": list(model.score_range_),
            "values": values,
            "notes": model.diagnostics_.notes,
            "figures": model.diagnostics_.figures,
        }
    about, more = model.about_.parts()
    header = {"faircal": __version__, "schema": SCHEMA, **state, "about": about}
    return pack(header, {**arrays, **more})


def _classifier_parts(
    model: FairCalClassifier,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a classifier's calibration has in the header, and its arrays."""
    parameters = {name: getattr(model, name) for name in _OF_CALIBRATION}
    if parameters["shrinkage"] != "cv":  # JSON has no infinity
        parameters["shrinkage"] = repr(float(parameters["shrinkage"]))
    header = {
        _CLASSIFIER: "faircal",
        "parameters": {name: _to_json(value) for name, value in parameters.items()},
        "classes": [_class_to_json(value) for value in model.classes_],
        "feature_names": list(model.feature_names_),
    }
    arrays = model._get_state()
    check_numbers(arrays, _UNBOUNDED)
    return header, arrays


def decode(blob: bytes) -> Method | FairCalClassifier:
    """Rebuild what is in the bytes of a model file.

    They may come from anybody: whatever is wrong with them is a `ModelFileError`, nothing of them
    is run, and memory stays within some forty times their length.
    """
    header, body = unpack(blob)
    schema = header.get("schema", 0)
    if type(schema) is not int or schema < 0:
        raise ModelFileError("damaged: its schema is no number; copy or fit it again")
    if schema > SCHEMA:
        raise ModelFileError(
            f"written by a newer faircal ({one_line(header.get('faircal', '?'), 20)}) in schema "
            f"{one_line(schema, 20)}; this one ({__version__}) reads up to {SCHEMA}: upgrade"
        )
    try:
        # A cast or a sum that can't be is an error here, not a warning somewhere.
        with np.errstate(all="raise", under="ignore"):
            about, arrays = About.restore(header.get("about"), cut(header["arrays"], body))
            rebuild = _decode_classifier if _CLASSIFIER in header else _decode_method
            model = rebuild(header, arrays)
            model.about_ = about
            return model
    except Exception as error:  # the file decides what goes wrong, and where
        raise ModelFileError(_why_not(header, error)) from error


def _decode_method(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Method:
    from faircal.methods import make_method

    check_numbers(arrays)
    parameters = {key: _from_json(value) for key, value in header["parameters"].items()}
    model = make_method(header["method"], **parameters)
    low, high = map(float, header["score_range"])
    reach = max(abs(low), abs(high))
    if not (reach <= _WIDEST and high - low >= _NARROWEST * max(reach, _NARROWEST)):
        raise DataError(
            f"score_range: expected two numbers, the lower first; found {header['score_range']!r}"
        )
    model.score_range_ = low, high
    notes, figures = header["notes"], header["figures"]
    texts = isinstance(notes, list) and all(isinstance(text, str) for text in notes)
    if not texts or not isinstance(figures, dict):
        raise DataError("notes and figures: expected a list of texts, and numbers by name")
    for key, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _WIDEST:
            raise DataError(f"figures: expected a number as {key}, found {value!r}")
    model.diagnostics_ = Diagnostics(notes, figures)
    model._set_state({**header["values"], **arrays})
    model.check_parameters()
    model._fitted = True
    return model


def _decode_classifier(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> FairCalClassifier:
    check_numbers(arrays, _UNBOUNDED)
    parameters = {key: _from_json(value) for key, value in header["parameters"].items()}
    if parameters["shrinkage"] != "cv":
        parameters["shrinkage"] = float(parameters["shrinkage"])
    model = FairCalClassifier(**{name: parameters[name] for name in _OF_CALIBRATION})
    model._check_parameters()
    model._set_state(_classes(header["classes"]), arrays)
    names = header["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("feature_names: expected a list of names")
    model.feature_names_ = tuple(names)
    return model


def _classes(values: Any) -> NDArray[Any]:
    """Return the classes: different texts, numbers or truths, all of one kind."""
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(values)) < len(values):
        raise DataError("classes: expected a list of different names or numbers")
    if kinds == {str} and len(values) * max(map(len, values)) > _MOST_LETTERS:
        raise DataError("classes: expected names that are short enough to be kept side by side")
    classes = np.array(values)
    if classes.dtype.kind not in "biufU":
        raise DataError("classes: expected numbers of at most 64 bits")
    return classes


def _why_not(header: Mapping[str, Any], error: Exception) -> str:
    from faircal.methods import METHODS

    writer = one_line(header.get("faircal", "?"))
    parameters = header.get("parameters")
    map_ = parameters.get("calibrator") if isinstance(parameters, Mapping) else None
    remedy = "fit it again"
    if isinstance(header.get("method"), str) and header["method"] not in METHODS:
        remedy = "import the file with its method first (--plugin)"
    elif isinstance(map_, str) and map_.partition(":")[0] not in CALIBRATORS:
        remedy = "import the file with its calibrator first (--plugin)"
    return (
        f"the model cannot be rebuilt ({one_line(error) or type(error).__name__}); it was written "
        f"by faircal {writer}, this is {__version__}: {remedy}"
    )


#: What each kind of calibrator is called in a header, its class and where it is registered.
_CALIBRATORS: dict[str, tuple[type[BaseEstimator], Mapping[str, Callable[[], Any]]]] = {
    "calibrator": (Calibrator, CALIBRATORS),
    "class_calibrator": (ClassCalibrator, CLASS_CALIBRATORS),
}


def _to_json(value: Any) -> Any:
    """Turn a parameter into JSON; a calibrator becomes its name and parameters."""
    for key, (kind, registry) in _CALIBRATORS.items():
        if isinstance(value, kind):
            names = [name for name, make in registry.items() if type(make()) is type(value)]
            if not names:
                raise ParameterError(
                    f"cannot save a model with a {type(value).__name__}: it is not registered; "
                    f"add it to the calibrators of {kind.__module__.removesuffix('.base')} first"
                )
            parameters = {k: _to_json(v) for k, v in value.get_params(deep=False).items()}
            return {key: names[0], "parameters": parameters}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _to_json(item) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any) -> Any:
    """Undo `_to_json`; lists come back as tuples."""
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if isinstance(value, dict) and "mapping" in value:
        return {key: _from_json(item) for key, item in value["mapping"].items()}
    if isinstance(value, dict):
        parameters = {key: _from_json(item) for key, item in value["parameters"].items()}
        (key,) = _CALIBRATORS.keys() & value.keys()
        return _CALIBRATORS[key][1][value[key]]().set_params(**parameters)
    return value


def _class_to_json(value: Any) -> Any:
    """Return a class as JSON knows it: text, a number, true or false."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, str | int | float | bool):
        raise ParameterError(
            f"cannot save a {type(plain).__name__}; use text or numbers as classes"
        )
    return plain
