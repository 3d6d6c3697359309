"""A folder with a sub-folder for each person."""

from __future__ import annotations

import os
from bisect import bisect
from pathlib import Path

import pyarrow as pa

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal.data.importers.base import Import, add_attributes

#: What counts as a picture.
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif")


def read_folder(
    source: str | Path,
    *,
    attributes: str | Path | None = None,
    level: int | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> Import:
    """Read a folder of pictures in which each person has a sub-folder.

    An image's id is its path below `source`; its person is the folder it lies in, or that of
    `level`. Pictures that lie in `source` itself are of unknown people. There are no pairs:
    ``faircal pairs`` makes them.

    Parameters
    ----------
    source : path
    attributes : path, optional
        Table with ``identity`` or ``image_id``, and attribute columns.
    level : int, optional
        Which folder names the person: 1 is the outermost. For ``ann/2019/1.jpg`` level 1 gives
        ``ann``; without it the person is ``ann/2019``.
    name : str, optional
        The dataset's name; that of the folder by default.
    """
    folder = existing(source)
    if not folder.is_dir():
        raise DataError(f"{folder}: expected a folder with a sub-folder for each person; give one")
    ids, others = list_pictures(folder, progress)
    if not ids:
        kinds = ", ".join(SUFFIXES)
        raise DataError(f"{folder}: expected pictures ({kinds}), found none; check the path")
    odd = next((image for image in ids if not _is_text(image)), None)
    if odd is not None:
        raise DataError(f"{folder}: the name {odd!r} is not UTF-8 text; rename the file or folder")
    people = ["/".join(image.split("/")[:-1][:level]) or None for image in ids]
    images = pa.table({"image_id": ids, "identity": pa.array(people, pa.string())})
    imported = Import("folder", name or folder.resolve().name, folder, images, home=".")
    deep = next((person for person in people if person and "/" in person), None)
    if deep is not None and level is None:
        imported.notes.append(
            f"folders lie in folders: each with pictures counts as a person, such as {deep}; "
            "--level 1 names people by the outermost"
        )
    loose = sum(person is None for person in people)
    if loose:
        imported.notes.append(
            f"{loose:,} pictures lie in no person's folder: their person is unknown"
        )
    if others:
        imported.notes.append(f"{others:,} files that are no pictures were passed over")
    if attributes is not None:
        add_attributes(imported, Path(attributes))
    return imported


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def list_pictures(folder: Path, progress: Progress = silent) -> tuple[list[str], int]:
    """Return the paths, below `folder`, of its pictures in order, and the number of other files."""
    pictures: list[str] = []
    others = 0
    top = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    visited: set[tuple[int, int]] = set()  # a link may lead back to where one has been
    for place, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(place)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in visited:
            folders[:] = []
            continue
        visited.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(place).relative_to(folder)
        for file in sorted(name for name in files if not name.startswith(".")):
            if file.lower().endswith(SUFFIXES):
                pictures.append((inside / file).as_posix())
            else:
                others += 1
        if inside.parts:
            done = bisect(top, inside.parts[0])
            progress("listing folders", done, len(top), f"{len(pictures):,} pictures")
    progress("listing folders", 0, 0, "")
    return pictures, others
