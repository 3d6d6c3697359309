"""Choosing K and the calibrator of FairCal: on people held out, without attributes."""

from faircal.evaluation.tuning.choice import Candidate, Choice, Stability
from faircal.evaluation.tuning.run import choose

__all__ = ["Candidate", "Choice", "Stability", "choose"]
