"""Score files of bob, with four columns or five."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal.errors import DataError
from faircal.files import existing
from faircal.importing.base import Import, add_attributes, each_line, range_notes
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
    number: dict[str, int] = {}  # of each image; pairs are kept as numbers: files can be long
    left, right, scores, n_lines, width = array("q"), array("q"), array("d"), 0, 0
    for line, fields in each_line(path):
        n_lines, width = n_lines + 1, width or len(fields)
        score = _score(path, line, fields, width)
        if n_lines % 100_000 == 0:
            progress("reading scores", n_lines, _about(path, line, fields), "")
        if math.isnan(score):
            continue
        claimed, real, probe, model = fields[0], fields[-3], fields[-2], f"model/{fields[-4]}"
        for image, person, side in ((model, claimed, left), (probe, real, right)):
            if people.setdefault(image, person) != person:
                raise _two_people(path, line, image, people[image], person)
            side.append(number.setdefault(image, len(number)))
        scores.append(score)
    progress("reading scores", 0, 0, "")
    columns = {"image_id": list(people), "identity": list(people.values())}
    images = pa.table({key: pa.array(column, pa.string()) for key, column in columns.items()})
    found = Import("bob", name or path.stem, path, images, [_pairs(images, left, right, scores)])
    found.notes += _notes(np.asarray(scores), n_lines)
    if attributes is not None:
        add_attributes(found, Path(attributes))
    return found


def _about(path: Path, line: int, fields: list[str]) -> int:
    """Return about how many lines a file has, all being as long as this one."""
    return max(path.stat().st_size // len(" ".join(fields) + " "), line)


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


def _two_people(path: Path, line: int, image: str, one: str, other: str) -> DataError:
    return DataError(
        f"{path}, line {line}: {image} belongs to {one} and to {other}; correct one of them"
    )


def _notes(scores: NDArray[np.float64], n_lines: int) -> list[str]:
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
