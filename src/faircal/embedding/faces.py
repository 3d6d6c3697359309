"""A face that was found in a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Face:
    """A face that was found in a picture.

    Attributes
    ----------
    box : tuple of float
        Left, top, right, bottom, in pixels.
    points : array of shape (5, 2), float64
        Left eye, right eye, nose, left and right corner of the mouth, as seen in the picture:
        x and y, in pixels.
    score : float
        How sure the detector is; each has a scale of its own.
    """

    box: tuple[float, float, float, float]
    points: NDArray[np.float64]
    score: float

    @classmethod
    def without_points(cls, box: tuple[float, float, float, float]) -> Face:
        """Return a face of which only the box is known: it can be cut out, not turned."""
        return cls(box, np.full((5, 2), np.nan), 1.0)

    def scaled(self, factor: int) -> Face:
        """Return the face in a picture that is so many times as large."""
        left, top, right, bottom = (factor * side for side in self.box)
        # From the centres of small pixels to those of large ones.
        points = factor * (self.points + 0.5) - 0.5
        return Face((left, top, right, bottom), points, self.score)

    @property
    def has_points(self) -> bool:
        """Whether its points are known."""
        return bool(np.isfinite(self.points).all())
