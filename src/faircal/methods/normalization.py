"""Shifting scores set by set so that one threshold gives each set the same false-positive rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from faircal.calibrators import Calibrator, Samples, make_calibrator
from faircal.methods.inputs import Fitting, Float64, Inputs
from faircal.metrics import Ranking, ThresholdRule, find_threshold


def threshold_shifts(samples: Samples, target_fpr: float, rule: ThresholdRule) -> Float64:
    """Return t_k − t_G of each set at `target_fpr`; NaN where a set has no threshold.

    The last set of `samples`, that of all pairs, gives t_G.
    """

    def threshold(k: int) -> float:
        if not samples.sizes[k]:
            return np.nan
        sample = samples[k]
        counts = sample.genuine, sample.mass - sample.genuine
        genuine, imposter = (np.round(count).astype(np.int64) for count in counts)
        return find_threshold(
            Ranking.counted(sample.scores, genuine, imposter), target_fpr, rule=rule
        )

    *found, overall = map(threshold, range(len(samples)))
    return np.array(found) - overall


def fit_shifted(
    calibrator: Calibrator, inputs: Fitting, shifted: Callable[[Inputs], Float64]
) -> Calibrator:
    """Fit `calibrator`, made by `shifted_calibrator`, on the shifted scores of all pairs."""
    samples = inputs.samples(score=shifted, score_range=calibrator.score_range)
    (fitted,) = calibrator.fit_sets(samples, engine=inputs.engine)
    return fitted


def shifted_calibrator(
    calibrator: str | Calibrator, score_range: tuple[float, float], shifts: Float64
) -> Calibrator:
    """Return an unfitted calibrator for shifted scores: their range moves with the shifts."""
    low, high = score_range
    if not len(shifts):
        return make_calibrator(calibrator, score_range)
    return make_calibrator(calibrator, (low - float(shifts.max()), high - float(shifts.min())))
