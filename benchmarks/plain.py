"""FairCal as one would first write it with scikit-learn, betacal and NumPy; and exactly, slowly.

Written from the paper alone: nothing of faircal is used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import numpy as np
from betacal import BetaCalibration
from numpy.typing import NDArray
from scipy.optimize import minimize, root
from scipy.special import expit
from sklearn.cluster import KMeans

Float64 = NDArray[np.float64]
Codes = NDArray[np.int32]

#: Gradient of the mean log-loss at which a fit counts as exact.
_EXACT = 1e-12
#: A cluster with fewer pairs uses the map of all pairs.
_MIN_PAIRS = 10


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def onto_unit_interval(score: Float64) -> Float64:
    """Move a cosine onto [0, 1], a little away from both ends."""
    eps = np.finfo(np.float64).eps
    return np.clip((np.asarray(score, np.float64) + 1) / 2, eps, 1 - eps)


def fit(
    vectors: NDArray[np.float32],
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    genuine: NDArray[np.bool_],
    n_clusters: int,
    path: Path,
) -> KMeans:
    """Scores, K-means with ten starts, a beta map for each cluster; save the arrays."""
    x = unit(vectors)
    score = np.sum(x[left] * x[right], axis=1)
    used = np.union1d(left, right)
    kmeans = KMeans(n_clusters, n_init=10, random_state=0).fit(x[used])
    cluster = np.zeros(len(x), dtype=np.int32)
    cluster[used] = kmeans.labels_
    z = onto_unit_interval(score)
    k1, k2 = cluster[left], cluster[right]
    maps, sizes = [], []
    for k in range(n_clusters):
        inside = (k1 == k) | (k2 == k)
        maps.append(BetaCalibration("abm").fit(z[inside], genuine[inside]).calibrator_.map_)
        sizes.append(inside.sum())
    np.savez(path, centers=kmeans.cluster_centers_, maps=np.array(maps), sizes=np.array(sizes))
    return kmeans


def objective(vectors: NDArray[np.float32], centers: NDArray[np.float32]) -> float:
    """K-means' objective, in float64: squared distances to the nearest centre, summed."""
    total, c = 0.0, centers.astype(np.float64)
    for start in range(0, len(vectors), 4096):
        x = vectors[start : start + 4096].astype(np.float64)
        squares = (x**2).sum(1)[:, None] + (c**2).sum(1) - 2 * x @ c.T
        total += float(squares.min(axis=1).sum())
    return total


@dataclass(frozen=True)
class BetaMap:
    """1 / (1 + exp(−(a log z − b log(1 − z) + c)))."""

    a: float
    b: float
    c: float

    def __call__(self, score: Float64) -> Float64:
        """Return the probability of each score."""
        z = onto_unit_interval(score)
        return np.asarray(expit(self.a * np.log(z) - self.b * np.log1p(-z) + self.c))


def exact_beta(score: Float64, genuine: NDArray[np.bool_]) -> BetaMap:
    """Fit a beta map by maximum likelihood under a, b ≥ 0, to the last digits.

    The loss is convex, so the constrained optimum is the best of the optima without the terms that
    are 0 there: each choice of terms is tried, and those that keep the bounds are compared.
    """
    z = onto_unit_interval(score)
    terms = np.stack([np.log(z), -np.log1p(-z)])
    best, found = np.inf, BetaMap(0.0, 0.0, 0.0)
    for free in chain.from_iterable(combinations(range(2), n) for n in range(3)):
        loss, slopes, intercept = _logistic(terms[list(free)], genuine)
        if (slopes >= 0).all() and loss < best:
            a = slopes[free.index(0)] if 0 in free else 0.0
            b = slopes[free.index(1)] if 1 in free else 0.0
            best, found = loss, BetaMap(float(a), float(b), intercept)
    return found


def _logistic(terms: Float64, genuine: NDArray[np.bool_]) -> tuple[float, Float64, float]:
    """Logistic regression without bounds: mean log-loss, slopes, intercept."""
    n, y = len(genuine), genuine.astype(np.float64)
    # Columns at right angles to each other: nearly collinear terms lose no digits.
    design = np.column_stack([np.ones(n), *terms])
    q, r = np.linalg.qr(design)
    q, r = q * np.sqrt(n), r / np.sqrt(n)

    def loss(theta: Float64) -> float:
        m = q @ theta
        return float(np.mean(np.logaddexp(0, m) - y * m))

    def gradient(theta: Float64) -> Float64:
        return np.asarray(q.T @ (expit(q @ theta) - y) / n)

    def hessian(theta: Float64) -> Float64:
        p = expit(q @ theta)
        return np.asarray((q * (p * (1 - p))[:, None]).T @ q / n)

    near = minimize(loss, np.zeros(q.shape[1]), jac=gradient, hess=hessian, method="trust-exact").x
    theta = root(gradient, near, jac=hessian, tol=1e-15).x
    if np.abs(gradient(theta)).max() > _EXACT:
        raise RuntimeError(f"no exact fit: gradient {gradient(theta)}")
    solved = np.linalg.solve(r, theta)
    return loss(theta), solved[1:], float(solved[0])


def exact_maps(score: Float64, genuine: NDArray[np.bool_], k1: Codes, k2: Codes, n: int) -> Mixed:
    """Fit every cluster's map exactly; a cluster that is small or of one class has that of all."""
    everybody = exact_beta(score, genuine)
    maps, sizes = [], np.zeros(n)
    for k in range(n):
        inside = (k1 == k) | (k2 == k)
        labels, sizes[k] = genuine[inside], inside.sum()
        own = sizes[k] >= _MIN_PAIRS and labels.any() and not labels.all()
        maps.append(exact_beta(score[inside], labels) if own else everybody)
    return Mixed(maps, sizes)


@dataclass(frozen=True)
class Mixed:
    """FairCal's probability: the maps of a pair's two clusters, weighted by their sizes."""

    maps: list[BetaMap]
    sizes: Float64

    def __call__(self, score: Float64, k1: Codes, k2: Codes) -> Float64:
        """Return the probability of each pair: its score and its two clusters."""
        p1, p2 = (self._each(score, k) for k in (k1, k2))
        n1, n2 = self.sizes[k1], self.sizes[k2]
        return (n1 * p1 + n2 * p2) / np.maximum(n1 + n2, 1)

    def _each(self, score: Float64, k: Codes) -> Float64:
        p = np.empty(len(score))
        for code, fitted in enumerate(self.maps):
            p[k == code] = fitted(score[k == code])
        return p
