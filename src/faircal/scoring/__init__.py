"""Scoring pairs of any number with a fitted method: read, scored and written at the same time."""

from faircal.scoring.prior import Shift, estimate_share, fitted_share
from faircal.scoring.run import score_stream
from faircal.scoring.table import needed_columns, score_part

__all__ = [
    "Shift",
    "estimate_share",
    "fitted_share",
    "needed_columns",
    "score_part",
    "score_stream",
]
