"""A classifier's calibration in a ``.faircal`` file: clusters and maps, no estimator, no code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import check_numbers, pack
from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path
from faircal._version import __version__
from faircal.calibrators.classes import CLASS_CALIBRATORS, ClassCalibrator, make_class_calibrator
from faircal.methods.classifier.estimator import FairCalClassifier
from faircal.model import SCHEMA, About, Provenance, own_arrays

#: In the header of such a file, in the place of a method's name.
KIND = "classifier"
#: Parameters that say how the calibration was made; the others are of the estimator.
_PARAMETERS = ("n_clusters", "calibrator", "shrinkage", "n_init", "random_state")
#: Arrays in which NaN and infinity say something.
_UNBOUNDED = ("maps/weights", "maps/pull")
#: Letters of all classes, were they all as long as the longest: as NumPy keeps them.
_MOST_LETTERS = 1 << 24


def save_classifier(model: FairCalClassifier, path: str | Path) -> None:
    """Write the calibration of a fitted classifier; the file appears whole or not at all."""
    model._check_fitted()
    blob = encode_classifier(model)
    with atomic_path(Path(path)) as temporary:
        temporary.write_bytes(blob)


def encode_classifier(model: FairCalClassifier) -> bytes:
    """Return the bytes of a file; the same model gives the same bytes."""
    parameters = {name: getattr(model, name) for name in _PARAMETERS}
    parameters["calibrator"] = _plain(model.calibrator)
    if parameters["shrinkage"] != "cv":  # JSON has no infinity
        parameters["shrinkage"] = repr(float(parameters["shrinkage"]))
    header = {
        "faircal": __version__,
        "schema": SCHEMA,
        KIND: "faircal",
        "parameters": {
            name: value if name == "calibrator" else _label(value)
            for name, value in parameters.items()
        },
        "classes": [_label(value) for value in model.classes_],
        "feature_names": list(model.feature_names_),
        "about": model.about_.header(),
    }
    arrays = model._get_state()
    check_numbers(arrays, _UNBOUNDED)
    return pack(header, {**arrays, **model.about_.arrays()})


def decode_classifier(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> FairCalClassifier:
    """Rebuild a classifier's calibration from the parts of a file."""
    own = own_arrays(arrays)
    check_numbers(own, _UNBOUNDED)
    parameters = dict(header["parameters"])
    parameters["calibrator"] = _lively(parameters["calibrator"])
    if parameters["shrinkage"] != "cv":
        parameters["shrinkage"] = float(parameters["shrinkage"])
    model = FairCalClassifier(**{name: parameters[name] for name in _PARAMETERS})
    model._check_parameters()
    model._set_state(_classes(header["classes"]), own)
    names = header["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("feature_names: expected a list of names")
    model.feature_names_ = tuple(names)
    model.about_ = _about(header, arrays)
    return model


def _classes(values: Any) -> NDArray[Any]:
    """Return the classes: different texts, numbers or truths, all of one kind."""
    kinds = {type(value) for value in values} if isinstance(values, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(values)) < len(values):
        raise DataError("classes: expected a list of different names or numbers")
    if kinds == {str} and len(values) * max(map(len, values)) > _MOST_LETTERS:
        raise DataError("classes: expected names that are short enough to be kept side by side")
    found = np.array(values)
    if found.dtype.kind not in "biufU":
        raise DataError("classes: expected numbers of at most 64 bits")
    return found


def _about(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> About:
    """Return what the file says besides; files of schema 0 have data, its hash and its rows."""
    if "provenance" not in header:
        return About.restore(header.get("about"), arrays)
    short = dict(header["provenance"])
    if not short:
        return About()
    counts = {"rows": short.pop("rows", None)}
    return About(Provenance.from_json({**short, "counts": counts}))


def _label(value: Any) -> Any:
    """Return a class or a parameter as JSON knows it: text, a number, true or false."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, str | int | float | bool):
        raise ParameterError(
            f"cannot save a {type(plain).__name__}; use text or numbers as classes and parameters"
        )
    return plain


def _plain(calibrator: str | ClassCalibrator) -> Any:
    if isinstance(calibrator, str):
        return calibrator
    for name in CLASS_CALIBRATORS:
        if type(make_class_calibrator(name)) is type(calibrator):
            parameters = calibrator.get_params(deep=False).items()
            return [name, {key: _label(value) for key, value in parameters if value is not None}]
    raise ParameterError(
        f"cannot save a model with a {type(calibrator).__name__}: it is not registered; "
        "add it to faircal.calibrators.classes.CLASS_CALIBRATORS first"
    )


def _lively(calibrator: Any) -> str | ClassCalibrator:
    if isinstance(calibrator, str):
        return calibrator
    name, parameters = calibrator
    made: ClassCalibrator = make_class_calibrator(name).set_params(**parameters)
    return made
