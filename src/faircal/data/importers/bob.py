"""Score files of bob: four columns, five, or CSV."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.build import require_crossable
from faircal.data.importers.base import Import, add_attributes, each_line, range_notes

#: Columns of a CSV that name a probe and a model: version 8 of bob, before, long before.
_PROBES = ("probe_template_id", "probe_reference_id", "probe_key", "key")
_MODELS = ("bio_ref_template_id", "bio_ref_reference_id", "bio_ref_subject_id")
_NEEDED = ("probe_subject_id", "bio_ref_subject_id", "score")
_ATTACK = "probe_attack_type"
_NO_ATTRIBUTES = {"identity", "image_id", "fold"}
#: What bob writes where a value is not known.
_UNKNOWN = {"", "None", "nan"}

Facts = tuple[str | None, ...]


class _Line(NamedTuple):
    """A comparison; facts are the person and then the attributes."""

    number: int
    model: str
    of_model: Facts
    probe: str
    of_probe: Facts
    score: str
    attack: bool = False
    length: int = 0


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
        The dataset's name; the file's unless told.
    """
    path = existing(source)
    if path.is_dir():
        raise DataError(f"{path}: expected a score file, found a folder; give the file")
    names, lines = _csv(path) if _is_csv(path) else ([], _columns(path))
    names = ["identity", *names]
    facts_of: dict[str, Facts] = {}
    number: dict[str, int] = {}  # of each image; pairs are kept as numbers: files can be long
    left, right, scores, n_lines, n_attacks = array("q"), array("q"), array("d"), 0, 0
    for line in lines:
        n_lines, n_attacks = n_lines + 1, n_attacks + line.attack
        score = _score(path, line)
        if n_lines % 100_000 == 0:
            about = max(path.stat().st_size // max(line.length, 1), n_lines)
            progress("reading scores", n_lines, about, "")
        if math.isnan(score) or line.attack:
            continue
        model, probe = f"model/{line.model}", line.probe
        for image, facts, side in ((model, line.of_model, left), (probe, line.of_probe, right)):
            if facts_of.setdefault(image, facts) != facts:
                raise _two(f"{path}, line {line.number}: {image}", names, facts_of[image], facts)
            side.append(number.setdefault(image, len(number)))
        scores.append(score)
    progress("reading scores", 0, 0, "")
    columns: dict[str, list[str | None]] = {"image_id": [*facts_of]}
    columns |= {key: [facts[i] for facts in facts_of.values()] for i, key in enumerate(names)}
    images = pa.table({key: pa.array(column, pa.string()) for key, column in columns.items()})
    imported = Import("bob", name or path.stem, path, images, [_pairs(images, left, right, scores)])
    imported.notes += _notes(np.asarray(scores), n_lines, n_attacks)
    if attributes is not None:
        add_attributes(imported, Path(attributes))
    return imported


def _columns(path: Path) -> Iterator[_Line]:
    """Give the comparisons of a file with four columns or five."""
    width = 0
    for number, fields in each_line(path):
        width = width or len(fields)
        if len(fields) != width or width not in (4, 5):
            expected = width if width in (4, 5) else "4 or 5"
            raise DataError(
                f"{path}, line {number}: expected {expected} fields, found {len(fields)}; "
                "give a score file of bob with four columns or five, or CSV with its header"
            )
        claimed, model, real, probe, score = fields[0], *fields[-4:]
        length = len(" ".join(fields)) + 1
        yield _Line(number, model, (claimed,), probe, (real,), score, length=length)


def _is_csv(path: Path) -> bool:
    """Whether the first line is a header of bob; ids may hold commas, too."""
    _, fields = next(each_line(path))
    header = "bio_ref_subject_id" in " ".join(fields)
    return "," in fields[0] and (header or len(fields) not in (4, 5))


def _csv(path: Path) -> tuple[list[str], Iterator[_Line]]:
    """Return the attributes and the comparisons of a CSV."""
    rows = _rows(path)
    top, header = next(rows)
    where = f"{path}, line {top}"
    probe = next((name for name in _PROBES if name in header), _PROBES[0])
    for name in (probe, *_NEEDED):
        if header.count(name) != 1:
            raise DataError(
                f"{where}: expected one column '{name}', found {', '.join(header)}; "
                "give the CSV as bob wrote it"
            )
    model = next(name for name in _MODELS if name in header)
    names = _shared(header, {*_PROBES, *_MODELS, *_NEEDED})
    require_crossable(names, where)
    at = {name: place for place, name in enumerate(header)}

    def lines() -> Iterator[_Line]:
        for number, fields in rows:
            if len(fields) != len(header):
                raise DataError(
                    f"{path}, line {number}: expected {len(header)} fields, as line {top} has, "
                    f"found {len(fields)}; correct or remove the line"
                )
            for name in (model, probe, *_NEEDED):
                if not fields[at[name]]:
                    raise DataError(
                        f"{path}, line {number}, column '{name}': empty; "
                        "fill it in or remove the line"
                    )
            yield _Line(
                number,
                fields[at[model]],
                _facts(fields, at, "bio_ref_", names),
                fields[at[probe]],
                _facts(fields, at, "probe_", names),
                fields[at["score"]],
                _ATTACK in at and fields[at[_ATTACK]] not in _UNKNOWN,
                len(",".join(fields)) + 1,
            )

    return names, lines()


def _shared(header: Sequence[str], ids: set[str]) -> list[str]:
    """Return what both sides of a comparison have, ids left out."""
    names = [name.removeprefix("probe_") for name in header if name.startswith("probe_")]
    return [
        name
        for name in names
        if f"bio_ref_{name}" in header
        and not {f"probe_{name}", f"bio_ref_{name}"} & ids
        and name not in _NO_ATTRIBUTES
    ]


def _facts(fields: list[str], at: dict[str, int], side: str, names: list[str]) -> Facts:
    values = (fields[at[f"{side}{name}"]] for name in names)
    person = fields[at[f"{side}subject_id"]]
    return (person, *(None if value in _UNKNOWN else value for value in values))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give line number and fields of each line of a CSV that is not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for fields in reader:
                if any(field.strip() for field in fields):
                    yield reader.line_num, [field.strip() for field in fields]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error}); copy it again") from error


