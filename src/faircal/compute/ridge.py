"""Logistic regression with a ridge, on features that are made block by block.

The model is logit P = (x · u) + (x · v) t: every feature x shifts the log-odds and changes how
fast they grow with t. Features of a block are made when they are needed, so that memory does not
grow with pairs; blocks are summed in their order, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from faircal.compute.threads import each, one_blas_thread

Float64 = NDArray[np.float64]

#: Pairs whose features are made at a time; blocks that the curvature is taken of, at most.
BLOCK, _CURVED = 4096, 16
#: Pairs that the search begins with, and how much a step gains there at least.
_FIRST, _FIRST_GAIN = 12_000, 1e-6
_MOST_STEPS = 100
_ROUNDING = 1e-5
#: What a step but the last gains a pair, at least, where the best is wanted to the last digits.
LEAST_GAIN = 1e-13
#: Part of the last step's gain above which the curvature is worked out anew.
_SLOW = 0.3


@dataclass(eq=False)
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
        >>> one = Regression(lambda block: np.ones((4, 1))[block], t, y)
        >>> one.fit(np.ones((2, 1)), np.zeros((2, 1)))
        array([[0.],
               [0.]])
        """
        theta, last = self._near(penalty, start), np.inf
        with one_blas_thread():
            factor = self._factor(theta, penalty, anew=self._curvature is None)
            sums = self._sums(theta, penalty)
            for _ in range(_MOST_STEPS):
                solved: Float64 = cho_solve(factor, sums.gradient.ravel())
                step = -solved.reshape(theta.shape)
                # Newton's decrement −gᵀd: twice what the quadratic model promises.
                gain = -float((step * sums.gradient).sum())
                if gain < least_gain * len(self.t):
                    return theta + step
                if gain > _SLOW * last:
                    last = np.inf
                    factor = self._factor(theta, penalty, anew=True)
                    continue
                theta, sums = self._walk(theta, step, gain, sums.loss, penalty)
                last = gain
        return theta

    def _near(self, penalty: Float64, start: Float64) -> Float64:
        """Return the best coefficients for some of the pairs, where there are many."""
        n = len(self.t)
        every = n // _FIRST
        if every < 2 or self._curvature is not None:
            return start
        some = Regression(
            lambda block: self.features(_spread(block, every, n)),
            self.t[::every],
            self.target[::every],
        )
        return some.fit(penalty / every, start, _FIRST_GAIN)

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
            target = self.target[block]
            loss = float(np.logaddexp(0, np.where(target > 0, -eta, eta)).sum())
            # dℓ/dη = p − y
            away = expit(eta) - target
            return _RidgeSums(loss, np.stack([away, away * self.t[block]]) @ x)

        loss, gradient = 0.5 * float((penalty * theta**2).sum()), penalty * theta
        for part in each(work, len(self.t), BLOCK):
            loss += part.loss
            gradient += part.gradient
        return _RidgeSums(loss, gradient)

    def _factor(self, theta: Float64, penalty: Float64, *, anew: bool) -> tuple[Float64, bool]:
        """Return the Hessian, (2p, 2p), decomposed; of the loss, the last one unless `anew`."""
        if anew or self._curvature is None:
            self._curvature = self._hessian(theta)
        hessian = self._curvature.copy()
        # What single precision leaves open must not make a direction look curved downwards.
        more = penalty.ravel() + _ROUNDING * hessian.diagonal().max()
        hessian[np.diag_indices_from(hessian)] += more
        factor: tuple[Float64, bool] = cho_factor(hessian)
        return factor

    def _hessian(self, theta: Float64) -> Float64:
        n, p = len(self.t), theta.shape[1]
        # Every so manieth pair, for neighbours may be alike.
        every = -(-n // (BLOCK * _CURVED))

        def work(block: slice) -> NDArray[np.float32]:
            some = _spread(block, every, n)
            x, eta = self._eta(some, theta)
            likely, t = expit(eta), self.t[some]
            curve = likely * (1 - likely)
            # Single precision is enough for where to go next; the gradient says when to stop.
            single = x.astype(np.float32)
            # d²ℓ/dη² = p (1 − p); η = x·u + (x·v) t, so u, v and their mix bring 1, t² and t.
            curves = np.stack([curve, curve * t, curve * t**2], axis=1).astype(np.float32)
            wide = (curves[:, :, None] * single[:, None, :]).reshape(len(x), -1)
            return single.T @ wide

        products = np.zeros((p, 3 * p))
        taken = -(-n // every)
        for part in each(work, taken, BLOCK):
            products += part
        constant, linear, square = np.split(products * (n / taken), 3, axis=1)
        hessian = np.block([[constant, linear], [linear, square]])
        whole: Float64 = (hessian + hessian.T) / 2
        return whole


def _spread(block: slice, every: int, n: int) -> slice:
    """Return where the pairs of a block are, of every so manieth of `n`."""
    return slice(block.start * every, min(block.stop * every, n), every)


class _RidgeSums(NamedTuple):
    """The penalised loss and its gradient, (2, p); or a block's part of them."""

    loss: float
    gradient: Float64
