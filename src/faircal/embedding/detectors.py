"""Detectors by name: MTCNN as the paper ran it, dlib's, and none for aligned crops."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.registry import Registry
from faircal.embedding.pictures import Face
from faircal.embedding.weights import Weights, require

_FACENET = "pip install --no-deps facenet-pytorch"
_MTCNN = tuple(
    Weights(file, sha256, _FACENET, "MIT", "facenet_pytorch", "data")
    for file, sha256 in (
        ("pnet.pt", "a2a71925e0b9996a42f63e47efc1ca19043e69558b5c523b978d611dfae49c8f"),
        ("rnet.pt", "bbb937de72efc9ef83b186c49f5f558467a1d7e3453a8ece0d71a886633f6a86"),
        ("onet.pt", "165bfbe42940416ccfb977545cf0e976d5bf321f67083ae2aaaa5c764280118d"),
    )
)
_DLIB = Weights(
    "shape_predictor_68_face_landmarks.dat",
    "fbdc2cb80eb9aa7a758672cbfdda32ba6300efe9b6e6c7a299ff7e736b11b92f",
    "pip install 'faircal[embed]'",
    "trained on iBUG 300-W, which excludes commercial use",
    "face_recognition_models",
    "models",
)


class Detector(ABC):
    """Finds faces. Made once, called from several threads.

    One that is `blind` looks for nothing: the picture, or the box given with it, is the face. A
    picture with a side above `longest` is shrunk before it is looked at.
    """

    name: ClassVar[str]
    weights: ClassVar[tuple[Weights, ...]] = ()
    blind: ClassVar[bool] = False
    longest: ClassVar[int | None] = None
    #: The package it runs on.
    module: ClassVar[str | None] = None
    #: More threads than this gain nothing.
    threads: int | None = None

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Return the faces in a picture of shape (height, width, 3), the most likely one first."""
        step = -(-max(pixels.shape[:2]) // self.longest) if self.longest else 1
        if step <= 1:
            return self.find(pixels)
        from PIL import Image

        return [
            face.scaled(step)
            for face in self.find(np.asarray(Image.fromarray(pixels).reduce(step)))
        ]

    @abstractmethod
    def find(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Return the faces in a picture that is not too large."""

    def settings(self) -> dict[str, Any]:
        """Return what decides which faces are found, for the record."""
        more: dict[str, Any] = {"longest_side": self.longest} if self.longest else {}
        if self.weights:
            more["weights_sha256"] = [weights.sha256 for weights in self.weights]
        return {"name": self.name, **more}


class MtcnnDetector(Detector):
    """MTCNN with the paper's settings."""

    name = "mtcnn"
    weights = _MTCNN
    longest = 4096
    module = "torch"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        require("torch", "torch", "detector mtcnn", "or choose --detector dlib")
        paths = [weights.find() for weights in self.weights]
        from faircal.compute.device import choose_device
        from faircal.embedding.mtcnn import MTCNN

        chosen = choose_device(device)
        self._mtcnn = MTCNN(paths[0].parent, chosen)
        # It makes many small steps, each of which needs Python's lock (measured on 16 cores).
        self.threads = 4 if chosen.type == "cuda" else 8

    def find(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Return the faces, largest first."""
        return self._mtcnn.detect(pixels)

    def settings(self) -> dict[str, Any]:
        """Return the paper's settings, too."""
        mtcnn = self._mtcnn
        paper = {"min_face": mtcnn.min_face, "thresholds": list(mtcnn.thresholds)}
        return {**super().settings(), **paper, "factor": mtcnn.factor}


class DlibDetector(Detector):
    """dlib's frontal face detector, with its 68 landmarks."""

    name = "dlib"
    weights = (_DLIB,)
    longest = 1280
    module = "dlib"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        require("dlib", "embed", "detector dlib")
        import dlib

        self._find = dlib.get_frontal_face_detector()
        self._mark = dlib.shape_predictor(str(self.weights[0].find()))
        # dlib's objects keep scratch memory, and hold Python's lock anyway.
        self._lock = threading.Lock()

    def find(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Return the faces: those it is sure of, largest first, then the doubtful ones.

        Where none is found, the picture is looked at in twice its size, too.
        """
        with self._lock:
            faces = self._faces(np.ascontiguousarray(pixels))
        surest = max((face.score for face in faces), default=0.0)
        certain = [face for face in faces if face.score >= surest / 2]
        rest = [face for face in faces if face.score < surest / 2]
        return sorted(certain, key=_area, reverse=True) + sorted(rest, key=_area, reverse=True)

    def _faces(self, pixels: NDArray[np.uint8]) -> list[Face]:
        boxes, scores, _ = self._find.run(pixels, 0, 0.0)
        if not boxes:
            boxes, scores, _ = self._find.run(pixels, 1, 0.0)
        faces = []
        for box, score in zip(boxes, scores, strict=True):
            parts = self._mark(pixels, box).parts()
            points = np.array([(part.x, part.y) for part in parts], dtype=np.float64)
            left, top = float(box.left()), float(box.top())
            corners = (left, top, box.right() + 1.0, box.bottom() + 1.0)
            faces.append(Face(corners, five_points(points), float(score)))
        return faces


class NoDetector(Detector):
    """None: pictures are faces, cut and aligned already."""

    name = "none"
    blind = True

    def find(self, pixels: NDArray[np.uint8]) -> list[Face]:
        """Return the whole picture."""
        height, width = pixels.shape[:2]
        return [Face.without_points((0.0, 0.0, float(width), float(height)))]


DETECTORS: Registry[type[Detector]] = Registry("detector")
for _kind in (MtcnnDetector, DlibDetector, NoDetector):
    DETECTORS.register(_kind.name, _kind)


def five_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return eyes, nose and corners of the mouth out of 68 landmarks, shape (5, 2)."""
    eyes = points[36:42].mean(axis=0), points[42:48].mean(axis=0)
    return np.array([*eyes, points[30], points[48], points[54]])


def _area(face: Face) -> float:
    return (face.box[2] - face.box[0]) * (face.box[3] - face.box[1])
