"""GST: group-specific thresholds, a shift per group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from faircal._base.container import prefixed, unprefixed
from faircal.calibrators import Calibrator
from faircal.methods.base import Claims, Method, Needs, Output, check_count, check_names
from faircal.methods.inputs import Fitting, GroupSets, Inputs
from faircal.methods.set_calibrators import ShiftedScores, threshold_shifts
from faircal.metrics import ThresholdRule


@dataclass(eq=False, repr=False)
class GST(Method):
    """Shift scores so that each group meets one false-positive rate at one threshold.

    As `FSN` with the true groups as sets: a pair of group g scores s − (t_g − t_G), a cross-group
    pair or one of unknown group keeps s.

    Parameters
    ----------
    attribute : str, optional
        Which attribute makes the groups (``a+b`` crosses); all columns crossed by default.
    calibrator : str or Calibrator
    target_fpr : float
        The false-positive rate it is fitted to (the paper: 0.1 %).
    threshold_rule : {"nearest", "interpolate", "conservative"}

    Attributes
    ----------
    shifts_ : ndarray of shape (n_groups,)
        t_g − t_G; 0 where a group has no imposter.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.GST().fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "gst"
    title = "GST"
    needs = Needs(groups_to_fit=True, groups_to_apply=True)
    streams = True
    claims = Claims(improves_accuracy=True, predictive_equality=True)
    fitted_to_rate = True

    attribute: str | None = None
    calibrator: str | Calibrator = "beta"
    target_fpr: float = 1e-3
    threshold_rule: ThresholdRule = "nearest"

    def _fit(self, inputs: Fitting) -> None:
        self.groups_ = inputs.group_names
        # t_g − t_G of the pairs within each group g; the last set, all pairs, gives t_G.
        samples = inputs.samples(GroupSets(self.groups_), len(self.groups_))
        shifts = threshold_shifts(samples, self.target_fpr, self.threshold_rule)
        without = [
            name for name, shift in zip(self.groups_, shifts, strict=True) if np.isnan(shift)
        ]
        if without:
            self.diagnostics_.note(f"groups without imposters, not shifted: {', '.join(without)}")
        self.shifts_ = np.nan_to_num(shifts)
        # ŝ = s − (t_g − t_G)
        self._shifted = ShiftedScores(GroupSets(self.groups_), self.shifts_)
        # Shifted scores are no probabilities: one global map, fitted in a second pass.
        self.calibrator_ = self._shifted.fit(self.calibrator, inputs)

    def _apply(self, inputs: Inputs) -> Output:
        score = self._shifted(inputs)
        return Output(score, self.calibrator_.predict(score))

    def _get_state(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute_,
            "groups": list(self.groups_),
            "shifts": self.shifts_,
            **prefixed("calibrator", self.calibrator_.get_state()),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        (self.attribute_,) = check_names("attribute", [state["attribute"]])
        self.groups_ = check_names("groups", state["groups"])
        self.shifts_ = np.asarray(state["shifts"], np.float64)
        check_count("shifts", self.shifts_, len(self.groups_))
        self._shifted = ShiftedScores(GroupSets(self.groups_), self.shifts_)
        calibrator = self._shifted.calibrator(self.calibrator, self.score_range_)
        self.calibrator_ = calibrator.set_state(unprefixed("calibrator", state))