def _pairs(images: pa.Table, left: array[int], right: array[int], scores: array[float]) -> pa.Table:
    ids, people = (images[name].combine_chunks() for name in ("image_id", "identity"))
    rows = [pa.array(np.asarray(side)) for side in (left, right)]
    return pa.table(
        {
            "left": ids.take(rows[0]),
            "right": ids.take(rows[1]),
            "genuine": pc.equal(people.take(rows[0]), people.take(rows[1])),
            "score": np.asarray(scores),
        }
    )


def _two(image: str, names: Sequence[str], one: Facts, other: Facts) -> DataError:
    """Say of what an image has two values."""
    name, a, b = next(each for each in zip(names, one, other, strict=True) if each[1] != each[2])
    said = f"belongs to {a} and to {b}" if name == "identity" else f"has {name} {a} and {b}"
    return DataError(f"{image} {said}; correct one of them")


def _notes(scores: NDArray[np.float64], n_lines: int, n_attacks: int) -> list[str]:
    notes = []
    failed = n_lines - len(scores) - n_attacks
    if n_attacks:
        notes.append(f"{n_attacks:,} of {n_lines:,} pairs dropped: presentation attacks")
    if failed:
        notes.append(f"{failed:,} of {n_lines:,} pairs dropped: no score (failures)")
    return notes + range_notes(scores)


def _score(path: Path, line: _Line) -> float:
    """Return the score; NaN is a failure."""
    try:
        score = float(line.score)
    except ValueError:
        score = math.inf
    if math.isinf(score):
        raise DataError(
            f"{path}, line {line.number}: expected a score, found {line.score!r}; "
            "correct or remove the line"
        )
    return score
