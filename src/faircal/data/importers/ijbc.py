"""IJB-C: the 1:1 covariate protocol, any number of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_integer, short
from faircal.data.columns import Column, require_filled
from faircal.data.folds import N_FOLDS, deal_people
from faircal.data.importers.base import Import, absent, find_home, find_one, keep_images
from faircal.data.tables import read_table, require_columns

#: Codes of the metadata.
SKIN_TONES = {
    "1": "light_pink",
    "2": "light_yellow",
    "3": "medium_pink_brown",
    "4": "medium_yellow_brown",
    "5": "medium_dark_brown",
    "6": "dark_brown",
}
GENDERS = {"0": "female", "1": "male"}
_BOX = {"FACE_X": "x", "FACE_Y": "y", "FACE_WIDTH": "width", "FACE_HEIGHT": "height"}
#: What is read of the tables of templates; where a column is not there it is empty.
_ROWS = pa.schema(
    [
        ("TEMPLATE_ID", pa.int64()),
        ("SUBJECT_ID", pa.int64()),
        ("FILENAME", pa.string()),
        *((name, pa.float64()) for name in _BOX),
        ("SKINTONE", pa.string()),
        ("GENDER", pa.string()),
    ]
)
#: Bytes of a pair list that are read at a time: a few hundred thousand pairs.
_BLOCK = 1 << 22


_TEMPLATES = "ijbc_11_covariate_probe_reference.csv"
_MATCHES = "ijbc_11_covariate_matches.csv"


def read_ijbc(
    source: str | Path,
    *,
    pictures: bool = True,
    seed: int = 0,
    progress: Progress = silent,
) -> Import:
    """Read the 1:1 covariate protocol of IJB-C, in which a template is one picture.

    An image is a template. IJB-C has no folds. Subjects are dealt to five, stratified by skin tone
    and gender, heaviest (in templates) first; a pair of two folds is dropped, since no fold could
    use it.

    Parameters
    ----------
    source : path
        The folder with ``protocols`` (and ``images``).
    pictures : bool
        Look for the pictures, and drop the pairs of templates that have none.
    seed : int
        For dealing subjects to folds.
    """
    check_integer("seed", seed, 0)
    folder = existing(source)
    lists = find_one(folder, ("protocols", "."), "the protocols")
    matches = find_one(lists, (_MATCHES,), "the pair list of the covariate protocol")
    rows = _read_rows(find_one(lists, (_TEMPLATES,), "templates")).sort_by("TEMPLATE_ID")
    imported = Import("ijbc", "IJB-C", folder, _templates(rows, _facts(lists, rows), str(lists)))
    boxes = {new: rows[old] for old, new in _BOX.items()}
    imported.pictures = pa.table(
        {"image_id": rows["TEMPLATE_ID"], "path": rows["FILENAME"], **boxes}
    )
    imported.options = {"protocol": "covariate", "seed": seed}
    imported.notes += _unknown(imported.images)
    # Before anything is dropped, so that folds don't depend on which pictures are there.
    imported.images = imported.images.append_column("fold", [_deal(imported.images, seed)])
    if pictures:
        paths = imported.pictures["path"].to_pylist()
        imported.home = find_home(folder, ("images", "."), paths)
        missing = absent(folder / imported.home, paths, progress)
        keep_images(imported, ~missing, "picture not found")
        imported.pictures = imported.pictures.filter(pa.array(~missing))
    imported.pairs = _pairs(matches, imported, progress)
    return imported


def _read_rows(path: Path) -> pa.Table:
    """Read one of the owners' tables of templates: a row is a picture of a template."""
    table = _read_columns(path, ("TEMPLATE_ID", "SUBJECT_ID", "FILENAME"))
    require_filled(table["FILENAME"], f"{path}, column 'FILENAME'", "copy it again")
    columns = []
    for name, kind in zip(_ROWS.names, _ROWS.types, strict=True):
        if name not in table.column_names:
            columns.append(pa.nulls(len(table), kind))
            continue
        try:
            columns.append(table[name].cast(kind))
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{path}, column '{name}': expected numbers ({short(error)}); copy it again"
            ) from error
    return pa.table(columns, schema=_ROWS)


def _read_columns(path: Path, names: Sequence[str]) -> pa.Table:
    """Read a table with columns `names`, in any case; ids must be whole numbers."""
    table = read_table(path)
    table = table.rename_columns([name.strip().upper() for name in table.column_names])
    require_columns(table, names, str(path))
    for name in {"TEMPLATE_ID", "SUBJECT_ID"}.intersection(names):
        if not pa.types.is_integer(table[name].type) or table[name].null_count:
            raise DataError(
                f"{path}, column '{name}': expected a whole number in each row, found "
                f"{table[name].type} with {table[name].null_count} empty; copy it again"
            )
    return table


def _facts(lists: Path, rows: pa.Table) -> pa.Table:
    """Return what is said of subjects: by the metadata where it is there, and by the templates."""
    names = ["SUBJECT_ID", "SKINTONE", "GENDER"]
    facts = [rows.select(names)]
    path = lists / "ijbc_metadata.csv"
    if path.exists():
        table = _read_columns(path, names)
        facts.append(table.select(names).cast(facts[0].schema))
    return pa.concat_tables(facts)


