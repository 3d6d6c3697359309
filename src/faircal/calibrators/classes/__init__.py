"""Calibrators of classes: from class probabilities to calibrated ones.

To add one, write a subclass of `ClassCalibrator` in its own file and register it below; the
contract tests pick it up from `CLASS_CALIBRATORS`.
"""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import clone

from faircal._base.errors import ParameterError
from faircal._base.registry import Registry
from faircal.calibrators.classes.base import ClassCalibrator, PulledMap, Strength
from faircal.calibrators.classes.linear import (
    DirichletCalibrator,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from faircal.calibrators.classes.one_vs_rest import OneVsRestHistogram, OneVsRestIsotonic

__all__ = [
    "CLASS_CALIBRATORS",
    "ClassCalibrator",
    "DirichletCalibrator",
    "MatrixScaling",
    "OneVsRestHistogram",
    "OneVsRestIsotonic",
    "PulledMap",
    "Strength",
    "TemperatureScaling",
    "VectorScaling",
    "make_class_calibrator",
]

CLASS_CALIBRATORS: Registry[Callable[[], ClassCalibrator]] = Registry("calibrator of classes")
CLASS_CALIBRATORS.register("dirichlet", DirichletCalibrator)
CLASS_CALIBRATORS.register("dirichlet-diagonal", lambda: DirichletCalibrator(form="diagonal"))
CLASS_CALIBRATORS.register("temperature", TemperatureScaling)
CLASS_CALIBRATORS.register("vector", VectorScaling)
CLASS_CALIBRATORS.register("matrix", MatrixScaling)
CLASS_CALIBRATORS.register("isotonic", OneVsRestIsotonic)
CLASS_CALIBRATORS.register("histogram", OneVsRestHistogram)


def make_class_calibrator(calibrator: str | ClassCalibrator) -> ClassCalibrator:
    """Return a new, unfitted calibrator of classes, by name or as a copy.

    Examples
    --------
    >>> make_class_calibrator("dirichlet-diagonal")
    DirichletCalibrator(form='diagonal')
    """
    if isinstance(calibrator, str):
        return CLASS_CALIBRATORS[calibrator]()
    if isinstance(calibrator, ClassCalibrator):
        copy: ClassCalibrator = clone(calibrator)
        return copy
    raise ParameterError(
        f"calibrator: expected a name ({', '.join(CLASS_CALIBRATORS)}) or a ClassCalibrator, "
        f"found {calibrator!r}"
    )
