"""What probabilities are worth as evidence: the log-likelihood-ratio cost, and the least it can be.

Forensic laboratories and speaker recognition measure in `cllr`. It weighs genuine and imposter
pairs alike however many there are of each, and it splits in two: what the scores can't tell
(`min_cllr`), and what is lost as they are badly calibrated (`calibration_loss`).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from faircal._base.errors import ParameterError
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.ranking import FloatArray, Ranking, as_probabilities, as_ranking


def log_likelihood_ratio(
    probability: npt.ArrayLike, prior: float, *, eps: float = NLL_EPS
) -> FloatArray:
    """Return what probabilities say beyond the prior: log-odds less the prior's, in nats.

    Parameters
    ----------
    probability : array-like of float in [0, 1]
    prior : float
        The share of genuine pairs that the probabilities were made for, in (0, 1).
    eps : float, default 2.2e-16
        Probabilities are clipped to [eps, 1 − eps], as in `nll`.

    Returns
    -------
    ndarray of float64, of the shape of `probability`
        Above 0 the scores speak for one person, below for two.

    Examples
    --------
    >>> log_likelihood_ratio([0.2, 0.5], prior=0.2).round(4)
    array([0.    , 1.3863])
    """
    if not 0 < prior < 1:
        raise ParameterError(
            f"prior: expected a share of genuine pairs between 0 and 1, found {prior!r}"
        )
    if not 0 < eps < 0.5:
        raise ParameterError(f"expected eps between 0 and 0.5; found {eps!r}")
    c: FloatArray = np.clip(np.asarray(probability, dtype=np.float64), eps, 1 - eps)
    return np.log(c) - np.log1p(-c) - (math.log(prior) - math.log1p(-prior))


def cllr(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    prior: float | None = None,
    of: Literal["probability", "llr"] = "probability",
    eps: float = NLL_EPS,
) -> float:
    """Return the log-likelihood-ratio cost, in bits (Brümmer and du Preez, 2006).

    ``Cllr = ½ mean over genuine pairs of log₂(1 + e^−λ) + ½ mean over imposters of log₂(1 + e^λ)``
    with the log-likelihood ratio λ. 0 is perfect, 1 is what no evidence at all (λ = 0) costs, and
    above 1 the probabilities mislead.

    Parameters
    ----------
    probability : array-like of float in [0, 1], shape (n_pairs,), or Ranking
    genuine : array-like of bool or 0/1, shape (n_pairs,), optional
        Left out when `probability` is a ranking.
    prior : float, optional
        The share of genuine pairs that the probabilities were made for: that of the calibration
        data where it is known. The share among these pairs unless told, which is right only for
        pairs drawn like the calibration data; one group of them is not, so pass it for groups.
    of : {"probability", "llr"}, default "probability"
        ``llr``: the numbers are log-likelihood ratios (nats) already, and no prior is needed.
    eps : float, default 2.2e-16
        Probabilities are clipped to [eps, 1 − eps]: a certain mistake costs some 50 bits, not
        everything.

    Returns
    -------
    float
        NaN when a class is absent.

    Examples
    --------
    >>> cllr([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1])
    1.0
    >>> round(cllr([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1]), 4)
    0.3889
    """
    if of not in ("probability", "llr"):
        raise ParameterError(f"expected of to be probability or llr; found {of!r}")
    if of == "llr" and prior is not None:
        raise ParameterError("expected no prior beside of='llr'; found one; leave it out")
    ranking = (as_probabilities if of == "probability" else as_ranking)(probability, genuine)
    if not (ranking.n_genuine and ranking.n_imposter):
        return float("nan")
    share = ranking.n_genuine / len(ranking) if prior is None else prior
    ratio = (
        ranking.thresholds
        if of == "llr"
        else log_likelihood_ratio(ranking.thresholds, share, eps=eps)
    )
    hit, miss = np.diff(ranking.tp, prepend=0), np.diff(ranking.fp, prepend=0)
    # logaddexp(0, x) is log(1 + e^x), and never overflows.
    missed = float(np.dot(hit, np.logaddexp(0, -ratio))) / ranking.n_genuine
    taken = float(np.dot(miss, np.logaddexp(0, ratio))) / ranking.n_imposter
    return (missed + taken) / (2 * math.log(2))


def min_cllr(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None = None) -> float:
    """Return the least `cllr` that any increasing map of the scores could reach on these pairs.

    The map is isotonic regression (pool adjacent violators) of the labels on the scores. Equal
    scores stay together. Where a stretch at an end is all of one class, its ratio is infinite and
    costs those pairs nothing; no other pair is there, so the cost is always finite. As the map
    knows the answers, few pairs make it too small.

    Parameters
    ----------
    scores : array-like of float, shape (n_pairs,), or Ranking
        Scores or probabilities: only their order counts.
    genuine : array-like of bool or 0/1, shape (n_pairs,), optional
        Left out when `scores` is a ranking.

    Returns
    -------
    float
        From 0, where a threshold parts the classes, to 1. NaN when a class is absent.

    Examples
    --------
    >>> min_cllr([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1])
    0.0
    >>> min_cllr([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    0.5
    """
    ranking = as_ranking(scores, genuine)
    if not (ranking.n_genuine and ranking.n_imposter):
        return float("nan")
    hit, miss = (np.diff(of, prepend=0)[::-1] for of in (ranking.tp, ranking.fp))
    held = hit + miss > 0  # bins of a counted ranking may be empty
    hit, miss = hit[held], miss[held]
    # Pooling goes by the fraction genuine; weighing the classes alike would pool the same pairs.
    blocks = isotonic_regression(hit / (hit + miss), weights=hit + miss).blocks[:-1]
    # Shares of each class in a block; their ratio is the block's likelihood ratio.
    of_genuine = np.add.reduceat(hit, blocks) / ranking.n_genuine
    of_imposter = np.add.reduceat(miss, blocks) / ranking.n_imposter
    return float(_cost(of_genuine, of_imposter) + _cost(of_imposter, of_genuine)) / 2


def calibration_loss(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    prior: float | None = None,
) -> float:
    """Return what bad calibration costs: `cllr` less `min_cllr`, in bits.

    Parameters
    ----------
    probability : array-like of float in [0, 1], shape (n_pairs,), or Ranking
    genuine : array-like of bool or 0/1, shape (n_pairs,), optional
        Left out when `probability` is a ranking.
    prior : float, optional
        As in `cllr`.

    Returns
    -------
    float
        0 or more; NaN when a class is absent.

    Examples
    --------
    >>> round(calibration_loss([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1]), 4)
    0.3407
    """
    ranking = as_probabilities(probability, genuine)
    loss = cllr(ranking, prior=prior) - min_cllr(ranking)
    return loss if math.isnan(loss) else max(loss, 0.0)  # rounding may make it −1e-16


def _cost(own: FloatArray, other: FloatArray) -> float:
    """Return the mean of log₂(1 + other / own) over a class; where own is 0, it has no pair."""
    there = own > 0
    return float(np.dot(own[there], np.log2(1 + other[there] / own[there])))
