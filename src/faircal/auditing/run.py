"""Auditing a stream of pairs: part by part, with progress, and a checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal.auditing.stream import Auditor
from faircal.checkpoints import Checkpoint, mark_of, uninterrupted
from faircal.data import Dataset, PairStream
from faircal.files import digest
from faircal.jobs import Job
from faircal.measures import RATES

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
            # What a model makes of scores is spread as it likes, within the range.
            sample=None if model is not None else stream.select(feature).sample(),
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
    kept = _Kept(job, settings, auditors)
    try:
        with closing(stream.parts(kept.done, _columns(model, attribute))) as parts:
            for part in parts:
                _count(part, model, auditors, kept)
                job.progress("pairs", kept.done, len(stream), "")
                kept.write()
    except KeyboardInterrupt:
        kept.write(now=True)
        raise
    return auditors


def _columns(model: Method | None, attribute: str | None) -> list[str] | None:
    """Return what is read of a score table; for a model everything, it knows what it needs."""
    if model is not None:
        return None
    groups = [] if attribute is None else attribute.split("+")
    return ["genuine", "probability", "identity", *groups]


def _count(part: Dataset, model: Method | None, auditors: list[Auditor], kept: _Kept) -> None:
    views = [part.select(auditor.labels["feature"]) for auditor in auditors]
    outputs = [None if model is None else model.apply(view) for view in views]
    with uninterrupted():
        for auditor, view, output in zip(auditors, views, outputs, strict=True):
            auditor.add(view, output)
        kept.done += len(part)


class _Kept:
    """What was counted of the first `done` pairs, in a checkpoint."""

    def __init__(self, job: Job, settings: Mapping[str, Any], auditors: list[Auditor]) -> None:
        what = "data, model or settings"
        self._file = Checkpoint(job, mark_of(settings), "audit", "audit", what)
        self._auditors = auditors
        self.done = self._kept = 0
        state = self._file.read()
        if state is not None:
            for i, (auditor, told) in enumerate(
                zip(auditors, state.header["auditors"], strict=True)
            ):
                auditor.restore(told, state.part(str(i)))
            self.done = self._kept = int(state.header["done"])

    def write(self, *, now: bool = False) -> None:
        """Write the file, if it is time to and something was counted since."""
        if self.done == self._kept or not (now or self._file.is_due):
            return
        states, arrays = [], {}
        for i, auditor in enumerate(self._auditors):
            state, own = auditor.state()
            states.append(state)
            arrays.update({f"{i}.{key}": array for key, array in own.items()})
        self._file.write({"done": self.done, "auditors": states}, arrays)
        self._kept = self.done


def files_digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the names, lengths and contents of files, read piece by piece."""

    def feed(update: Any) -> None:
        for path in paths:
            update(f"{path.name}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    update(piece)

    return digest(feed)
