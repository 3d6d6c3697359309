"""Histogram binning: the fraction of genuine pairs in bins of equal mass."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from faircal._base.registry import check_integer
from faircal.calibrators.base import Calibrator
from faircal.calibrators.samples import Floats, WeightedScores


class HistogramCalibrator(Calibrator):
    r"""Histogram binning (Zadrozny and Elkan, 2001) with bins of equal mass.

    The n sorted scores are cut at the positions ``⌊i (n − 1) / m⌋ + 1``,
    i = 1 … m − 1. The edge at a cut is the mean of all copies of the score before it and all
    copies of the score after it; the outer edges are the score range. Bins include their upper
    edge. Where two edges coincide, the whole is done again with one bin less. The map need not
    be monotone.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins m; fewer are made when there are fewer pairs or when ties demand it.
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins that were made, ascending, from end to end of the score range.
    values_ : ndarray of shape (n_bins,)
        Fraction of genuine pairs in each.

    Notes
    -----
    A weight counts as so many copies of the pair. Weights that do not add up to whole numbers
    have no positions to count, and are cut at the masses i/m of the total.

    A cut through equal scores shares their genuine mass between both sides in proportion, which
    makes the result independent of the order of the pairs; in prediction that score belongs to
    the lower bin.

    Examples
    --------
    >>> scores, genuine = [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], [0, 0, 1, 0, 1, 1]
    >>> calibrator = HistogramCalibrator(n_bins=2).fit(scores, genuine)
    >>> calibrator.edges_
    array([-1.  ,  0.45,  1.  ])
    >>> calibrator.predict([0.2, 0.5]).round(3)
    array([0.333, 0.667])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("edges", "values")

    def __init__(self, *, n_bins: int = 10, score_range: tuple[float, float] = (-1.0, 1.0)) -> None:
        super().__init__(score_range=score_range)
        self.n_bins = n_bins

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_bins", self.n_bins, 1)

    def _fit(self, sample: WeightedScores) -> None:
        cumulated = np.cumsum(sample.mass)
        counts = not np.mod(sample.mass, 1.0).any()
        most = cumulated[-1] if counts else sample.scores.size
        # Equal edges would make a bin of nothing: ties are met by fewer bins, not by jitter.
        for m in range(int(min(self.n_bins, most)), 0, -1):
            cuts = _cuts(float(cumulated[-1]), m, counts=counts)
            edges = np.array(
                [self.score_range[0], *_edges(sample, cumulated, cuts), self.score_range[1]]
            )
            if (np.diff(edges) > 0).all():
                break
        bounds = np.array([0.0, *cuts, cumulated[-1]])
        before = np.concatenate(([0.0], cumulated))
        # Between the ends of a tie the count grows linearly: both sides get their part of it.
        genuine = np.interp(bounds, before, np.concatenate(([0.0], np.cumsum(sample.genuine))))
        self.edges_, self.values_ = edges, np.diff(genuine) / np.diff(bounds)

    def _fit_constant(self, sample: WeightedScores) -> None:
        self.edges_, self.values_ = np.array(self.score_range, float), np.array([sample.fraction])

    def _is_sound(self) -> bool:
        return len(self.edges_) == len(self.values_) + 1 and bool((np.diff(self.edges_) >= 0).all())

    def _predict(self, scores: Floats) -> Floats:
        bins = np.searchsorted(self.edges_[1:-1], scores, side="left")
        return np.take(self.values_, bins)


def _cuts(total: float, m: int, *, counts: bool) -> Floats:
    """Return the mass below each of the m − 1 cuts."""
    if counts:
        return np.floor(np.linspace(0.0, total - 1.0, m + 1))[1:-1] + 1.0
    return np.linspace(0.0, total, m + 1)[1:-1]


def _edges(sample: WeightedScores, cumulated: Floats, cuts: Floats) -> Floats:
    """Return the inner edge at each cut, given the mass up to and including each score."""
    before = np.searchsorted(cumulated, cuts, side="left")
    after = np.searchsorted(cumulated, cuts, side="right")
    low, high = sample.scores[before], sample.scores[after]
    part = sample.mass[after] / (sample.mass[before] + sample.mass[after])
    # Between neighbouring floats the mean can round up to the higher score, which is not below it.
    edges = np.minimum(low + (high - low) * part, np.nextafter(high, low))
    return np.where(before == after, low, edges)
