"""RFW and LFW, whose pairs are listed as people and numbers of their pictures.

RFW: ``test/txts/{E}/{E}_pairs.txt``, ``test/data/{E}/{id}/{id}_0001.jpg``.
LFW: ``pairs.txt`` (View 2), ``people.txt``, ``lfw/{name}/{name}_0001.jpg``.
"""

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
    add_attributes,
    drop_absent,
    each_line,
    find_home,
    find_one,
    first_few,
)

ETHNICITIES = ("African", "Asian", "Caucasian", "Indian")
N_SPLITS = 10
#: Pairs of a list of RFW that is no excerpt: as shipped it has 6,000.
_LONG = 1000
#: Where LFW's pictures may lie.
_HOMES = ("lfw", "lfw-deepfunneled", "lfw_funneled", "lfw-funneled", "lfw-a", ".")

#: A person, and the number of a picture.
Picture = tuple[str, int]


def _path(picture: Picture) -> str:
    person, number = picture
    return f"{person}/{person}_{number:04d}.jpg"


def _number(text: str, path: Path, line: int, what: str) -> int:
    """Read a whole number of a text file."""
    # str.isdigit takes signs that int() does not; nothing here is numbered in billions.
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(
            f"{path}, line {line}: expected {what}, found {text!r}; correct or remove the line"
        )
    return int(text)


def _pair(path: Path, line: int, fields: list[str]) -> tuple[Picture, Picture]:
    """Read ``person n1 n2`` (genuine) or ``person1 n1 person2 n2`` (imposter)."""
    if len(fields) not in (3, 4):
        raise DataError(
            f"{path}, line {line}: expected 3 fields (person, number, number) or 4 (person, "
            f"number, person, number), found {len(fields)}; correct or remove the line"
        )
    first = _number(fields[1], path, line, "the number of a picture")
    second = _number(fields[-1], path, line, "the number of a picture")
    if len(fields) == 4 and fields[0] == fields[2]:
        raise DataError(
            f"{path}, line {line}: an imposter pair names {fields[0]} twice; "
            "correct or remove the line"
        )
    return (fields[0], first), (fields[-2] if len(fields) == 4 else fields[0], second)


