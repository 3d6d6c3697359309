"""Vectors of pictures as they are made, kept on disk so that an interrupted run goes on."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, write_text


class State(IntEnum):
    """What became of a picture."""

    TO_DO = 0
    DONE = 1
    NO_FACE = 2
    UNREADABLE = 3
    ABSENT = 4
    NO_VECTOR = 5

    @property
    def reason(self) -> str:
        """Return in words why there is no vector."""
        return _REASONS[self]


_REASONS = {
    State.NO_FACE: "no face found",
    State.UNREADABLE: "picture cannot be read",
    State.ABSENT: "picture not found",
    State.NO_VECTOR: "the network gave no usable vector",
}


class Store:
    """A folder with a vector and a state for each picture, written batch after batch.

    Parameters
    ----------
    folder : Path
    settings : mapping
        All that decides the vectors: pictures, network, detector. A folder that was begun with
        other settings is not gone on with.
    n : int
        Number of pictures.
    restart : bool
        Begin anew, whatever is there.

    Attributes
    ----------
    state : ndarray of shape (n,), uint8
        A `State` each.
    vectors : ndarray of shape (n, d), float32, or None
        Those of pictures without one are zero. None: no face yet.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], n: int, *, restart: bool = False
    ) -> None:
        self.folder = folder
        self._n = n
        self.vectors: NDArray[np.float32] | None = None
        text = json.dumps(settings, sort_keys=True)
        mark = digest(lambda update: update(text.encode()))
        known = folder / "settings.sha256"
        if restart:
            self.remove()
        if known.exists() and known.read_text() != mark:
            raise ParameterError(
                f"{folder}: another run was interrupted here, with other settings or pictures; "
                "go on with the same ones, or begin anew with --restart"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_text(known, mark)
        self.state = self._open("state.npy", np.dtype(np.uint8), (n,))
        if (folder / "vectors.npy").exists():
            self.vectors = _reopened(folder / "vectors.npy", np.dtype(np.float32), n)

    def _open(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        path = self.folder / name
        if path.exists():
            return _reopened(path, dtype, self._n)
        # A new file is all zeros; it takes no room until it is written to.
        return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)

    @property
    def to_do(self) -> NDArray[np.intp]:
        """Rows of the pictures that are still to be embedded; files may be back, or mended."""
        return np.flatnonzero(np.isin(self.state, (State.TO_DO, State.ABSENT, State.UNREADABLE)))

    def put(
        self,
        rows: NDArray[np.intp],
        states: NDArray[np.uint8],
        vectors: NDArray[np.float32] | None,
    ) -> None:
        """Keep the states of `rows`, and the vectors of those that are done."""
        if vectors is not None:
            if self.vectors is None:
                shape = (self._n, vectors.shape[1])
                self.vectors = self._open("vectors.npy", np.dtype(np.float32), shape)
            self.vectors[rows[states == State.DONE]] = vectors
        # The state comes last: what is marked as done is there.
        self.state[rows] = states

    def remove(self) -> None:
        """Remove the folder."""
        self.vectors = None
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            self.folder.parent.rmdir()  # where nothing else is in it


def _reopened(path: Path, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Open an array of an interrupted run; a damaged one is an error."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
            whole = file.tell() + math.prod(shape) * kind.itemsize
        # Mapping would fill up a file that was cut off.
        sound = kind == dtype and shape[:1] == (n,) and path.stat().st_size == whole
        found: NDArray[Any] | None = np.load(path, mmap_mode="r+") if sound else None
    except (OSError, ValueError, EOFError):
        found = None
    if found is None:
        raise DataError(f"{path}: is damaged; begin anew with --restart")
    return found
