"""Several features of the same pairs, audited together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.checkpoints import Checkpoint, mark_of, uninterrupted
from faircal._base.container import prefixed, unprefixed
from faircal._base.files import digest
from faircal._base.jobs import Job
from faircal.data import Dataset, PairStream
from faircal.data.tables import table_files
from faircal.evaluation.audit.counted import Auditor
from faircal.metrics.measures import RATES

if TYPE_CHECKING:
    from faircal.methods import Method
    from faircal.methods.base import Output


class PairSource(Protocol):
    """What must be known of pairs before they come."""

    @property
    def name(self) -> str:
        """Shown in tables and reports."""

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores."""

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute`, in order."""


class FeatureAuditors:
    """An auditor for each feature of pairs that come in parts.

    Parameters
    ----------
    each : list of Auditor
        Their label ``feature`` says what of.
    apply : callable, optional
        Gives the output of a model for a part; without it parts are measured with their own scores.
    """

    def __init__(
        self, each: list[Auditor], apply: Callable[[Dataset], Output] | None = None
    ) -> None:
        self.each, self._apply = each, apply

    @classmethod
    def of(
        cls,
        pairs: PairSource,
        samples: Mapping[str, NDArray[np.float64] | None],
        *,
        model: Method | None = None,
        attribute: str | None = None,
        threshold: float | None = None,
        rates: Sequence[float] = RATES,
    ) -> FeatureAuditors:
        """Start with nothing counted.

        Parameters
        ----------
        pairs : Pairs
        samples : mapping from feature to ndarray or None
            Some of the scores of each feature that is to be audited, where they are ready-made.
        model, attribute, threshold, rates
            As for `audit_stream`.
        """
        names = () if attribute is None else pairs.group_names(attribute)
        each = [
            Auditor(
                attribute=attribute,
                groups=names,
                threshold=threshold,
                rates=rates,
                score_range=pairs.score_range,
                sample=sample,
                dataset=pairs.name,
                feature=feature,
                method="" if model is None else model.name,
            )
            for feature, sample in samples.items()
        ]
        return cls(each, None if model is None else model.apply)

    def add(self, part: Dataset) -> None:
        """Count the pairs of `part`."""
        self.count(self.scored(part))

    def scored(self, part: Dataset) -> list[tuple[Dataset, Output | None]]:
        """Return `part` with each feature in use, and with what the model says of it."""
        views = [part.select(auditor.labels["feature"]) for auditor in self.each]
        return [(view, None if self._apply is None else self._apply(view)) for view in views]

    def count(self, scored: Sequence[tuple[Dataset, Output | None]]) -> None:
        """Count what `scored` gave."""
        for auditor, (view, output) in zip(self.each, scored, strict=True):
            auditor.add(view, output)

    def merge(self, other: FeatureAuditors) -> None:
        """Add what others, with the same settings, have counted."""
        for own, more in zip(self.each, other.each, strict=True):
            own.merge(more)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what was counted so far as JSON and arrays."""
        states: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, auditor in enumerate(self.each):
            state, own = auditor.state()
            states.append(state)
            arrays |= prefixed(str(i), own)
        return {"auditors": states}, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        for i, (auditor, state) in enumerate(zip(self.each, header["auditors"], strict=True)):
            auditor.restore(state, unprefixed(str(i), arrays))


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
    auditors = FeatureAuditors.of(
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
    kept = _StreamCheckpoint(job, settings, auditors)
    try:
        with closing(stream.parts(kept.done, needed_columns(model, attribute))) as parts:
            for part in parts:
                scored = auditors.scored(part)
                with uninterrupted():  # what is counted, and how far, belong together
                    auditors.count(scored)
                    kept.done += len(part)
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


class _StreamCheckpoint:
    """What was counted of the first `done` pairs, in a checkpoint."""

    def __init__(self, job: Job, settings: Mapping[str, Any], auditors: FeatureAuditors) -> None:
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
