"""Logistic regressions of many sets at once: Newton's method with slopes of zero or more.

The only heavy step is a pass over all points (`compute.logistic`). A first search on averaged
points leaves two or three such passes. A set counts as fitted when its exact gradient meets the
conditions of an optimum as closely as `_newton` asks for; the others, where the likelihood has no
maximum or the features are all but collinear, are left to `_newton`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from faircal.calibrators._newton import DAMPING, TOLERANCE
from faircal.calibrators._sample import Floats
from faircal.calibrators._samples import Ints
from faircal.compute.logistic import Sums

MAX_STEPS = 40
# What may be left of the gradient after the search on averaged points; as TOLERANCE.
ROUGH_TOLERANCE = 1e-7
# A direction in which the features spread by less than the root of this part of their size.
COLLINEAR = 1e-12
SHORTEST = 2.0**-20
# Rounding leaves about 1e-16 in a gradient; with less curvature than this that hides the optimum.
CURVED = 1e-9
# At an optimum another step changes no log-odds of the set by more than this. Where the classes
# all but separate, or almost all of the weight is on a few pairs, the gradient alone is no proof.
SETTLED = 1e-6
# Keeps divisions finite where there is no curvature at all; what comes of them is not used.
_TINY = 1e-200


@dataclass(eq=False)
class _Points:
    """Mean loss, its gradient and its Hessian at one value of the coefficients of each set."""

    which: Ints
    theta: Floats
    loss: Floats
    gradient: Floats
    hessian: Floats

    def take(self, some: npt.NDArray[np.bool_]) -> _Points:
        return _Points(*(values[some] for values in vars(self).values()))

    def move(self, to: _Points, where: npt.NDArray[np.bool_]) -> None:
        """Take over the points `to` of some of the sets."""
        for name, values in vars(self).items():
            values[where] = getattr(to, name)[where]


class NewtonSearch:
    """Looks for the least mean log-loss of each set, under slopes of zero or more.

    Parameters
    ----------
    mass, fraction : ndarray of shape (n_sets,)
        Total weight of each set, and the mean of its targets.
    reach : ndarray of shape (n_sets, n_features + 1)
        The largest size of each feature in the set, and 1.
    intercept : bool
        Whether there is a free one; otherwise it is zero.
    """

    def __init__(self, mass: Floats, fraction: Floats, reach: Floats, *, intercept: bool) -> None:
        self._mass, self._fraction, self._intercept = mass, fraction, intercept
        self._reach, self._m = reach, reach.shape[1] - 1

    def run(self, rough: Sums, exact: Sums, which: Ints) -> tuple[Floats, Ints]:
        """Fit the sets `which`, whose fractions are neither 0 nor 1.

        Parameters
        ----------
        rough, exact : Sums
            The problem on averaged points, and itself.
        which : ndarray of int

        Returns
        -------
        theta : ndarray of shape (n_sets, n_features + 1)
            Slopes, and the intercept.
        done : ndarray of int
            The sets that are fitted.
        """
        theta = np.zeros((len(self._mass), self._m + 1))
        if self._intercept:
            theta[which, -1] = np.log(self._fraction[which] / (1.0 - self._fraction[which]))
        spread = np.empty((len(self._mass), self._m + 1, self._m + 1))
        # At p = 1/2 the Hessian is a quarter of the features' second moments.
        spread[which] = 4.0 * self._at(rough, np.zeros_like(theta[which]), which).hessian
        which = which[_smallest(self._part(spread[which])) > COLLINEAR]
        start = theta.copy()
        found = self._descend(rough, theta, which, spread, ROUGH_TOLERANCE)
        # Averaged points may be easier to tell apart than the points: then they are no help.
        lost = np.setdiff1d(which, found)
        theta[lost] = start[lost]
        return theta, self._descend(exact, theta, which, spread, TOLERANCE)

    def _descend(
        self, sums: Sums, theta: Floats, which: Ints, spread: Floats, tolerance: float
    ) -> Ints:
        """Improve `theta` in place; return the sets whose optimum is found.

        A step goes to the least of the quadratic model within the bounds. It is halved until the
        loss falls enough.
        """
        at = self._at(sums, theta[which], which)
        step, length = self._step(at), np.ones(len(which))
        found = [which[:0]]
        for _ in range(MAX_STEPS):
            gain = -np.einsum("kj,kj->k", at.gradient, step)
            left = self._residual(at, spread)
            met = np.maximum(gain, left) <= tolerance * self._scale(at.which)
            met[met] = self._curvature(at.take(met), spread) >= CURVED
            met &= (np.abs(step) * self._reach[at.which]).sum(axis=1) <= SETTLED
            found.append(at.which[met])
            going = ~met & (length > SHORTEST) & np.isfinite(step).all(axis=1)
            if not going.any():
                break
            at, step, length = at.take(going), step[going], length[going]
            trial = self._at(sums, at.theta + length[:, None] * step, at.which)
            enough = trial.loss <= at.loss - 1e-4 * length * gain[going]
            # So near the optimum the loss is flat to the last digits, but the gradient still tells.
            flat = gain[going] <= 1e-12 * at.loss
            better = np.where(flat, self._residual(trial, spread) < left[going], enough)
            at.move(trial, better)
            theta[at.which] = at.theta
            step[better] = self._step(at.take(better))
            length = np.where(better, 1.0, length / 2)
        return np.sort(np.concatenate(found))

    def _at(self, sums: Sums, theta: Floats, which: Ints) -> _Points:
        loss, gradient, hessian = sums(theta, which)
        mass = self._mass[which]
        return _Points(
            which, theta, loss / mass, gradient / mass[:, None], hessian / mass[:, None, None]
        )

    def _step(self, at: _Points) -> Floats:
        """Return the way to the least of the quadratic model, every slope zero or more.

        With so few slopes every choice of those that are zero can be tried.
        """
        least, best = np.full(len(at.which), np.inf), np.zeros_like(at.theta)
        with np.errstate(all="ignore"):  # a set without curvature is given up
            for zero in product((False, True), repeat=self._m):
                pinned = np.array([*zero, not self._intercept])
                step = np.where(pinned, -at.theta, 0.0)
                slope = at.gradient + np.einsum("kij,kj->ki", at.hessian, step)
                step -= _solve(at.hessian, np.where(pinned, 0.0, slope), ~pinned)
                bent = np.einsum("ki,kij,kj->k", step, at.hessian, step)
                value = np.einsum("kj,kj->k", at.gradient, step) + bent / 2
                allowed = ((at.theta + step)[:, :-1] >= 0.0).all(axis=1)
                better = allowed & (value < least)
                least[better], best[better] = value[better], step[better]
        best[~np.isfinite(least)] = np.inf
        return best

    def _residual(self, at: _Points, spread: Floats) -> Floats:
        """Return how far the gradient is from that of an optimum.

        This is its length in a basis in which the features are orthonormal, as in `_newton`,
        leaving out slopes that are zero and should not rise.
        """
        free = (at.theta > 0.0) | (at.gradient < 0.0)
        free[:, -1] = self._intercept
        gradient = np.where(free, at.gradient, 0.0)
        length = np.einsum("kj,kj->k", gradient, _solve(spread[at.which], gradient, free))
        return np.asarray(np.sqrt(np.maximum(length, 0.0)), dtype=np.float64)

    def _curvature(self, at: _Points, spread: Floats) -> Floats:
        """Return the least curvature in the basis of `_residual`, slopes that are zero left out."""
        fixed = at.theta <= 0.0
        fixed[:, -1] = not self._intercept
        both = fixed[:, :, None] | fixed[:, None, :]
        eye = np.eye(self._m + 1)
        hessian, of = (np.where(both, eye, given) for given in (at.hessian, spread[at.which]))
        root = np.linalg.inv(np.linalg.cholesky(of))
        least = np.linalg.eigvalsh(root @ hessian @ root.transpose(0, 2, 1))[:, 0]
        return np.asarray(least, dtype=np.float64)

    def _scale(self, which: Ints) -> Floats:
        return self._fraction[which] * (1.0 - self._fraction[which])

    def _part(self, matrices: Floats) -> Floats:
        """Leave the intercept out of `matrices` where there is none."""
        return matrices if self._intercept else matrices[:, :-1, :-1]


def _solve(matrices: Floats, right: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """Solve a small system a set, in the free coordinates; the others come out as zero."""
    free = np.broadcast_to(free, right.shape)
    size = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2)) + _TINY
    unit = np.where(free, 1.0 / size, 0.0)
    scaled = matrices * unit[:, :, None] * unit[:, None, :]
    eye = np.eye(right.shape[1])
    scaled = scaled + eye * np.where(free, DAMPING, 1.0)[:, None, :]
    scaled[~np.isfinite(scaled).all(axis=(1, 2))] = eye * np.nan
    found = np.linalg.solve(scaled, (right * unit)[:, :, None])[:, :, 0]
    return np.asarray(found * unit, dtype=np.float64)


def _smallest(matrices: Floats) -> Floats:
    """Return the smallest eigenvalue of each matrix, its diagonal scaled to one."""
    size = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    unit = 1.0 / np.where(size > 0, size, 1.0)
    return np.asarray(
        np.linalg.eigvalsh(matrices * unit[:, :, None] * unit[:, None, :])[:, 0], dtype=np.float64
    )
