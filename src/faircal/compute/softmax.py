"""Softmax regressions of few coefficients on many rows: Newton's method, or L-BFGS.

A model gives each of C classes a linear log-odds η_c of the row's inputs z (n, C). There are three
forms: one slope for all classes (`Scalar`), a slope and an intercept a class (`Diagonal`), a matrix
and intercepts (`Full`). What is minimised is the mean log-loss and a pull of every coefficient to
a centre, ``½ Σ_j w_j (θ_j − c_j)²``, under slopes of zero or more where that is asked for. Rows are
summed in blocks, in their order, whatever the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from faircal.compute.threads import each, one_blas_thread

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Numbers of a block's Hessian terms: they stay in the cache.
_BLOCK_TERMS = 2**17
#: Most coefficients for Newton's method; above, their Hessian costs more than L-BFGS's many passes.
MOST_NEWTON = 1000
_MOST_STEPS = 60
#: The last step is the one that gains less than this a row; what is left then is about its square.
GAIN = 1e-10
#: Part of the mean curvature that is added to all of it: directions that no row tells apart.
_DAMPING = 1e-9
#: Less curvature than this is none.
_LEAST_CURVATURE = 1e-12
_MOST_HALVINGS = 30
#: A second trial step changes no log-odds by more: there probabilities are 0 and 1 anyway.
_FARTHEST = 40.0
#: What rounding may take from a loss, relatively.
_ROUNDING = 1e-15


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
        hessian = -(both.T @ both)
        c, each_class = self.n_classes, np.arange(self.n_classes)
        hessian[each_class, each_class] += np.einsum("ij,ij->j", pz, z)
        hessian[each_class, each_class + c] += pz.sum(axis=0)
        hessian[each_class + c, each_class] += pz.sum(axis=0)
        hessian[each_class + c, each_class + c] += p.sum(axis=0)
        return hessian

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
        eta = z @ matrix[:, :-1].T
        eta += matrix[:, -1]
        return eta

    def gradient(self, away: Float64, z: Float64) -> Float64:
        """Return Σ away zᵀ and Σ away."""
        return np.column_stack([away.T @ z, away.sum(axis=0)]).ravel()

    def hessian(self, p: Float64, z: Float64) -> Float64:
        """Return Σ (diag(p) − p pᵀ) ⊗ x xᵀ, where x is z and 1."""
        n, c = p.shape
        x = np.column_stack([z, np.ones(n)])
        wide = (p[:, :, None] * x[:, None, :]).reshape(n, -1)
        hessian = -(wide.T @ wide)
        of_class = (wide.T @ x).reshape(c, c + 1, c + 1)
        blocks = hessian.reshape(c, c + 1, c, c + 1)
        blocks[np.arange(c), :, np.arange(c), :] += of_class
        return hessian

    def curvature(self, p: Float64, z: Float64) -> Float64:
        """Return Σ p (1 − p) x²."""
        spread = p * (1.0 - p)
        return np.column_stack([spread.T @ (z * z), spread.sum(axis=0)]).ravel()


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Labelled rows of a form.

    Parameters
    ----------
    form : Form
    z : ndarray of shape (n, C)
    codes : ndarray of shape (n,)
        The class of each row.
    """

    form: Form
    z: Float64
    codes: Int64

    def sums(self, theta: Float64, *, second: bool) -> _LossSums:
        """Return mean log-loss, its gradient and, if `second`, its Hessian (else 0)."""
        form, n = self.form, len(self.z)

        def work(part: slice) -> _LossSums:
            z, codes = self.z[part], self.codes[part]
            eta = form.log_odds(theta, z)
            loss, p = _losses(eta, codes)
            hessian = form.hessian(p, z) if second else np.zeros(())
            p[np.arange(len(codes)), codes] -= 1.0
            return _LossSums(loss, form.gradient(p, z), hessian)

        parts = each(work, n, _block(form))
        loss = sum(part.loss for part in parts) / n
        gradient = sum((part.gradient for part in parts), np.zeros(form.size)) / n
        start = np.zeros((form.size, form.size) if second else ())
        return _LossSums(loss, gradient, sum((part.hessian for part in parts), start) / n)

    def reach(self, step: Float64) -> float:
        """Return by how much a step changes log-odds at most; above 0."""

        def work(part: slice) -> float:
            return float(np.abs(self.form.log_odds(step, self.z[part])).max())

        return max(1e-300, *each(work, len(self.z), _block(self.form)))

    def curvature(self, theta: Float64) -> Float64:
        """Return the mean of the second derivative in each coefficient alone, shape (size,)."""

        def work(part: slice) -> Float64:
            z = self.z[part]
            return self.form.curvature(softmax(self.form.log_odds(theta, z)), z)

        parts = each(work, len(self.z), _block(self.form))
        return np.asarray(sum(parts, np.zeros(self.form.size)) / len(self.z), dtype=np.float64)


class _LossSums(NamedTuple):
    loss: float
    gradient: Float64
    hessian: Float64


