"""Thresholds with a promise: the rate of any group stays below what was asked for."""

from faircal.evaluation.thresholds.guarantee import guarantee
from faircal.evaluation.thresholds.imposters import ImposterSet

__all__ = ["ImposterSet", "guarantee"]
