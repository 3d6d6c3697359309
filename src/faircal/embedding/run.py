"""Pictures to vectors, in batches, on all cores."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from faircal._base.jobs import Progress, silent
from faircal.embedding.detectors import Detector
from faircal.embedding.faces import Face
from faircal.embedding.network import Network
from faircal.embedding.pictures import (
    Box,
    crop_around,
    cut_face,
    nearest_first,
    pixels_of,
    read_picture,
)
from faircal.embedding.store import State, Store

#: Pictures a batch.
BATCH = 32
#: How much of the surroundings of a given box a detector sees, in sides of the box.
_AROUND = 0.5


@dataclass(frozen=True, eq=False)
class Pictures:
    """Files to embed.

    Attributes
    ----------
    root : Path
    paths : sequence of str
        Below `root`.
    boxes : ndarray of shape (n, 4), optional
        Where the face is (left, top, right, bottom), NaN where nobody says; among several faces it
        tells which is meant.
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


def embed_pictures(
    pictures: Pictures,
    network: Network,
    detector: Detector,
    store: Store,
    *,
    jobs: int | None = None,
    batch: int = BATCH,
    progress: Progress = silent,
) -> None:
    """Fill `store` with the vectors of `pictures` that it does not have yet."""
    cores = os.cpu_count() or 1
    jobs = jobs or min(cores, detector.threads or cores)
    rows = store.to_do
    batches = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    worker = _Worker(pictures, network, detector)
    done, began = len(pictures) - len(rows), time.monotonic()
    start = done
    progress("embedding", done, len(pictures), "")
    with _large_pictures():
        for found in _side_by_side(worker, batches, jobs):
            store.put(*found)
            done += len(found[0])
            rate = (done - start) / max(time.monotonic() - began, 1e-9)
            progress("embedding", done, len(pictures), f"{rate:,.0f} images/s")


@contextmanager
def _large_pictures() -> Iterator[None]:
    """Take pictures of up to 179 million pixels quietly; Pillow refuses larger ones.

    Filters of warnings are the whole process's, so they are set here, once, and not by threads.
    """
    from PIL.Image import DecompressionBombWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompressionBombWarning)
        yield


_Found = tuple[NDArray[np.intp], NDArray[np.uint8], NDArray[np.float32] | None]


def _side_by_side(
    work: Callable[[NDArray[np.intp]], _Found], batches: Sequence[NDArray[np.intp]], jobs: int
) -> Iterator[_Found]:
    """Give the results of `work` as they come; few batches are under way at a time."""
    with ThreadPoolExecutor(jobs, initializer=_use_one_core) as pool:
        coming = iter(batches)
        under_way: set[Future[_Found]] = set()
        try:
            while True:
                while len(under_way) < 2 * jobs and (rows := next(coming, None)) is not None:
                    under_way.add(pool.submit(work, rows))
                if not under_way:
                    return
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                # Those that ended well come first: what one of them raises must not lose them.
                for future in sorted(ended, key=lambda each: each.exception() is not None):
                    yield future.result()
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

    def __init__(self, pictures: Pictures, network: Network, detector: Detector) -> None:
        self._pictures, self._network, self._detector = pictures, network, detector
        self._turn: AbstractContextManager[object] = (
            nullcontext() if network.parallel else threading.Lock()
        )

    def __call__(self, rows: NDArray[np.intp]) -> _Found:
        size = self._network.preprocessing.size
        faces = np.empty((len(rows), size, size, 3), dtype=np.uint8)
        states = np.empty(len(rows), dtype=np.uint8)
        n = 0
        for i, row in enumerate(rows):
            face = self._face(int(row))
            if isinstance(face, State):
                states[i] = face
                continue
            faces[n], states[i] = face, State.DONE
            n += 1
        if not n:
            return rows, states, None
        with self._turn:
            vectors = self._network(faces[:n])
        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        done = np.flatnonzero(states == State.DONE)
        states[done[~usable]] = State.NO_VECTOR
        return rows, states, vectors[usable]

    def _face(self, row: int) -> NDArray[np.uint8] | State:
        """Return the face in a picture, cut out and aligned, or why there is none."""
        path = self._pictures.root / self._pictures.paths[row]
        how, detector = self._network.preprocessing, self._detector
        box = self._pictures.box(row)
        if not path.is_file():
            return State.ABSENT
        picture = read_picture(path, how.size if detector.blind and box is None else None)
        if picture is None:
            return State.UNREADABLE
        if detector.blind:
            return cut_face(picture, None if box is None else Face.without_points(box), how)
        if box is not None:
            picture, box = crop_around(picture, box, _AROUND)
            if not all(picture.size):
                return State.NO_FACE
        faces = detector(pixels_of(picture))
        if box is not None:
            faces = nearest_first(faces, box)
        return cut_face(picture, faces[0], how) if faces else State.NO_FACE
