"""What every network is: from aligned faces to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ModelFileError
from faircal.embedding.preprocessing import Preprocessing
from faircal.embedding.weights import sha256_of

Vectors = NDArray[np.float32]
Faces = NDArray[np.uint8]


class Network(ABC):
    """From faces to vectors. Made once, called from several threads.

    Parameters
    ----------
    name : str
        What its embeddings are called.
    preprocessing : Preprocessing
    path : Path
        Its weights.
    """

    #: The package it runs on.
    module: ClassVar[str]
    #: Whether several threads may call it at once, each on one core, and gain by it. Otherwise one
    #: call at a time has all cores, or the GPU.
    parallel = False

    def __init__(self, name: str, preprocessing: Preprocessing, path: Path) -> None:
        self.name = name
        self.preprocessing = preprocessing
        self.path = path
        self.sha256 = sha256_of(path)

    def try_out(self) -> None:
        """Embed a picture of noise; raise where what comes out is no vector of numbers."""
        size = self.preprocessing.size
        noise = np.random.default_rng(0).integers(0, 256, (1, size, size, 3), dtype=np.uint8)
        with np.errstate(all="ignore"):
            vectors = self.run(noise)
        if vectors.shape[1] < 2 or not np.isfinite(vectors).all():
            found = "one number" if vectors.shape[1] < 2 else "NaN or infinite ones"
            raise ModelFileError(
                f"{self.path}: expected a vector of numbers for a face, found {found}; "
                "give a face network, with what it takes (--preset, or a TOML file)"
            )

    def __call__(self, faces: Faces) -> Vectors:
        """Return the vectors of `faces`, shape (n, size, size, 3), as they are to be stored."""
        how = self.preprocessing
        vectors = self.run(faces)
        if how.flip:
            vectors = vectors + self.run(faces[:, :, ::-1])
        return how.finish(vectors)

    @abstractmethod
    def run(self, faces: Faces) -> Vectors:
        """Return what the network itself gives, shape (n, d)."""
