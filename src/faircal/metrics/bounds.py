"""How far a metric of counted scores can be from that of the scores themselves.

In each bin the number of pairs of each label is known, the mean score of each, and between which
ends all scores lie; where in between they lie is not. Each function here takes the bins of one set
(`faircal.compute.counting.FilledBins`) and looks at the worst case, so what it says holds always,
but for the rounding of sums. The metric meant is that of ``Ranking.counted(bins.mean, …)``, where
all pairs of a bin are tied at the bin's mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from faircal.compute.counting import FilledBins
from faircal.metrics.calibration import NLL_EPS, mass_cuts
from faircal.metrics.ranking import FloatArray, IntArray, Ranking

#: Between which ends something lies.
Range: TypeAlias = tuple[float, float]
#: Rounding of sums of some ten thousand terms, relative to their size.
_ROUNDING = 1e-12


def as_counted(bins: FilledBins) -> Ranking:
    """Return the ranking in which the pairs of each bin are tied at its mean."""
    return Ranking.counted(bins.mean, bins.genuine, bins.imposter)


def largest_error(value: float, within: Range) -> float:
    """Return how far `value` can be from what lies in the range `within`; NaN for NaN."""
    low, high = within
    return max(value - low, high - value, 0.0) + _ROUNDING * max(1.0, abs(value))


def auroc_bound(bins: FilledBins) -> float:
    """Return the bound of `auroc`: in a bin, every two labels may be in either order, or tied.

    Examples
    --------
    >>> from faircal.compute.counting import ScoreCounts
    >>> counts = ScoreCounts.zeros(1, [0.0, 0.5, 1.0])
    >>> counts.add([0.1, 0.2, 0.4, 0.7], [0, 1, 0, 1])
    >>> round(auroc_bound(counts.means(0)), 6)  # one genuine and two imposters share a bin
    0.25
    """
    both = float(bins.genuine.sum()) * float(bins.imposter.sum())
    if not both:
        return float("nan")
    wide = bins.high > bins.low
    tied = np.sum(bins.genuine[wide].astype(np.float64) * bins.imposter[wide])
    return float(tied) / (2 * both) + _ROUNDING


def brier_bound(bins: FilledBins) -> float:
    """Return the bound of `brier`: a sum of convex functions, of which the means are known."""
    return _mean_bound(bins, lambda c: (1 - c) ** 2, lambda c: c**2, np.True_)


def nll_bound(bins: FilledBins, eps: float = NLL_EPS) -> float:
    """Return the bound of `nll`, as that of `brier_bound`; cut off logarithms are not convex."""

    def cut(c: FloatArray) -> FloatArray:
        return np.clip(c, eps, 1 - eps)

    convex = (bins.low >= eps) & (bins.high <= 1 - eps)
    return _mean_bound(bins, lambda c: -np.log(cut(c)), lambda c: -np.log1p(-cut(c)), convex)


def ks_bound(bins: FilledBins) -> float:
    """Return the bound of `ks`.

    At the ends of bins the sums are known. Inside, the worst order has all pairs of one label
    first: the sum then rises by its imposters' probabilities, or falls by what its genuine pairs
    lack to 1, before the others make up for it.
    """
    pairs = bins.genuine + bins.imposter
    if not pairs.sum():
        return float("nan")
    steps = pairs * bins.mean - bins.genuine
    ends = np.cumsum(steps)
    starts = ends - steps
    wide = bins.high > bins.low
    rise = bins.imposter * np.minimum(bins.imposter_mean + bins.slack, bins.high) * wide
    fall = bins.genuine * (1 - np.maximum(bins.genuine_mean - bins.slack, bins.low)) * wide
    worst = max(np.abs(at).max() for at in (ends, starts + rise, starts - fall))
    at_ends = np.abs(ends).max()
    return float((worst - at_ends + np.sum(pairs * bins.slack)) / pairs.sum()) + _ROUNDING


def ece_bound(bins: FilledBins, n_bins: int = 10) -> float:
    """Return the bound of `ece` with bins of equal mass.

    Only where a cut falls inside a counted bin is it unknown which of its pairs are below. The two
    terms that meet at the cut are off by that much.
    """
    pairs = bins.genuine + bins.imposter
    n = int(pairs.sum())
    if not n:
        return float("nan")
    ends = np.cumsum(pairs)
    cuts = mass_cuts(n, n_bins)[1:-1]
    at = np.searchsorted(ends, cuts)  # the bin that holds the cut, or ends there
    below = cuts - (ends - pairs)[at]
    inside = (below < pairs[at]) & (bins.high > bins.low)[at]
    at, below = at[inside], below[inside]
    genuine, imposter, mean = bins.genuine[at], bins.imposter[at], bins.mean[at]
    tied = below * (mean - genuine / pairs[at])
    least = below * bins.low[at] - np.minimum(below, genuine)
    # The lowest pairs of a bin have no higher mean than all of them.
    most = below * (mean + bins.slack[at]) - np.maximum(below - imposter, 0)
    error = np.maximum(tied - least, most - tied)
    return float((2 * error.sum() + np.sum(pairs * bins.slack)) / n) + _ROUNDING


def threshold_range(
    bins: FilledBins, rate: float, of: Literal["fpr", "fnr"], upper: float = 1.0
) -> Range:
    """Return where `threshold_at_fpr` or `threshold_at_fnr` of the scores themselves must lie.

    The score at which the rate is passed is in one bin; the next one above is in that bin or in
    the next one that holds something, or is the curve's artificial first point.
    """
    counts = bins.imposter if of == "fpr" else bins.genuine
    if not counts.sum():
        return float("nan"), float("nan")
    target = rate if of == "fpr" else 1 - rate
    at = _passed(counts, target)
    if at < 0:
        return float(bins.low[0]), float(bins.high[0])
    low, high = float(bins.low[at]), float(bins.high[at])
    next_low, next_high = max(upper, low), max(upper, high)
    if at + 1 < len(bins.bin):
        next_low, next_high = float(bins.low[at + 1]), float(bins.high[at + 1])
    if not _single_score(bins)[at]:
        return low, next_high
    # With one score only in the bin it is known which part of the way to the next one is meant.
    reached = _accepted(counts)
    part = float((target - reached[at + 1]) / (reached[at] - reached[at + 1]))
    return next_low + part * (low - next_low), next_high + part * (high - next_high)


def tpr_range(bins: FilledBins, rate: float) -> Range:
    """Return where `tpr_at_fpr` of the scores themselves must lie."""
    if not (bins.genuine.sum() and bins.imposter.sum()):
        return float("nan"), float("nan")
    at = _passed(bins.imposter, rate)
    reached = _accepted(bins.genuine)
    return float(reached[at + 1]), float(reached[max(at, 0)])


def rate_range(
    bins: FilledBins,
    label: Literal["genuine", "imposter"],
    low: float,
    high: float,
    upper: float = 1.0,
) -> Range:
    """Return where the accepted share of a label must lie at thresholds from `low` to `high`.

    That is `fpr_at_threshold` and `tpr_at_threshold`, which interpolate between the next lower
    score, which may stand for all of its bin or not, and the next higher one.
    """
    counts: IntArray = getattr(bins, label)
    if not counts.sum() or np.isnan(low):
        return float("nan"), float("nan")
    reached = _accepted(counts)
    shares = -np.diff(reached)
    certain = int(np.searchsorted(bins.low, high))  # the first bin that is accepted as a whole
    least, most = float(reached[certain]), 1.0
    if certain and bins.high[certain - 1] < high and _single_score(bins)[certain - 1]:
        above = bins.low[certain] if certain < len(bins.bin) else upper
        least += float(shares[certain - 1]) * _fraction_left(high, bins.low[certain - 1], above)
    possible = int(np.searchsorted(bins.high, low))  # the first bin of which something may be
    if possible:
        above = bins.high[possible] if possible < len(bins.bin) else upper
        most = float(reached[possible]) + float(shares[possible - 1]) * _fraction_left(
            low, bins.high[possible - 1], above
        )
    return least, most


def counted_range(bins: FilledBins, label: Literal["genuine", "imposter"], at: float) -> Range:
    """Return where the share of a label with scores from `at` on must lie; exact at an edge."""
    counts: IntArray = getattr(bins, label)
    if not counts.sum():
        return float("nan"), float("nan")
    reached = _accepted(counts)
    return (
        float(reached[np.searchsorted(bins.low, at)]),
        float(reached[np.searchsorted(bins.high, at)]),
    )


def deviation_bound(name: str, errors: npt.ArrayLike) -> float:
    """Return the bound of a deviation over groups from the bounds of the groups' values.

    Groups without a value (NaN) are left out. Of a deviation that is not ours nothing is known.

    Examples
    --------
    >>> round(deviation_bound("mad", [0.1, 0.3]), 3)  # one value moves, and the mean
    0.5
    """
    defined = np.asarray(errors, np.float64)
    defined = defined[~np.isnan(defined)]
    rules: dict[str, Callable[[], float]] = {
        "mean": lambda: defined.mean(),
        "aad": lambda: 2 * defined.mean(),
        "mad": lambda: defined.max() + defined.mean(),
        "std": lambda: np.sqrt(np.mean(defined**2)),
        "gap": lambda: 2 * defined.max(),
    }
    if not defined.size:
        return float("nan")
    if not defined.any():
        return 0.0
    return float(rules[name]()) if name in rules else float("inf")


def _accepted(counts: IntArray) -> FloatArray:
    """Return the share of a label in each bin and all above, and 0 behind them."""
    reached = np.append(np.cumsum(counts[::-1])[::-1], 0)
    return np.asarray(reached / reached[0])


def _passed(counts: IntArray, rate: float) -> int:
    """Return the highest bin from which on more than `rate` is accepted; −1 where it is all."""
    return int(np.count_nonzero(_accepted(counts)[:-1] > rate)) - 1


def _single_score(bins: FilledBins) -> npt.NDArray[np.bool_]:
    """Say which bins hold one score only, of one pair or of several."""
    return np.asarray((bins.genuine + bins.imposter == 1) | (bins.high == bins.low))


def _fraction_left(at: float, below: float, above: float) -> float:
    """Return the part of the way from `above` down to `below` that is left at a threshold."""
    return float((above - at) / (above - below)) if above > at else 0.0


def _mean_bound(
    bins: FilledBins,
    of_genuine: Callable[[FloatArray], FloatArray],
    of_imposter: Callable[[FloatArray], FloatArray],
    convex: npt.NDArray[np.bool_] | np.bool_,
) -> float:
    """Return the bound of the mean of a falling function (genuine) and a rising one (imposter).

    A convex function's mean is at least its value at the mean, and at most that of the chord.
    """
    pairs = bins.genuine + bins.imposter
    n = int(pairs.sum())
    if not n:
        return float("nan")
    least = most = 0.0
    for count, mean, function, sign in (
        (bins.genuine, bins.genuine_mean, of_genuine, -1),
        (bins.imposter, bins.imposter_mean, of_imposter, 1),
    ):
        first, last = (
            np.clip(mean + side * sign * bins.slack, bins.low, bins.high) for side in (-1, 1)
        )
        at_low, at_high = function(bins.low), function(bins.high)
        width = bins.high - bins.low
        share = np.divide(last - bins.low, width, out=np.zeros_like(width), where=width > 0)
        chord = at_low + share * (at_high - at_low)
        lower = np.where(convex, function(first), np.minimum(at_low, at_high))
        upper = np.where(convex, chord, np.maximum(at_low, at_high))
        tied = function(bins.mean)
        least += float(np.sum(count * (lower - tied)))
        most += float(np.sum(count * (upper - tied)))
    return max(abs(least), abs(most)) / n + _ROUNDING
