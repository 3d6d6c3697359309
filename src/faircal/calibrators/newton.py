"""Logistic regression by Newton's method, unpenalised, with slopes of zero or more.

A handful of features on many points: the calibrators beta, Platt and temperature are all

    p = sigmoid(slopes · features + intercept)

and differ only in features, targets and whether there is an intercept.

`fit_nonnegative` fits one set: slowly, in an orthonormal basis, and even where the likelihood has
no maximum or the features are all but collinear. `NewtonSearch` fits many sets at once. Its only
heavy step is a pass over all points (`compute.logistic`); a first search on averaged points leaves
two or three such passes. A set counts as fitted there when its exact gradient meets the conditions
of an optimum as closely as `fit_nonnegative` asks for; the other sets are left to that one.

Sums over the points go through einsum rather than the matrix product: the latter's threads cost
more than they save at these sizes, and would let the last digits depend on their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from faircal.calibrators.samples import Floats, Ints
from faircal.compute.logistic import Sums

# The gradient, and the gain from another step, are asked to fall to this part of
# fraction · (1 − fraction), the natural size of a gradient.
TOLERANCE = 1e-11
MAX_ITERATIONS = 200
# A Hessian eigenvalue below this part of the trace is rounding error, not curvature.
DAMPING = 1e-13
NO_CURVATURE = 1e-200
# No step may change log-odds by more than this many times their present size.
MAX_STRIDE = 1000.0
# A rough optimum on this many points, evenly picked, is a good start for the search on all.
THINNED = 2048
ROUGH_TOLERANCE = 1e-3
# sigmoid(±1000) is exactly 1 or 0 in double precision, and unlike ±inf it can be written to JSON.
CERTAIN = 1000.0

# The search for many sets: steps at most, and the shortest part of a step that is tried.
MAX_STEPS = 40
SHORTEST = 2.0**-20
# What may be left of the gradient after the search on averaged points; as TOLERANCE.
AVERAGED_TOLERANCE = 1e-7
# A direction in which the features spread by less than the root of this part of their size.
COLLINEAR = 1e-12
# Rounding leaves about 1e-16 in a gradient; with less curvature than this that hides the optimum.
CURVED = 1e-9
# At an optimum another step changes no log-odds of the set by more than this. Where the classes
# all but separate, or almost all of the weight is on a few pairs, the gradient alone is no proof.
SETTLED = 1e-6
# Keeps divisions finite where there is no curvature at all; what comes of them is not used.
_TINY = 1e-200


@dataclass(frozen=True)
class LogisticFit:
    """Maximum-likelihood parameters, and the mean log-loss they reach."""

    slopes: Floats
    intercept: float
    loss: float


def finite_logit(probability: float) -> float:
    """Return log(p / (1 − p)), with ±1000 in place of ±infinity.

    Examples
    --------
    >>> finite_logit(0.5), finite_logit(1.0)
    (0.0, 1000.0)
    """
    return float(np.clip(logit(probability), -CERTAIN, CERTAIN))


def fit_nonnegative(
    features: Floats, target: Floats, mass: Floats, *, intercept: bool = True
) -> LogisticFit:
    """Maximise the likelihood subject to every slope being zero or more.

    The problem is convex, so the search over active sets is short. Walk straight from the
    constrained optimum to the unconstrained one: the loss falls all the way, so the first step
    must leave the feasible set, through some slope that is zero at the former and negative at the
    latter. Hence the constrained optimum has a zero among the slopes that came out negative; try
    each in turn, with the same argument on the features that remain.

    Parameters
    ----------
    features : ndarray of shape (n_features, n)
    target : ndarray of shape (n,)
        Wanted probabilities; fractions are allowed.
    mass : ndarray of shape (n,)
        Weights, above zero.
    intercept : bool, default=True
        Whether the model has a free intercept; otherwise it is zero.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0]])
    >>> fit = fit_nonnegative(x, np.array([0.25, 0.75]), np.ones(2))
    >>> round(float(np.exp(fit.slopes[0])), 6), round(float(np.exp(fit.intercept)), 6)
    (9.0, 0.333333)
    >>> fit_nonnegative(x, np.array([0.75, 0.25]), np.ones(2)).slopes
    array([0.])
    """
    fit = _fit_free(features, target, mass, intercept=intercept)
    faces = []
    for j in np.flatnonzero(fit.slopes < 0):
        rest = np.delete(features, j, axis=0)
        face = fit_nonnegative(rest, target, mass, intercept=intercept)
        faces.append(LogisticFit(np.insert(face.slopes, j, 0.0), face.intercept, face.loss))
    return min(faces, key=lambda face: face.loss) if faces else fit


def _fit_free(features: Floats, target: Floats, mass: Floats, *, intercept: bool) -> LogisticFit:
    """Maximise the likelihood with slopes of any sign."""
    share = mass / mass.sum()
    rows, mix, kept, means = _orthonormal(features, share, centre=intercept)
    # Rounding may leave it a hair above 1.
    fraction = min(float(np.einsum("i,i->", share, target)), 1.0)
    scale = fraction * (1.0 - fraction)
    theta = np.zeros(len(rows))
    if intercept:
        theta[-1] = finite_logit(fraction)
    start = _point(theta, rows, target, share)
    every = target.size // THINNED
    if every > 1:
        # The points come sorted by score, so that every k-th of them is a fair picture of all.
        few = np.ascontiguousarray(rows[:, ::every]), target[::every], share[::every]
        rough = _newton(_point(theta, *few), *few, ROUGH_TOLERANCE * scale * few[2].sum())
        start = min(start, _point(rough.theta, rows, target, share), key=lambda at: at.loss)
    best = _newton(start, rows, target, share, TOLERANCE * scale)
    # From coefficients of the rows to slopes of the features.
    slopes = np.zeros(len(features))
    slopes[kept] = np.linalg.solve(mix.T, best.theta[: len(kept)])
    constant = float(best.theta[-1] - slopes @ means) if intercept else 0.0
    return LogisticFit(slopes, constant, best.loss)


def _orthonormal(
    features: Floats, share: Floats, *, centre: bool
) -> tuple[Floats, Floats, list[int], Floats]:
    """Make the features orthonormal under the sample's own distribution, by Gram–Schmidt.

    The two features of beta calibration are nearly collinear on cosines. In this basis the
    Hessian starts as a multiple of the identity, so Newton's method does not see that.

    Returns
    -------
    rows : ndarray of shape (n_rows, n)
        Orthonormal combinations of the kept features, then a row of ones if centred.
    mix : ndarray of shape (n_kept, n_kept)
        Lower triangular; feature − mean = mix @ rows, for the features kept.
    kept : list of int
        Features that are not, up to rounding, combinations of those before them.
    means : ndarray of shape (n_features,)
    """
    k, n = features.shape
    rows = np.ones((k + centre, n))
    means = np.einsum("ji,i->j", features, share) if centre else np.zeros(k)
    mix = np.zeros((k, k))
    kept: list[int] = []
    for j in range(k):
        row = features[j] - means[j]
        at = len(kept)
        for i in [*range(at), *range(at)]:  # twice, so that rounding leaves no trace
            overlap = np.einsum("i,i->", share * row, rows[i])
            mix[at, i] += overlap
            row -= overlap * rows[i]
        norm = float(np.sqrt(np.einsum("i,i->", share * row, row)))
        if norm <= 64 * np.finfo(np.float64).eps * np.abs(features[j]).max():
            mix[at] = 0.0
            continue
        mix[at, at] = norm
        np.divide(row, norm, out=rows[at])
        kept.append(j)
    used = len(kept)
    if centre:
        rows[used] = 1.0
    return rows[: used + centre], mix[:used, :used], kept, means


class _Point(NamedTuple):
    """Loss, gradient (its largest entry is `steepness`) and probabilities at some parameters."""

    theta: Floats
    loss: float
    gradient: Floats
    steepness: float
    probability: Floats


def _point(theta: Floats, rows: Floats, target: Floats, share: Floats) -> _Point:
    eta = np.einsum("j,ji->i", theta, rows)
    probability = expit(eta)
    # log(1 + e^η) − y·η, written so that nothing overflows.
    loss = np.maximum(eta, 0.0)
    loss -= target * eta
    np.abs(eta, out=eta)
    np.negative(eta, out=eta)
    loss += np.log1p(np.exp(eta, out=eta), out=eta)
    gradient = np.einsum("ji,i->j", rows, share * (probability - target))
    steepness = float(np.abs(gradient).max(initial=0.0))
    return _Point(theta, float(np.einsum("i,i->", share, loss)), gradient, steepness, probability)


def _newton(point: _Point, rows: Floats, target: Floats, share: Floats, tolerance: float) -> _Point:
    """Step from `point` on until gradient and promised gain are within `tolerance`.

    Where the classes can be told apart perfectly the loss has no minimum: each step then divides
    it by about e. The gain that the next step promises is of the size of what is left of the
    loss, and ends the search there with finite parameters. (The gradient alone would end it too
    early when the classes all but touch: there the slopes have a long way to go.)
    """
    reach = np.abs(rows).max(axis=1)
    for _ in range(MAX_ITERATIONS):
        # Newton's step, or one down the gradient where there is no curvature to speak of.
        curvature = share * point.probability * (1.0 - point.probability)
        hessian = np.einsum("ji,ki->jk", rows * curvature, rows)
        trace = float(np.trace(hessian))
        hessian[np.diag_indices_from(hessian)] += DAMPING * max(trace, NO_CURVATURE)
        step = np.linalg.solve(hessian, -point.gradient)
        # Far from the optimum the curvature can all but vanish, and with it any sense of scale.
        limit = MAX_STRIDE * (1.0 + float(reach @ np.abs(point.theta)))
        # `reach` bounds each row, so this bounds the change of every log-odds.
        step *= min(1.0, limit / max(float(reach @ np.abs(step)), 1.0))
        gain = -float(point.gradient @ step)
        if max(gain, point.steepness) <= tolerance:
            break
        following = _line_search(point, step, gain, rows, target, share)
        if following is None:
            break
        point = following
    return point


def _line_search(
    point: _Point, step: Floats, gain: float, rows: Floats, target: Floats, share: Floats
) -> _Point | None:
    """Halve `step` until the loss falls enough (Armijo); None if rounding hides any progress."""
    # So near the optimum the loss is flat to the last digits, but the gradient still tells.
    flat = gain <= 1e-12 * point.loss
    for _ in range(60):
        trial = _point(point.theta + step, rows, target, share)
        if flat:
            return trial if trial.steepness < point.steepness else None
        if trial.loss <= point.loss - 1e-4 * gain:
            return trial
        step, gain = step / 2, gain / 2
    return None


# ------------------------------------------------------------ many sets at once


class _SetPoints(NamedTuple):
    """Mean loss, its gradient and its Hessian at one value of the coefficients of each set."""

    which: Ints
    theta: Floats
    loss: Floats
    gradient: Floats
    hessian: Floats

    def of(self, chosen: npt.NDArray[np.bool_]) -> _SetPoints:
        """Return those of some of the sets."""
        return _SetPoints._make(values[chosen] for values in self)


@dataclass(frozen=True, eq=False)
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

    mass: Floats
    fraction: Floats
    reach: Floats
    intercept: bool

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
        theta = np.zeros_like(self.reach)
        if self.intercept:
            # The best constant map: log-odds of the set's fraction of genuine pairs.
            theta[which, -1] = np.log(self.fraction[which] / (1.0 - self.fraction[which]))
        spread = np.empty((*self.reach.shape, self.reach.shape[1]))
        # At p = 1/2 the Hessian is a quarter of the features' second moments.
        spread[which] = 4.0 * self._at(rough, np.zeros_like(theta[which]), which).hessian
        # Features that are all but collinear are left to `fit_nonnegative`: their smallest
        # eigenvalue, with the diagonal scaled to one, is rounding error.
        second = spread[which] if self.intercept else spread[which, :-1, :-1]
        size = np.sqrt(np.diagonal(second, axis1=1, axis2=2))
        unit = 1.0 / np.where(size > 0, size, 1.0)
        least = np.linalg.eigvalsh(second * unit[:, :, None] * unit[:, None, :])[:, 0]
        which = which[least > COLLINEAR]
        start = theta.copy()
        near = self._descend(rough, theta, which, spread, AVERAGED_TOLERANCE)
        # Averaged points may be easier to tell apart than the points: then they are no help.
        lost = np.setdiff1d(which, near)
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
        fitted = [which[:0]]
        for _ in range(MAX_STEPS):
            # What Newton's step promises, −gᵀd, and how far the gradient is from an optimum's.
            gain = -np.einsum("kj,kj->k", at.gradient, step)
            left = self._residual(at, spread)
            fraction = self.fraction[at.which]
            met = np.maximum(gain, left) <= tolerance * (fraction * (1.0 - fraction))
            # The least curvature in the basis of `_residual`, slopes that are zero left out.
            near = at.of(met)
            fixed = near.theta <= 0.0
            fixed[:, -1] = not self.intercept
            hessian, second = (
                np.where(fixed[:, :, None] | fixed[:, None, :], np.eye(fixed.shape[1]), given)
                for given in (near.hessian, spread[near.which])
            )
            root = np.linalg.inv(np.linalg.cholesky(second))
            curvature = np.linalg.eigvalsh(root @ hessian @ root.transpose(0, 2, 1))[:, 0]
            met[met] = curvature >= CURVED
            met &= (np.abs(step) * self.reach[at.which]).sum(axis=1) <= SETTLED
            fitted.append(at.which[met])
            going = ~met & (length > SHORTEST) & np.isfinite(step).all(axis=1)
            if not going.any():
                break
            at, step, length = at.of(going), step[going], length[going]
            trial = self._at(sums, at.theta + length[:, None] * step, at.which)
            # Armijo's rule: a ten-thousandth of what the slope promises is enough.
            decreases = trial.loss <= at.loss - 1e-4 * length * gain[going]
            # So near the optimum the loss is flat to the last digits, but the gradient still tells.
            flat = gain[going] <= 1e-12 * at.loss
            better = np.where(flat, self._residual(trial, spread) < left[going], decreases)
            for old, new in zip(at, trial, strict=True):
                old[better] = new[better]
            theta[at.which] = at.theta
            step[better] = self._step(at.of(better))
            length = np.where(better, 1.0, length / 2)
        return np.sort(np.concatenate(fitted))

    def _at(self, sums: Sums, theta: Floats, which: Ints) -> _SetPoints:
        loss, gradient, hessian = sums(theta, which)
        mass = self.mass[which]
        return _SetPoints(
            which, theta, loss / mass, gradient / mass[:, None], hessian / mass[:, None, None]
        )

    def _step(self, at: _SetPoints) -> Floats:
        """Return the way to the least of the quadratic model, every slope zero or more.

        With so few slopes every choice of those that are zero can be tried.
        """
        least, best = np.full(len(at.which), np.inf), np.zeros_like(at.theta)
        with np.errstate(all="ignore"):  # a set without curvature is given up
            for zero in product((False, True), repeat=self.reach.shape[1] - 1):
                pinned = np.array([*zero, not self.intercept])
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

    def _residual(self, at: _SetPoints, spread: Floats) -> Floats:
        """Return how far the gradient is from that of an optimum.

        This is its length in a basis in which the features are orthonormal, as in `_newton`,
        leaving out slopes that are zero and should not rise.
        """
        # Karush, Kuhn, Tucker: a slope at 0 is done where going up would not help.
        free = (at.theta > 0.0) | (at.gradient < 0.0)
        free[:, -1] = self.intercept
        gradient = np.where(free, at.gradient, 0.0)
        length = np.einsum("kj,kj->k", gradient, _solve(spread[at.which], gradient, free))
        return np.asarray(np.sqrt(np.maximum(length, 0.0)), dtype=np.float64)


def _solve(matrices: Floats, right: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """Solve a small system a set, in the free coordinates; the others come out as zero."""
    free = np.broadcast_to(free, right.shape)
    # Features differ in scale by orders of magnitude: the diagonal is made 1 before solving.
    size = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2)) + _TINY
    unit = np.where(free, 1.0 / size, 0.0)
    scaled = matrices * unit[:, :, None] * unit[:, None, :]
    eye = np.eye(right.shape[1])
    scaled = scaled + eye * np.where(free, DAMPING, 1.0)[:, None, :]
    scaled[~np.isfinite(scaled).all(axis=(1, 2))] = eye * np.nan
    solution = np.linalg.solve(scaled, (right * unit)[:, :, None])[:, :, 0]
    return np.asarray(solution * unit, dtype=np.float64)
