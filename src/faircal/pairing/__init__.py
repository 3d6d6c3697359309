"""Pairs for calibration and test, built from who is in which image.

people → folds that share no person → genuine pairs → imposter pairs of the wanted kind
"""

from faircal.pairing.build import build_pairs
from faircal.pairing.plan import IMPOSTERS, BuiltPairs, PairPlan

__all__ = ["IMPOSTERS", "BuiltPairs", "PairPlan", "build_pairs"]
