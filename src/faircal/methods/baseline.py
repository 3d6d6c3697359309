"""Baseline: the cosine score, one calibrator for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faircal.calibrators import Calibrator, make_calibrator
from faircal.methods.base import Method, Needs, Output
from faircal.methods.inputs import Fitting, Inputs


@dataclass(eq=False, repr=False)
class Baseline(Method):
    """Rank by the raw score; calibrate it with one global map.

    Parameters
    ----------
    calibrator : str or Calibrator
        Score → probability map; see `faircal.calibrators`.

    Examples
    --------
    >>> import faircal
    >>> data = faircal.simulate("small", seed=0)
    >>> cal, test = data.split(test_fold=5)
    >>> p = faircal.Baseline().fit(cal).predict_proba(test)
    >>> p.shape == (len(test),)
    True
    """

    name = "baseline"
    title = "Baseline"
    needs = Needs()
    streams = True

    calibrator: str | Calibrator = "beta"

    def _fit(self, inputs: Fitting) -> None:
        calibrator = make_calibrator(self.calibrator, inputs.score_range)
        # The paper's baseline: c(x₁, x₂) = μ(s(x₁, x₂)), with one map μ fitted on all calibration
        # pairs.
        (self.calibrator_,) = calibrator.fit_sets(inputs.samples())

    def _apply(self, inputs: Inputs) -> Output:
        return Output(inputs.score, self.calibrator_.predict(inputs.score))

    def _get_state(self) -> dict[str, Any]:
        return self.calibrator_.get_state()

    def _set_state(self, state: dict[str, Any]) -> None:
        self.calibrator_ = make_calibrator(self.calibrator, self.score_range_).set_state(state)
