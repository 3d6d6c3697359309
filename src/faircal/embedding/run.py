"""Vectors of pictures as they are made, kept on disk so that an interrupted run goes on."""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from faircal._base.checkpoints import mark_of
from faircal._base.errors import DataError, ParameterError
from faircal._base.files import write_text
from faircal._base.jobs import Progress, silent
from faircal.embedding.detectors import Detector
from faircal.embedding.networks import Network
from faircal.embedding.pictures import (
    Box,
    Face,
    crop_around,
    cut_face,
    nearest_first,
    pixels_of,
    read_picture,
)


class PictureStatus(IntEnum):
    """What became of a picture."""

    TO_DO = 0
    DONE = 1
    NO_FACE = 2
    UNREADABLE = 3
    ABSENT = 4
    NO_VECTOR = 5

    @property
    def reason(self) -> str:
        """Return in words why there is no vector; nothing where that is not so."""
        return _REASONS.get(self, "")


_REASONS = {
    PictureStatus.NO_FACE: "no face found",
    PictureStatus.UNREADABLE: "picture cannot be read",
    PictureStatus.ABSENT: "picture not found",
    PictureStatus.NO_VECTOR: "the network gave no usable vector",
}


class VectorStore:
    """A folder with a vector and a state for each of `n` pictures, written batch after batch.

    `settings` are all that decides the vectors: a folder that was begun with others is not gone on
    with, unless it is to `restart`. `state` has a `PictureStatus` for each picture; `vectors`, of
    shape (n, d), are zero for those without one, and None before the first face.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], n: int, *, restart: bool = False
    ) -> None:
        self.folder = folder
        self._n = n
        self.vectors: NDArray[np.float32] | None = None
        mark, mark_file = mark_of(settings), folder / "settings.sha256"
        if restart:
            self.remove()
        if mark_file.exists() and mark_file.read_text() != mark:
            raise ParameterError(
                f"{folder}: another run was interrupted here, with other settings or pictures; "
                "go on with the same ones, or begin anew with --restart"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_text(mark_file, mark)
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
        return np.flatnonzero(
            np.isin(
                self.state, (PictureStatus.TO_DO, PictureStatus.ABSENT, PictureStatus.UNREADABLE)
            )
        )

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
            self.vectors[rows[states == PictureStatus.DONE]] = vectors
        # The state comes last: what is marked as done is there.
        self.state[rows] = states

    def result(self) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return the vectors and states of all pictures; at least one must have a vector."""
        state = np.asarray(self.state)
        if self.vectors is not None and (state == PictureStatus.DONE).any():
            return self.vectors, state
        counts = {s.reason: int((state == s).sum()) for s in PictureStatus if s.reason}
        counted = ", ".join(f"{count} × {reason}" for reason, count in counts.items() if count)
        self.remove()
        raise DataError(
            f"no picture gave a vector ({counted}); try another --detector, or check the network"
        )

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
            length = file.tell() + math.prod(shape) * kind.itemsize
        # Mapping would fill up a file that was cut off.
        sound = kind == dtype and shape[:1] == (n,) and path.stat().st_size == length
        array: NDArray[Any] | None = np.load(path, mmap_mode="r+") if sound else None
    except (OSError, ValueError, EOFError):
        array = None
    if array is None:
        raise DataError(f"{path}: is damaged; begin anew with --restart")
    return array


#: Pictures a batch.
BATCH = 32
#: How much of the surroundings of a given box a detector sees, in sides of the box.
_AROUND = 0.5


@dataclass(frozen=True, eq=False)
class PictureFiles:
    """Files to embed, with paths below `root`.

    `boxes`, of shape (n, 4), say where the face is (left, top, right, bottom), NaN where nobody
    says; among several faces the box tells which is meant.
    """

    root: Path
    paths: Sequence[str]
    boxes: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def box(self, row: int) -> Box | None:
        """Return the box of a picture."""
        if self.boxes is None or not np.isfinite(self.boxes[row]).all():
            return None
        left, top, right, bottom = map(float, self.boxes[row])
        return (left, top, right, bottom) if left < right and top < bottom else None


