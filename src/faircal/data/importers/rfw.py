"""RFW, Racial Faces in the Wild: ``test/txts/{E}/{E}_pairs.txt``, ``test/data/{E}/{id}/….jpg``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.importers.base import (
    Import,
    PairLine,
    drop_absent,
    find_home,
    find_one,
    first_few,
    known_faults,
    pair_line,
    read_lines,
)

ETHNICITIES = ("African", "Asian", "Caucasian", "Indian")
#: People that a reproduction of the paper judged to be filed under the wrong ethnicity.
MISFILED = ("African/m.0gc2xf9", "Asian/m.0z08d8y", "African/m.05xpnv")
N_SPLITS = 10
#: Pairs of a list that is no excerpt: as shipped it has 6,000.
_LONG = 1000


def read_rfw(
    source: str | Path,
    *,
    native: bool = False,
    pictures: bool = True,
    drop_known_faults: bool = False,
    progress: Progress = silent,
) -> Import:
    """Read RFW.

    A person id is not unique over ethnicities, so a person is ``African/m.0xnkj`` and an image
    ``African/m.0xnkj/m.0xnkj_0001.jpg``, its path.

    Parameters
    ----------
    source : path
        The folder with ``test``, or with ``data`` and ``txts``.
    native : bool
        Keep the ten splits as folds, instead of joining consecutive ones in twos.
    pictures : bool
        Look for the pictures, and drop the pairs of those that are not there.
    drop_known_faults : bool
        Drop the three people known to be filed under the wrong ethnicity.
    """
    folder = existing(source)
    texts = find_one(folder, ("test/txts", "txts"), "the pair lists")
    columns: dict[str, list[Any]] = {"left": [], "right": [], "genuine": [], "fold": []}
    notes: list[str] = []
    for ethnicity in ETHNICITIES:
        path = texts / ethnicity / f"{ethnicity}_pairs.txt"
        if not path.exists():
            notes.append(f"{path.name} is not there: no pairs of that ethnicity")
            continue
        lines = [pair_line(path, number, fields) for number, fields in read_lines(path)]
        splits = _splits(lines)
        if splits[-1] != N_SPLITS:
            notes.append(_other_splits(path, splits))
        columns["left"] += [_image(ethnicity, *line.left) for line in lines]
        columns["right"] += [_image(ethnicity, *line.right) for line in lines]
        columns["genuine"] += [line.genuine for line in lines]
        columns["fold"] += [split if native else (split - 1) // 2 + 1 for split in splits]
    if not columns["left"]:
        raise DataError(
            f"{texts}: expected {ETHNICITIES[0]}/{ETHNICITIES[0]}_pairs.txt and its like, found "
            "none; give the folder as its owners ship it"
        )
    ids = list(dict.fromkeys(columns["left"] + columns["right"]))
    people = [image.rpartition("/")[0] for image in ids]
    images = {
        "image_id": ids,
        "identity": people,
        "ethnicity": [person.partition("/")[0] for person in people],
    }
    imported = Import(
        "rfw", "RFW", folder, pa.table(images), [pa.table(columns)], attribute="ethnicity"
    )
    imported.notes += notes + _shared(people)
    imported.options = {
        "folds": "ten as shipped" if native else "consecutive splits joined in twos"
    }
    if pictures:
        imported.home = find_home(folder, ("test/data", "data"), ids)
        drop_absent(imported, progress)
    what = "person filed under the wrong ethnicity"
    known_faults(imported, "identity", MISFILED, what, drop=drop_known_faults)
    return imported


def _other_splits(path: Path, splits: list[int]) -> str:
    """Say that there are not ten splits; an error where the list is in disorder."""
    sizes = Counter(splits)
    usual = max(sizes.values())
    odd = next((split for split, size in sizes.items() if size != usual), None)
    # A short list (somebody's excerpt) may well have fewer, of any size.
    if splits[-1] > N_SPLITS or (odd is not None and len(splits) >= _LONG):
        odd = odd or N_SPLITS + 1
        line = sum(size for split, size in sizes.items() if split <= odd)
        raise DataError(
            f"{path}: expected {N_SPLITS} splits, each of genuine and then imposter pairs, found "
            f"{splits[-1]} of different sizes (split {odd} ends with pair {line}); "
            "copy the file again"
        )
    return f"{path.name}: expected {N_SPLITS} splits, found {splits[-1]}"


def _shared(people: list[str]) -> list[str]:
    """Say which person ids occur under more than one ethnicity."""
    times = Counter(person.partition("/")[2] for person in dict.fromkeys(people))
    shared = sorted(person for person, count in times.items() if count > 1)
    said = f"{len(shared)} person ids occur in two ethnicities ({first_few(shared)}); "
    return [f"{said}each counts as two people"] if shared else []


def _image(ethnicity: str, person: str, number: int) -> str:
    return f"{ethnicity}/{person}/{person}_{number:04d}.jpg"


def _splits(lines: list[PairLine]) -> list[int]:
    """Return the split, 1, 2, …, of each line: each is a block of genuine, then imposter pairs."""
    genuine = np.array([line.genuine for line in lines])
    starts = np.concatenate([[True], genuine[1:] & ~genuine[:-1]])
    return [int(split) for split in np.cumsum(starts)]
