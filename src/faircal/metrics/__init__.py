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
from faircal.metrics.fairness import (
    FAIRNESS,
    Fairness,
    fdr,
    gap,
    garbe,
    gini,
    ir,
    max_geomean,
    max_min,
    unfairness,
)
from faircal.metrics.histogram import Histogram, probability_edges, score_edges
from faircal.metrics.intervals import wilson
from faircal.metrics.likelihood import calibration_loss, cllr, log_likelihood_ratio, min_cllr
from faircal.metrics.matrix import GroupMatrix, cells, group_matrix
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
from faircal.metrics.shrinkage import Shrunk, shrink

__all__ = [
    "DEVIATIONS",
    "FAIRNESS",
    "METRICS",
    "Det",
    "ErrorCounts",
    "Fairness",
    "GroupMatrix",
    "GroupRates",
    "Histogram",
    "Metric",
    "Ranking",
    "Reliability",
    "Roc",
    "Shrunk",
    "ThresholdRule",
    "aad",
    "auroc",
    "brier",
    "calibration_loss",
    "cells",
    "cllr",
    "det",
    "ece",
    "equal_opportunity",
    "fdr",
    "find_threshold",
    "fnr_at_threshold",
    "fpr_at_threshold",
    "gap",
    "garbe",
    "gini",
    "group_matrix",
    "ir",
    "ks",
    "log_likelihood_ratio",
    "mad",
    "mass_cuts",
    "max_geomean",
    "max_min",
    "mean",
    "min_cllr",
    "nll",
    "predictive_equality",
    "probability_edges",
    "rates_at_threshold",
    "reliability",
    "roc",
    "score_edges",
    "shrink",
    "std",
    "threshold_at_fnr",
    "threshold_at_fpr",
    "tpr_at_fpr",
    "tpr_at_threshold",
    "unfairness",
    "wilson",
]
