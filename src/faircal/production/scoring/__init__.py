"""Scoring pairs of any number with a fitted method: read, scored and written at the same time."""

from faircal.production.scoring.judging import Judge
from faircal.production.scoring.run import Adding, needed_columns, score_part, score_stream

__all__ = [
    "Adding",
    "Judge",
    "needed_columns",
    "score_part",
    "score_stream",
]