def read_rfw(
    source: str | Path,
    *,
    folds: int = 5,
    pictures: bool = True,
    progress: Progress = silent,
) -> Import:
    """Read RFW.

    A person id is not unique over ethnicities, so a person is ``African/m.0xnkj`` and an image
    ``African/m.0xnkj/m.0xnkj_0001.jpg``, its path.

    Parameters
    ----------
    source : path
        The folder with ``test``, or with ``data`` and ``txts``.
    folds : {5, 10}
        5: consecutive splits joined in twos, as in the paper; 10: the splits as shipped.
    pictures : bool
        Look for the pictures, and drop the pairs of those that are not there.
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
        lines = [_pair(path, number, fields) for number, fields in each_line(path)]
        genuine = [left[0] == right[0] for left, right in lines]
        # A split is a block of genuine, then of imposter pairs.
        same = np.array(genuine)
        splits = np.cumsum(np.concatenate([[True], same[1:] & ~same[:-1]])).tolist()
        if splits[-1] != N_SPLITS:
            problem = f"expected {N_SPLITS} splits, found {splits[-1]}"
            # A short list (somebody's excerpt) may well have fewer.
            if splits[-1] > N_SPLITS or len(splits) >= _LONG:
                raise DataError(f"{path}: {problem}; copy the file again")
            notes.append(f"{path.name}: {problem}")
        columns["left"] += [f"{ethnicity}/{_path(left)}" for left, _ in lines]
        columns["right"] += [f"{ethnicity}/{_path(right)}" for _, right in lines]
        columns["genuine"] += genuine
        columns["fold"] += [(split - 1) * folds // N_SPLITS + 1 for split in splits]
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
    imported.notes += notes
    times = Counter(person.partition("/")[2] for person in dict.fromkeys(people))
    if shared := sorted(person for person, count in times.items() if count > 1):
        shared_ids = f"{len(shared)} person ids occur in two ethnicities ({first_few(shared)}); "
        imported.notes.append(f"{shared_ids}each counts as two people")
    imported.options = {
        "folds": "ten as shipped" if folds == N_SPLITS else "consecutive splits joined in twos"
    }
    if pictures:
        imported.home = find_home(folder, ("test/data", "data"), ids)
        drop_absent(imported, progress)
    return imported


def read_lfw(
    source: str | Path,
    *,
    attributes: str | Path | None = None,
    pictures: bool = True,
    progress: Progress = silent,
) -> Import:
    """Read LFW's View 2: ten folds of 300 genuine and 300 imposter pairs.

    With ``people.txt`` all people's images are listed, each with its person's fold, so that
    ``faircal pairs`` can make more pairs within the same folds.

    Parameters
    ----------
    source : path
        The folder with ``pairs.txt`` and the pictures' folder.
    attributes : path, optional
        Table with ``identity`` or ``image_id``, and attribute columns.
    pictures : bool
        Look for the pictures, and drop the pairs of those that are not there.
    """
    folder = existing(source)
    pairs = _read_pairs(find_one(folder, ("pairs.txt",), "the pair list"))
    people = _read_people(folder / "people.txt") if (folder / "people.txt").exists() else {}
    used = dict.fromkeys([*pairs["left"].to_pylist(), *pairs["right"].to_pylist()])
    listed = [_path((name, i)) for name, (n, _) in people.items() for i in range(1, n + 1)]
    ids = list(dict.fromkeys([*listed, *used]))
    names = [image.partition("/")[0] for image in ids]
    columns: dict[str, object] = {"image_id": ids, "identity": names}
    if people:
        columns["fold"] = [people[name][1] if name in people else None for name in names]
    imported = Import("lfw", "LFW", folder, pa.table(columns), [pairs])
    if attributes is not None:
        add_attributes(imported, Path(attributes))
    if pictures:
        imported.home = find_home(folder, _HOMES, ids)
        drop_absent(imported, progress)
    return imported


def _read_pairs(path: Path) -> pa.Table:
    """Read View 2: a line with the numbers of folds and of pairs, then fold after fold."""
    (first, head), *lines = each_line(path)
    if len(head) != 2:
        raise DataError(
            f"{path}, line {first}: expected the numbers of folds and of pairs, such as '10 300', "
            f"found {' '.join(head)!r}; give View 2's pairs.txt"
        )
    n_folds, n_pairs = (_number(text, path, first, "a whole number") for text in head)
    if not n_folds * n_pairs or len(lines) != 2 * n_folds * n_pairs:
        raise DataError(
            f"{path}: expected {2 * n_folds * n_pairs} pairs ({n_folds} folds of {n_pairs} genuine "
            f"and {n_pairs} imposter), found {len(lines)}; copy the file again"
        )
    columns: dict[str, list[object]] = {"left": [], "right": [], "genuine": [], "fold": []}
    for i, (number, fields) in enumerate(lines):
        left, right = _pair(path, number, fields)
        genuine = i // n_pairs % 2 == 0
        if (left[0] == right[0]) != genuine:
            kind = "a genuine pair (3 fields)" if genuine else "an imposter pair (4 fields)"
            raise DataError(
                f"{path}, line {number}: expected {kind}, found {len(fields)} fields; "
                "copy the file again"
            )
        columns["left"].append(_path(left))
        columns["right"].append(_path(right))
        columns["genuine"].append(genuine)
        columns["fold"].append(i // (2 * n_pairs) + 1)
    return pa.table(columns)


def _read_people(path: Path) -> dict[str, tuple[int, int]]:
    """Return each person's number of images and fold.

    The file has the number of folds, then for each fold the number of its people and their lines.
    """
    lines = each_line(path)

    def following(what: str, n_fields: int) -> tuple[int, list[str]]:
        number, fields = next(lines, (0, []))
        if len(fields) != n_fields:
            place = f"{path}, line {number}" if number else f"{path}, at its end"
            raise DataError(
                f"{place}: expected {what}, found {len(fields)} fields ({' '.join(fields):.60}); "
                "copy the file again"
            )
        return number, fields

    def count(what: str) -> int:
        number, fields = following(what, 1)
        return _number(fields[0], path, number, what)

    people: dict[str, tuple[int, int]] = {}
    for fold in range(1, count("the number of folds") + 1):
        for _ in range(count(f"the number of people in fold {fold}")):
            number, (name, images) = following("a name and a number of images", 2)
            if name in people:
                raise DataError(
                    f"{path}, line {number}: {name} is listed twice; copy the file again"
                )
            people[name] = (_number(images, path, number, "a number of images"), fold)
    following("the end", 0)
    return people
