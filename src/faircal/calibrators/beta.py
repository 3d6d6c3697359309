"""Beta calibration: logistic regression on log z and −log(1 − z)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faircal.calibrators.logistic import LogisticCalibrator
from faircal.calibrators.samples import Floats

#: How far z is kept from 0 and 1: log z and log(1 − z) stay finite.
EPS = float(np.finfo(np.float64).eps)


class BetaCalibrator(LogisticCalibrator):
    """Beta calibration (Kull, Silva Filho and Flach, 2017), fitted exactly.

    ``p(z) = 1 / (1 + exp(-(a log z - b log(1 - z) + c)))`` with a, b ≥ 0,

    where z is the score mapped onto [0, 1] and kept a machine epsilon away from both ends. The
    map never decreases.

    Parameters
    ----------
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    a_, b_, c_ : float
        The parameters, by maximum likelihood under a ≥ 0 and b ≥ 0.

    Notes
    -----
    The likelihood is concave, so its constrained maximum is found exactly: Newton's method
    whose steps respect the constraints, until the gradient says that no other a, b and c do
    better. On cosines the two terms are nearly collinear, and a or b is often 0.

    When a score separates the classes perfectly the likelihood has no maximum; the fit stops
    when another step would gain next to nothing, with finite parameters and a mean log-loss
    within 1e-9 of the limit (unless the classes touch to within about 1e-6 of their spread,
    where rounding ends it earlier). With two distinct scores the terms are interchangeable and
    b is 0. A constant map has a = b = 0; for one class only, c is ±1000, where the probability is
    exactly 0 or 1.

    Examples
    --------
    >>> scores = [-0.2, 0.0, 0.1, 0.3, 0.4, 0.6]
    >>> calibrator = BetaCalibrator().fit(scores, [0, 0, 1, 0, 1, 1])
    >>> calibrator.predict([-1.0, 0.0, 0.2, 1.0]).round(3)
    array([0.   , 0.207, 0.487, 1.   ])
    """

    _scalars: ClassVar[tuple[str, ...]] = ("a", "b", "c")

    def _terms(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return log z and −log(1 − z), both increasing in the score."""
        low, high = self.score_range
        z = np.clip((scores - low) / (high - low), EPS, 1.0 - EPS)
        return np.log(z), -np.log1p(-z)
