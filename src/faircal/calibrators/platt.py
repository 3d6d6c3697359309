"""Platt scaling: logistic regression on the score, with smoothed targets."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit

from faircal.calibrators._newton import finite_logit, fit_nonnegative
from faircal.calibrators._sample import Floats, Sample
from faircal.calibrators.base import Calibrator


class PlattCalibrator(Calibrator):
    r"""Platt scaling (Platt, 1999) with a slope of zero or more.

    .. math:: p(s) = \frac{1}{1 + \exp(-(\alpha s + \beta))}, \quad \alpha \ge 0

    fitted by maximum likelihood to the targets :math:`(N_+ + 1)/(N_+ + 2)` for genuine and
    :math:`1/(N_- + 2)` for imposter pairs in place of 1 and 0, where :math:`N_\pm` are the total
    weights of the classes. The targets keep the slope finite even when the classes are separable.

    Parameters
    ----------
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    slope_, intercept_ : float
        α and β above; Platt's own A and B are their negatives.

    Notes
    -----
    Platt allows a decreasing map; a higher score must not mean a lower probability here, so where
    the best slope is negative the map is constant. Constant maps, also those for one class or one
    distinct score, are at the mean of the smoothed targets, which the same likelihood asks for.

    Examples
    --------
    >>> calibrator = PlattCalibrator().fit([-0.5, 0.5], [False, True])
    >>> calibrator.predict([-0.5, 0.0, 0.5]).round(4)
    array([0.3333, 0.5   , 0.6667])
    """

    _scalars: ClassVar[tuple[str, ...]] = ("slope", "intercept")

    def _fit(self, sample: Sample) -> None:
        target = _smoothed(sample) / sample.mass
        fit = fit_nonnegative(sample.scores[np.newaxis], target, sample.mass)
        self.slope_, self.intercept_ = float(fit.slopes[0]), fit.intercept

    def _fit_constant(self, sample: Sample) -> None:
        self.slope_ = 0.0
        self.intercept_ = finite_logit(float(_smoothed(sample).sum() / sample.mass.sum()))

    def _predict(self, scores: Floats) -> Floats:
        return np.asarray(expit(self.slope_ * scores + self.intercept_), dtype=np.float64)


def _smoothed(sample: Sample) -> Floats:
    """Return the sum of Platt's targets at each distinct score."""
    imposter = sample.mass - sample.genuine
    n_genuine, n_imposter = float(sample.genuine.sum()), float(imposter.sum())
    target: Floats = sample.genuine * ((n_genuine + 1) / (n_genuine + 2))
    target += imposter / (n_imposter + 2)
    return target
