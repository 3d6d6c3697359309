"""How sure are we? Intervals that know that pairs share people.

`Uncertainty` has the interval of every measured value. Its parts: `sharing` (which pairs have
people in common), `dependence` (how alike they behave), `rates`, `curve` and `deviations`
(intervals of rates, calibration errors and deviations over groups), `crowd` (variances of sums over
pairs), `guarantee` (thresholds with a promise, on `strangers`), `planning` (how many people are
needed), `replicates` (for differences between methods and runs), `known` (what is kept).
"""

from faircal.metrics.intervals.known import (
    BY_PEOPLE,
    LEVEL,
    PAIR_WISE,
    ValueInterval,
    known,
    over_folds,
    replicated,
)
from faircal.metrics.intervals.planning import expect
from faircal.metrics.intervals.quantify import Key, Uncertainty

__all__ = [
    "BY_PEOPLE",
    "LEVEL",
    "PAIR_WISE",
    "Key",
    "Uncertainty",
    "ValueInterval",
    "expect",
    "known",
    "over_folds",
    "replicated",
]
