"""Oracle: FairCal with the true groups in place of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faircal._base.container import prefixed, unprefixed
from faircal.calibrators import Calibrator, make_calibrator
from faircal.data import Dataset
from faircal.methods.base import Claims, Method, Needs, Output, check_count, check_names
from faircal.methods.inputs import Fitting, GroupSets, Inputs, declared
from faircal.methods.set_calibrators import SetCalibrators


@dataclass(eq=False, repr=False)
class Oracle(Method):
    """One calibrator per group; needs the attribute at test time, so it is a yardstick, not a tool.

    A cross-group pair gets probability 0, as in the paper. A pair of unknown group, or of a group
    that the calibration pairs did not have, gets the global calibrator's probability.

    Parameters
    ----------
    attribute : str, optional
        Which attribute makes the groups (``a+b`` crosses); all columns crossed by default.
    calibrator : str or Calibrator
    min_pairs : int
        A group with fewer pairs, or one class only, uses the global calibrator.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.Oracle(attribute="ethnicity").fit(cal)
    >>> float(model.predict_proba(test)[test.groups("ethnicity").cross].sum())
    0.0
    """

    name = "oracle"
    title = "Oracle"
    needs = Needs(groups_to_fit=True, groups_to_apply=True)
    streams = True
    claims = Claims(improves_accuracy=True, fairly_calibrated=True, predictive_equality=True)
    yardstick = True

    attribute: str | None = None
    calibrator: str | Calibrator = "beta"
    min_pairs: int = 10

    def _fit(self, inputs: Fitting) -> None:
        self.groups_ = inputs.group_names
        # As FairCal, with the pairs within group g as calibration set S_g.
        samples = inputs.samples(GroupSets(self.groups_), len(self.groups_))
        calibrator = make_calibrator(self.calibrator, inputs.score_range)
        self.calibrators_ = SetCalibrators.fit(calibrator, samples, self.min_pairs, inputs.engine)
        on_global = [
            name
            for name, has_own in zip(self.groups_, self.calibrators_.own, strict=True)
            if not has_own
        ]
        if on_global:
            self.diagnostics_.note(f"groups on the global calibrator: {', '.join(on_global)}")

    def _apply(self, inputs: Inputs) -> Output:
        # c(x₁, x₂) = μ_g(s); a pair of group −1, unknown to the fit, gets the global map.
        (group,) = GroupSets(self.groups_)(inputs)
        (probability,) = self.calibrators_.predict(inputs.score, group)
        # Two groups are two people: the paper gives such pairs 0, whatever their score.
        probability[declared(inputs.groups, "groups").cross] = 0.0
        return Output(probability, probability)

    def remarks(self, data: Dataset, output: Output) -> list[str]:  # noqa: ARG002
        """Say how many genuine pairs are of two groups, which makes them imposters here."""
        if data.pairs.genuine is None:
            return []
        lost = int((data.genuine & data.groups(self.attribute_).cross).sum())
        note = f"{lost} of {int(data.genuine.sum())} genuine pairs are of two groups and get "
        return [f"{note}probability 0: correct the attribute of one of their images"] * bool(lost)

    def _get_state(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute_,
            "groups": list(self.groups_),
            **prefixed("bank", self.calibrators_.get_state()),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        (self.attribute_,) = check_names("attribute", [state["attribute"]])
        self.groups_ = check_names("groups", state["groups"])
        calibrator = make_calibrator(self.calibrator, self.score_range_)
        self.calibrators_ = SetCalibrators.restore(calibrator, unprefixed("bank", state))
        check_count("bank", self.calibrators_.own, len(self.groups_))
