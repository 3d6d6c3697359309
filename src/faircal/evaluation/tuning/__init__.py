"""Choosing K and the calibrator of FairCal: on people held out, without attributes."""

from faircal.evaluation.tuning.choice import Choice, Stability, TrialCandidate
from faircal.evaluation.tuning.cross_validation import choose

__all__ = ["Choice", "Stability", "TrialCandidate", "choose"]
