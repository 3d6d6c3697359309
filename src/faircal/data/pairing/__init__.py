"""Pairs for calibration and test, built from who is in which image.

people → folds that share no person → genuine pairs → imposter pairs of the wanted kind
"""

from faircal.data.pairing.build import IMPOSTERS, BuiltPairs, PairPlan, build_pairs
from faircal.data.pairing.calibration import draw_cohort, redraw_imposters
from faircal.data.pairing.folder import make_pairs

__all__ = [
    "IMPOSTERS",
    "BuiltPairs",
    "PairPlan",
    "build_pairs",
    "draw_cohort",
    "make_pairs",
    "redraw_imposters",
]
