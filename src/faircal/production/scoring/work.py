"""Scored pairs on their way to a file, kept so that an interrupted run can go on.

``OUT.parts/`` beside the file OUT holds the pairs scored so far, one segment behind the other in
one growing file, and ``run.json``, which says where the last whole segment ends and what the run
was about. What stands after that is cut off when a run goes on. In the end the file is moved to
OUT; until then nothing is there.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import output_folder, write_text
from faircal._base.registry import short
from faircal.production.scoring.footer import join_footers
from faircal.production.scoring.sinks import Sink

#: Pairs in a segment.
SEGMENT = 1 << 22

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Work:
    """The pairs of one run; `Work.start` gives it to a ``with`` block.

    Attributes
    ----------
    pairs : int
        How many are written, in whole segments and in the one begun.
    """

    def __init__(self, out: Path, about: Mapping[str, Any], segments: list[list[int]]) -> None:
        self._out, self._about = out, dict(about)
        self._segments = segments  # pairs, and where each one ends in the file
        self.pairs = self._kept = sum(pairs for pairs, _ in segments)
        self._sink: Sink | None = None
        self._file: BinaryIO

    @classmethod
    @contextmanager
    def start(cls, out: Path, about: Mapping[str, Any], resume: bool) -> Iterator[Work]:
        """Begin, or go on where `resume`; `about` says what must be the same to go on.

        When the block ends well OUT is there. When it raises, whole segments are kept, unless the
        data is at fault: it must change, and then they are worth nothing.
        """
        work = cls(out, about, _segments(out, about, resume))
        with _writable(out, work):
            folder = output_folder(parts_of(out))
            path = folder / f"scored{out.suffix}"
            with _locked(path, out) as work._file:
                try:
                    work._cut_off()
                    work._record()
                    yield work
                    work._finish()
                except BaseException as error:
                    work._stop(error)
                    raise
                path.chmod(0o644)
                path.replace(out)
            shutil.rmtree(folder)

    @property
    def kept(self) -> int:
        """How many pairs are in whole segments: `--resume` goes on from there."""
        return self._kept

    def write(self, table: pa.Table) -> None:
        """Append scored pairs."""
        if self._sink is None:
            self._sink = Sink(self._file, self._out.suffix, table.schema)
        self._sink.write(table)
        self.pairs += len(table)
        if self.pairs - self._kept >= SEGMENT:
            self._end_segment()

    def _end_segment(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None
            self._file.flush()
            self._segments.append([self.pairs - self._kept, self._file.tell()])
            self._record()
            self._kept = self.pairs

    def _record(self) -> None:
        text = json.dumps({"about": self._about, "segments": self._segments}, indent=2)
        write_text(parts_of(self._out) / "run.json", text + "\n")

    def _cut_off(self) -> None:
        end = self._segments[-1][1] if self._segments else 0
        self._file.truncate(end)
        self._file.seek(end)

    def _finish(self) -> None:
        self._end_segment()
        if self._out.suffix == ".parquet" and len(self._segments) > 1:
            ends = [end for _, end in self._segments]
            self._file.write(join_footers(Path(self._file.name), ends))
        self._file.flush()

    def _stop(self, error: BaseException) -> None:
        if self._sink is not None:
            self._sink.abandon()
        with suppress(OSError):
            self._cut_off()
        # What is wrong with the data must be changed there, and then nothing kept is worth it.
        at_fault = isinstance(error, DataError) and not isinstance(error.__cause__, OSError)
        if at_fault or not self._segments:
            self._segments, self._kept = [], 0
            shutil.rmtree(parts_of(self._out), ignore_errors=True)


def parts_of(out: Path) -> Path:
    """Return the folder that the work for `out` is kept in."""
    return out.with_name(f"{out.name}.parts")


def _segments(out: Path, about: Mapping[str, Any], resume: bool) -> list[list[int]]:
    """Return the whole segments of an earlier run, pairs and end of each; none to begin anew."""
    folder = parts_of(out)
    if resume and not folder.exists():
        raise ParameterError(f"--resume: there is no {folder} to go on from; leave --resume out")
    others = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    others = [name for name in others if not name.startswith(("run.json", ".run.json", "scored."))]
    if others:
        raise ParameterError(f"{folder}: holds {others[0]}, which is not ours; move it away")
    found = _read(folder, out)
    if found is None or not found["segments"]:
        return []
    if not resume:
        raise ParameterError(
            f"{folder} is there from a run that was interrupted; go on with --resume, or delete it"
        )
    for what, value in about.items():
        before = found["about"].get(what)
        # As JSON has it: what were tuples are lists.
        if before != json.loads(json.dumps(value)):
            raise ParameterError(
                f"--resume: {what} differs from that of the run in {folder}; "
                "give the same again, or delete the folder to begin anew"
            )
    segments: list[list[int]] = found["segments"]
    return segments


def _read(folder: Path, out: Path) -> dict[str, Any] | None:
    """Return what ``run.json`` says; None where nothing can come of it."""
    try:
        found: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
        size = (folder / f"scored{out.suffix}").stat().st_size
        whole = all(pairs > 0 and end <= size for pairs, end in found["segments"])
        return found if whole and isinstance(found["about"], dict) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            f"{folder}: cannot be read ({short(error)}); delete it to begin anew"
        ) from error


@contextmanager
def _locked(path: Path, out: Path) -> Iterator[BinaryIO]:
    """Open a file to write on where it ends; one that another run is writing is an error."""
    with path.open("ab") as _:
        pass
    with path.open("r+b") as file:
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield file
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ParameterError(
                f"{out}: another run is writing it; wait for it to end or choose another path"
            ) from None
        yield file


@contextmanager
def _writable(out: Path, work: Work) -> Iterator[None]:
    """Turn what writing raises (a disk that is full, say) into our error."""
    try:
        yield
    except OSError as error:
        why = error.strerror or short(error)
        more = ", then go on with --resume" if work.kept else ""
        remedy = "make room for it" if error.errno in _NO_ROOM else "choose another path"
        raise ParameterError(f"cannot write {out}: {why}; {remedy}{more}") from error
