"""Score files of bob: four columns, five, or CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.build import require_crossable
from faircal.data.importers.base import (
    Import,
    add_attributes,
    each_line,
    images_of_pairs,
    range_notes,
)

#: Columns of a CSV that name a probe and a model: version 8 of bob, before, long before.
_PROBES = ("probe_template_id", "probe_reference_id", "probe_key", "key")
_MODELS = ("bio_ref_template_id", "bio_ref_reference_id", "bio_ref_subject_id")
_PEOPLE = ("bio_ref_subject_id", "probe_subject_id")
_ATTACK = "probe_attack_type"
#: What the columns of a file without a header are: claimed id, model label, real id, probe label.
_FOUR = ("bio_ref_subject_id", "probe_subject_id", "probe_template_id", "score")
_HEADERS = {4: _FOUR, 5: (_FOUR[0], "bio_ref_template_id", *_FOUR[1:])}
_NO_ATTRIBUTES = {"identity", "image_id", "fold"}
#: What bob writes where a value is not known.
_UNKNOWN = {"", "None", "nan"}
#: Lines that are held as Python's objects at a time.
_LINES = 100_000

_Row = tuple[int, list[str]]


def read_bob(
    source: str | Path,
    *,
    attributes: str | Path | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> Import:
    """Read a score file: ``claimed_id [model_label] real_id probe_label score``, or CSV.

    A model, ``model/…``, is the left image of a pair, the probe its right one. A score that is no
    number (bob's sign for a failure) drops the pair. In CSV, as ``bob bio pipeline simple`` writes
    it, what both sides have (``probe_gender``, ``bio_ref_gender``) is an attribute; presentation
    attacks (``probe_attack_type``) are dropped.

    Parameters
    ----------
    source : path
        The score file.
    attributes : path, optional
        Table with ``identity`` (client ids) or ``image_id``, and attribute columns.
    name : str, optional
        The dataset's name; the file's by default.
    """
    path = existing(source)
    if path.is_dir():
        raise DataError(f"{path}: expected a score file, found a folder; give the file")
    header, rows = _opened(path)
    names = _shared(header)
    require_crossable(names, str(path))
    table = _read(path, header, names, rows, progress)
    attack = np.asarray(table["attack"])
    failed = np.isnan(np.asarray(table["score"])) & ~attack
    kept = table.filter(pa.array(~attack & ~failed)).combine_chunks()
    columns = {"identity": _PEOPLE} | {key: (f"bio_ref_{key}", f"probe_{key}") for key in names}
    lines = kept["line"]
    images = images_of_pairs(
        kept, ("model", "probe"), columns, lambda row: f"{path}, line {lines[row]}"
    )
    pairs = {
        "left": kept["model"],
        "right": kept["probe"],
        "genuine": pc.equal(*(kept[person] for person in _PEOPLE)),
        "score": kept["score"],
    }
    imported = Import("bob", name or path.stem, path, images, [pa.table(pairs)])
    for mask, why in ((attack, "presentation attacks"), (failed, "no score (failures)")):
        if mask.any():
            imported.notes.append(f"{mask.sum():,} of {len(table):,} pairs dropped: {why}")
    imported.notes += range_notes(np.asarray(kept["score"]))
    if attributes is not None:
        add_attributes(imported, Path(attributes))
    return imported


def _opened(path: Path) -> tuple[Sequence[str], Iterator[_Row]]:
    """Return the names of the columns, and the lines that follow, with their numbers."""
    number, fields = next(each_line(path))
    # Ids may hold commas, too.
    plain = "," not in fields[0] or (len(fields) in _HEADERS and _PEOPLE[0] not in fields[0])
    if plain:
        if len(fields) not in _HEADERS:
            raise DataError(
                f"{path}, line {number}: expected 4 or 5 fields, found {len(fields)}; "
                "give a score file of bob with four columns or five, or CSV with its header"
            )
        return _HEADERS[len(fields)], each_line(path)
    rows = _csv_rows(path)
    number, header = next(rows)
    probe = next((name for name in _PROBES if name in header), _PROBES[0])
    for name in (probe, *_PEOPLE, "score"):
        if header.count(name) != 1:
            raise DataError(
                f"{path}, line {number}: expected one column '{name}', found {', '.join(header)}; "
                "give the CSV as bob wrote it"
            )
    return header, rows


def _csv_rows(path: Path) -> Iterator[_Row]:
    """Give line number and fields of each line of a CSV that is not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for fields in reader:
                if any(field.strip() for field in fields):
                    yield reader.line_num, [field.strip() for field in fields]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); copy it again") from error


def _shared(header: Sequence[str]) -> list[str]:
    """Return what both sides of a comparison have, ids left out."""
    ids = {*_PROBES, *_MODELS, *_PEOPLE}
    names = [name.removeprefix("probe_") for name in header if name.startswith("probe_")]
    return [
        name
        for name in names
        if f"bio_ref_{name}" in header
        and not {f"probe_{name}", f"bio_ref_{name}"} & ids
        and name not in _NO_ATTRIBUTES
    ]


def _read(
    path: Path,
    header: Sequence[str],
    names: Sequence[str],
    rows: Iterator[_Row],
    progress: Progress,
) -> pa.Table:
    """Read the comparisons: line, model, probe, people, attributes, score, attack."""
    at = {name: place for place, name in enumerate(header)}
    model = next(name for name in _MODELS if name in at)
    probe = next(name for name in _PROBES if name in at)
    facts = [f"{side}_{name}" for side in ("bio_ref", "probe") for name in names]
    texts = ["model", "probe", *_PEOPLE, *facts]
    schema = pa.schema(
        [
            ("line", pa.int64()),
            *((name, pa.string()) for name in texts),
            ("score", pa.float64()),
            ("attack", pa.bool_()),
        ]
    )
    parts, done = [schema.empty_table()], 0
    while part := list(islice(rows, _LINES)):
        columns: list[list[object]] = [[] for _ in schema]
        for number, fields in part:
            where = f"{path}, line {number}"
            if len(fields) != len(header):
                raise DataError(
                    f"{where}: expected {len(header)} fields, found {len(fields)}; correct or "
                    "remove the line, or give a score file as bob wrote it"
                )
            for name in (model, probe, *_PEOPLE, "score"):
                if not fields[at[name]]:
                    raise DataError(
                        f"{where}, column '{name}': empty; fill it in or remove the line"
                    )
            row = (
                number,
                f"model/{fields[at[model]]}",
                *(fields[at[name]] for name in (probe, *_PEOPLE)),
                *(None if fields[at[name]] in _UNKNOWN else fields[at[name]] for name in facts),
                _score(fields[at["score"]], where),
                _ATTACK in at and fields[at[_ATTACK]] not in _UNKNOWN,
            )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        done += len(part)
        length = len(" ".join(part[-1][1])) + 1
        progress("reading scores", done, max(path.stat().st_size // length, done), "")
        parts.append(pa.table(columns, schema=schema))
    progress("reading scores", 0, 0, "")
    return pa.concat_tables(parts)


def _score(text: str, where: str) -> float:
    """Return the score; NaN is a failure."""
    try:
        score = float(text)
    except ValueError:
        score = math.inf
    if math.isinf(score):
        raise DataError(f"{where}: expected a score, found {text!r}; correct or remove the line")
    return score
