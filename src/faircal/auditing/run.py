"""Auditing a stream of pairs: part by part, with progress, and a checkpoint to go on from."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from faircal.auditing.stream import Auditor
from faircal.container import cut, pack, unpack
from faircal.data import Dataset, PairStream
from faircal.errors import FairCalError, ParameterError
from faircal.files import atomic_path, digest
from faircal.jobs import Job
from faircal.measures import RATES
from faircal.registry import short

if TYPE_CHECKING:
    from faircal.methods import Method


def audit_stream(
    stream: PairStream,
    *,
    model: Method | None = None,
    attribute: str | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    about: Mapping[str, Any] | None = None,
    job: Job | None = None,
) -> list[Auditor]:
    """Count all pairs of a stream, for each of its features.

    Parameters
    ----------
    stream : PairStream
    model : Method, optional
        Scores the pairs; else they are measured with their own scores.
    attribute : str, optional
        The attribute that makes the groups.
    threshold, rates
        As for `faircal.audit`.
    about : mapping, optional
        What else the result depends on, such as the model's hash: a checkpoint of other things is
        refused. The data, and what is given here by name, are always among them.
    job : Job, optional
        Progress, checkpoint and whether to go on from it.

    Returns
    -------
    list of Auditor
        One a feature; `Auditor.finish` gives the audit.
    """
    job = job or Job()
    names = () if attribute is None else stream.group_names(attribute)
    auditors = [
        Auditor(
            attribute=attribute,
            groups=names,
            threshold=threshold,
            rates=rates,
            score_range=stream.score_range,
            dataset=stream.name,
            feature=feature,
            method="" if model is None else model.name,
        )
        for feature in stream.features
    ]
    settings = {
        "data": stream.fingerprint(),
        "pairs": len(stream),
        "features": list(stream.features),
        "model": None if model is None else model.name,
        "attribute": attribute,
        "threshold": threshold,
        "rates": list(rates),
        "score_range": stream.score_range,
        **(about or {}),
    }
    checkpoint = _Checkpoint(job, settings, auditors)
    checkpoint.read()
    try:
        with closing(stream.parts(checkpoint.done, _columns(model, attribute))) as parts:
            for part in parts:
                _count(part, model, auditors, checkpoint)
                job.progress("pairs", checkpoint.done, len(stream), "")
                checkpoint.keep()
    except KeyboardInterrupt:
        checkpoint.write()
        raise
    return auditors


def _columns(model: Method | None, attribute: str | None) -> list[str] | None:
    """Return what is read of a score table; for a model everything, it knows what it needs."""
    if model is not None:
        return None
    groups = [] if attribute is None else attribute.split("+")
    return ["genuine", "probability", "identity", *groups]


def _count(
    part: Dataset, model: Method | None, auditors: list[Auditor], checkpoint: _Checkpoint
) -> None:
    views = [part.select(auditor.labels["feature"]) for auditor in auditors]
    outputs = [None if model is None else model.apply(view) for view in views]
    with _uninterrupted():
        for auditor, view, output in zip(auditors, views, outputs, strict=True):
            auditor.add(view, output)
        checkpoint.done += len(part)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put an interrupt off until the block has ended: half a part counted is of no use."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts are the main thread's
        return
    asked: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        asked.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


class _Checkpoint:
    """What was counted of the first `done` pairs, in a file; without a path it keeps nothing."""

    def __init__(self, job: Job, settings: Mapping[str, Any], auditors: list[Auditor]) -> None:
        text = json.dumps(settings, sort_keys=True, default=str).encode()
        self._job, self._auditors = job, auditors
        self._fingerprint = digest(lambda feed: feed(text))
        self.done = self._kept = 0
        self._written = time.monotonic()

    def read(self) -> None:
        """Go on from the file, where the job says so; one of other things is refused."""
        path = self._job.checkpoint
        if path is None or not self._job.resume or not path.exists():
            return
        try:
            header, body = unpack(path.read_bytes())
            arrays = cut(header["arrays"], body)
            same = header["audit"] == self._fingerprint
            done, states = int(header["done"]), header["auditors"]
        except (OSError, FairCalError, KeyError, TypeError, ValueError) as error:
            raise ParameterError(
                f"{path}: not a partial audit, or damaged; delete it and audit from the start"
            ) from error
        if not same:
            raise ParameterError(
                f"{path}: is of another audit (data, model or settings); "
                "delete it, or give the same as then"
            )
        for i, (auditor, state) in enumerate(zip(self._auditors, states, strict=True)):
            start = f"{i}."
            own = {
                key.removeprefix(start): array
                for key, array in arrays.items()
                if key.startswith(start)
            }
            auditor.restore(state, own)
        self.done = self._kept = done

    def keep(self) -> None:
        """Write the file, if it is time to."""
        if time.monotonic() - self._written >= self._job.every:
            self.write()

    def write(self) -> None:
        """Write the file, unless nothing was counted since."""
        path = self._job.checkpoint
        if path is None or self.done == self._kept:
            return
        states, arrays = [], {}
        for i, auditor in enumerate(self._auditors):
            state, own = auditor.state()
            states.append(state)
            arrays.update({f"{i}.{key}": array for key, array in own.items()})
        header = {"audit": self._fingerprint, "done": self.done, "auditors": states}
        try:
            with atomic_path(path) as temporary:
                temporary.write_bytes(pack(header, arrays))
            self._kept = self.done
        except OSError as error:  # a full disk should not end a long audit
            text = f"the audit could not be kept for --resume ({short(error)})"
            if text not in self._job.notes:
                self._job.notes.append(text)
        self._written = time.monotonic()


def files_digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the names, lengths and contents of files, read piece by piece."""

    def feed(update: Any) -> None:
        for path in paths:
            update(f"{path.name}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    update(piece)

    return digest(feed)
