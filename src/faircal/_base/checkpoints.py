"""The state of long work in a file, to go on from after an interruption."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from numpy.typing import NDArray

from faircal._base.container import cut, pack, unpack, unprefixed
from faircal._base.errors import DataError, FairCalError, ModelFileError, ParameterError
from faircal._base.files import atomic_path, check_output
from faircal._base.jobs import Job
from faircal._base.registry import short


class State(NamedTuple):
    """What a checkpoint holds: JSON and arrays."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def part(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays whose names begin with `prefix` and a dot, without it."""
        return unprefixed(prefix, self.arrays)


class Checkpoint:
    """The file of a job, read once and written now and then; without a path it keeps nothing.

    `mark` is a hash of all that the result depends on, which is `depends` in words: a file with
    another mark is of other work. `work` and `again` say what is interrupted and how to do it
    again, in a word each: ``"training"``, ``"train"``.
    """

    def __init__(self, job: Job, mark: str, work: str, again: str, depends: str) -> None:
        self._job, self._mark = job, mark
        self._work, self._again, self._depends = work, again, depends
        self._written = time.monotonic()
        self._failed = False

    def read(self) -> State | None:
        """Return what was kept; None where there is nothing to go on from.

        Raises where the file is damaged or of other work, unless the job passes over such a file.
        """
        path = self._job.checkpoint
        if path is None or self._job.resume is False or not path.exists():
            return None
        if path.is_dir():
            raise ParameterError(f"checkpoint: {path} is a folder; give the path of a file")
        try:
            return self._read()
        except FairCalError:
            if self._job.resume:
                raise
            return None

    def _read(self) -> State:
        path, from_the_start = self._job.checkpoint, f"delete it and {self._again} from the start"
        try:
            header, body = unpack(path.read_bytes())  # type: ignore[union-attr]
            state = State(header, cut(header["arrays"], body))
            mark = header["mark"]
        except (ModelFileError, OSError, LookupError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"{path}: not a checkpoint, or damaged; {from_the_start}"
            ) from error
        if mark != self._mark:
            raise ParameterError(
                f"{path}: the checkpoint is of another {self._work} ({self._depends} differ); "
                f"{from_the_start}"
            )
        return state

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        waited = time.monotonic() - self._written
        return self._job.checkpoint is not None and waited >= self._job.every

    def write(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the state, in place of an older one; what can't be written is noted once."""
        if self._job.checkpoint is None:
            return
        self._written = time.monotonic()
        try:
            with atomic_path(self._job.checkpoint) as temporary:
                temporary.write_bytes(pack({**header, "mark": self._mark}, arrays))
        except (OSError, ParameterError) as error:  # a full disk should not end long work
            if not self._failed:
                self._job.notes.append(f"no checkpoint could be written ({short(error)})")
            self._failed = True


def mark_of(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of settings, for a checkpoint's mark."""
    text = json.dumps(settings, sort_keys=True, default=str).encode()
    return hashlib.sha256(text).hexdigest()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put an interrupt off until the block has ended: half a part counted is of no use."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts are the main thread's
        return
    signals: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signals.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if signals:
        raise KeyboardInterrupt


def check_checkpoint(path: Path, resume: bool, work: str) -> None:
    """Raise unless the checkpoint at `path` is there just when it is to be gone on from.

    `work` is what was interrupted, in words.
    """
    check_output(path)
    if resume and not path.exists():
        raise ParameterError(f"--resume: there is no {path} to go on from; leave --resume out")
    if not resume and path.exists():
        raise ParameterError(
            f"{path} is there from {work} that was interrupted; go on with --resume, or delete it"
        )


@contextmanager
def resumable(checkpoint: Path, work: str) -> Iterator[None]:
    """Say, where `work` is interrupted, whether it can go on.

    Where its data must change, and not merely couldn't be read, the checkpoint is worth nothing.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        hint = f"{work} goes on with --resume" if checkpoint.exists() else "nothing is written"
        raise KeyboardInterrupt(hint) from error
    except DataError as error:
        if not isinstance(error.__cause__, OSError):
            checkpoint.unlink(missing_ok=True)
        raise