def fill_store(
    pictures: PictureFiles,
    network: Network,
    detector: Detector,
    store: VectorStore,
    *,
    jobs: int | None = None,
    batch: int = BATCH,
    progress: Progress = silent,
) -> None:
    """Fill `store` with the vectors of `pictures` that it does not have yet."""
    from PIL.Image import DecompressionBombWarning

    cores = os.cpu_count() or 1
    jobs = jobs or min(cores, detector.threads or cores)
    rows = store.to_do
    batches = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    worker = _Worker(pictures, network, detector)
    done, began = len(pictures) - len(rows), time.monotonic()
    start = done
    progress("embedding", done, len(pictures), "")
    with warnings.catch_warnings():
        # Pictures of up to 179 million pixels are taken quietly; Pillow refuses larger ones.
        # Filters of warnings are the whole process's: they are set here, once, not by threads.
        warnings.simplefilter("ignore", DecompressionBombWarning)
        for batch_result in _side_by_side(worker, batches, jobs):
            store.put(*batch_result)
            done += len(batch_result[0])
            rate = (done - start) / max(time.monotonic() - began, 1e-9)
            progress("embedding", done, len(pictures), f"{rate:,.0f} images/s")


_BatchResult = tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.float32] | None]


def _side_by_side(
    work: Callable[[NDArray[np.intp]], _BatchResult], batches: Sequence[NDArray[np.intp]], jobs: int
) -> Iterator[_BatchResult]:
    """Give the results of `work` in order; few batches are under way at a time."""
    with ThreadPoolExecutor(jobs, initializer=_use_one_core) as pool:
        under_way: deque[Future[_BatchResult]] = deque()
        try:
            for rows in batches:
                under_way.append(pool.submit(work, rows))
                if len(under_way) == 2 * jobs:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def _use_one_core() -> None:
    """Let this thread's PyTorch work use one core: there is a thread for each.

    The limit is OpenMP's, which keeps one for each thread: it ends with this one.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.get_num_threads()  # sets the thread up, which would undo the limit later
        threadpool_limits(1, user_api="openmp")


class _Worker:
    """From the rows of a batch to states and vectors; called from several threads."""

    def __init__(self, pictures: PictureFiles, network: Network, detector: Detector) -> None:
        self._pictures, self._network, self._detector = pictures, network, detector
        self._turn: AbstractContextManager[object] = (
            nullcontext() if network.parallel else threading.Lock()
        )

    def __call__(self, rows: NDArray[np.intp]) -> _BatchResult:
        size = self._network.preprocessing.size
        faces = np.empty((len(rows), size, size, 3), dtype=np.uint8)
        states = np.empty(len(rows), dtype=np.uint8)
        n = 0
        for i, row in enumerate(rows):
            face = self._face(int(row))
            if isinstance(face, PictureStatus):
                states[i] = face
                continue
            faces[n], states[i] = face, PictureStatus.DONE
            n += 1
        if not n:
            return rows, states, None
        with self._turn:
            vectors = self._network(faces[:n])
        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        done = np.flatnonzero(states == PictureStatus.DONE)
        states[done[~usable]] = PictureStatus.NO_VECTOR
        return rows, states, vectors[usable]

    def _face(self, row: int) -> NDArray[np.uint8] | PictureStatus:
        """Return the face in a picture, cut out and aligned, or why there is none."""
        path = self._pictures.root / self._pictures.paths[row]
        how, detector = self._network.preprocessing, self._detector
        box = self._pictures.box(row)
        if not path.is_file():
            return PictureStatus.ABSENT
        picture = read_picture(path, how.size if detector.blind and box is None else None)
        if picture is None:
            return PictureStatus.UNREADABLE
        if detector.blind:
            return cut_face(picture, None if box is None else Face.without_points(box), how)
        if box is not None:
            picture, box = crop_around(picture, box, _AROUND)
            if not all(picture.size):
                return PictureStatus.NO_FACE
        faces = detector(pixels_of(picture))
        if box is not None:
            faces = nearest_first(faces, box)
        return cut_face(picture, faces[0], how) if faces else PictureStatus.NO_FACE