def _block(form: Form) -> int:
    return max(64, _BLOCK_TERMS // max(form.size, form.n_classes))


def _losses(eta: Float64, codes: Int64) -> tuple[float, Float64]:
    """Return the summed log-loss and the probabilities; `eta` is overwritten."""
    # Softmax is the same for shifted log-odds; less the largest, no exponential overflows.
    eta -= eta.max(axis=1, keepdims=True)
    of_label = eta[np.arange(len(codes)), codes].sum()
    np.exp(eta, out=eta)
    total = eta.sum(axis=1, keepdims=True)
    eta /= total
    return float(np.log(total).sum() - of_label), eta


def softmax(eta: Float64) -> Float64:
    """Return the softmax of each row; `eta` is overwritten.

    Examples
    --------
    >>> softmax(np.log([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    return _losses(eta, np.zeros(len(eta), np.int64))[1]


@dataclass(frozen=True, eq=False)
class Pull:
    """What keeps coefficients near a centre: ``½ Σ weight (θ − center)²``, shape (size,) each."""

    center: Float64
    weight: Float64

    def of(self, theta: Float64) -> tuple[float, Float64]:
        """Return its value and gradient."""
        slope = self.weight * (theta - self.center)
        return 0.5 * float(slope @ (theta - self.center)), slope


def fit(
    rows: SoftmaxRows,
    pull: Pull,
    start: Float64,
    *,
    least: Float64 | None = None,
    gain: float = GAIN,
) -> Float64:
    """Return the coefficients of the least mean log-loss and pull, shape (size,).

    Parameters
    ----------
    rows : Rows
        One at least.
    pull : Pull
    start : ndarray of shape (size,)
        Where to begin.
    least : ndarray of shape (size,), optional
        The least value of each coefficient, −∞ where it is free; for Newton's method only.
    gain : float
        A step of Newton's method that gains no more is the last; L-BFGS ends about there.

    Examples
    --------
    >>> z = np.log([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> rows = SoftmaxRows(Scalar(2), z, np.array([0, 0, 1, 1]))
    >>> fit(rows, Pull(np.ones(1), np.zeros(1)), np.ones(1)).round(3)
    array([0.5])
    """
    with one_blas_thread():
        if rows.form.size > MOST_NEWTON:
            return _lbfgs(rows, pull, start, gain)
        return _newton(rows, pull, start, least, gain)


def _newton(
    rows: SoftmaxRows, pull: Pull, theta: Float64, least: Float64 | None, least_gain: float
) -> Float64:
    """Newton's method with steps that end at the bounds (Bertsekas's projection).

    Where there is next to no curvature, rounding can turn a step uphill, or make it far too long;
    then more is added to the curvature, and less again when that went well.
    """
    bounds = np.full(len(theta), -np.inf) if least is None else least
    sums, damping = _pulled(rows, pull, theta), _DAMPING
    for _ in range(_MOST_STEPS):
        free = (theta > bounds) | (sums.gradient < 0.0)
        # Coefficients at their bound that would leave the allowed range stay where they are.
        step = _step(sums, pull, free, damping)
        gain = -float(step @ sums.gradient)
        last = 0.0 <= gain <= least_gain and damping == _DAMPING
        theta, reached, length = _walk(rows, pull, theta, step, sums, bounds)
        if last or (length == 0.0 and damping > 1.0):
            break
        # Levenberg and Marquardt: less damping after a good step, more after one hardly taken.
        damping = max(damping / 1e3, _DAMPING) if length > 1e-3 else damping * 1e3
        sums = reached
    return theta


def _pulled(rows: SoftmaxRows, pull: Pull, theta: Float64) -> _LossSums:
    value, slope = pull.of(theta)
    sums = rows.sums(theta, second=True)
    return _LossSums(sums.loss + value, sums.gradient + slope, sums.hessian)


def _step(sums: _LossSums, pull: Pull, free: NDArray[np.bool_], damping: float) -> Float64:
    """Return the way to the least of the quadratic model, in the free coefficients."""
    hessian = sums.hessian + np.diag(pull.weight)
    most = max(float(np.abs(np.diagonal(hessian)).max()), _LEAST_CURVATURE)
    hessian[np.diag_indices_from(hessian)] += damping * most
    step = np.zeros_like(sums.gradient)
    inner = hessian if free.all() else hessian[np.ix_(free, free)]
    if len(inner):
        step[free] = -np.linalg.solve(inner, sums.gradient[free])
    return step


def _walk(
    rows: SoftmaxRows, pull: Pull, theta: Float64, step: Float64, start: _LossSums, bounds: Float64
) -> tuple[Float64, _LossSums, float]:
    """Go along `step`, half as far as long as that is too far; nowhere where it leads uphill.

    Where probabilities are next to 0 and 1 steps are far too long: the second trial moves no
    log-odds by more than `_FARTHEST`.
    """
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        moved = np.maximum(theta + length * step, bounds)
        slope = float(start.gradient @ (moved - theta))
        if not slope <= 0.0:
            break
        sums = _pulled(rows, pull, moved)
        if sums.loss <= start.loss + 1e-4 * slope + _ROUNDING * abs(start.loss):
            return moved, sums, length
        if length == 1.0:
            length = min(length, _FARTHEST / rows.reach(step))
        length /= 2
    return theta, start, 0.0


def _lbfgs(rows: SoftmaxRows, pull: Pull, start: Float64, gain: float) -> Float64:
    # Coefficients in units in which all have about the same curvature.
    unit = 1.0 / np.sqrt(rows.curvature(start) + pull.weight + 1e-6)

    def value(scaled: Float64) -> tuple[float, Float64]:
        theta = scaled * unit
        sums = rows.sums(theta, second=False)
        more, slope = pull.of(theta)
        return sums.loss + more, (sums.gradient + slope) * unit

    # Its steps are many and small: what one of them gains is much less than what is left.
    options = {"maxiter": 2000, "ftol": 1e-3 * gain, "gtol": 0.1 * gain**0.5, "maxcor": 20}
    optimum = minimize(value, start / unit, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(optimum.x * unit, dtype=np.float64)
