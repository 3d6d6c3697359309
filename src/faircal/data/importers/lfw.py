"""LFW, Labeled Faces in the Wild: ``pairs.txt`` (View 2), ``people.txt``, ``lfw/{name}/….jpg``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.importers.base import (
    Import,
    add_attributes,
    drop_absent,
    find_home,
    find_one,
    first_few,
    pair_line,
    read_lines,
    whole_number,
)

_HOMES = ("lfw", "lfw-deepfunneled", "lfw_funneled", "lfw-funneled", "lfw-a", ".")


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
    listed = [_image(name, i) for name, (n, _) in people.items() for i in range(1, n + 1)]
    ids = list(dict.fromkeys([*listed, *used]))
    names = [image.partition("/")[0] for image in ids]
    columns: dict[str, object] = {"image_id": ids, "identity": names}
    if people:
        columns["fold"] = [people[name][1] if name in people else None for name in names]
    imported = Import("lfw", "LFW", folder, pa.table(columns), [pairs])
    imported.notes += _disagreements(pairs, people, set(listed), list(used))
    if attributes is not None:
        add_attributes(imported, Path(attributes))
    if pictures:
        imported.home = find_home(folder, _HOMES, ids)
        drop_absent(imported, progress)
    return imported


def _image(name: str, number: int) -> str:
    return f"{name}/{name}_{number:04d}.jpg"


def _read_pairs(path: Path) -> pa.Table:
    """Read View 2: a line with the numbers of folds and of pairs, then fold after fold."""
    (first, head), *lines = read_lines(path)
    if len(head) != 2:
        raise DataError(
            f"{path}, line {first}: expected the numbers of folds and of pairs, such as '10 300', "
            f"found {' '.join(head)!r}; give View 2's pairs.txt"
        )
    n_folds, n_pairs = (whole_number(text, path, first, "a whole number") for text in head)
    if not n_folds * n_pairs or len(lines) != 2 * n_folds * n_pairs:
        raise DataError(
            f"{path}: expected {2 * n_folds * n_pairs} pairs ({n_folds} folds of {n_pairs} genuine "
            f"and {n_pairs} imposter), found {len(lines)}; copy the file again"
        )
    columns: dict[str, list[object]] = {"left": [], "right": [], "genuine": [], "fold": []}
    for i, (number, fields) in enumerate(lines):
        pair = pair_line(path, number, fields)
        genuine = i // n_pairs % 2 == 0
        if pair.genuine != genuine:
            kind = "a genuine pair (3 fields)" if genuine else "an imposter pair (4 fields)"
            raise DataError(
                f"{path}, line {number}: expected {kind}, found {len(fields)} fields; "
                "copy the file again"
            )
        columns["left"].append(_image(*pair.left))
        columns["right"].append(_image(*pair.right))
        columns["genuine"].append(genuine)
        columns["fold"].append(i // (2 * n_pairs) + 1)
    return pa.table(columns)


def _read_people(path: Path) -> dict[str, tuple[int, int]]:
    """Return each person's number of images and fold."""
    all_lines = read_lines(path)
    lines = iter(all_lines)

    def following(what: str, n_fields: int) -> tuple[int, list[str]]:
        number, fields = next(lines, (0, []))
        if not number:
            raise DataError(
                f"{path}: expected {what} after line {all_lines[-1][0]}, found the end; "
                "copy the file again"
            )
        if len(fields) != n_fields:
            raise DataError(
                f"{path}, line {number}: expected {what}, found {len(fields)} fields; "
                "copy the file again"
            )
        return number, fields

    def count(what: str) -> int:
        number, fields = following(what, 1)
        return whole_number(fields[0], path, number, what)

    people: dict[str, tuple[int, int]] = {}
    for fold in range(1, count("the number of folds") + 1):
        for _ in range(count(f"the number of people in fold {fold}")):
            number, fields = following("a name and a number of images", 2)
            if fields[0] in people:
                raise DataError(
                    f"{path}, line {number}: {fields[0]} is listed twice; copy the file again"
                )
            people[fields[0]] = (whole_number(fields[1], path, number, "a number of images"), fold)
    if (rest := next(lines, None)) is not None:
        raise DataError(
            f"{path}, line {rest[0]}: expected the end, found {' '.join(rest[1])!r}; "
            "copy the file again"
        )
    return people


def _disagreements(
    pairs: pa.Table, people: dict[str, tuple[int, int]], listed: set[str], used: list[str]
) -> list[str]:
    if not people:
        return []
    notes = []
    unlisted = [image for image in used if image not in listed]
    if unlisted:
        notes.append(
            f"{len(unlisted)} images are in pairs.txt, not in people.txt: {first_few(unlisted)}"
        )
    moved = set()
    for side in ("left", "right"):
        for image, fold in zip(pairs[side].to_pylist(), pairs["fold"].to_pylist(), strict=True):
            name = image.partition("/")[0]
            if name in people and people[name][1] != fold:
                moved.add(name)
    if moved:
        notes.append(
            f"{len(moved)} people are in different folds of pairs.txt and people.txt "
            f"({first_few(sorted(moved))}): folds share people"
        )
    return notes
