"""How far probabilities are from observed frequencies: KS, ECE, Brier, NLL, reliability.

Each takes probabilities in [0, 1] and labels, arrays of shape (n_pairs,), or a `Ranking` that holds
both. Metrics are floats; of an empty ranking they are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from faircal._base.errors import ParameterError
from faircal.metrics.ranking import (
    BoolArray,
    FloatArray,
    IntArray,
    Ranking,
    as_probabilities,
    as_ranking,
)

#: Probabilities are kept this far from 0 and 1 before a logarithm is taken.
NLL_EPS = float(np.finfo(np.float64).eps)


def ks(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    ties: Literal["blocks", "order"] = "blocks",
) -> float:
    """Return the Kolmogorov–Smirnov calibration error.

    With pairs sorted by ascending probability c and label y ∈ {0, 1},
    ``KS = max_i |Σ_{j≤i} (c_j − y_j)| / n``.

    Parameters
    ----------
    ties : {"blocks", "order"}, default "blocks"
        ``blocks`` takes the maximum over the ends of blocks of equal probabilities, so that the
        order of the pairs does not matter. ``order`` takes it over every pair, equal ones in the
        order of the input, as the paper's code does.

    Examples
    --------
    >>> ks([0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1])
    0.0
    >>> ks([0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1], ties="order")
    0.25
    """
    if ties not in ("blocks", "order"):
        raise ParameterError(f"expected ties to be blocks or order; found {ties!r}")
    ranking = as_probabilities(probability, genuine)
    if not len(ranking):
        return float("nan")
    if ties == "blocks":
        below = _cumulate(ranking)
        # Σ_{j≤i} (c_j − y_j) at the end of each block of equal probabilities.
        gap = below.probability - below.genuine
    else:
        # Reversing the ranking would reverse its blocks too; sorting sorted values is cheap.
        ascending = np.argsort(ranking.scores, kind="stable")
        gap = np.cumsum(ranking.scores[ascending]) - np.cumsum(ranking.genuine[ascending])
    return float(np.abs(gap).max() / len(ranking))


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram's bins, from low to high probability; see `reliability`.

    Parameters
    ----------
    confidence : ndarray of float64, shape (n_bins,)
        Mean probability of each bin; NaN where a bin is empty.
    fraction_genuine : ndarray of float64, shape (n_bins,)
        Fraction of genuine pairs; NaN where a bin is empty.
    count : ndarray of int64, shape (n_bins,)
        Pairs in each bin.
    error : float
        Mean gap between confidence and fraction genuine, weighted by count: the ECE.
    """

    confidence: FloatArray
    fraction_genuine: FloatArray
    count: IntArray
    error: float


def reliability(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    n_bins: int = 10,
    binning: Literal["mass", "width"] = "mass",
) -> Reliability:
    """Bin pairs by probability and compare mean probability with the fraction genuine.

    Parameters
    ----------
    n_bins : int, default 10
        The paper's code takes 10 for RFW and 25 for BFW.
    binning : {"mass", "width"}, default "mass"
        ``mass``: bins of equally many pairs, up to about one, cut after the ranks
        ``floor(linspace(0, n − 1, n_bins + 1))`` counted from 0; no more bins than pairs. Equal
        probabilities that a cut divides share their genuine pairs evenly between the bins, so
        that the order of the pairs does not matter.
        ``width``: the intervals ``(i/n_bins, (i+1)/n_bins]``, the first one with its 0; some may
        be empty.

    Examples
    --------
    >>> bins = reliability([0.1, 0.3, 0.6, 0.8], [0, 0, 0, 1], n_bins=2)
    >>> bins.count
    array([2, 2])
    >>> bins.fraction_genuine
    array([0. , 0.5])
    >>> round(bins.error, 3)
    0.2
    """
    if binning not in ("mass", "width"):
        raise ParameterError(f"expected binning to be mass or width; found {binning!r}")
    if not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ParameterError(f"expected n_bins to be a whole number from 1; found {n_bins!r}")
    ranking = as_probabilities(probability, genuine)
    below = _cumulate(ranking)
    if binning == "mass":
        cuts = mass_cuts(len(ranking), n_bins)
    else:
        edges = np.linspace(0, 1, n_bins + 1)
        cuts = below.position[np.searchsorted(ranking.thresholds[::-1], edges, side="right")]
        cuts[0] = 0
    # Inside a block both sums grow linearly: that is the even sharing of divided blocks.
    total = np.diff(np.interp(cuts, below.position, below.probability))
    total_genuine = np.diff(np.interp(cuts, below.position, below.genuine))
    count = np.diff(cuts)
    used = count > 0
    filled = np.where(used, count, np.nan)
    confidence, fraction = total / filled, total_genuine / filled
    error = float("nan")
    if used.any():
        gap = np.abs(confidence - fraction)[used]
        error = float(np.average(gap, weights=count[used]))
    return Reliability(confidence, fraction, count, error)


def ece(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    n_bins: int = 10,
    binning: Literal["mass", "width"] = "mass",
) -> float:
    """Return the expected calibration error.

    ``ECE = Σ_b (n_b / n) |mean probability of bin b − fraction genuine of bin b|``.

    Parameters
    ----------
    n_bins, binning
        As for `reliability`.

    Examples
    --------
    >>> round(ece([0.1, 0.3, 0.6, 0.8], [0, 0, 0, 1], n_bins=2), 3)
    0.2
    """
    return reliability(probability, genuine, n_bins=n_bins, binning=binning).error


