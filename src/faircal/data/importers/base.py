"""What importers share: the result, text files, looking for pictures, attribute tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import new_folder
from faircal._base.jobs import Progress, silent
from faircal.data.build import require_crossable
from faircal.data.columns import as_arrow, as_text, require_filled
from faircal.data.dataset_folder import write_about, write_dropped
from faircal.data.tables import read_table, require_columns, rows_without, write_table

#: How many lists of dropped things name.
_EXAMPLES = 3
#: Columns of an attribute table that say whom a row is of.
_NO_ATTRIBUTES = {"identity", "image_id", "fold"}


@dataclass(eq=False)
class Import:
    """What an importer found; `save` writes it as a dataset folder.

    Attributes
    ----------
    layout, name : str
        The owner's layout, and the dataset's name.
    images : pyarrow.Table
        ``image_id``, ``identity``, attributes; ``fold`` where people come in folds.
    pairs : iterable of pyarrow.Table, optional
        ``left``, ``right``, ``genuine``, ``fold``, ``score`` where there is one; in parts, so that
        any number of pairs fits. None where the layout has no pairs: ``faircal pairs`` makes them.
    pictures : pyarrow.Table, optional
        ``image_id``, ``path``, box: where ids are no paths, or an image has several pictures.
    home : str, optional
        Folder of the pictures inside the folder that was imported.
    attribute : str, optional
        What makes groups unless the user says otherwise.
    notes : list of str
        What was dropped or is odd, with counts; complete when the pairs have been gone through.
    dropped : dict from image id to reason
    """

    layout: str
    name: str
    source: Path
    images: pa.Table
    pairs: Iterable[pa.Table] | None = None
    pictures: pa.Table | None = None
    home: str | None = None
    attribute: str | None = None
    notes: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def save(self, path: str | Path) -> Path:
        """Write the dataset folder `path`, which must be new or empty; whole or not at all."""
        target = Path(path)
        with new_folder(target) as folder:
            self.counts |= {"images": len(self.images)}
            write_table(folder, "images", [self.images])
            if self.pairs is not None:
                write_table(folder, "pairs", self._counted(self.pairs))
            if self.pictures is not None:
                write_table(folder, "pictures", [self.pictures])
            if self.dropped:
                write_dropped(folder, self.dropped)
            about: dict[str, Any] = {
                "name": self.name,
                "imported": {
                    "layout": self.layout,
                    "from": str(self.source.absolute()),
                    **self.options,
                    **self.counts,
                },
                "notes": self.notes,
            }
            if self.home is not None:
                about["pictures"] = self.home
            if self.attribute is not None:
                about["attribute"] = self.attribute
            write_about(folder, about)
        return target

    def _counted(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        self.counts |= {"pairs": 0, "genuine": 0}
        for part in parts:
            self.counts["pairs"] += len(part)
            self.counts["genuine"] += pc.sum(part["genuine"].cast(pa.int64())).as_py() or 0
            yield part
        if not self.counts["pairs"]:
            reasons = f" ({'; '.join(self.notes)})" if self.notes else ""
            raise DataError(f"{self.source}: no usable pair is left{reasons}; check the folder")


def first_few(things: Sequence[Any]) -> str:
    """Name the first few of `things`."""
    named = ", ".join(map(str, things[:_EXAMPLES]))
    return f"{named} …" if len(things) > _EXAMPLES else named


def range_notes(scores: Sequence[float] | NDArray[np.float64]) -> list[str]:
    """Say so where scores leave the cosine's range."""
    if not len(scores):
        return []
    low, high = np.min(scores), np.max(scores)
    note = f"scores lie between {low:g} and {high:g}, not within [-1, 1]: "
    return [f"{note}use --score-range LOW,HIGH with every command"] if low < -1 or high > 1 else []


# ---------------------------------------------------------------- text files


def find_one(source: Path, names: Sequence[str], what: str) -> Path:
    """Return the first of `names` that is there below `source`; none is an error."""
    for name in names:
        if (source / name).exists():
            return source / name
    raise DataError(
        f"{source}: expected {what} at {' or '.join(names)}, found none; "
        "give the folder as its owners ship it"
    )


