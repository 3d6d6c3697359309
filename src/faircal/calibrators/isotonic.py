"""Isotonic regression: the best non-decreasing map."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.isotonic import isotonic_regression

from faircal.calibrators.base import Calibrator
from faircal.calibrators.samples import Floats, WeightedScores


class IsotonicCalibrator(Calibrator):
    """Isotonic regression (Zadrozny and Elkan, 2002).

    The non-decreasing map with the least squared error, by pooling adjacent violators: linear
    between its knots, constant outside them.

    Parameters
    ----------
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    knots_, values_ : ndarray of shape (n_knots,)
        Scores, ascending, and the probabilities there.

    Examples
    --------
    >>> calibrator = IsotonicCalibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> calibrator.predict([0.0, 0.15, 0.25, 0.35, 0.9])
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("knots", "values")

    def _fit(self, sample: WeightedScores) -> None:
        values = isotonic_regression(
            sample.genuine / sample.mass, sample_weight=sample.mass, y_min=0.0, y_max=1.0
        )
        # The inside of a flat stretch adds nothing to a piecewise linear map.
        rises = values[1:] != values[:-1]
        needed = np.concatenate(([True], rises)) | np.concatenate((rises, [True]))
        self.knots_, self.values_ = sample.scores[needed], values[needed]

    def _fit_constant(self, sample: WeightedScores) -> None:
        self.knots_, self.values_ = sample.scores[:1].copy(), np.array([sample.fraction])

    def _is_sound(self) -> bool:
        return len(self.knots_) == len(self.values_) and bool((np.diff(self.knots_) > 0).all())

    def _predict(self, scores: Floats) -> Floats:
        return np.asarray(np.interp(scores, self.knots_, self.values_), dtype=np.float64)
