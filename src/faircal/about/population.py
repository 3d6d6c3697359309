"""The calibration population, counted: what pairs in use are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.errors import DataError

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


class Places(NamedTuple):
    """Where images lie: nearest centre, how far from it, whether outside of the population."""

    cluster: NDArray[np.int32]
    distance: Float32
    outside: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Population:
    """What the images and scores of calibration were like. No image, no embedding is in it.

    Attributes
    ----------
    centers : ndarray of shape (K, d), float32
        Of clusters of the images; those of the model where it has some. K is 0 where there were
        scores only.
    reach : ndarray of shape (K,), float32
        An image further from its nearest centre is outside of the population.
    score_edges : ndarray of shape (B + 1,)
        Bins of the similarity (cosine), for pictures.
    genuine_counts, imposter_counts : ndarray of shape (B,), int64
        Calibration pairs in each.
    """

    centers: Float32
    reach: Float32
    score_edges: Float64
    genuine_counts: NDArray[np.int64]
    imposter_counts: NDArray[np.int64]

    def place(self, vectors: Float32, clusters: NDArray[np.int32]) -> Places:
        """Say where images lie whose nearest centres are `clusters`."""
        away = vectors - self.centers[clusters]
        distance = np.sqrt(np.einsum("ij,ij->i", away, away))
        return Places(clusters, distance, distance > self.reach[clusters])

    def values(self) -> dict[str, Any]:
        """Return numbers and texts, for the header of a model file."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays, by name."""
        return {key: getattr(self, key) for key in _DIMENSIONS}

    @classmethod
    def restore(
        cls,
        values: Mapping[str, Any],  # noqa: ARG003
        arrays: Mapping[str, NDArray[Any]],
    ) -> Population:
        """Undo `values` and `arrays`."""
        for key, dimensions in _DIMENSIONS.items():
            found = arrays[key]
            if found.ndim != dimensions or not np.isfinite(found).all():
                raise DataError(f"{key}: expected finite numbers in {dimensions} dimensions")
        return cls(**{key: arrays[key] for key in _DIMENSIONS})


_DIMENSIONS = {
    "centers": 2,
    "reach": 1,
    "score_edges": 1,
    "genuine_counts": 1,
    "imposter_counts": 1,
}
