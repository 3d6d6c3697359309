"""Choosing K and the calibrator of FairCal: on people held out, without attributes."""

from faircal.evaluation.tuning.choice import Choice, Stability, TriedSetting
from faircal.evaluation.tuning.run import choose

__all__ = ["Choice", "Stability", "TriedSetting", "choose"]
