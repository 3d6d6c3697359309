"""How ``faircal audit`` measures: all pairs in memory, or part by part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal.cli.options import Source, fold_named, progress_bars, working

if TYPE_CHECKING:
    from faircal.auditing import Audit
    from faircal.data import Dataset, PairStream
    from faircal.methods import Method

#: With more pairs than this they are counted part by part, not held in memory.
MOST_PAIRS = 10_000_000
#: Pairs read at a time.
BATCH = 1 << 20


@dataclass(frozen=True)
class Wanted:
    """What is to be measured, and how."""

    source: Source
    model: Method | None
    attribute: str | None
    features: tuple[str, ...]
    fold: str | None
    threshold: float | None
    rates: tuple[float, ...]
    about: dict[str, Any]  # what else the result depends on


@dataclass(frozen=True)
class Measured:
    """What came out, and what ``run.json`` says of the data."""

    audits: list[Audit]
    about: Dataset | PairStream
    shares: dict[str, dict[str, int]]
    notes: list[str]
    data: dict[str, Any]


def is_long(path: Path) -> bool:
    """Whether there are more pairs than are held in memory; what can't be read is not."""
    from faircal.data.batches import open_table
    from faircal.data.tables import find_table
    from faircal.errors import FairCalError

    try:
        table = find_table(path, "pairs") if path.is_dir() else path
        # The shortest line of a CSV file is "1,0": a short file need not be gone through twice.
        least = 4 * MOST_PAIRS if table.suffix == ".csv" else 0
        return table.stat().st_size > least and open_table(table).n_rows > MOST_PAIRS
    except (FairCalError, OSError):
        return False  # reading it will say what is wrong


def measure_whole(wanted: Wanted) -> Measured:
    """Measure pairs that are all in memory."""
    from faircal.auditing import Scored, audit_pairs

    model = wanted.model
    loaded = wanted.source.load(wanted.features, measuring=model is None)
    notes: list[str] = []
    if wanted.fold is not None:
        notes += loaded.notes
        loaded = loaded.split(fold_named(loaded, wanted.fold))[1]
    attribute = wanted.attribute or loaded.default_attribute
    groups = {} if attribute is None else {attribute: loaded.groups(attribute)}
    notes += _why_no_groups(loaded, attribute)
    notes += [text for name, found in groups.items() for text in found.unknown_note(name)]
    audits = []
    with working("measuring"):
        for feature in loaded.features:
            data = loaded.select(feature)
            output = None if model is None else model.apply(data)
            found = audit_pairs(
                Scored.of_data(data, output, attribute),
                threshold=wanted.threshold,
                rates=wanted.rates,
                score_range=data.score_range,
                dataset=data.name,
                feature=feature,
                attribute=attribute or "",
                method="" if model is None else model.name,
            )
            audits.append(found)
        hashed = {"data_sha256": loaded.hash(), "data_sha256_of": "values"}
    shares = {name: found.shares() for name, found in groups.items()}
    return Measured(audits, loaded, shares, notes, {"pairs": len(loaded), **hashed})


def measure_streamed(wanted: Wanted, partial: Path, resume: bool) -> Measured:
    """Count pairs part by part."""
    from faircal.auditing import audit_stream, bounds_note, files_digest
    from faircal.jobs import Job

    with working(f"reading {wanted.source.path}"):
        stream = _open(wanted)
        attribute = wanted.attribute or stream.default_attribute
        notes = [*stream.notes, *_why_no_groups(stream, attribute)]
    try:
        with progress_bars() as update:
            job = Job(update, partial, resume, notes)
            auditors = audit_stream(
                stream,
                model=wanted.model,
                attribute=attribute,
                threshold=wanted.threshold,
                rates=wanted.rates,
                about=wanted.about,
                job=job,
            )
    except KeyboardInterrupt as error:
        hint = "the audit goes on with --resume" if partial.exists() else "nothing is written"
        raise KeyboardInterrupt(hint) from error
    with working("measuring"):
        audits = [auditor.finish() for auditor in auditors]
        hashed = {"data_sha256": files_digest(stream.origin.files), "data_sha256_of": "files"}
    shares = {} if attribute is None else {attribute: auditors[0].shares}
    notes += auditors[0].unknown_note()
    notes += bounds_note(audits)
    data = {
        "pairs": auditors[0].shares["pairs"],
        **hashed,
        "streamed": True,
        "error_bounds": {found.feature: found.worst_bounds() for found in audits},
    }
    return Measured(audits, stream, shares, notes, data)


def _open(wanted: Wanted) -> PairStream:
    from faircal.data import open_stream
    from faircal.data.dataset import COSINE_RANGE

    # Measured alone, scores may be in any range: those of some methods leave the cosine's.
    any_range = None if wanted.model is None else COSINE_RANGE
    return open_stream(
        wanted.source.path,
        features=wanted.features or None,
        score_range=wanted.source.score_range or any_range,
        normalize=not wanted.source.raw,
        batch=BATCH,
        fold=wanted.fold,
    )


def _why_no_groups(data: Dataset | PairStream, attribute: str | None) -> list[str]:
    return [] if attribute is not None else [f"only global figures: {data.why_no_groups()}"]
