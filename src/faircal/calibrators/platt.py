"""Platt scaling: logistic regression on the score, with smoothed targets."""

from __future__ import annotations

from typing import ClassVar

from faircal.calibrators.logistic import LogisticCalibrator
from faircal.calibrators.samples import Floats


class PlattCalibrator(LogisticCalibrator):
    """Platt scaling (Platt, 1999) with a slope of zero or more.

    ``p(s) = 1 / (1 + exp(-(α s + β)))`` with α ≥ 0,

    fitted by maximum likelihood to the targets (N₊ + 1)/(N₊ + 2) for genuine and 1/(N₋ + 2) for
    imposter pairs in place of 1 and 0, where N₊ and N₋ are the total weights of the classes. The
    targets keep the slope finite even when the classes are separable.

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

    def _terms(self, scores: Floats) -> tuple[Floats, ...]:
        return (scores,)

    def _targets(self, genuine: Floats, imposter: Floats) -> tuple[Floats, Floats]:
        return 1.0 / (imposter + 2.0), (genuine + 1.0) / (genuine + 2.0)
