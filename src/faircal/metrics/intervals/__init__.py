"""How sure are we? Intervals that know that pairs share people.

`Uncertainty` has the interval of every measured value. Its parts, in the order of their imports:
`dyadic` (variances of sums over pairs), `inversion` (intervals by turning a test around),
`dependence` (how alike pairs behave that share people), `calibration_error` and `over_groups`
(intervals of those), `sufficient_data` (what may be shown), `reported` (what results keep) and
`planning` (people needed).
"""

from faircal.metrics.intervals.planning import expect
from faircal.metrics.intervals.reported import (
    BY_PEOPLE,
    LEVEL,
    NAMELESS,
    PAIR_WISE,
    PeopleBehind,
    as_reported,
    least_ratios,
    replicated_values,
    summarise,
    worst_and_best,
)
from faircal.metrics.intervals.uncertainty import Key, Uncertainty, identified_sets

__all__ = [
    "BY_PEOPLE",
    "LEVEL",
    "NAMELESS",
    "PAIR_WISE",
    "Key",
    "PeopleBehind",
    "Uncertainty",
    "as_reported",
    "expect",
    "identified_sets",
    "least_ratios",
    "replicated_values",
    "summarise",
    "worst_and_best",
]