def each_line(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give (line number, fields) of each line that is not empty; fields end at tabs or blanks."""
    any_line = False
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                fields = line.split()
                if fields:
                    any_line = True
                    yield number, fields
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({error}); copy it again") from error
    if not any_line:
        raise DataError(f"{path}: expected lines of text, found an empty file; copy it again")


# ------------------------------------------------------------------ pictures


def find_home(source: Path, candidates: Sequence[str], paths: Sequence[str]) -> str:
    """Return the folder below `source` in which the first folder of any of `paths` lies."""
    beginnings = dict.fromkeys(path.partition("/")[0] for path in paths)
    for name in candidates:
        if any((source / name / beginning).exists() for beginning in beginnings):
            return name
    raise DataError(
        f"{source}: found no pictures (looked for {paths[0]} in {', '.join(candidates)}); "
        "add them, or import the pairs alone with --no-pictures"
    )


def absent(root: Path, paths: Sequence[str], progress: Progress = silent) -> NDArray[np.bool_]:
    """Tell which of the files `paths` below `root` are not there; none of them is an error."""
    missing = np.zeros(len(paths), dtype=bool)
    base = str(root)
    for i, path in enumerate(paths):
        missing[i] = not os.path.isfile(os.path.join(base, path))  # noqa: PTH113, PTH118 (speed)
        if i % 1000 == 0:
            progress("looking for pictures", i, len(paths), "")
    progress("looking for pictures", 0, 0, "")
    if missing.all():
        raise DataError(
            f"{root}: none of the {len(missing)} pictures is there; "
            "add them, or import the pairs alone with --no-pictures"
        )
    return missing


def keep_images(imported: Import, keep: NDArray[np.bool_], reason: str) -> None:
    """Leave out images that are not to be kept, and their pairs; a note says how many."""
    if keep.all():
        return
    ids = imported.images["image_id"].combine_chunks()
    dropped = ids.filter(pa.array(~keep))
    imported.dropped |= dict.fromkeys(dropped.to_pylist(), reason)
    imported.images = imported.images.filter(pa.array(keep))
    examples = first_few(dropped.to_pylist())
    note = f"{len(dropped):,} of {len(keep):,} images dropped: {reason} ({examples})"
    if imported.pairs is None:
        imported.notes.append(note)
        return
    pairs = pa.concat_tables(imported.pairs)
    rest = pairs.filter(rows_without(pairs, ("left", "right"), dropped))
    imported.pairs = [rest]
    imported.notes.append(f"{note}; with them {len(pairs) - len(rest):,} of {len(pairs):,} pairs")


def drop_absent(imported: Import, progress: Progress) -> None:
    """Leave out of `imported` images whose picture is not there; ids are the pictures' paths."""
    if imported.home is None:
        return
    paths = imported.images["image_id"].to_pylist()
    missing = absent(imported.source / imported.home, paths, progress)
    keep_images(imported, ~missing, "picture not found")


# -------------------------------------------------------------------- images


def images_of_pairs(
    pairs: pa.Table,
    ids: tuple[str, str],
    columns: Mapping[str, tuple[str, str]],
    where: Callable[[int], str],
) -> pa.Table:
    """Return what a table of pairs says of each image, in the order in which images occur.

    The columns `ids` name the left and the right image. Each of `columns` is of two that say
    something of both, always the same of an image; where they don't, `where` names the row.
    """
    # Left and right of the first pair, of the second pair, and so on.
    turns = pa.array(np.arange(2 * len(pairs)).reshape(2, -1).T.ravel())

    def both(names: tuple[str, str]) -> pa.Array:
        sides = [chunk for name in names for chunk in pairs[name].chunks]
        return pa.chunked_array(sides, pa.string()).take(turns).combine_chunks()

    encoded = both(ids).dictionary_encode()
    codes = encoded.indices
    first = pa.array(np.unique(np.asarray(codes), return_index=True)[1])
    images = {"image_id": encoded.dictionary}
    for name, sides in columns.items():
        column = both(sides)
        images[name] = column.take(first)
        expected = images[name].take(codes)
        same = pc.equal(column, expected).fill_null(False)
        same = pc.or_(same, pc.and_(column.is_null(), expected.is_null()))
        if not pc.all(same, min_count=0).as_py():
            place = int(np.flatnonzero(~np.asarray(same))[0])
            raise DataError(
                f"{where(place // 2)}: image {encoded[place]} has more than one {name} "
                f"({expected[place]} and {column[place]}); correct one of them"
            )
    return pa.table(images)


# ---------------------------------------------------------------- attributes


def add_attributes(imported: Import, path: Path) -> None:
    """Join the table `path`, by ``image_id`` or ``identity``, to the images of `imported`."""
    table = read_table(path)
    key = "image_id" if "image_id" in table.column_names else "identity"
    require_columns(table, (key,), str(path))
    keys = as_text(table[key], f"{path}, column '{key}'").combine_chunks()
    require_filled(keys, f"{path}, column '{key}'", "name whom it is of, or remove the row")
    require_crossable(table.column_names, str(path))
    if pc.count_distinct(keys).as_py() != len(keys):
        counts = pc.value_counts(keys)
        twice = next(c["values"] for c in counts if c["counts"].as_py() > 1)
        raise DataError(
            f"{path}, column '{key}': {twice.as_py()!r} has more than one row; "
            "give each a row of its own"
        )
    if not set(table.column_names) - _NO_ATTRIBUTES:
        raise DataError(f"{path}: expected attribute columns beside '{key}', found none; add them")
    rows = pc.index_in(imported.images[key].cast(pa.string()).combine_chunks(), value_set=keys)
    for name in table.column_names:
        if name in _NO_ATTRIBUTES:
            continue
        where = f"{path}, column '{name}'"
        column = as_text(as_arrow(table[name], where), where).combine_chunks().take(rows)
        if name in imported.images.column_names:
            place = imported.images.column_names.index(name)
            imported.images = imported.images.set_column(place, name, column)
        else:
            imported.images = imported.images.append_column(name, column)
    if len(rows) and rows.null_count == len(rows):
        values = imported.images[key].drop_null()
        expected = f"expected such as {values[0].as_py()!r}, " if len(values) else ""
        raise DataError(
            f"{path}, column '{key}': names none of the {len(rows)} images "
            f"({expected}found {keys[0].as_py()!r}); spell them as the folder does"
        )
    if rows.null_count:
        imported.notes.append(
            f"{rows.null_count:,} of {len(rows):,} images have no row in {path.name}: "
            "their attributes are unknown"
        )
