"""Bins of scores, of all pairs and of strata: pairs of regions whose imposters score alike.

How alike strangers look differs from region to region, often by more than any change that matters.
Held against imposters of their own stratum, scores do not change with the mix of people: that is
seen in the clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Quantiles of imposters between bins; the bins above the last are cut at quantiles of genuine
#: pairs.
_LEVELS: Float64 = np.concatenate([np.arange(1, 24) / 24, [0.97, 0.98, 0.99, 0.995]])
_ABOVE: Float64 = np.arange(1, 16) / 16
BINS = len(_LEVELS) + len(_ABOVE) + 1
#: Strata: the most, and imposter pairs that each must have.
_MOST, _PER_STRATUM = 12, 400


def edges_of(score: Float64, genuine: NDArray[np.bool_]) -> Float64:
    """Return edges between bins, half-way between scores, of shape (BINS − 1,).

    Rounding, as in a table of text, then moves few pairs to another bin.
    """
    if genuine.all():  # of many pairs those that were taken can lack a rare class
        return np.full(BINS - 1, score.min())
    imposters = _at(np.sort(score[~genuine]), _LEVELS)
    higher = np.sort(score[genuine & (score > imposters[-1])])
    above = _at(higher, _ABOVE) if len(higher) else np.full(len(_ABOVE), imposters[-1])
    return np.concatenate([imposters, np.maximum(above, imposters[-1])])


def _at(values: Float64, levels: Float64) -> Float64:
    at = np.clip((levels * len(values)).astype(np.int64), 1, max(len(values) - 1, 1))
    at = np.minimum(at, len(values) - 1)
    return np.asarray((values[at] + values[np.maximum(at - 1, 0)]) / 2)


def stratify(alike: Float64, left: Int64, right: Int64) -> Int64:
    """Say which stratum each pair of regions belongs to.

    Strata are cut from how alike two regions are, so that each has as many imposter pairs. What
    pairs score has no part in it: strata fit pairs in use as well as those of calibration.

    Parameters
    ----------
    alike : ndarray of shape (R, R)
        Scalar products of the regions' means: the mean cosine of two strangers' images.
    left, right : ndarray of int, shape (n,)
        Regions of imposter pairs.

    Returns
    -------
    ndarray of shape (R, R), int64
        From 1.
    """
    regions, n = len(alike), len(left)
    count = int(np.clip(n // _PER_STRATUM, 1, _MOST))
    rows, columns = np.triu_indices(regions)
    cell = np.zeros((regions, regions), np.int64)
    cell[rows, columns] = cell[columns, rows] = np.arange(len(rows))
    pairs = np.bincount(cell[left, right], minlength=len(rows))
    order = np.argsort(alike[rows, columns], kind="stable")
    middle = np.cumsum(pairs[order]) - pairs[order] / 2
    stratum = np.empty(len(rows), np.int64)
    stratum[order] = np.minimum(middle * count // max(n, 1), count - 1).astype(np.int64) + 1
    return stratum[cell]


def rank_in(edges: Float64, stratum: Int64, score: Float64) -> Int64:
    """Return the bin of each score among the edges, (H, BINS − 1), of its stratum."""
    found = np.empty(len(score), np.int64)
    for h in np.unique(stratum).tolist():
        rows = np.flatnonzero(stratum == h)
        found[rows] = np.searchsorted(edges[h], score[rows], side="right")
    return found
