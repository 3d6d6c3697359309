"""S-norm: scores in units of what both images score with a cohort of strangers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from faircal.calibrators import Calibrator
from faircal.methods.base import Claims, Needs
from faircal.methods.inputs import Float64, ImageValues, Inputs
from faircal.methods.normalizing import (
    CohortPeople,
    GroupMoments,
    NormalizingMethod,
    PairSides,
    normalized,
    paired,
)


@dataclass(eq=False, repr=False)
class SNorm(NormalizingMethod):
    """Symmetric score normalisation (Kenny, 2010), of speaker verification.

    With μ_x and σ_x the mean and the (population) standard deviation of the cosines of image x with
    the people of a cohort, a pair's score is

        s' = ½ ((s − μ_l) / σ_l + (s − μ_r) / σ_r),

    and one global calibrator turns it into a probability. The cohort is that of the data, or else
    the people of the calibration images. Each person is one vector: the mean of the unit vectors of
    their images, at unit length. In the fit the people of a pair are in neither image's scores.

    Parameters
    ----------
    calibrator : str or Calibrator

    Attributes
    ----------
    moments_ : GroupMoments
        Mean and covariance of the cohort's people: the model keeps no person's vector.

    References
    ----------
    P. Kenny: Bayesian speaker verification with heavy-tailed priors. Odyssey 2010.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.SNorm().fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "snorm"
    title = "S-norm"
    needs = Needs(embeddings=True, folds=True, cohort="optional")
    claims = Claims(improves_accuracy=True)

    calibrator: str | Calibrator = "beta"

    def _fit_scores(self, inputs: Inputs) -> Float64:
        sides = PairSides.of(inputs)
        people = CohortPeople.of_fit(inputs, sides, self.diagnostics_)
        self._set_moments(GroupMoments.of(people))
        return paired(people.held_out(sides), inputs.score)

    def _scores(self, inputs: Inputs) -> Float64:
        return normalized(self._values, inputs)

    def _set_moments(self, moments: GroupMoments) -> None:
        self.moments_ = moments
        self._values = ImageValues(self.space_, moments, np.float64, 2, unit=True)

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), **self.moments_.get_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        moments = GroupMoments.restore(state)
        self._restore(state, moments.mean.shape[1])
        self._set_moments(moments)
