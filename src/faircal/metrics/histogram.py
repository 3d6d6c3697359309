"""Scores counted in bins: what curves and figures are drawn from, and what can be added up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError
from faircal.metrics.ranking import FloatArray, IntArray, Ranking


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """Genuine and imposter scores counted between edges.

    Bin i holds the scores s with ``edges[i] <= s < edges[i + 1]``; the first one those below, too,
    and the last one all from its edge on. So the rates of the decision ``s >= edges[i]`` are exact
    for every i but the first. Histograms with the same edges can be added.

    Parameters
    ----------
    edges : ndarray of float64, shape (n_bins,)
        Lower ends of the bins, ascending.
    genuine, imposter : ndarray of int64, shape (n_bins,)
    total : ndarray of float64, shape (n_bins,)
        Sum of the scores in each bin.

    Attributes
    ----------
    n_genuine, n_imposter : int
    accepted_genuine, accepted_imposter : ndarray of int64, shape (n_bins,)
        Pairs with a score of at least each edge.
    fpr, fnr : ndarray of float64, shape (n_bins,)
        Error rates of the decision ``s >= edge`` at each edge; NaN without such pairs.

    Examples
    --------
    >>> ranking = Ranking.of([0.1, 0.4, 0.5, 0.9], [0, 0, 1, 1])
    >>> histogram = Histogram.of(ranking, [0.0, 0.4, 0.8])
    >>> histogram.imposter, histogram.genuine
    (array([1, 1, 0]), array([0, 1, 1]))
    >>> histogram.fpr, histogram.fnr
    (array([1. , 0.5, 0. ]), array([0. , 0. , 0.5]))
    >>> (histogram + histogram).n_imposter
    4
    """

    edges: FloatArray
    genuine: IntArray
    imposter: IntArray
    total: FloatArray
    n_genuine: int = field(init=False)
    n_imposter: int = field(init=False)
    accepted_genuine: IntArray = field(init=False)
    accepted_imposter: IntArray = field(init=False)
    fpr: FloatArray = field(init=False)
    fnr: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        accepted_genuine = np.cumsum(self.genuine[::-1])[::-1]
        accepted_imposter = np.cumsum(self.imposter[::-1])[::-1]
        n_genuine, n_imposter = int(self.genuine.sum()), int(self.imposter.sum())
        vars(self).update(
            n_genuine=n_genuine,
            n_imposter=n_imposter,
            accepted_genuine=accepted_genuine,
            accepted_imposter=accepted_imposter,
            fpr=accepted_imposter / (n_imposter or np.nan),
            fnr=(n_genuine - accepted_genuine) / (n_genuine or np.nan),
        )

    @classmethod
    def of(cls, ranking: Ranking, edges: npt.ArrayLike) -> Histogram:
        """Count the scores of a ranking.

        Of a ranking from counts (`Ranking.counted`) the histogram is exact where its edges are
        among those that were counted between; only `total` is as close as the means of those.
        """
        at = np.asarray(edges, dtype=np.float64)
        ascending = ranking.thresholds[::-1]
        # Where each bin starts among the distinct scores: a search for each edge, not each score.
        starts = np.searchsorted(ascending, at)
        starts[0] = 0
        # Accepted from each edge on; between two edges is what one has more than the next.
        genuine, imposter = (
            -np.diff(np.append(accepted[::-1], 0)[starts], append=0)
            for accepted in (ranking.tp, ranking.fp)
        )
        pairs = np.diff(ranking.tp + ranking.fp, prepend=0)[::-1]
        total = np.add.reduceat(np.append(ascending * pairs, 0.0), starts)
        # The sum of no scores would come out as the next one.
        return cls(at, genuine, imposter, np.where(genuine + imposter > 0, total, 0.0))

    def __add__(self, other: Histogram) -> Histogram:
        if not np.array_equal(self.edges, other.edges):
            raise DataError("histograms with different edges cannot be added; use the same edges")
        return Histogram(
            self.edges,
            self.genuine + other.genuine,
            self.imposter + other.imposter,
            self.total + other.total,
        )

    def __repr__(self) -> str:
        return f"<Histogram of {self.n_genuine} genuine and {self.n_imposter} imposter pairs>"

    def threshold_at_fpr(self, rate: float) -> float:
        """Return the edge whose FPR is nearest to `rate`, the highest of them; NaN without any."""
        if not self.n_imposter:
            return float("nan")
        distance = np.abs(self.fpr - rate)
        return float(self.edges[np.flatnonzero(distance == distance.min())[-1]])


def probability_edges() -> FloatArray:
    """Return edges for probabilities: every 0.001, and ever finer towards 0 and 1.

    Each is the double nearest to a short decimal number, so it can be printed and read back.

    Examples
    --------
    >>> edges = probability_edges()
    >>> len(edges), float(edges[1]), float(edges[-2])
    (1091, 1e-08, 0.99999999)
    """
    tails = [(m, 10**k) for k in range(4, 9) for m in range(1, 10)]
    ends = [m / power for m, power in tails] + [(power - m) / power for m, power in tails]
    return np.unique(np.concatenate([np.arange(1001) / 1000, ends]))


def score_edges(low: float, high: float) -> FloatArray:
    """Return edges for scores of the range [low, high]: round numbers, about a thousand.

    They reach half the range's width beyond both ends, since some methods shift scores.

    Examples
    --------
    >>> edges = score_edges(-1, 1)
    >>> len(edges), float(edges[0]), float(edges[1001]), float(edges[-1])
    (2001, -2.0, 0.002, 2.0)
    """
    width = high - low
    if not math.isfinite(2 * width):
        raise DataError(
            f"scores from {low:g} to {high:g} are too far apart for double precision; scale them"
        )
    power = math.ceil(math.log10(width / 1500) - 1e-9)
    unit = 2 if width * 5 / 10**power <= 1500 else 10  # steps of 0.2 or 1 times the power of ten
    digits = 1 - power
    step = unit * 10.0**-digits
    places = np.arange(
        math.floor((low - width / 2) / step), math.ceil((high + width / 2) / step) + 1
    )
    # Whole numbers divided, or multiplied, by a power of ten: as near to the decimal as can be.
    ten = 10.0 ** abs(digits)
    return np.asarray(places * unit / ten if digits > 0 else places * unit * ten, np.float64)
