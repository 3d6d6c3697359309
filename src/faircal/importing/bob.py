"""Score files of bob, with four columns or five."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from faircal.errors import DataError
from faircal.files import existing
from faircal.importing.base import Import, add_attributes, range_notes, read_lines
from faircal.jobs import Progress, silent


def read_bob(
    source: str | Path,
    *,
    attributes: str | Path | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> Import:
    """Read a score file: ``claimed_id [model_label] real_id probe_label score``.

    A model, ``model/…``, is the left image of a pair, the probe its right one. A score that is no
    number (bob's sign for a failure) drops the pair.

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
    people: dict[str, str] = {}
    pairs: dict[str, list[Any]] = {"left": [], "right": [], "genuine": [], "score": []}
    lines = read_lines(path)
    for i, (line, fields) in enumerate(lines):
        if i % 100_000 == 0:
            progress("reading scores", i, len(lines), "")
        score = _score(path, line, fields, len(lines[0][1]))
        if math.isnan(score):
            continue
        claimed, real, probe, model = fields[0], fields[-3], fields[-2], f"model/{fields[-4]}"
        for image, person in ((model, claimed), (probe, real)):
            if people.setdefault(image, person) != person:
                raise _two_people(path, line, image, people[image], person)
        for key, value in zip(pairs, (model, probe, claimed == real, score), strict=True):
            pairs[key].append(value)
    progress("reading scores", 0, 0, "")
    images = pa.table({"image_id": list(people), "identity": list(people.values())})
    found = Import("bob", name or path.stem, path, images, [pa.table(pairs)])
    found.notes += _notes(pairs["score"], len(lines))
    if attributes is not None:
        add_attributes(found, Path(attributes))
    return found


def _two_people(path: Path, line: int, image: str, one: str, other: str) -> DataError:
    return DataError(
        f"{path}, line {line}: {image} belongs to {one} and to {other}; correct one of them"
    )


def _notes(scores: list[float], n_lines: int) -> list[str]:
    notes = []
    if len(scores) < n_lines:
        failed = n_lines - len(scores)
        notes.append(f"{failed:,} of {n_lines:,} pairs dropped: no score (failures)")
    return notes + range_notes(scores)


def _score(path: Path, line: int, fields: list[str], width: int) -> float:
    """Return the score that ends a line of `width` fields; NaN is a failure."""
    if len(fields) != width or width not in (4, 5):
        expected = width if width in (4, 5) else "4 or 5"
        raise DataError(
            f"{path}, line {line}: expected {expected} fields, found {len(fields)}; "
            "give a score file of bob with four columns or five"
        )
    try:
        score = float(fields[-1])
    except ValueError:
        score = math.inf
    if math.isinf(score):
        raise DataError(
            f"{path}, line {line}: expected a score, found {fields[-1]!r}; "
            "correct or remove the line"
        )
    return score
