"""Logistic regression with a ridge, on features that are made block by block.

The model is logit P = (x · u) + (x · v) t: every feature x shifts the log-odds and changes how
fast they grow with t. Features of a block are made when they are needed, so that memory does not
grow with pairs; blocks are summed in their order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from faircal.compute.threads import each, one_blas_thread

Float64 = NDArray[np.float64]

#: Pairs whose features are made at a time.
BLOCK = 4096
_MOST_STEPS = 100
_ROUNDING = 1e-5
#: The last step is the one that gains less than this a pair; what is left then is its square.
_GAIN = 1e-9


@dataclass(frozen=True, eq=False)
class Regression:
    """Labelled pairs and how to make their features.

    Parameters
    ----------
    features : callable
        Gives the features x of a block of pairs, shape (block, p).
    t : ndarray of shape (n,)
    target : ndarray of shape (n,)
        1 where the pair is genuine, else 0.
    """

    features: Callable[[slice], Float64]
    t: Float64
    target: Float64

    def fit(self, penalty: Float64, start: Float64) -> Float64:
        """Return the coefficients (u, v), shape (2, p), of the least penalised log-loss.

        Newton's method; the problem is strictly convex where every penalty is above 0.

        Parameters
        ----------
        penalty : ndarray of shape (2, p)
            What half the square of each coefficient costs, in units of log-loss.
        start : ndarray of shape (2, p)

        Examples
        --------
        >>> t, y = np.array([-1.0, 1.0, 1.0, -1.0]), np.array([0.0, 1.0, 0.0, 1.0])
        >>> one = Regression(lambda block: np.ones((4, 1))[block], t, y)
        >>> one.fit(np.ones((2, 1)), np.zeros((2, 1)))
        array([[0.],
               [0.]])
        """
        theta = start
        with one_blas_thread():
            sums = self._sums(theta, penalty)
            for _ in range(_MOST_STEPS):
                solved: Float64 = cho_solve(cho_factor(sums.hessian), sums.gradient.ravel())
                step = -solved.reshape(theta.shape)
                # Newton's decrement −gᵀd: twice what the quadratic model promises.
                gain = -float((step * sums.gradient).sum())
                if gain < _GAIN * len(self.t):
                    return theta + step
                theta, sums = self._walk(theta, step, gain, sums.loss, penalty)
        return theta

    def lines(self, theta: Float64) -> tuple[Float64, Float64]:
        """Return x · u and x · v of each pair, shape (n,) each."""
        parts = each(lambda block: theta @ self.features(block).T, len(self.t), BLOCK)
        shift, tilt = np.hstack(parts)
        return shift, tilt

    def _eta(self, block: slice, theta: Float64) -> tuple[Float64, Float64]:
        x = self.features(block)
        shift, tilt = theta @ x.T
        return x, shift + tilt * self.t[block]

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
        def work(block: slice) -> _RidgeSums:
            x, eta = self._eta(block, theta)
            t, target = self.t[block], self.target[block]
            loss = float(np.logaddexp(0, np.where(target > 0, -eta, eta)).sum())
            likely = expit(eta)
            # dℓ/dη = p − y
            away, curve = likely - target, likely * (1 - likely)
            gradient = np.stack([away, away * t]) @ x
            # Single precision is enough for where to go next; the gradient says when to stop.
            single = x.astype(np.float32)
            # d²ℓ/dη² = p (1 − p); η = x·u + (x·v) t, so u, v and their mix bring 1, t² and t.
            curves = np.stack([curve, curve * t, curve * t**2], axis=1).astype(np.float32)
            wide = (curves[:, :, None] * single[:, None, :]).reshape(len(x), -1)
            return _RidgeSums(loss, gradient, single.T @ wide)

        loss, gradient = 0.5 * float((penalty * theta**2).sum()), penalty * theta
        p = theta.shape[1]
        products = np.zeros((p, 3 * p))
        for part in each(work, len(self.t), BLOCK):
            loss += part.loss
            gradient += part.gradient
            products += part.hessian
        constant, linear, square = np.split(products, 3, axis=1)
        hessian = np.block([[constant, linear], [linear, square]])
        hessian = (hessian + hessian.T) / 2
        # What single precision leaves open must not make a direction look curved downwards.
        hessian[np.diag_indices(2 * p)] += penalty.ravel() + _ROUNDING * hessian.diagonal().max()
        return _RidgeSums(loss, gradient, hessian)


class _RidgeSums(NamedTuple):
    """The penalised loss, its gradient (2, p) and its Hessian (2p, 2p); or a block's part of them.

    A block's Hessian comes as the three products (p, 3p) that make it.
    """

    loss: float
    gradient: Float64
    hessian: Float64
