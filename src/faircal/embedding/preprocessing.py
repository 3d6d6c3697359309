"""How a face becomes a network's input, and how a TOML file describes a network of your own."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import existing
from faircal._base.registry import Registry, check_integer, did_you_mean

Points = tuple[tuple[float, float], ...]

#: Where the eyes, the nose and the corners of the mouth belong, in a 112 × 112 picture (ArcFace).
ARCFACE_POINTS: Points = (
    (38.2946, 51.6963),
    (73.5318, 51.5014),
    (56.0252, 71.7366),
    (41.5493, 92.3655),
    (70.7299, 92.2041),
)
#: The same in dlib's 150 × 150 chips: its mean face, with a margin of a quarter.
DLIB_POINTS: Points = (
    (47.549, 46.599),
    (100.476, 46.599),
    (74.013, 76.563),
    (50.415, 103.023),
    (97.610, 103.023),
)
#: Largest side of an input, in pixels.
LARGEST = 4096


@dataclass(frozen=True)
class Preprocessing:
    """From a picture with a face in it to numbers that a network takes.

    Parameters
    ----------
    size : int
        Side of the square input, in pixels.
    align : {"points", "box"}
        Turn, move and scale the picture so that five points of the face come to lie on `points`; or
        cut out the face's box and scale it, whatever its shape.
    points : tuple of five (x, y)
        In pixels of the input.
    margin : int
        Pixels of the input that are added around the box, half on each side (``align="box"``).
    channels : {"rgb", "bgr"}
    mean, scale : float
        A pixel x, 0 to 255, becomes (x − mean) / scale.
    layout : {"nchw", "nhwc"}
    flip : bool
        Add the vector of the mirrored face.
    normalize : bool
        Scale vectors to unit length.
    """

    size: int
    align: str = "points"
    points: Points = ARCFACE_POINTS
    margin: int = 0
    channels: str = "rgb"
    mean: float = 0.0
    scale: float = 1.0
    layout: str = "nchw"
    flip: bool = False
    normalize: bool = True

    def __post_init__(self) -> None:
        check_integer("size", self.size, 1)
        check_integer("margin", self.margin, 0)
        rules = {
            "size": (self.size <= LARGEST, f"{LARGEST} or less"),
            "margin": (self.margin < self.size, f"less than size {self.size}"),
            "align": (self.align in ("points", "box"), "points or box"),
            "points": (_are_points(self.points), "five pairs x, y (eyes, nose, mouth's corners)"),
            "channels": (self.channels in ("rgb", "bgr"), "rgb or bgr"),
            "layout": (self.layout in ("nchw", "nhwc"), "nchw or nhwc"),
            "mean": (_is_number(self.mean), "a number"),
            "scale": (_is_number(self.scale) and self.scale != 0, "a number other than 0"),
            "flip": (isinstance(self.flip, bool), "true or false"),
            "normalize": (isinstance(self.normalize, bool), "true or false"),
        }
        for name, (holds, expected) in rules.items():
            if not holds:
                value = getattr(self, name)
                raise ParameterError(f"{name}: expected {expected}, found {value!r}")

    def __call__(self, faces: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the input for `faces`, shape (n, size, size, 3), RGB."""
        ordered = faces if self.channels == "rgb" else faces[..., ::-1]
        if self.layout == "nchw":
            ordered = ordered.transpose(0, 3, 1, 2)
        numbers = np.ascontiguousarray(ordered, dtype=np.float32)
        if self.mean:
            numbers -= np.float32(self.mean)
        if self.scale != 1:
            numbers /= np.float32(self.scale)
        return numbers

    def finish(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the network's output as it is to be stored."""
        if not self.normalize:
            return vectors
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        unusable = np.full_like(vectors, np.nan)
        return np.asarray(np.divide(vectors, length, out=unusable, where=length > 0))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_points(points: object) -> bool:
    """Whether these are five points, at least a pixel apart from the first to some other."""
    if not isinstance(points, Sequence) or len(points) != 5:
        return False
    for point in points:
        if not isinstance(point, Sequence) or len(point) != 2 or not all(map(_is_number, point)):
            return False
    return max(math.dist(points[0], point) for point in points) >= 1


#: By name: what families of published networks take.
PRESETS: Registry[Preprocessing] = Registry("preset")
PRESETS.register("arcface", Preprocessing(112))
PRESETS.register("insightface", Preprocessing(112, mean=127.5, scale=127.5))
PRESETS.register("mobilefacenet", Preprocessing(112, mean=127.5, scale=128.0))
PRESETS.register("adaface", Preprocessing(112, channels="bgr", mean=127.5, scale=127.5))
PRESETS.register("facenet", Preprocessing(160, align="box", mean=127.5, scale=128.0))


class Description(NamedTuple):
    """What a TOML file says of an ONNX network: its file and checksum, and what it takes."""

    name: str
    file: Path
    preprocessing: Preprocessing
    sha256: str | None = None


_OWN = ("name", "file", "sha256", "licence", "preset")


def read_description(path: Path) -> Description:
    """Read a TOML description: ``file``, then a ``preset``, or the values of `Preprocessing`."""
    existing(path)
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); give a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not valid TOML ({error}); correct it") from error
    settings = [field.name for field in fields(Preprocessing)]
    for name in described:
        if name not in (*_OWN, *settings):
            raise DataError(
                f"{path}: unknown key '{name}'; {did_you_mean(name, (*_OWN, *settings))}"
            )
    for name in _OWN:
        if name in described and not isinstance(described[name], str):
            raise DataError(f"{path}: '{name}' is {described[name]!r}; expected text in quotes")
    if "file" not in described or not {"preset", "size"} & described.keys():
        raise DataError(f"{path}: expected 'file', and 'preset' or 'size'; add what is missing")
    values: dict[str, Any] = {name: described[name] for name in settings if name in described}
    try:
        if _are_points(values.get("points")):
            values["points"] = tuple(tuple(point) for point in values["points"])
        base = PRESETS[described["preset"]] if "preset" in described else None
        made = replace(base, **values) if base else Preprocessing(**values)
    except (ParameterError, TypeError) as error:
        raise DataError(f"{path}: {error}; correct it") from error
    file = path.parent / described["file"]  # beside the description, unless the path is absolute
    return Description(described.get("name", path.stem), file, made, described.get("sha256"))
