"""The work of ``faircal monitor``: watch files of scored pairs, and keep what it has counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from faircal._base.container import cut, divided, pack, unpack
from faircal._base.errors import DataError, FairCalError, ModelFileError, ParameterError
from faircal._base.files import atomic_path, check_output, file_digest
from faircal._base.jobs import Progress, silent, step
from faircal.methods import Method, load_method
from faircal.production.monitoring.pairs_in_use import PairsInUse
from faircal.production.monitoring.reading import WatchedSource, open_source
from faircal.production.monitoring.report import MonitoringResult, Stretch, write_monitoring
from faircal.production.monitoring.watch import Watch

_KIND, _VERSION = "faircal monitor", 2
_ANEW = "give another --state, or delete it to begin anew"
#: The most files whose fingerprints are kept, and stretches of time that are shown.
_FILES, _STRETCHES = 10_000, 120
#: Unless given, and unless a state says otherwise.
FALSE_ALARMS = 0.01
#: Pairs that are given to the watch at a time.
_PART = 1 << 16
#: Not a number of pairs: those are the seeds by which the watch draws places in time, and the same
#: seed twice would put pairs back where they were.
_SEED = (0, 1 << 62)


@dataclass
class MonitorState:
    """A watch, and what the report shows besides.

    Attributes
    ----------
    watch : Watch
    model_sha256 : str
        Of the model file: a state is of one model.
    timeline : list of Stretch
    files : list of str
        Fingerprints of what was counted, so that nothing is counted twice.
    """

    watch: Watch
    model_sha256: str
    timeline: list[Stretch] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write everything to one checksummed file, atomically."""
        values, arrays = divided(self.watch.get_state())
        header = {
            "kind": _KIND,
            "version": _VERSION,
            "model_sha256": self.model_sha256,
            "watch": values,
            # The oldest are dropped: the file must not grow for as long as it is in use.
            "timeline": [stretch._asdict() for stretch in self.timeline[-_STRETCHES:]],
            "files": self.files[-_FILES:],
        }
        with atomic_path(path) as temporary:
            temporary.write_bytes(pack(header, arrays))

    @classmethod
    def load(cls, path: Path, model: Method, model_sha256: str, false_alarms: float | None) -> Self:
        """Read what `save` wrote; one of another kind, model or false-alarm rate is refused."""
        try:
            header, body = unpack(path.read_bytes())
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from error
        except ModelFileError as error:
            raise DataError(
                f"{path}: not a state of 'faircal monitor', or damaged; {_ANEW}"
            ) from error
        if (header.get("kind"), header.get("version")) != (_KIND, _VERSION):
            raise DataError(
                f"{path}: expected a state that this version of 'faircal monitor' wrote; {_ANEW}"
            )
        if header.get("model_sha256") != model_sha256:
            raise DataError(
                f"{path}: is of another model; give the model it was begun with, or {_ANEW}"
            )
        try:
            state = {**header["watch"], **cut(header["arrays"], body)}
            watch = Watch.restore(model, state)
            timeline = [Stretch(**stretch) for stretch in header["timeline"]]
            files = [str(name) for name in header["files"]]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FairCalError):
                raise DataError(f"{path}: {error}") from error
            raise DataError(f"{path}: is damaged; {_ANEW}") from error
        if false_alarms not in (None, watch.false_alarms):
            raise DataError(
                f"{path}: was begun with --false-alarms {watch.false_alarms}; give the same, or "
                f"{_ANEW}"
            )
        return cls(watch, model_sha256, timeline, files)


