"""A classifier's calibration in a ``.faircal`` file: clusters and maps, no estimator, no code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._version import __version__
from faircal.calibrators.classes import CLASS_CALIBRATORS, ClassCalibrator, make_class_calibrator
from faircal.classifier.estimator import FairCalClassifier
from faircal.container import pack
from faircal.errors import ParameterError
from faircal.files import atomic_path

#: In the header of such a file, in the place of a method's name.
KIND = "classifier"
#: Parameters that say how the calibration was made; the others are of the estimator.
_PARAMETERS = ("n_clusters", "calibrator", "shrinkage", "n_init", "random_state")


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
        KIND: "faircal",
        "parameters": {
            name: value if name == "calibrator" else _label(value)
            for name, value in parameters.items()
        },
        "classes": [_label(value) for value in model.classes_],
        "feature_names": list(model.feature_names_),
        "provenance": model.provenance_,
    }
    return pack(header, model._get_state())


def decode_classifier(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> FairCalClassifier:
    """Rebuild a classifier's calibration from the parts of a file."""
    parameters = dict(header["parameters"])
    parameters["calibrator"] = _lively(parameters["calibrator"])
    if parameters["shrinkage"] != "cv":
        parameters["shrinkage"] = float(parameters["shrinkage"])
    model = FairCalClassifier(**{name: parameters[name] for name in _PARAMETERS})
    model._check_parameters()
    model._set_state(np.array(header["classes"]), arrays)
    model.feature_names_ = tuple(map(str, header["feature_names"]))
    model.provenance_ = dict(header["provenance"])
    return model


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
