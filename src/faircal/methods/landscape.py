"""Embedding space as calibration imposters show it: coordinates, and components of alike people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.errors import DataError
from faircal.mixture import PairMixture, fit_pair_mixture, shared_directions

Float64 = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Directions with less than this part of the largest variance are rounding error.
_FLAT = 1e-6
#: Imposter pairs for each component, at least.
_EACH = 50
#: The matrices and vectors that make a landscape, and their numbers of dimensions.
_STATE = {"mean": 1, "axes": 2, "directions": 2, "shares": 1}
_MIXTURE = {"means": 2, "factors": 3, "constants": 1, "coupling": 2}


@dataclass(frozen=True, eq=False)
class Landscape:
    """White coordinates of embeddings, and a mixture where strangers of a pair are alike.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    axes : ndarray of shape (d, r)
        ``(x − mean) @ axes`` are the coordinates of x: principal components of variance 1.
    directions : ndarray of shape (r, k)
        From coordinates to what the strangers of a pair share.
    shares : ndarray of shape (k,)
        How much of each direction they share.
    mixture : PairMixture
        With no component where strangers share nothing.
    """

    mean: Float64
    axes: Float64
    directions: Float64
    shares: Float64
    mixture: PairMixture

    @classmethod
    def survey(cls, vectors: NDArray[Any], left: Rows, right: Rows, n_dimensions: int) -> Landscape:
        """Return coordinates and what strangers share, without a mixture yet.

        Parameters
        ----------
        vectors : ndarray of shape (n, d)
        left, right : ndarray of shape (n_pairs,)
            Rows of `vectors`; imposter pairs only.
        n_dimensions : int
            Coordinates, at most.
        """
        mean, axes = _whiten(vectors, n_dimensions)
        directions, shares = shared_directions((vectors - mean) @ axes, left, right)
        return cls(mean, axes, directions, shares, _NOTHING)

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
        return self.coordinates(vectors) @ self.directions

    def coordinates(self, vectors: NDArray[Any]) -> Float64:
        """Return white coordinates, shape (n, r)."""
        found: Float64 = (vectors - self.mean) @ self.axes
        return found

    def memberships(self, coordinates: Float64) -> Float64:
        """Return for each image how likely components make it, and its partners': (n, 2J).

        The first half is e, the second g = e · coupling: a pair has component j on one side with
        a probability proportional to e_j g'_j + g_j e'_j.
        """
        if not len(self.mixture):
            return np.empty((len(coordinates), 0))
        likely = self.mixture.likelihoods(coordinates @ self.directions)
        return np.hstack([likely, likely @ self.mixture.coupling])

    def get_state(self) -> dict[str, Any]:
        """Return all arrays."""
        mixture = {f"mixture_{key}": getattr(self.mixture, key) for key in _MIXTURE}
        return {key: getattr(self, key) for key in _STATE} | mixture

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Landscape:
        """Restore what `get_state` gave."""
        own = {key: _array(state, key, n) for key, n in _STATE.items()}
        parts = {key: _array(state, f"mixture_{key}", n) for key, n in _MIXTURE.items()}
        found = cls(**own, mixture=PairMixture(**parts))
        d, r = found.axes.shape
        n, k = parts["means"].shape
        shapes = {
            "mean": (own["mean"], (d,)),
            "directions": (own["directions"], (r, len(own["shares"]))),
            "mixture_means": (parts["means"], (n, k if not n else len(own["shares"]))),
            "mixture_factors": (parts["factors"], (n, k, k)),
            "mixture_constants": (parts["constants"], (n,)),
            "mixture_coupling": (parts["coupling"], (n, n)),
        }
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
    return mean, axes[:, real] / np.sqrt(values[real])


def _array(state: dict[str, Any], key: str, dimensions: int) -> Float64:
    found = np.asarray(state[key], np.float64)
    if found.ndim != dimensions or not np.isfinite(found).all():
        raise DataError(
            f"{key}: expected finite numbers in {dimensions} dimensions, found {found.ndim}"
        )
    return found
