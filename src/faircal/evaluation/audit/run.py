"""Auditing a stream of pairs: part by part, with progress, and a checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.checkpoints import Checkpoint, mark_of, uninterrupted
from faircal._base.files import digest
from faircal._base.jobs import Job
from faircal.data import Dataset, PairStream
from faircal.data.tables import table_files
from faircal.evaluation.audit.stream import Auditor
from faircal.evaluation.audit.together import Auditors
from faircal.metrics.measures import RATES

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
    auditors = Auditors.of(
        stream,
        # What a model makes of scores is spread as it likes, within the range.
        {f: None if model is not None else stream.select(f).sample() for f in stream.features},
        model=model,
        attribute=attribute,
        threshold=threshold,
        rates=rates,
    )
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
        with closing(stream.parts(kept.done, needed_columns(model, attribute))) as parts:
            for part in parts:
                _count(part, auditors, kept)
                job.progress("pairs", kept.done, len(stream), "")
                kept.write()
    except KeyboardInterrupt:
        kept.write(now=True)
        raise
    return auditors.each


def needed_columns(model: Method | None, attribute: str | None) -> list[str] | None:
    """Return what is read of a score table; for a model everything, it knows what it needs."""
    if model is not None:
        return None
    groups = [] if attribute is None else attribute.split("+")
    return ["genuine", "probability", "identity", *groups]


def _count(part: Dataset, auditors: Auditors, kept: _Kept) -> None:
    scored = auditors.scored(part)
    with uninterrupted():
        auditors.count(scored)
        kept.done += len(part)


class _Kept:
    """What was counted of the first `done` pairs, in a checkpoint."""

    def __init__(self, job: Job, settings: Mapping[str, Any], auditors: Auditors) -> None:
        what = "data, model or settings"
        self._file = Checkpoint(job, mark_of(settings), "audit", "audit", what)
        self._auditors = auditors
        self.done = self._kept = 0
        state = self._file.read()
        if state is not None:
            auditors.restore(state.header, state.arrays)
            self.done = self._kept = int(state.header["done"])

    def write(self, *, now: bool = False) -> None:
        """Write the file, if it is time to and something was counted since."""
        if self.done == self._kept or not (now or self._file.is_due):
            return
        header, arrays = self._auditors.state()
        self._file.write({"done": self.done, **header}, arrays)
        self._kept = self.done


def files_digest(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the names, lengths and contents of files, read piece by piece."""

    def feed(update: Any) -> None:
        for path in table_files(paths):
            update(f"{path.name}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    update(piece)

    return digest(feed)
