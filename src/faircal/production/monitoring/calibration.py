"""Whether probabilities hold, on labels that come in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from faircal.production.monitoring.comparing import Exceedance, exceedance
from faircal.production.monitoring.counts import Float64, Int64, buckets_of

#: Log-odds are counted in bins of this width, up to these; buckets of people; labels in a row that
#: share one where nobody is identified.
_WIDTH, _MOST, BUCKETS_OF_LABELS, _IN_A_ROW = 0.25, 12.0, 16, 4
BINS = round(2 * _MOST / _WIDTH)
SIZE = BUCKETS_OF_LABELS * BINS * 2
CENTERS: Float64 = -_MOST + _WIDTH * (np.arange(BINS, dtype=np.float64) + 0.5)
#: What is let pass of log-odds: how far they may be off for pairs in doubt, and by what part they
#: may be surer, or less sure, than is right.
INTERCEPT, SLOPE = 0.5, 0.25
#: Labels of each class that are needed.
FEWEST = 8
#: How firmly intercept and slope are held to 0 and 1 before any label (1 / variance).
_PRIOR = np.array([1 / 25.0, 4.0])


class Recalibration(NamedTuple):
    """Log-odds that fit the labels: ``shown + intercept + (slope − 1) (shown − center)``.

    `center` is the mean of the log-odds shown, weighed by p (1 − p), the Fisher information of a
    label: pairs in doubt more than pairs that are sure. So the two hardly depend on each other.
    """

    intercept: float
    slope: float
    center: float
    covariance: Float64
    freedom: float


def count_labels(
    probability: Float64,
    genuine: NDArray[np.bool_],
    person: Int64 | None,
    start: int,
    block: int,
) -> Int64:
    """Count labels by block, bucket, bin of log-odds and class; `start` came before these.

    Returns
    -------
    ndarray of shape (n_blocks, SIZE), int64
    """
    with np.errstate(divide="ignore"):
        odds = np.clip(logit(probability), -_MOST, _MOST)
    bins = np.minimum(((odds + _MOST) / _WIDTH).astype(np.int64), BINS - 1)
    number = start + np.arange(len(bins))
    of = number // block - start // block
    # Of unknown people: labels that came in a row may well be of one person.
    bucket = (number // _IN_A_ROW) % BUCKETS_OF_LABELS
    if person is not None:
        bucket = np.where(person == -1, bucket, buckets_of(person, BUCKETS_OF_LABELS))
    cell = ((of * BUCKETS_OF_LABELS + bucket) * BINS + bins) * 2 + genuine
    blocks = int(of[-1]) + 1
    return np.bincount(cell, minlength=blocks * SIZE).reshape(blocks, SIZE)


def tabulate(counts: Int64) -> Int64:
    """Return the counts of a window by bucket, bin and class (imposter, genuine)."""
    return counts.reshape(BUCKETS_OF_LABELS, BINS, 2)


def recalibrate(table: Int64) -> Recalibration:
    """Fit intercept and slope by maximum likelihood, held weakly to 0 and 1.

    The covariance is that over buckets of people (a sandwich), or that of independent labels where
    it is larger.
    """
    labels, genuine = table.sum(axis=2).astype(float), table[:, :, 1].astype(float)
    n, y = labels.sum(axis=0), genuine.sum(axis=0)
    doubt = n * expit(CENTERS) * expit(-CENTERS)
    # Centred where labels are in doubt, intercept and slope are nearly uncorrelated.
    center = float(doubt @ CENTERS / max(float(doubt.sum()), 1e-300))
    design = np.stack([np.ones(BINS), CENTERS - center])
    at = np.zeros(2)
    for _ in range(100):
        p = expit(CENTERS + at @ design)
        inform = (design * (n * p * (1 - p))) @ design.T + np.diag(_PRIOR)
        step = np.linalg.solve(inform, design @ (y - n * p) - _PRIOR * at)
        # A full step can overshoot where hardly any label is in doubt.
        at = at + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    p = expit(CENTERS + at @ design)
    inverse = np.linalg.inv((design * (n * p * (1 - p))) @ design.T + np.diag(_PRIOR))
    influence = (genuine - labels * p) @ design.T @ inverse
    weight = labels.sum(axis=1)
    effective = float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1.0)
    influence = influence - weight[:, None] * influence.sum(axis=0) / max(weight.sum(), 1.0)
    over = influence.T @ influence * effective / max(effective - 1, 0.5)
    ratio = float(np.trace(over @ np.linalg.inv(inverse))) / 2
    covariance = over if ratio > 1 else inverse
    slope, freedom = 1 + float(at[1]), max(effective - 1, 1.0)
    return Recalibration(float(at[0]), slope, center, covariance, freedom)


def compare_labels(table: Int64) -> tuple[Exceedance, Recalibration]:
    """Return how far off probabilities are, in units of what is tolerated, and the fit."""
    fitted = recalibrate(table)
    scale = 1 / np.array([INTERCEPT, SLOPE])
    off = scale * np.array([fitted.intercept, fitted.slope - 1])
    covariance = fitted.covariance * np.outer(scale, scale)
    return exceedance(off, ((covariance, fitted.freedom),), 1.0), fitted
