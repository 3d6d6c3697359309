"""Spline calibration: the derivative of a smooth fit to cumulative differences."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.interpolate import CubicSpline

from faircal._base.registry import check_integer
from faircal.calibrators.base import Calibrator
from faircal.calibrators.samples import Floats, WeightedScores

# Weights that add up to more are laid out with fewer, heavier copies; never fewer than one a score.
MAX_POINTS = 1_000_000


class SplineCalibrator(Calibrator):
    r"""Spline calibration (Gupta et al., 2021).

    For n pairs sorted by normalised score z, let ``u_i = i/(n-1)`` for i = 0 … n − 1, and
    let ``H_i`` and ``S_i`` be the cumulative labels and scores, each divided by n. A
    natural cubic spline is fitted to ``H - S`` over u by least squares; the probability at
    the i-th pair is ``z_i`` plus the spline's derivative at ``u_i``. In between it is
    linear in the score, beyond the outermost pairs constant, and everywhere clipped to [0, 1].
    The map need not be monotone.

    Parameters
    ----------
    n_knots : int, default=6
        Equally spaced knots of the spline on [0, 1]; fewer when there are fewer distinct scores.
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score.

    Attributes
    ----------
    knots_, values_ : ndarray of shape (n_distinct,)
        Distinct training scores, ascending, and the map there before it is clipped.

    Notes
    -----
    Equal scores share their labels evenly and take the mean of the derivative over the places
    they hold, so that the order of the pairs does not matter. A weight counts as so many copies;
    a fractional weight w stands for ⌈w⌉ copies of equal parts, and weights that add up to more
    than a million for fewer copies, which the map hardly shows. The map is kept at every distinct
    score, so the state grows with the training set.

    Examples
    --------
    >>> scores = np.linspace(-0.9, 0.9, 40)
    >>> calibrator = SplineCalibrator().fit(scores, scores > 0.3)
    >>> calibrator.predict([-0.9, 0.3, 0.9]).round(2)
    array([0. , 0.7, 1. ])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("knots", "values")

    def __init__(self, *, n_knots: int = 6, score_range: tuple[float, float] = (-1.0, 1.0)) -> None:
        super().__init__(score_range=score_range)
        self.n_knots = n_knots

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_knots", self.n_knots, 2)

    def _fit(self, sample: WeightedScores) -> None:
        low, high = self.score_range
        z = np.clip((sample.scores - low) / (high - low), 0.0, 1.0)
        owner, mass = _lay_out(sample.mass)
        end = np.cumsum(mass)
        total = end[-1]
        place = (end - mass) / (total - mass[-1])
        # H − S: how far labels have run ahead of scores; its slope is what calibration adds.
        gap = np.cumsum(mass * (sample.genuine / sample.mass - z)[owner]) / total
        n_knots = min(int(self.n_knots), sample.scores.size)
        derivative = _natural_spline(place, gap, mass, n_knots).derivative()(place)
        shift = np.bincount(owner, derivative * mass) / np.bincount(owner, mass)
        self.knots_, self.values_ = sample.scores, z + shift

    def _fit_constant(self, sample: WeightedScores) -> None:
        self.knots_, self.values_ = sample.scores[:1].copy(), np.array([sample.fraction])

    def _is_sound(self) -> bool:
        return len(self.knots_) == len(self.values_) and bool((np.diff(self.knots_) > 0).all())

    def _predict(self, scores: Floats) -> Floats:
        return np.interp(scores, self.knots_, self.values_)


def _lay_out(mass: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], Floats]:
    """Split each score's mass into equal points, of mass at most one unless there are too many.

    Returns
    -------
    owner : ndarray of shape (n_points,)
        Index of the score each point belongs to.
    point_mass : ndarray of shape (n_points,)
    """
    scale = min(1.0, MAX_POINTS / float(mass.sum()))
    copies = np.ceil(mass * scale).astype(np.intp)
    owner = np.repeat(np.arange(mass.size), copies)
    return owner, (mass / copies)[owner]


def _natural_spline(x: Floats, y: Floats, weight: Floats, n_knots: int) -> CubicSpline:
    """Fit a natural cubic spline with equally spaced knots on [0, 1] by least squares."""
    knots = np.linspace(0.0, 1.0, n_knots)
    # One spline per knot, 1 there and 0 at the others: together a basis of all natural splines.
    basis = np.ascontiguousarray(CubicSpline(knots, np.eye(n_knots), bc_type="natural")(x).T)
    # That basis is nearly orthogonal, so the normal equations lose no digits that matter; with
    # fewer places than knots the flattest of the equally good solutions is taken.
    gram = np.einsum("ji,ki->jk", basis * weight, basis)
    heights = np.linalg.lstsq(gram, np.einsum("ji,i->j", basis, weight * y))[0]
    return CubicSpline(knots, heights, bc_type="natural")
