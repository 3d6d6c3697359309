"""Embedding space as calibration pairs show it: coordinates, regions, groups of alike people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute.clustering import kmeans
from faircal.methods.smooth.mixture import PairMixture, fit_pair_mixture, shared_directions

Float64 = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Directions with less than this part of the largest variance are rounding error.
_FLAT = 1e-6
#: Imposter pairs for each component, and images for each region, at least.
_EACH, _IMAGES = 50, 10
#: How soft borders of regions are: a part of how much further away the second nearest centre is
#: than the nearest, on average.
_SOFT = 0.5
#: Softer than this no border is, and no couple of components rarer.
_SOFTEST, _RAREST = np.finfo(np.float32).tiny.item(), 1e-100
#: The matrices and vectors that make a landscape, and their numbers of dimensions.
_STATE = {"mean": 1, "axes": 2, "centers": 2, "directions": 2, "shares": 1}
_MIXTURE = {"means": 2, "factors": 3, "constants": 1, "coupling": 2}


@dataclass(frozen=True, eq=False)
class Landscape:
    """Coordinates and regions of embeddings, and a mixture where strangers of a pair are alike.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    axes : ndarray of shape (d, r)
        ``(x − mean) @ axes`` are the coordinates of x: principal components of variance 1.
    centers : ndarray of shape (K, d)
        Of regions, which have no sharp borders: an image belongs to each by
        ``softmax(−distance² / softness)``.
    softness : float
    directions : ndarray of shape (r, k)
        From coordinates to what the strangers of a pair share.
    shares : ndarray of shape (k,)
        How much of each direction they share.
    mixture : PairMixture
        With no component where strangers share nothing.
    """

    mean: Float64
    axes: Float64
    centers: Float64
    softness: float
    directions: Float64
    shares: Float64
    mixture: PairMixture

    @classmethod
    def survey(
        cls,
        vectors: NDArray[np.float32],
        left: Rows,
        right: Rows,
        n_dimensions: int,
        n_regions: int,
        random_state: int,
    ) -> Landscape:
        """Return coordinates, regions and what strangers share, without a mixture yet.

        Parameters
        ----------
        vectors : ndarray of shape (n, d)
        left, right : ndarray of shape (n_pairs,)
            Rows of `vectors`; imposter pairs only.
        n_dimensions, n_regions : int
            Coordinates and regions, at most; a region is to have ten images.
        random_state : int
        """
        mean, axes = _whiten(vectors, n_dimensions)
        directions, shares = shared_directions((vectors - mean) @ axes, left, right)
        most = max(min(n_regions, len(vectors) // _IMAGES), 1)
        centers = kmeans(vectors, most, random_state=random_state).centers.astype(np.float64)
        return cls(mean, axes, centers, _softness(vectors, centers), directions, shares, _NOTHING)

    def mixed(
        self, vectors: NDArray[Any], left: Rows, right: Rows, n_components: int, random_state: int
    ) -> Landscape:
        """Return the same with a mixture, of no more components than the pairs have data for."""
        used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        most = min(n_components, len(left) // _EACH, len(used))
        if most < 2 or not len(self.shares):
            return replace(self, mixture=_NOTHING)
        left, right = places.reshape(2, -1)
        points = self.places(vectors[used])
        return replace(self, mixture=fit_pair_mixture(points, left, right, most, random_state))

    def places(self, vectors: NDArray[Any]) -> Float64:
        """Return where the mixture sees images, shape (n, k)."""
        found: Float64 = ((vectors - self.mean) @ self.axes) @ self.directions
        return found

    def traits(self, vectors: NDArray[Any]) -> Float64:
        """Return coordinates and regions of images, shape (n, r + K)."""
        return np.hstack([(vectors - self.mean) @ self.axes, self.regions(vectors)])

    def regions(self, vectors: NDArray[Any]) -> Float64:
        """Return how far images belong to regions, shape (n, K).

        They are scaled so that, at the same price, all regions together can do as much as all
        coordinates together.
        """
        found = _distances(vectors, self.centers)
        found *= -1 / self.softness
        found -= found.max(axis=1, keepdims=True)
        np.exp(found, out=found)
        found *= np.sqrt(self.axes.shape[1] / 2) / found.sum(axis=1, keepdims=True)
        return found

    def memberships(self, places: Float64) -> Float64:
        """Return how likely components make images at `places`, and their partners': (n, 2J).

        The first half is e, the second g = e · coupling: a pair has component j on one side with
        a probability proportional to e_j g'_j + g_j e'_j.
        """
        if not len(self.mixture):
            return np.empty((len(places), 0))
        likely = self.mixture.likelihoods(places)
        return np.hstack([likely, likely @ self.mixture.coupling])

    def get_state(self) -> dict[str, Any]:
        """Return all arrays."""
        mixture = {f"mixture_{key}": getattr(self.mixture, key) for key in _MIXTURE}
        own = {key: getattr(self, key) for key in _STATE}
        return {**own, "softness": self.softness, **mixture}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Landscape:
        """Restore what `get_state` gave."""
        own = {key: _array(state, key, n) for key, n in _STATE.items()}
        parts = {key: _array(state, f"mixture_{key}", n) for key, n in _MIXTURE.items()}
        found = cls(**own, softness=float(state["softness"]), mixture=PairMixture(**parts))
        d, r = found.axes.shape
        n, k = parts["means"].shape
        shapes = {
            "mean": (own["mean"], (d,)),
            "centers": (own["centers"], (len(own["centers"]), d)),
            "directions": (own["directions"], (r, len(own["shares"]))),
            "mixture_means": (parts["means"], (n, k if not n else len(own["shares"]))),
            "mixture_factors": (parts["factors"], (n, k, k)),
            "mixture_constants": (parts["constants"], (n,)),
            "mixture_coupling": (parts["coupling"], (n, n)),
        }
        if not _SOFTEST <= found.softness < np.inf:
            raise DataError(f"softness: expected a number above 0, found {found.softness}")
        if not (parts["coupling"] >= _RAREST).all():
            raise DataError("mixture_coupling: expected probabilities above 0; fit it again")
        for name, (array, expected) in shapes.items():
            if array.shape != expected:
                raise DataError(f"{name}: expected shape {expected}, found {array.shape}")
        return found


def pair_memberships(one: Float64, two: Float64) -> Float64:
    """Return the components of pairs, given the `memberships` of their images: (n, J), sums 1."""
    n = one.shape[1] // 2
    found = one[:, :n] * two[:, n:] + one[:, n:] * two[:, :n]
    if n:
        found /= found.sum(axis=1, keepdims=True)
    return found


_NOTHING = PairMixture(np.empty((0, 0)), np.empty((0, 0, 0)), np.empty(0), np.empty((0, 0)))


def _whiten(vectors: NDArray[Any], n_dimensions: int) -> tuple[Float64, Float64]:
    mean = vectors.mean(axis=0, dtype=np.float64)
    away = vectors - mean
    values, axes = np.linalg.eigh(away.T @ away / len(away))
    real = np.flatnonzero(values > _FLAT * values[-1])[::-1][:n_dimensions]
    return mean, np.ascontiguousarray(axes[:, real] / np.sqrt(values[real]))


def _distances(vectors: NDArray[Any], centers: Float64) -> Float64:
    """Return squared distances, but for what is the same for all centres: (n, K)."""
    found: Float64 = vectors.astype(np.float64, copy=False) @ (-2 * centers.T)
    found += np.einsum("ij,ij->i", centers, centers)
    return found


def _softness(vectors: NDArray[Any], centers: Float64) -> float:
    if len(centers) == 1:
        return 1.0
    nearest = np.partition(_distances(vectors, centers), 1, axis=1)[:, :2]
    gap = float((nearest[:, 1] - nearest[:, 0]).mean())
    return max(_SOFT * gap, _SOFTEST)


def _array(state: dict[str, Any], key: str, dimensions: int) -> Float64:
    found = np.asarray(state[key], np.float64)
    if found.ndim != dimensions or not np.isfinite(found).all():
        raise DataError(
            f"{key}: expected finite numbers in {dimensions} dimensions, found {found.ndim}"
        )
    return found
