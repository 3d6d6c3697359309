"""The forms of a softmax regression: which coefficients the log-odds of classes depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


class Form(ABC):
    """How the log-odds of C classes depend on the coefficients θ, a flat array.

    Parameters
    ----------
    n_classes : int
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coefficients."""

    @abstractmethod
    def matrix(self, theta: Float64) -> Float64:
        """Return the slopes and, last, the intercepts as a matrix, shape (C, C + 1)."""

    @abstractmethod
    def log_odds(self, theta: Float64, z: Float64) -> Float64:
        """Return η of each row, shape (n, C)."""

    @abstractmethod
    def gradient(self, away: Float64, z: Float64) -> Float64:
        """Return the sum over rows of dη/dθ · `away`, which has shape (n, C)."""

    @abstractmethod
    def hessian(self, p: Float64, z: Float64) -> Float64:
        """Return the sum over rows of the log-loss's second derivatives, at probabilities `p`."""

    @abstractmethod
    def curvature(self, p: Float64, z: Float64) -> Float64:
        """Return the diagonal of `hessian`."""

    @property
    def identity(self) -> Float64:
        """The coefficients that leave probabilities as they are."""
        return self.flat(np.eye(self.n_classes, self.n_classes + 1))

    @abstractmethod
    def flat(self, matrix: Float64) -> Float64:
        """Return the coefficients of a matrix (C, C + 1) that has this form."""


class Scalar(Form):
    """η = θ z: one slope for all classes, no intercept."""

    size = 1

    def matrix(self, theta: Float64) -> Float64:
        """Return the slope on the diagonal."""
        return np.asarray(theta[0] * np.eye(self.n_classes, self.n_classes + 1))

    def flat(self, matrix: Float64) -> Float64:
        """Return the first slope."""
        return matrix[:1, 0].copy()

    def log_odds(self, theta: Float64, z: Float64) -> Float64:
        """Return θ z."""
        return np.asarray(theta[0] * z)

    def gradient(self, away: Float64, z: Float64) -> Float64:
        """Return Σ away · z."""
        return np.array([np.vdot(away, z)])

    def hessian(self, p: Float64, z: Float64) -> Float64:
        """Return the variance of z under p, summed over rows."""
        return self.curvature(p, z)[:, None]

    def curvature(self, p: Float64, z: Float64) -> Float64:
        """Return the same."""
        pz = p * z
        mean = pz.sum(axis=1)
        return np.array([np.vdot(pz, z) - np.vdot(mean, mean)])


class Diagonal(Form):
    """η_c = w_c z_c + b_c; θ holds the slopes w, then the intercepts b."""

    @property
    def size(self) -> int:
        """Two a class."""
        return 2 * self.n_classes

    def matrix(self, theta: Float64) -> Float64:
        """Return the slopes on the diagonal."""
        c = self.n_classes
        return np.column_stack([np.diag(theta[:c]), theta[c:]])

    def flat(self, matrix: Float64) -> Float64:
        """Return diagonal and intercepts."""
        return np.concatenate([np.diagonal(matrix), matrix[:, -1]])

    def log_odds(self, theta: Float64, z: Float64) -> Float64:
        """Return w z + b."""
        return z * theta[: self.n_classes] + theta[self.n_classes :]

    def gradient(self, away: Float64, z: Float64) -> Float64:
        """Return Σ away z and Σ away."""
        return np.concatenate([np.einsum("ij,ij->j", away, z), away.sum(axis=0)])

    def hessian(self, p: Float64, z: Float64) -> Float64:
        """Return Σ (diag(p) − p pᵀ), in slopes times z."""
        pz = p * z
        both = np.hstack([pz, p])
        found = -(both.T @ both)
        c, each_class = self.n_classes, np.arange(self.n_classes)
        found[each_class, each_class] += np.einsum("ij,ij->j", pz, z)
        found[each_class, each_class + c] += pz.sum(axis=0)
        found[each_class + c, each_class] += pz.sum(axis=0)
        found[each_class + c, each_class + c] += p.sum(axis=0)
        return found

    def curvature(self, p: Float64, z: Float64) -> Float64:
        """Return Σ p (1 − p), times z² for slopes."""
        spread = p * (1.0 - p)
        return np.concatenate([np.einsum("ij,ij,ij->j", spread, z, z), spread.sum(axis=0)])


class Full(Form):
    """η = W z + b; θ is the matrix (W, b), row by row."""

    @property
    def size(self) -> int:
        """A row of C + 1 a class."""
        return self.n_classes * (self.n_classes + 1)

    def matrix(self, theta: Float64) -> Float64:
        """Return (W, b)."""
        return theta.reshape(self.n_classes, -1)

    def flat(self, matrix: Float64) -> Float64:
        """Return (W, b), row by row."""
        return matrix.ravel().copy()

    def log_odds(self, theta: Float64, z: Float64) -> Float64:
        """Return W z + b."""
        matrix = self.matrix(theta)
        found = z @ matrix[:, :-1].T
        found += matrix[:, -1]
        return found

    def gradient(self, away: Float64, z: Float64) -> Float64:
        """Return Σ away zᵀ and Σ away."""
        return np.column_stack([away.T @ z, away.sum(axis=0)]).ravel()

    def hessian(self, p: Float64, z: Float64) -> Float64:
        """Return Σ (diag(p) − p pᵀ) ⊗ x xᵀ, where x is z and 1."""
        n, c = p.shape
        x = np.column_stack([z, np.ones(n)])
        wide = (p[:, :, None] * x[:, None, :]).reshape(n, -1)
        found = -(wide.T @ wide)
        own = (wide.T @ x).reshape(c, c + 1, c + 1)
        blocks = found.reshape(c, c + 1, c, c + 1)
        blocks[np.arange(c), :, np.arange(c), :] += own
        return found

    def curvature(self, p: Float64, z: Float64) -> Float64:
        """Return Σ p (1 − p) x²."""
        spread = p * (1.0 - p)
        return np.column_stack([spread.T @ (z * z), spread.sum(axis=0)]).ravel()
