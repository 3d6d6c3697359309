"""Calibrators: one-dimensional maps from a similarity score to P(genuine).

To add one, write a subclass of `Calibrator` in its own file and register it below; the contract
tests pick it up from `CALIBRATORS`.
"""

from __future__ import annotations

from sklearn.base import clone

from faircal._base.errors import ParameterError
from faircal._base.registry import Registry
from faircal.calibrators.base import Calibrator
from faircal.calibrators.beta import BetaCalibrator
from faircal.calibrators.histogram import HistogramCalibrator
from faircal.calibrators.isotonic import IsotonicCalibrator
from faircal.calibrators.logistic import LogisticCalibrator, sigmoid
from faircal.calibrators.platt import PlattCalibrator
from faircal.calibrators.samples import Samples
from faircal.calibrators.spline import SplineCalibrator
from faircal.calibrators.temperature import TemperatureCalibrator

__all__ = [
    "CALIBRATORS",
    "BetaCalibrator",
    "Calibrator",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "LogisticCalibrator",
    "PlattCalibrator",
    "Samples",
    "SplineCalibrator",
    "TemperatureCalibrator",
    "make_calibrator",
    "sigmoid",
]

CALIBRATORS: Registry[type[Calibrator]] = Registry("calibrator")
CALIBRATORS.register("beta", BetaCalibrator)
CALIBRATORS.register("histogram", HistogramCalibrator)
CALIBRATORS.register("isotonic", IsotonicCalibrator)
CALIBRATORS.register("platt", PlattCalibrator)
CALIBRATORS.register("temperature", TemperatureCalibrator)
CALIBRATORS.register("spline", SplineCalibrator)


def make_calibrator(
    calibrator: str | Calibrator, score_range: tuple[float, float] = (-1.0, 1.0)
) -> Calibrator:
    """Return a new, unfitted calibrator for scores of the given range.

    Parameters
    ----------
    calibrator : str or Calibrator
        A registered name, with a parameter where it takes one (``histogram:n_bins=25``), or a
        calibrator whose other parameters are copied.
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Examples
    --------
    >>> make_calibrator("beta", (0.0, 1.0))
    BetaCalibrator(score_range=(0.0, 1.0))
    >>> make_calibrator(HistogramCalibrator(n_bins=25), (0.0, 1.0)).n_bins
    25
    >>> make_calibrator("histogram:n_bins=25").n_bins
    25
    """
    if isinstance(calibrator, str):
        name, colon, setting = calibrator.partition(":")
        made = CALIBRATORS[name](score_range=score_range)
        if colon:
            _set_parameter(made, calibrator, setting)
        return made
    if isinstance(calibrator, Calibrator):
        copy: Calibrator = clone(calibrator)
        copy.set_params(score_range=score_range)
        return copy
    raise ParameterError(
        f"calibrator: expected a name ({', '.join(CALIBRATORS)}) or a Calibrator; "
        f"found {calibrator!r}"
    )


def _set_parameter(calibrator: Calibrator, spec: str, setting: str) -> None:
    """Set the parameter of a name such as ``histogram:n_bins=25``; a whole number or a fraction."""
    name, equals, text = setting.partition("=")
    parameters = [key for key in calibrator.get_params() if key != "score_range"]
    if name not in parameters or not equals:
        takes = f"name one of {', '.join(parameters)}" if parameters else "it has no parameters"
        raise ParameterError(f"calibrator {spec!r}: expected name:parameter=value; {takes}")
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(
            f"calibrator {spec!r}: expected a number, found {text!r}; correct it"
        ) from None
    calibrator.set_params(**{name: int(value) if value.is_integer() else value})