def _templates(rows: pa.Table, facts: pa.Table, where: str) -> pa.Table:
    """Return the images; skin tone and gender are the subject's most frequent ones."""
    template = np.asarray(rows["TEMPLATE_ID"])  # ascending
    again = np.flatnonzero(template[1:] == template[:-1])
    if len(again):
        raise DataError(
            f"{where}: template {template[again[0]]} is listed twice; expected one picture for each"
            " template: copy the protocol's files again"
        )
    subject, owner = np.unique(np.asarray(rows["SUBJECT_ID"]), return_inverse=True)
    columns = {"image_id": template, "identity": subject[owner]}
    about = np.searchsorted(subject, np.asarray(facts["SUBJECT_ID"]))
    ours = np.asarray(facts["SUBJECT_ID"]) == subject[np.minimum(about, len(subject) - 1)]
    for name, column, values in (
        ("skin_tone", "SKINTONE", SKIN_TONES),
        ("gender", "GENDER", GENDERS),
    ):
        given = facts[column].filter(pa.array(ours))
        named = _of_subjects(given, about[ours], len(subject), values)
        columns[name] = named.take(pa.array(owner))
    return pa.table(columns)


def _of_subjects(
    column: pa.ChunkedArray, person: NDArray[np.intp], n: int, values: dict[str, str]
) -> pa.Array:
    """Return each subject's most frequent value, null where none of their rows has a known one."""
    codes = Column.of(column)
    listed = [i for i, name in enumerate(codes.names) if name in values]
    counts = np.zeros((n, len(listed) + 1), dtype=np.int64)  # the last stands for unknown
    for place, code in enumerate(listed):
        counts[:, place] = np.bincount(person[codes.codes == code], minlength=n)
    best = counts.argmax(axis=1)
    none = counts.max(axis=1) == 0
    names = [values[codes.names[code]] for code in listed]
    return pa.array(
        [None if empty else names[place] for place, empty in zip(best, none, strict=True)],
        pa.string(),
    )


def _unknown(images: pa.Table) -> list[str]:
    return [
        f"{images[name].null_count:,} of {len(images):,} templates have no known {name}"
        for name in ("skin_tone", "gender")
        if images[name].null_count
    ]


def _deal(images: pa.Table, seed: int) -> NDArray[np.int64]:
    """Return the fold of each template, its subject's."""
    groups = pc.binary_join_element_wise(
        images["skin_tone"].fill_null("?"), images["gender"].fill_null("?"), " "
    )
    people = np.asarray(images["identity"])
    _, person = np.unique(people, return_inverse=True)
    stratum = np.empty(int(person.max()) + 1, dtype=np.intp)
    stratum[person] = Column.of(groups).codes
    rng = np.random.default_rng(seed)
    return deal_people(stratum, np.bincount(person), n_folds=N_FOLDS, rng=rng)[person]


# --------------------------------------------------------------------- pairs


def _pairs(path: Path, imported: Import, progress: Progress) -> Iterator[pa.Table]:
    """Give the usable pairs in parts; a part and the templates are all that is in memory."""
    template = np.asarray(imported.images["image_id"])  # ascending
    subject, fold = np.asarray(imported.images["identity"]), np.asarray(imported.images["fold"])
    read = cross = unlisted = 0
    example = None
    for sides in _read_matches(path, progress):
        read += len(sides[0])
        rows, listed = [], np.ones(len(sides[0]), dtype=bool)
        for side in sides:
            row = np.minimum(np.searchsorted(template, side), len(template) - 1)
            has_template = template[row] == side
            if not has_template.all() and example is None:
                example = int(side[~has_template][0])
            listed &= has_template
            rows.append(row)
        same_fold = fold[rows[0]] == fold[rows[1]]
        unlisted += int((~listed).sum())
        cross += int((listed & ~same_fold).sum())
        left, right = (row[listed & same_fold] for row in rows)
        yield pa.table(
            {
                "left": template[left],
                "right": template[right],
                "genuine": subject[left] == subject[right],
                "fold": fold[left].astype(np.int8),
            }
        )
    imported.notes.append(f"{cross:,} of {read:,} pairs join subjects of two folds and are dropped")
    if unlisted:
        imported.notes.append(
            f"{unlisted:,} pairs dropped: a template without pictures or not in the "
            f"template list (such as {example})"
        )


def _read_matches(path: Path, progress: Progress) -> Iterator[Sequence[NDArray[np.int64]]]:
    """Read two template ids a line, without a header, block after block."""
    names = ["left", "right"]
    # With one thread Arrow knows, and says, which row it can't read.
    how = pacsv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=names)
    ids = pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.int64()), null_values=[])
    size, read, total = path.stat().st_size, 0, 0  # the total is an estimate, by the first block
    expected = f"{path}: expected two template ids a line"
    try:
        # What opens the file is ours: Arrow's own reader complains on standard error.
        with path.open("rb") as file:
            for batch in pacsv.open_csv(file, how, convert_options=ids):
                total = total or int(len(batch) * size / max(min(_BLOCK, size), 1))
                read += len(batch)
                progress("reading pairs", read, max(total, read), "")
                yield [np.asarray(batch.column(side)) for side in (0, 1)]
    except pa.ArrowException as error:
        raise DataError(f"{expected} ({short(error)}); copy the file again") from error
    if not read:
        raise DataError(f"{expected}, found none; copy the file again")
    progress("reading pairs", 0, 0, "")
