"""A face that was found in a picture."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from faircal.embedding.preprocessing import Preprocessing

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, eq=False)
class Face:
    """A face that was found in a picture.

    The box is left, top, right, bottom; the points, of shape (5, 2), are x and y of left eye, right
    eye, nose, left and right corner of the mouth as seen in the picture; both in pixels. The score
    says how sure the detector is; each has a scale of its own.
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


Box = tuple[float, float, float, float]
#: What Pillow raises for files that are damaged, or no pictures; its readers are many.
_UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    MemoryError,
    OverflowError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    struct.error,
)
#: EXIF's tag, and what undoes each of its values, as names of Pillow's Transpose.
_ORIENTATION = 0x0112
_UNDO = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}


def read_picture(
    path: Path | BinaryIO, least: int | None = None, formats: tuple[str, ...] | None = None
) -> Image | None:
    """Return a picture as RGB, turned as the camera said; None where it can't be read.

    With `least`, a JPEG may be decoded at a half, a quarter or an eighth of its size, so long as
    both sides stay at that many pixels or more: several times as fast. `formats` are the kinds that
    are read, all that Pillow knows by default.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=formats) as file:
            if least is not None:
                file.draft("RGB", (least, least))
            undo = _UNDO.get(_orientation(file))
            picture = _as_rgb(file)
            return picture.transpose(Image.Transpose[undo]) if undo else picture
    except (*_UNREADABLE, Image.DecompressionBombError):
        return None


def _orientation(picture: Image) -> Any:
    """Return how the camera was held; odd EXIF says nothing, and spoils no picture."""
    try:
        return picture.getexif().get(_ORIENTATION)
    except _UNREADABLE:
        return None


def _as_rgb(picture: Image) -> Image:
    """Return a picture in three channels of eight bits."""
    from PIL import Image

    if picture.mode.startswith("I"):  # sixteen bits, which Pillow would cut off, not scale
        grey = np.asarray(picture)
        small = grey if grey.max() < 256 else grey >> 8
        return Image.fromarray(small.astype(np.uint8)).convert("RGB")
    if picture.mode == "P" and "transparency" in picture.info:
        return picture.convert("RGBA").convert("RGB")
    return picture.convert("RGB")


def pixels_of(picture: Image) -> NDArray[np.uint8]:
    """Return a picture as an array of shape (height, width, 3)."""
    return np.asarray(picture, dtype=np.uint8)


def cut_face(picture: Image, face: Face | None, how: Preprocessing) -> NDArray[np.uint8]:
    """Return the face as a network takes it, shape (size, size, 3); None: the whole picture."""
    if face is None:
        return _resized(picture, how.size)
    if how.align == "box" or not face.has_points:
        return _resized(picture.crop(_with_margin(face.box, picture.size, how)), how.size)
    return _turned(picture, face.points, how)


def _resized(picture: Image, size: int) -> NDArray[np.uint8]:
    from PIL.Image import Resampling

    # Antialiased: each pixel of the result is a weighted mean of all it covers.
    return pixels_of(picture.resize((size, size), Resampling.BILINEAR))


def _with_margin(box: Box, limits: tuple[int, int], how: Preprocessing) -> Box:
    """Return the box with its margin, in whole pixels, inside the picture."""
    left, top, right, bottom = box
    share = how.margin / (how.size - how.margin) / 2
    dx, dy = share * (right - left), share * (bottom - top)
    width, height = limits
    left, top = min(max(int(left - dx), 0), width - 1), min(max(int(top - dy), 0), height - 1)
    right, bottom = min(int(right + dx), width), min(int(bottom + dy), height)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _turned(picture: Image, points: NDArray[np.float64], how: Preprocessing) -> NDArray[np.uint8]:
    """Turn, move and scale the picture so that the points come to lie where they belong."""
    from PIL.Image import Resampling, Transform

    goal = np.asarray(how.points, dtype=np.float64) + 0.5  # centres of pixels
    # Fitted from the face to its goal, as face networks' owners do; the way back reads the pixels.
    scale, moved = similarity(points + 0.5, goal)
    turn, move = 1 / scale, -moved / scale
    # A much larger face is shrunk first, else most of its pixels would be passed over.
    factor = max(1, math.floor(abs(turn)))
    if factor > 1:
        picture = picture.reduce(factor)
        turn, move = turn / factor, move / factor
    data: Any = (turn.real, -turn.imag, move.real, turn.imag, turn.real, move.imag)
    size = (how.size, how.size)
    return pixels_of(picture.transform(size, Transform.AFFINE, data, Resampling.BILINEAR))


def similarity(source: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[complex, complex]:
    """Return a, b for which a·z + b takes `source` nearest to `target` in least squares.

    Points are complex numbers here: multiplying by `a` turns and scales, adding `b` moves.

    Examples
    --------
    >>> similarity(np.array([[0.0, 0], [1, 0]]), np.array([[2.0, 3], [2, 5]]))
    (2j, (2+3j))
    """
    z, w = (points[:, 0] + 1j * points[:, 1] for points in (source, target))
    dz, dw = z - z.mean(), w - w.mean()
    a = complex(np.vdot(dz, dw) / np.vdot(dz, dz).real)
    return a, complex(w.mean() - a * z.mean())


def crop_around(picture: Image, box: Box, share: float) -> tuple[Image, Box]:
    """Return the part of a picture around `box`, and the box in it.

    On each side `share` of the box's side is added.
    """
    left, top, right, bottom = box
    dx, dy = share * (right - left), share * (bottom - top)
    width, height = picture.size
    x, y = min(max(int(left - dx), 0), width), min(max(int(top - dy), 0), height)
    part = picture.crop(
        (x, y, max(min(int(right + dx), width), x), max(min(int(bottom + dy), height), y))
    )
    return part, (left - x, top - y, right - x, bottom - y)


def nearest_first(faces: list[Face], box: Box) -> list[Face]:
    """Return the faces that overlap `box`, those that do so most first."""
    shared = [(overlap(face.box, box), face) for face in faces]
    touching = [pair for pair in shared if pair[0] > 0]
    return [face for _, face in sorted(touching, key=lambda pair: -pair[0])]


def overlap(one: Box, other: Box) -> float:
    """Return the area that two boxes share, over the area of both together."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0.0) * max(height, 0.0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if areas > shared else 0.0
