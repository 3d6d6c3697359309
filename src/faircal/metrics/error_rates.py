"""Error rates: ROC and DET curves, AUROC, thresholds for a wanted rate, rates at a threshold.

Rates and thresholds may be numbers or arrays; results have their shape.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from faircal._base.errors import ParameterError
from faircal._base.registry import did_you_mean
from faircal.metrics.ranking import FloatArray, IntArray, Ranking, as_ranking

ThresholdRule = Literal["nearest", "interpolate", "conservative"]


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
        np.concatenate([[0], ranking.fp]) / (ranking.n_imposter or np.nan),
        np.concatenate([[0], ranking.tp]) / (ranking.n_genuine or np.nan),
        np.concatenate([[first], ranking.thresholds]),
    )


def det(ranking: Ranking, *, upper: float = 1.0) -> Det:
    """Return the detection error trade-off: the ROC curve with FNR = 1 − TPR.

    Examples
    --------
    >>> det(Ranking.of([0.9, 0.6, 0.1], [1, 0, 1])).fnr
    array([1. , 0.5, 0.5, 0. ])
    """
    fpr, tpr, thresholds = roc(ranking, upper=upper)
    return Det(fpr, 1 - tpr, thresholds)


def auroc(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None = None) -> float:
    """Return the area under the full ROC curve, by trapezoids.

    It is the probability that a genuine pair scores above an imposter pair, ties counting half; NaN
    when a class is absent. Scores and labels, arrays of shape (n_pairs,), may come as a `Ranking`.

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
    comparisons = 2 * ranking.n_genuine * ranking.n_imposter
    # Beyond 64 bits, Python's own: only counts in bins are of that many pairs, and bins are few.
    kind = np.int64 if comparisons <= np.iinfo(np.int64).max else object
    twice = np.dot(imposters.astype(kind), (genuine_above + ranking.tp).astype(kind))
    return int(twice) / comparisons