def monitor(
    model: str | Path,
    scores: Sequence[str | Path],
    *,
    state: str | Path | None = None,
    false_alarms: float | None = None,
    ordered: bool = False,
    feature: str | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> tuple[MonitoringResult, dict[str, Path]]:
    """Tell whether pairs in use still are what a model was calibrated for.

    Parameters
    ----------
    model : path
        Model file that the pairs were scored with.
    scores : sequence of path
        Scored tables, exports of the service's decisions, or dataset folders, in the order of time.
    state : path, optional
        File that keeps counts between calls: each adds what is new.
    false_alarms : float, optional
        Chance that all tests together ever raise an alarm while nothing changes; 0.01 unless given.
    ordered : bool
        Pairs within each file are in the order of time, too.
    feature : str, optional
        Network to use of dataset folders, where there are several.
    out : path, optional
        Folder to write a report to.
    progress : callable

    Returns
    -------
    MonitoringResult
        ``verdict.due`` says whether recalibration is due.
    dict of str by Path
        The files of the report.

    Examples
    --------
    >>> import faircal
    >>> monitored, _ = faircal.monitor("m.faircal", ["today.parquet"])  # doctest: +SKIP
    >>> monitored.verdict.due  # doctest: +SKIP
    False
    """
    model, paths = Path(model), [Path(path) for path in scores]
    state = None if state is None else Path(state)
    _check(paths, model, out, state)
    fitted, kept = _begin(model, state, false_alarms)
    empty = [path for path in paths if _is_header_only(path)]  # a night without decisions
    full = [path for path in paths if path not in empty]
    with step(progress, "opening"):
        # All before any is read, so that what is wrong is said first.
        sources = [open_source(path, fitted, kept.model_sha256, feature) for path in full]
    for source in sources:
        if source.digest in kept.files:
            raise DataError(
                f"{source.path}: was counted before, in this call or in an earlier one with "
                "the same --state; leave it out"
            )
        kept.files.append(source.digest)
    if state is None and len(sources) == 1 and not (ordered or sources[0].timed):
        # Nothing comes before or after: all of it at once is surest.
        kept.watch = Watch(fitted, false_alarms=kept.watch.false_alarms, in_order=False)
    counted = _count(sources, kept, ordered, progress)
    verdict = kept.watch.verdict()
    caveats = {finding.details.get("caveat") for finding in verdict.findings}
    provenance = fitted.about_.provenance
    monitored = MonitoringResult(
        verdict=verdict,
        population=kept.watch.population,
        timeline=kept.timeline[-_STRETCHES:],
        model={
            "name": model.name,
            "method": fitted.title,
            "sha256": kept.model_sha256,
            "data": provenance.data if provenance else "",
            "simulated": bool(provenance and provenance.simulated),
        },
        false_alarms=kept.watch.false_alarms,
        sources=counted,
        notes=[
            *(f"{path}: there are no pairs in it" for path in empty),
            *(text for source in sources for text in source.notes),
            *sorted(filter(None, caveats)),
        ],
    )
    files = {} if out is None else write_monitoring(out, monitored)
    if state is not None:  # the last, so that a call that failed can be made again
        kept.save(state)
    return monitored, files


def _check(scores: Sequence[Path], model: Path, out: str | Path | None, state: Path | None) -> None:
    """Raise where something can't be written, or would overwrite what is read."""
    if out is not None:
        check_output(Path(out), folder=True)
    if state is not None:
        check_output(state)
        if state.resolve() in {path.resolve() for path in (model, *scores)}:
            raise ParameterError(f"--state {state}: is read by this command; choose another path")
    if len({path.resolve() for path in scores}) < len(scores):
        raise ParameterError("SCORES: a file is given twice; give each once")


def _is_header_only(path: Path) -> bool:
    """Say whether a file is a CSV table with names of columns and no row."""
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b"probability" in file.readline(1 << 16) and not file.readline(1 << 16).strip()


def _begin(
    path: Path, state: Path | None, false_alarms: float | None
) -> tuple[Method, MonitorState]:
    """Read the model, and begin to watch it, or go on from a state."""
    model, digest = load_method(path), file_digest(path)
    rate = FALSE_ALARMS if false_alarms is None else false_alarms
    try:
        watch = Watch(model, false_alarms=rate)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if state is not None and state.exists():
        return model, MonitorState.load(state, model, digest, false_alarms)
    return model, MonitorState(watch, digest)


def _count(
    sources: Sequence[WatchedSource],
    kept: MonitorState,
    ordered: bool,
    progress: Progress,
) -> dict[str, int]:
    """Go through all pairs; return how many there were, by path."""
    counted: dict[str, int] = {}
    total, done = sum(source.pairs for source in sources), 0
    for source in sources:
        counted[str(source.path)] = 0
        timed = ordered or source.timed
        stretches = source.parts()
        if not timed:  # all pairs are one stretch, where there are any
            every = list(stretches)
            stretches = iter([PairsInUse.join(every)] if every else [])
        for stretch in stretches:
            kept.timeline.append(Stretch.of(stretch, source.name))
            for part in [stretch] if timed else in_random_order(stretch):
                kept.watch.add(part)
                counted[str(source.path)] += len(part)
                done += len(part)
                progress("counting", done, total, source.name)
    progress("counting", 0, 0, "")
    return counted


def in_random_order(pairs: PairsInUse) -> Iterator[PairsInUse]:
    """Yield all pairs in an order that is as likely as any other; the same each time.

    Tables are sorted by person, group or label, which is no order of time, and looks like a change.
    """
    order = np.random.default_rng(_SEED).permutation(len(pairs))
    for start in range(0, len(order), _PART):
        yield pairs.take(order[start : start + _PART])
