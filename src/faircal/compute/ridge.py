"""Logistic regression with a ridge, on features of pairs that are mostly those of their rows.

The model is logit P = (x · u) + (x · v) t: every feature x shifts the log-odds and changes how
fast they grow with t. Most features are the mean of two rows of a table whose rows are in many
pairs: sums over pairs go by row, and the features of a pair are never written out but for the
curvature. Blocks are summed in their order, whatever the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from faircal.compute.threads import each, one_blas_thread

Float64 = NDArray[np.float64]

#: Pairs, or rows, at a time; blocks that the curvature is taken of, at most.
BLOCK, _CURVED = 4096, 16
_MOST_STEPS = 100
_ROUNDING = 1e-5
#: What a step but the last gains a pair, at least, where the best is wanted to the last digits.
LEAST_GAIN = 1e-13
#: Part of the last step's gain above which the curvature is worked out anew.
_SLOW = 0.3


@dataclass(eq=False)
class Regression:
    """Labelled pairs and their p = q + r features.

    Parameters
    ----------
    own : ndarray of shape (n, q)
        Features of each pair.
    shared : ndarray of shape (m, r)
        Of rows; the mean of its two rows gives a pair its other features.
    sides : ndarray of shape (2, n)
        The rows of each pair.
    t : ndarray of shape (n,)
    target : ndarray of shape (n,)
        1 where the pair is genuine, else 0.
    """

    own: Float64
    shared: Float64
    sides: NDArray[np.integer]
    t: Float64
    target: Float64
    _curvature: Float64 | None = field(default=None, init=False)

    def fit(self, penalty: Float64, start: Float64, least_gain: float = LEAST_GAIN) -> Float64:
        """Return the coefficients (u, v), shape (2, p), of the least penalised log-loss.

        Newton's method, with a curvature that is kept as long as it serves, from one fit to the
        next too, and is that of some pairs where there are many: the gradient is exact. The problem
        is strictly convex where every penalty is above 0.

        Parameters
        ----------
        penalty : ndarray of shape (2, p)
            What half the square of each coefficient costs, in units of log-loss.
        start : ndarray of shape (2, p)
        least_gain : float
            The last step is the one that gains less than this a pair.

        Examples
        --------
        >>> t, y = np.array([-1.0, 1.0, 1.0, -1.0]), np.array([0.0, 1.0, 0.0, 1.0])
        >>> one = Regression(np.ones((4, 1)), np.empty((1, 0)), np.zeros((2, 4), int), t, y)
        >>> one.fit(np.ones((2, 1)), np.zeros((2, 1)))
        array([[0.],
               [0.]])
        """
        theta, last = self._near(penalty, start, least_gain), np.inf
        with one_blas_thread():
            sums = self._sums(theta, penalty)
            factor = self._factor(sums.eta, penalty, anew=self._curvature is None)
            for _ in range(_MOST_STEPS):
                solved: Float64 = cho_solve(factor, sums.gradient.ravel())
                step = -solved.reshape(theta.shape)
                # Newton's decrement −gᵀd: twice what the quadratic model promises.
                gain = -float((step * sums.gradient).sum())
                if gain < least_gain * len(self.t):
                    return theta + step
                if gain > _SLOW * last:
                    last = np.inf
                    factor = self._factor(sums.eta, penalty, anew=True)
                    continue
                theta, sums = self._walk(theta, step, gain, sums.loss, penalty)
                last = gain
        return theta

    def _near(self, penalty: Float64, start: Float64, least_gain: float) -> Float64:
        """Return where to begin: the best of a pair's own features, of which there are few."""
        if self._curvature is not None or not self.shared.size:
            return start
        q = self.own.shape[1]
        few = Regression(self.own, self.shared[:, :0], self.sides, self.t, self.target)
        own = few.fit(penalty[:, :q], start[:, :q], least_gain)
        return np.hstack([own, start[:, q:]])

    def lines(self, theta: Float64) -> Float64:
        """Return x · u and x · v of each pair, shape (2, n)."""
        own, shared = np.split(theta, [self.own.shape[1]], axis=1)
        half, n = shared.T / 2, len(self.shared)
        of_rows = np.concatenate(each(lambda rows: self.shared[rows] @ half, n, BLOCK))
        lines: Float64 = self.own @ own.T + of_rows[self.sides[0]] + of_rows[self.sides[1]]
        return lines.T

    def _walk(
        self, theta: Float64, step: Float64, gain: float, loss: float, penalty: Float64
    ) -> tuple[Float64, _RidgeSums]:
        """Go along `step`, half as far as long as that is too far."""
        length = 1.0
        while True:
            moved = theta + length * step
            sums = self._sums(moved, penalty)
            # Armijo's rule: a ten-thousandth of what the slope promises will do.
            if sums.loss <= loss - 1e-4 * length * gain or length < 1e-10:
                return moved, sums
            length /= 2

    def _sums(self, theta: Float64, penalty: Float64) -> _RidgeSums:
        shift, tilt = self.lines(theta)
        eta = shift + tilt * self.t
        loss = float(np.logaddexp(0, np.where(self.target > 0, -eta, eta)).sum())
        loss += 0.5 * float((penalty * theta**2).sum())
        # dℓ/dη = p − y
        away = expit(eta) - self.target
        pull = np.stack([away, away * self.t])
        n, (left, right) = len(self.shared), self.sides
        # What pairs say of a row's features, added up row by row.
        of_rows = [np.bincount(left, one, n) + np.bincount(right, one, n) for one in pull]
        gradient = np.hstack([pull @ self.own, np.stack(of_rows) @ self.shared / 2])
        return _RidgeSums(loss, gradient + penalty * theta, eta)

    def _factor(self, eta: Float64, penalty: Float64, *, anew: bool) -> tuple[Float64, bool]:
        """Return the Hessian, (2p, 2p), decomposed; of the loss, the last one unless `anew`."""
        if anew or self._curvature is None:
            self._curvature = self._hessian(eta)
        hessian = self._curvature.copy()
        # What single precision leaves open must not make a direction look curved downwards.
        more = penalty.ravel() + _ROUNDING * hessian.diagonal().max()
        hessian[np.diag_indices_from(hessian)] += more
        factor: tuple[Float64, bool] = cho_factor(hessian)
        return factor

    def _hessian(self, eta: Float64) -> Float64:
        n = len(self.t)
        # Every so manieth pair, for neighbours may be alike.
        every = -(-n // (BLOCK * _CURVED))
        likely, t = expit(eta[::every]), self.t[::every]
        # d²ℓ/dη² = p (1 − p), and η = x·u + (x·v) t: the curvature is that of roots, (x, t x).
        root = np.sqrt(likely * (1 - likely))
        roots = np.stack([root, root * t], axis=1).astype(np.float32)
        own, (left, right) = self.own[::every], self.sides[:, ::every]

        def work(block: slice) -> NDArray[np.float32]:
            # Single precision is enough for where to go next; the gradient says when to stop.
            shared = self._halves[left[block]] + self._halves[right[block]]
            x = np.hstack([own[block].astype(np.float32), shared])
            wide = (roots[block, :, None] * x[:, None, :]).reshape(len(x), -1)
            square: NDArray[np.float32] = wide.T @ wide
            return square

        parts = np.stack(each(work, len(t), BLOCK))
        hessian: Float64 = parts.sum(axis=0, dtype=np.float64) * (n / len(t))
        return hessian

    @cached_property
    def _halves(self) -> NDArray[np.float32]:
        return (self.shared / 2).astype(np.float32)


class _RidgeSums(NamedTuple):
    """The penalised loss, its gradient, (2, p), and the log-odds."""

    loss: float
    gradient: Float64
    eta: Float64
