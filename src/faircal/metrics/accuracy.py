"""How well scores separate genuine from imposter pairs: ROC, DET, AUROC, TPR at FPR."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from faircal._base.errors import ParameterError
from faircal.metrics.ranking import FloatArray, IntArray, Ranking, as_ranking


class Roc(NamedTuple):
    """A ROC curve, from the strictest threshold to the most lenient; see `roc`."""

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray


class Det(NamedTuple):
    """A DET curve, from the strictest threshold to the most lenient; see `det`."""

    fpr: FloatArray
    fnr: FloatArray
    thresholds: FloatArray


def roc(ranking: Ranking, *, upper: float = 1.0) -> Roc:
    """Return the full ROC curve: one point per distinct score, none dropped.

    A curve starts at (0, 0), where everything is rejected. No score belongs to that point, so its
    threshold is artificial: it is set to `upper`, or to the largest score where that is larger.
    For cosines and probabilities this is what clipping the thresholds at 1 gives, as the paper's
    code does, and no interpolation ever meets an infinite threshold. Scores above `upper` are
    kept as they are.

    Parameters
    ----------
    ranking : Ranking
    upper : float, default 1.0
        Upper end of the score range.

    Returns
    -------
    Roc
        `fpr`, `tpr` and `thresholds`, each of shape (n_distinct + 1,). The decision is
        ``score >= threshold``. A rate whose class is absent is NaN.

    Examples
    --------
    >>> fpr, tpr, thresholds = roc(Ranking.of([0.9, 0.6, 0.6, 0.1], [1, 1, 0, 0]))
    >>> fpr
    array([0. , 0. , 0.5, 1. ])
    >>> tpr
    array([0. , 0.5, 1. , 1. ])
    >>> thresholds
    array([1. , 0.9, 0.6, 0.1])
    """
    first = max(upper, ranking.thresholds[0]) if len(ranking) else upper
    return Roc(
        _from_zero(ranking.fp, ranking.n_imposter),
        _from_zero(ranking.tp, ranking.n_genuine),
        np.concatenate([[first], ranking.thresholds]),
    )


def det(ranking: Ranking, *, upper: float = 1.0) -> Det:
    """Return the detection error trade-off: the ROC curve with FNR = 1 − TPR.

    Parameters
    ----------
    ranking : Ranking
    upper : float, default 1.0
        As in `roc`.

    Returns
    -------
    Det
        `fpr`, `fnr` and `thresholds`, each of shape (n_distinct + 1,).

    Examples
    --------
    >>> det(Ranking.of([0.9, 0.6, 0.1], [1, 0, 1])).fnr
    array([1. , 0.5, 0.5, 0. ])
    """
    fpr, tpr, thresholds = roc(ranking, upper=upper)
    return Det(fpr, 1 - tpr, thresholds)


def auroc(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None = None) -> float:
    """Return the area under the full ROC curve, by trapezoids.

    It is the probability that a genuine pair scores above an imposter pair, ties counting half.

    Parameters
    ----------
    scores : array-like of float, shape (n_pairs,), or Ranking
    genuine : array-like of bool or 0/1, shape (n_pairs,), optional
        Left out when `scores` is a ranking.

    Returns
    -------
    float
        NaN when a class is absent.

    Examples
    --------
    >>> auroc([0.9, 0.6, 0.6, 0.1], [1, 1, 0, 0])
    0.875
    """
    ranking = as_ranking(scores, genuine)
    if not (ranking.n_genuine and ranking.n_imposter):
        return float("nan")
    # Twice the area, in whole pairs: integers keep it exact however many pairs there are.
    imposters = np.diff(ranking.fp, prepend=0)
    genuine_above = np.concatenate([[0], ranking.tp[:-1]])
    whole = 2 * ranking.n_genuine * ranking.n_imposter
    # Beyond 64 bits, Python's own: only counts in bins are of that many pairs, and bins are few.
    kind = np.int64 if whole <= np.iinfo(np.int64).max else object
    return int(np.dot(imposters.astype(kind), (genuine_above + ranking.tp).astype(kind))) / whole


def tpr_at_fpr(ranking: Ranking, rates: npt.ArrayLike) -> FloatArray:
    """Return the TPR at given FPRs, interpolated linearly on the ROC curve.

    Where several points share an FPR, the highest TPR counts.

    Parameters
    ----------
    ranking : Ranking
    rates : array-like of float
        False positive rates in [0, 1].

    Returns
    -------
    ndarray of float64, of the shape of `rates`
        NaN when a class is absent.

    Examples
    --------
    >>> tpr_at_fpr(Ranking.of([0.9, 0.7, 0.5, 0.3], [1, 0, 1, 0]), [0.0, 0.25, 0.5])
    array([0.5, 0.5, 1. ])
    """
    at = as_rates(rates)
    if not (ranking.n_genuine and ranking.n_imposter):
        return np.full(at.shape, np.nan)
    fpr, tpr, _ = roc(ranking)
    return np.asarray(np.interp(at, fpr, tpr))


def as_rates(rates: npt.ArrayLike) -> FloatArray:
    """Return error rates as an array, refusing any outside [0, 1].

    Examples
    --------
    >>> as_rates(5)
    Traceback (most recent call last):
    ...
    faircal.ParameterError: expected rates in [0, 1]; found 5; write 1 % as 0.01
    """
    at = np.asarray(rates, dtype=np.float64)
    bad = ~((at >= 0) & (at <= 1))
    if bad.any():
        raise ParameterError(f"expected rates in [0, 1]; found {at[bad][0]:g}; write 1 % as 0.01")
    return at


def _from_zero(counts: IntArray, total: int) -> FloatArray:
    """Return counts as rates, with the point (0, 0) before them; NaN without any trial."""
    if not total:
        return np.full(len(counts) + 1, np.nan)
    return np.concatenate([[0], counts]) / total
