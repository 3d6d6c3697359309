"""Measuring scores and probabilities: accuracy, calibration error, disparity, intervals.

`Ranking` sorts once; everything else is computed from it. Metrics that are one number also take
arrays: ``ks(probability, genuine)``.
"""

from faircal.metrics.accuracy import Det, Roc, auroc, det, roc, tpr_at_fpr
from faircal.metrics.calibration import Reliability, brier, ece, ks, mass_cuts, nll, reliability
from faircal.metrics.catalogue import METRICS, Metric
from faircal.metrics.disparity import (
    DEVIATIONS,
    GroupRates,
    aad,
    equal_opportunity,
    mad,
    mean,
    predictive_equality,
    std,
)
from faircal.metrics.histogram import Histogram, probability_edges, score_edges
from faircal.metrics.intervals import wilson
from faircal.metrics.operating import (
    ErrorCounts,
    ThresholdRule,
    find_threshold,
    fnr_at_threshold,
    fpr_at_threshold,
    rates_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_threshold,
)
from faircal.metrics.ranking import Ranking

__all__ = [
    "DEVIATIONS",
    "METRICS",
    "Det",
    "ErrorCounts",
    "GroupRates",
    "Histogram",
    "Metric",
    "Ranking",
    "Reliability",
    "Roc",
    "ThresholdRule",
    "aad",
    "auroc",
    "brier",
    "det",
    "ece",
    "equal_opportunity",
    "find_threshold",
    "fnr_at_threshold",
    "fpr_at_threshold",
    "ks",
    "mad",
    "mass_cuts",
    "mean",
    "nll",
    "predictive_equality",
    "probability_edges",
    "rates_at_threshold",
    "reliability",
    "roc",
    "score_edges",
    "std",
    "threshold_at_fnr",
    "threshold_at_fpr",
    "tpr_at_fpr",
    "tpr_at_threshold",
    "wilson",
]
