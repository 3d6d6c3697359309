"""Pairs of a dataset folder, made from who is in its images: the work of ``faircal pairs``."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import check_output, existing, new_folder, require_new
from faircal._base.jobs import Progress, silent
from faircal.data.columns import parse_fold
from faircal.data.dataset_folder import ImageFolder, read_about, read_images, write_about
from faircal.data.pair_files import check_one_feature
from faircal.data.pairing.build import BY_EMBEDDING, BuiltPairs, PairPlan, build_pairs
from faircal.data.tables import (
    find_table,
    first_rows,
    has_table,
    write_csv,
    write_parquet,
    write_table,
)
from faircal.data.types import cross


def make_pairs(
    data: str | Path,
    out: str | Path | None = None,
    *,
    imposters: str = "random",
    genuine: int | None = 300,
    ratio: float = 3.0,
    size: int | None = None,
    cap: int = 10,
    folds: int | None = None,
    clusters: int | None = None,
    attribute: str | None = None,
    feature: str | None = None,
    seed: int = 0,
    replace: bool = False,
    progress: Progress = silent,
) -> tuple[BuiltPairs, Path]:
    """Make pairs of a dataset folder's images and write them.

    Parameters
    ----------
    data : path
        Dataset folder whose images have identities.
    out : path, optional
        A copy of the folder to make, or a .csv or .parquet file; the folder itself unless given.
    imposters, genuine, ratio, size, cap, clusters, seed
        As for `PairPlan`.
    folds : int, optional
        Folds to draw; those of the images unless given, else 5.
    attribute : str, optional
        Attribute that makes the groups, and that folds are stratified by.
    feature : str, optional
        Embeddings to use, where there are several.
    replace : bool
        Replace the pairs that are in `data`.
    progress : callable

    Returns
    -------
    BuiltPairs
    Path
        The table that was written.

    Examples
    --------
    >>> import faircal
    >>> pairs, path = faircal.make_pairs("faces/", imposters="matched")  # doctest: +SKIP
    """
    data, out = Path(data), None if out is None else Path(out)
    if folds is not None and folds < 2:
        raise ParameterError(f"--folds: expected 2 or more, found {folds}")
    plan = PairPlan(imposters, genuine, ratio, size, cap, folds or 5, clusters, seed)
    _check_replaceable(data, out, replace)
    to_file = out is not None and out.suffix in (".csv", ".parquet")
    if out is not None:
        check_output(out, folder=not to_file)
        if not to_file:
            require_new(out)
    gallery = read_images(data, [feature] if feature else None)
    images = gallery.images
    people, fold, notes = _people(data, gallery, keep_folds=folds is None)
    groups = attribute or "+".join(images.crossed)
    codes = cross(images.attributes, groups, str(data)).codes if groups else None
    vectors = None
    if imposters in BY_EMBEDDING:
        check_one_feature(gallery.embeddings, data)
        for embeddings in gallery.embeddings.values():
            vectors = embeddings.rows(np.arange(len(embeddings)))
    built = build_pairs(
        people,
        plan,
        strata=codes,
        groups=codes,
        vectors=vectors,
        folds=fold,
        progress=progress,
    )
    record = {**dataclasses.asdict(plan), "feature": feature, "attribute": groups or None}
    table = pa.table(
        {
            "left": images.ids.take(pa.array(built.left)),
            "right": images.ids.take(pa.array(built.right)),
            "genuine": built.genuine.astype(np.int8),
            "fold": built.fold,
        }
    )
    path = _write(table, data, out, record)
    return dataclasses.replace(built, notes=(*notes, *built.notes)), path


def _check_replaceable(data: Path, out: Path | None, replace: bool) -> None:
    """Raise where pairs would be lost that nobody said may be."""
    if not existing(data).is_dir():
        raise DataError(f"{data}: expected a dataset folder, found a file; give the folder")
    if out is not None or not has_table(data, "pairs"):
        return
    path = find_table(data, "pairs")
    if not replace:
        raise DataError(f"{path} is there already; add --replace, or choose an --out")
    if "score" in first_rows(path).column_names:
        raise DataError(f"{path}: brings scores, which new pairs can't have; choose an --out")


def _people(
    data: Path, gallery: ImageFolder, *, keep_folds: bool
) -> tuple[NDArray[Any], NDArray[Any] | None, list[str]]:
    """Return the person in each image, −1 for images that can be in no pair, folds, and notes."""
    notes: list[str] = []
    identity, given = gallery.images.identity, gallery.fold if keep_folds else None
    if identity is None or not identity.names:
        raise DataError(f"{data}: the images have no identity; add the column to make pairs")
    people = identity.codes.astype(np.int64)
    for embeddings in gallery.embeddings.values():
        bad = embeddings.unusable
        if bad.any():
            notes.append(f"{int(bad.sum()):,} images have no usable vector in {embeddings.where}")
            people[bad] = -1
    if given is None:
        return people, None, notes
    empty = np.asarray(given.is_null())
    if empty.any():
        notes.append(f"{int(empty.sum()):,} images have no fold")
        people[empty] = -1
    fold = parse_fold(given.cast(pa.string()).fill_null("0"), str(data / "images"))
    if fold.dtype.kind != "i":
        raise DataError(
            f"{data / 'images'}, column 'fold': expected whole numbers, found text; number the "
            "folds, or have others drawn with --folds"
        )
    return people, fold, notes


def _write(table: pa.Table, data: Path, out: Path | None, record: Mapping[str, Any]) -> Path:
    """Write the pairs, and into a folder how they were made."""
    if out is not None and out.suffix == ".csv":
        write_csv(out, table)
        return out
    if out is not None and out.suffix == ".parquet":
        write_parquet(out, iter([table]))
        return out
    if out is None:
        path = write_table(data, "pairs", [table])
        _record(data, record)
        return path
    with new_folder(out) as folder:
        skip = shutil.ignore_patterns("pairs.csv", "pairs.parquet", ".*")
        shutil.copytree(data, folder, ignore=skip, dirs_exist_ok=True)
        name = write_table(folder, "pairs", [table]).name
        _record(folder, record)
    return out / name


def _record(folder: Path, record: Mapping[str, Any]) -> None:
    write_about(folder, {**read_about(folder), "pairs": dict(record)})