def tpr_at_fpr(ranking: Ranking, rates: npt.ArrayLike) -> FloatArray:
    """Return the TPR at given FPRs, interpolated linearly on the ROC curve.

    Where several points share an FPR, the highest TPR counts; NaN when a class is absent.

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


def threshold_at_rate(
    ranking: Ranking, metric: Literal["fpr", "fnr"], rates: npt.ArrayLike, *, upper: float = 1.0
) -> FloatArray:
    """Return the thresholds at given FPRs or FNRs, interpolated linearly on the ROC curve.

    NaN without imposters, or without genuine pairs. `upper`, the threshold of the curve's
    artificial first point (see `roc`), matters only where the highest score has the rate or less.

    Examples
    --------
    >>> ranking = Ranking.of([0.9, 0.7, 0.5, 0.3], [1, 0, 1, 0])
    >>> threshold_at_rate(ranking, "fpr", [0.0, 0.25, 0.5])
    array([0.9, 0.8, 0.5])
    >>> threshold_at_rate(ranking, "fnr", [0.0, 0.25, 0.5])
    array([0.3, 0.6, 0.7])
    """
    at = as_rates(rates)
    if not (ranking.n_imposter if metric == "fpr" else ranking.n_genuine):
        return np.full(at.shape, np.nan)
    fpr, tpr, thresholds = roc(ranking, upper=upper)
    # Both rates ascend along the curve.
    where, rate = (at, fpr) if metric == "fpr" else (1 - at, tpr)
    return np.asarray(np.interp(where, rate, thresholds))


def counted_threshold(
    ranking: Ranking, metric: Literal["fpr", "fnr"], rates: npt.ArrayLike
) -> FloatArray:
    """Return thresholds at which error rates are counted to be at most those that are wanted.

    The lowest such threshold for FPRs, the highest for FNRs; the decision is ``score >= threshold``
    and the errors there are whole pairs (`rates_at_threshold`). Any number above the highest score
    that is rejected and up to the lowest that is accepted decides the same: it is the `between` of
    the two, a short number that can be printed and read back. NaN without imposters, or without
    genuine pairs.

    Examples
    --------
    >>> ranking = Ranking.of([80, 73, 72, 72, 60], [1, 0, 0, 0, 1])
    >>> counted_threshold(ranking, "fpr", [0.3, 0.5, 1.0])
    array([76. , 72.5, 60. ])
    >>> counted_threshold(ranking, "fnr", [0.0, 0.5])
    array([60., 76.])
    """
    at = as_rates(rates)
    of_fpr = ranking.fp, ranking.n_imposter
    counts, n = of_fpr if metric == "fpr" else (ranking.tp, ranking.n_genuine)
    if not n:
        return np.full(at.shape, np.nan)
    # 0.07 · 100 is 7.000…001, other products are just below: rounding may cost no error.
    allowed = np.floor(at * n * (1 + 1e-12))
    # How many distinct scores are accepted.
    if metric == "fpr":
        accepted = np.searchsorted(counts, allowed, side="right")
    else:
        accepted = np.where(allowed < n, np.searchsorted(counts, n - allowed) + 1, 0)
    lows, highs = ranking.ends
    cuts = [
        between(highs[k] if k < len(highs) else -np.inf, lows[k - 1] if k else np.inf)
        for k in accepted.ravel().tolist()
    ]
    return np.array(cuts).reshape(at.shape)


def between(low: float, high: float) -> float:
    """Return a threshold that rejects `low` and accepts `high`: about halfway, in few digits.

    Where there is nothing on one side it is next to the other.

    Examples
    --------
    >>> between(72, 73), between(0.41231, 0.41297), between(0.1, np.inf)
    (72.5, 0.4126, 0.10000000000000002)
    """
    low, high = float(low), float(high)
    if np.isinf(high):
        return float(np.nextafter(low, high))
    middle, near = low + (high - low) / 2, (high - low) / 4
    for digits in range(18) if np.isfinite(near) else ():
        short = round(middle, digits)
        if low < short and abs(short - middle) <= near:
            return short
    return high


def threshold_at_fpr(ranking: Ranking, rates: npt.ArrayLike, *, upper: float = 1.0) -> FloatArray:
    """Return the thresholds at given FPRs; see `threshold_at_rate`.

    Examples
    --------
    >>> threshold_at_fpr(Ranking.of([0.9, 0.7, 0.5, 0.3], [1, 0, 1, 0]), 0.25)
    array(0.8)
    """
    return threshold_at_rate(ranking, "fpr", rates, upper=upper)


def threshold_at_fnr(ranking: Ranking, rates: npt.ArrayLike, *, upper: float = 1.0) -> FloatArray:
    """Return the thresholds at given FNRs; see `threshold_at_rate`.

    Examples
    --------
    >>> threshold_at_fnr(Ranking.of([0.9, 0.7, 0.5, 0.3], [1, 0, 1, 0]), 0.25)
    array(0.6)
    """
    return threshold_at_rate(ranking, "fnr", rates, upper=upper)


def interpolated_rate(
    ranking: Ranking, metric: Literal["fpr", "fnr", "tpr"], at: npt.ArrayLike, *, upper: float = 1.0
) -> FloatArray:
    """Return a rate at given thresholds, interpolated linearly between the scores.

    At a score of the ranking it is the counted rate; between two scores it is a fraction of a
    pair, which keeps small groups comparable. `rates_at_threshold` only counts. A threshold of NaN
    gives NaN, and so do no imposters (``fpr``) or no genuine pairs; above the largest score no
    pair is left at `upper`.

    Examples
    --------
    >>> interpolated_rate(Ranking.of([0.9, 0.6, 0.2], [1, 0, 0]), "fpr", [0.95, 0.6, 0.4])
    array([0.  , 0.5 , 0.75])
    >>> interpolated_rate(Ranking.of([0.8, 0.6, 0.2], [1, 1, 0]), "tpr", [0.9, 0.7, 0.1])
    array([0.25, 0.75, 1.  ])
    """
    t = np.asarray(at, dtype=np.float64)
    of_fpr = ranking.fp, ranking.n_imposter
    counts, total = of_fpr if metric == "fpr" else (ranking.tp, ranking.n_genuine)
    if not total:
        return np.full(t.shape, np.nan)
    thresholds, rates = ranking.thresholds[::-1], counts[::-1] / total
    # Where the largest score is at `upper` or beyond, a point there would have two rates: the
    # counted one and 0. The counted one is what a decision at that threshold would give.
    if upper > thresholds[-1]:
        thresholds, rates = np.append(thresholds, upper), np.append(rates, 0.0)
    accepted = np.asarray(np.interp(t, thresholds, rates, right=0.0))
    return np.asarray(1 - accepted) if metric == "fnr" else accepted


def fpr_at_threshold(ranking: Ranking, at: npt.ArrayLike, *, upper: float = 1.0) -> FloatArray:
    """Return the FPR at given thresholds; see `interpolated_rate`.

    Examples
    --------
    >>> fpr_at_threshold(Ranking.of([0.9, 0.6, 0.2], [1, 0, 0]), 0.4)
    array(0.75)
    """
    return interpolated_rate(ranking, "fpr", at, upper=upper)


def tpr_at_threshold(ranking: Ranking, at: npt.ArrayLike, *, upper: float = 1.0) -> FloatArray:
    """Return the TPR at given thresholds; see `interpolated_rate`.

    Examples
    --------
    >>> tpr_at_threshold(Ranking.of([0.8, 0.6, 0.2], [1, 1, 0]), 0.7)
    array(0.75)
    """
    return interpolated_rate(ranking, "tpr", at, upper=upper)


def fnr_at_threshold(ranking: Ranking, at: npt.ArrayLike, *, upper: float = 1.0) -> FloatArray:
    """Return the FNR at given thresholds, 1 − TPR; see `interpolated_rate`.

    Examples
    --------
    >>> fnr_at_threshold(Ranking.of([0.8, 0.6, 0.2], [1, 1, 0]), 0.7)
    array(0.25)
    """
    return interpolated_rate(ranking, "fnr", at, upper=upper)


class ErrorCounts(NamedTuple):
    """Counted errors at thresholds, and their rates; fields have the shape of the thresholds.

    Rates are NaN without imposters (`fpr`) or genuine pairs (`fnr` and `tpr`, which is 1 − FNR).
    """

    false_positives: IntArray
    imposters: IntArray
    false_negatives: IntArray
    genuine: IntArray
    fpr: FloatArray
    fnr: FloatArray
    tpr: FloatArray


def rates_at_threshold(ranking: Ranking, at: npt.ArrayLike) -> ErrorCounts:
    """Count the errors of the decision ``score >= threshold``.

    Parameters
    ----------
    ranking : Ranking
    at : array-like of float
        Thresholds. NaN, the threshold that does not exist, decides nothing: no errors in no
        trials, hence rates of NaN.

    Examples
    --------
    >>> counts = rates_at_threshold(Ranking.of([0.9, 0.6, 0.2], [1, 0, 0]), [0.95, 0.6, 0.4])
    >>> counts.false_positives
    array([0, 1, 1])
    >>> counts.fnr
    array([1., 0., 0.])
    """
    t = np.asarray(at, dtype=np.float64)
    # How many distinct scores are at least t; NaN sorts last, so it accepts nothing.
    # A pair at the threshold is accepted, here as everywhere.
    accepted = len(ranking.thresholds) - np.searchsorted(ranking.thresholds[::-1], t)
    genuine = np.where(np.isnan(t), 0, ranking.n_genuine)
    imposters = np.where(np.isnan(t), 0, ranking.n_imposter)
    false_positives = np.concatenate([[0], ranking.fp])[accepted]
    false_negatives = genuine - np.concatenate([[0], ranking.tp])[accepted]
    fpr = np.asarray(false_positives / np.where(imposters > 0, imposters, np.nan))
    fnr = np.asarray(false_negatives / np.where(genuine > 0, genuine, np.nan))
    return ErrorCounts(
        np.asarray(false_positives),
        imposters,
        np.asarray(false_negatives),
        genuine,
        fpr,
        fnr,
        np.asarray(1 - fnr),
    )


def find_threshold(
    ranking: Ranking, target_fpr: float, *, rule: ThresholdRule = "nearest"
) -> float:
    """Return the threshold that FSN and GST set for a wanted FPR.

    The decision is ``score >= threshold``. A point of the ROC curve that rejects everything has
    no score of its own; its threshold here is the next number above the largest score.

    Parameters
    ----------
    ranking : Ranking
    target_fpr : float
        The wanted FPR, in [0, 1].
    rule : {"nearest", "interpolate", "conservative"}, default "nearest"
        - ``nearest``: of the corners of the ROC curve, those with the FPR nearest to the target;
          of these the lowest threshold. This is the rule of the paper's code, but for the point
          that rejects everything, whose threshold there is 1 or more above the largest score.
        - ``interpolate``: linear interpolation of threshold over FPR on the full curve.
        - ``conservative``: the lowest threshold whose FPR does not exceed the target.

    Returns
    -------
    float
        NaN without imposters. Without genuine pairs the rules work on imposters alone; the curve
        then has no corners, so ``nearest`` considers every point.

    Examples
    --------
    >>> ranking = Ranking.of([0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 0, 1, 0])
    >>> find_threshold(ranking, 0.001)
    0.8
    >>> find_threshold(ranking, 0.4), find_threshold(ranking, 0.4, rule="conservative")
    (0.6, 0.8)
    """
    target = float(as_rates(target_fpr))
    if rule not in get_args(ThresholdRule):
        raise ParameterError(
            f"unknown threshold rule {rule!r}; {did_you_mean(str(rule), get_args(ThresholdRule))}"
        )
    if not ranking.n_imposter:
        return float("nan")
    fpr, _, thresholds = roc(ranking)
    # Just above the largest score: strict enough to reject all, and a number.
    thresholds[0] = np.nextafter(ranking.thresholds[0], np.inf)
    if rule == "interpolate":
        return float(np.interp(target, fpr, thresholds))
    if rule == "conservative":
        return float(thresholds[np.searchsorted(fpr, target, side="right") - 1])
    # As in scikit-learn's ``roc_curve``, a point midway between its neighbours is no corner, but
    # (0, 0), the highest score and the lowest always are.
    corners = np.ones(len(fpr), dtype=np.bool_)
    if ranking.n_genuine:
        corners[2:-1] = (np.diff(ranking.fp, 2) != 0) | (np.diff(ranking.tp, 2) != 0)
    distance = np.abs(fpr[corners] - target)
    # Thresholds descend, so the last of the nearest points has the lowest.
    return float(thresholds[corners][np.flatnonzero(distance == distance.min())[-1]])