def brier(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    of: Literal["label", "correctness"] = "label",
) -> float:
    """Return the Brier score: the mean squared error of the probabilities.

    Parameters
    ----------
    of : {"label", "correctness"}, default "label"
        ``label``: the mean of (y − c)². ``correctness``: the formula printed in the paper, the
        mean of (1[ŷ = y] − c)² with ŷ = [c ≥ 0.5]. It takes c for the confidence in ŷ, so
        the two differ where c < 0.5.

    Examples
    --------
    >>> round(brier([0.2, 0.9], [0, 1]), 3)
    0.025
    >>> round(brier([0.2, 0.9], [0, 1], of="correctness"), 3)
    0.325
    """
    if of not in ("label", "correctness"):
        raise ParameterError(f"expected of to be label or correctness; found {of!r}")
    losses = brier_losses if of == "label" else _correctness_losses
    return float(mean_of(losses)(as_probabilities(probability, genuine)))


def nll(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    eps: float = NLL_EPS,
) -> float:
    """Return the mean negative log-likelihood, in nats.

    Parameters
    ----------
    eps : float, default 2.2e-16
        Probabilities are clipped to [eps, 1 − eps], so that one certain mistake costs a finite
        −log(eps), about 36, rather than everything.

    Examples
    --------
    >>> round(nll([0.5, 0.5], [0, 1]), 4)
    0.6931
    """
    if not 0 < eps < 0.5:
        raise ParameterError(f"expected eps between 0 and 0.5; found {eps!r}")
    ranking = as_probabilities(probability, genuine)
    c: FloatArray = np.clip(ranking.thresholds, eps, 1 - eps)
    hit, miss = np.diff(ranking.tp, prepend=0), np.diff(ranking.fp, prepend=0)
    # No `mean_of`: near 1, log(1 − c) has lost the digits that log1p keeps.
    logs = -(np.log(c) * hit + np.log1p(-c) * miss)
    return float(logs.sum() / (len(ranking) or np.nan))


def mean_of(
    losses: Callable[[FloatArray, BoolArray], FloatArray],
) -> Callable[..., float]:
    """Return the metric that is the mean over pairs of `losses`, of a ranking or of two arrays.

    It needs no single pairs, so it is also that of pairs of which only scores are counted.

    Parameters
    ----------
    losses : callable
        From scores or probabilities and labels, each of shape (n,), to what each pair adds.

    Examples
    --------
    >>> distance = mean_of(lambda probability, genuine: abs(probability - genuine))
    >>> round(distance([0.2, 0.9], [0, 1]), 3)
    0.15
    """

    def mean(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None = None) -> float:
        ranking = as_ranking(scores, genuine)
        total = np.zeros(len(ranking.thresholds))
        for label, reached in ((True, ranking.tp), (False, ranking.fp)):
            count = np.diff(reached, prepend=0)
            at = np.flatnonzero(count)  # a loss may be infinite where there is no pair
            total[at] += count[at] * losses(ranking.thresholds[at], np.full(len(at), label))
        return float(total.sum() / (len(ranking) or np.nan))

    return mean


def brier_losses(probability: FloatArray, genuine: BoolArray) -> FloatArray:
    """Return what each pair adds to the Brier score: (c − y)²."""
    return np.asarray((probability - genuine) ** 2)


def _correctness_losses(probability: FloatArray, genuine: BoolArray) -> FloatArray:
    """Return (1[ŷ = y] − c)² with ŷ = [c ≥ ½], which is right on genuine pairs from there on."""
    return np.asarray((((probability >= 0.5) == genuine) - probability) ** 2)


def nll_losses(probability: FloatArray, genuine: BoolArray) -> FloatArray:
    """Return what each pair adds to the NLL: −log of the probability of what happened."""
    right = np.where(genuine, probability, 1 - probability)
    return np.asarray(-np.log(np.clip(right, NLL_EPS, 1 - NLL_EPS)))


def mass_cuts(n: int, n_bins: int) -> IntArray:
    """Return where bins of equal mass begin and end among n sorted values.

    Parameters
    ----------
    n : int
        Number of values.
    n_bins : int
        Number of bins; n if that is less.

    Returns
    -------
    ndarray of int64, shape (min(n, n_bins) + 1,)
        Bin i holds the sorted positions from ``cuts[i]`` up to, not including, ``cuts[i + 1]``.

    Examples
    --------
    >>> mass_cuts(10, 4)
    array([ 0,  3,  5,  7, 10])
    """
    if not n:
        return np.zeros(1, dtype=np.int64)
    cuts = np.floor(np.linspace(0, n - 1, min(n, n_bins) + 1)).astype(np.int64) + 1
    cuts[0] = 0
    return cuts


class _Cumulative(NamedTuple):
    """Sums over the lowest pairs, up to the end of each block of equal probabilities.

    Each has shape (n_distinct + 1,), with the empty sum first. Only block ends are held, so
    whatever is computed from here does not depend on the order of the pairs.
    """

    position: IntArray
    probability: FloatArray
    genuine: IntArray


def _cumulate(ranking: Ranking) -> _Cumulative:
    # Below a threshold is what is not accepted at the next one.
    above, genuine_above = (np.append(of[::-1], 0) for of in (ranking.tp + ranking.fp, ranking.tp))
    position = len(ranking) - above
    total = np.zeros(len(position))
    np.cumsum(np.diff(position) * ranking.thresholds[::-1], out=total[1:])
    return _Cumulative(position, total, ranking.n_genuine - genuine_above)
