"""Shifting scores set by set so that one threshold gives each set the same false-positive rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators import Calibrator, make_calibrator
from faircal.methods.base import Inputs
from faircal.metrics import Ranking, ThresholdRule, find_threshold

Float64 = NDArray[np.float64]


def threshold_shifts(
    inputs: Inputs, sets: Sequence[NDArray[np.intp]], target_fpr: float, rule: ThresholdRule
) -> Float64:
    """Return t_k − t_G of each set at `target_fpr`; NaN where a set has no threshold."""
    overall = find_threshold(Ranking.of(inputs.score, inputs.genuine), target_fpr, rule=rule)
    found = [
        find_threshold(Ranking.of(inputs.score[rows], inputs.genuine[rows]), target_fpr, rule=rule)
        if len(rows)
        else np.nan
        for rows in sets
    ]
    return np.array(found) - overall


def shifted_calibrator(
    calibrator: str | Calibrator, score_range: tuple[float, float], shifts: Float64
) -> Calibrator:
    """Return an unfitted calibrator for shifted scores: their range moves with the shifts."""
    low, high = score_range
    if not len(shifts):
        return make_calibrator(calibrator, score_range)
    return make_calibrator(calibrator, (low - float(shifts.max()), high - float(shifts.min())))
