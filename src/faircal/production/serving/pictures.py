"""Pictures instead of embeddings: bounded, looked at, embedded, and not kept."""

from __future__ import annotations

import threading
import warnings
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.embedding import DETECTORS, NETWORKS, open_network
from faircal.embedding.pictures import cut_face, pixels_of, read_picture
from faircal.embedding.weights import require

#: Pixels of a picture; one that says it has more is not decoded: kilobytes can claim gigapixels.
MAX_PIXELS = 40_000_000
#: Kinds that are read; the rarer readers of Pillow are not let at what strangers send.
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP")


class Embedder:
    """From the bytes of a picture to the embedding of the face in it.

    Network (a name or a file), detector (the network's own unless given) and preset (of an
    ``.onnx`` network) are those of ``faircal embed``.
    """

    def __init__(
        self, network: str, detector: str | None, preset: str | None, max_bytes: int
    ) -> None:
        require("PIL", "embed", "a service that takes pictures")
        self._network = open_network(network, preset=preset)
        usual = NETWORKS[network].detector if network in NETWORKS else "mtcnn"
        self._detector = DETECTORS[detector or usual]("auto")
        self._max_bytes = max_bytes
        self._turn = threading.Lock()  # one picture at a time: each has all cores
        self.name = self._network.name
        size = self._network.preprocessing.size
        self.dimension = int(self._network(np.zeros((1, size, size, 3), np.uint8)).shape[1])

    def __call__(self, picture: bytes) -> NDArray[np.float32]:
        """Return the embedding of the face in a picture, shape (d,).

        Raises
        ------
        DataError
            Where it is too large, no picture, or no face is found in it.
        """
        from PIL import Image

        if len(picture) > self._max_bytes:
            raise DataError(
                f"expected a picture of at most {self._max_bytes:,} bytes, found "
                f"{len(picture):,}; send a smaller one"
            )
        with self._turn:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with Image.open(BytesIO(picture), formats=_FORMATS) as file:
                        pixels = file.size[0] * file.size[1]
            except Exception as error:  # Pillow's readers raise many kinds
                raise DataError("not a picture that can be read; send JPEG, PNG or WebP") from error
            if pixels > MAX_PIXELS:
                raise DataError(
                    f"expected at most {MAX_PIXELS:,} pixels, found {pixels:,}; send a smaller "
                    "picture"
                )
            how, blind = self._network.preprocessing, self._detector.blind
            read = read_picture(BytesIO(picture), how.size if blind else None, _FORMATS)
            if read is None:
                raise DataError("the picture is damaged; send it again")
            faces = [None] if blind else self._detector(pixels_of(read))
            if not faces:
                raise DataError("no face was found in the picture; send one that shows a face")
            vector: NDArray[np.float32] = self._network(cut_face(read, faces[0], how)[None])[0]
        if not np.isfinite(vector).all() or not vector.any():
            raise DataError("the network gives no embedding for this picture; send another one")
        return vector
