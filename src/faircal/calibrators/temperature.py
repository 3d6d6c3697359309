"""Temperature scaling: one slope on the logit of the normalised score."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faircal.calibrators.beta import EPS
from faircal.calibrators.logistic import LogisticCalibrator
from faircal.calibrators.samples import Floats


class TemperatureCalibrator(LogisticCalibrator):
    """Temperature scaling (Guo et al., 2017) of the normalised score.

    ``p(z) = sigmoid(logit(z) / T)`` with T > 0,

    where z is the score mapped onto [0, 1] and kept a machine epsilon away from both ends. It
    cannot move the score at which the probability is one half, the middle of the range, and so
    fits cosines poorly; it is here to be compared with.

    Parameters
    ----------
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    inverse_temperature_ : float
        1/T, by maximum likelihood under 1/T ≥ 0. Zero, an infinite temperature, is the constant
        map 0.5: it is best when the scores point the wrong way.
    offset_ : float
        Added to the logit. Always 0, except for the constant map that one class or one distinct
        score give, which the model itself cannot express.

    Notes
    -----
    When the middle of the range separates the classes perfectly, T would fall to zero; the fit
    then stops with a mean log-loss below 1e-9.

    Examples
    --------
    >>> calibrator = TemperatureCalibrator().fit([-0.5, -0.5, -0.5, 0.5], [0, 0, 1, 1])
    >>> calibrator.predict([-0.5, 0.0, 0.5]).round(3)
    array([0.25, 0.5 , 0.75])
    """

    _scalars: ClassVar[tuple[str, ...]] = ("inverse_temperature", "offset")
    _intercept: ClassVar[bool] = False

    def _terms(self, scores: Floats) -> tuple[Floats, ...]:
        low, high = self.score_range
        z = np.clip((scores - low) / (high - low), EPS, 1.0 - EPS)
        return (np.log(z) - np.log1p(-z),)
