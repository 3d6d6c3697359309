"""From a dataset folder or a score table on disk to a `Dataset`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from faircal.data.build import (
    build_images,
    build_pairs,
    crossable,
    look_up,
    makes_groups,
    require_crossable,
)
from faircal.data.columns import Column, as_text, parse_fold, parse_genuine, parse_scores
from faircal.data.dataset import (
    COSINE_RANGE,
    DEFAULT_FEATURE,
    Dataset,
    check_counts,
    check_range,
    check_vectors,
    join_scores,
)
from faircal.data.faults import Fault
from faircal.data.tables import (
    UNREADABLE,
    find_table,
    read_npz,
    read_table,
    require_columns,
)
from faircal.data.types import Embeddings, Feature, Images, Pairs
from faircal.errors import DataError
from faircal.files import existing
from faircal.registry import did_you_mean, short

_SIDES = ("left", "right")
#: Columns of a score table that are neither scores nor attributes.
_RESERVED = {"genuine", "fold", "left", "right", "left_identity", "right_identity", "probability"}

#: Called with each fault that makes data unusable; None: raise.
OnFault = Callable[[Fault], None] | None


def load(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    score_range: tuple[float, float] | None = COSINE_RANGE,
    seed: int = 0,
    on_fault: OnFault = None,
) -> Dataset:
    r"""Read a dataset folder or a score table.

    Parameters
    ----------
    path : path
        A folder with ``images``, ``pairs`` and embeddings, or one table with ``genuine`` and
        scores (``.csv``, ``.parquet``, ``.npz``).
    features : sequence of str, optional
        Which networks (embedding files, score columns) to read; all unless told.
    normalize : bool
        Scale embeddings to unit length before clustering and scoring.
    score_range : (float, float)
        The range of ready-made scores; a score outside is an error. None takes any finite score,
        for measuring only.
    seed : int
        For drawing folds where there are none.
    on_fault : callable, optional
        Called with each fatal `Fault`, whose pairs are then left out (``faircal check`` collects
        faults this way). Without it the first one is raised as `DataError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "scores.csv"
    ...     _ = table.write_text("genuine,score,fold,ethnicity\n1,0.9,1,Asian\n0,0.2,2,Black\n")
    ...     data = load(table)
    >>> data.scores, data.default_attribute
    (array([0.9, 0.2]), 'ethnicity')
    """
    source = existing(path)
    limits = None if score_range is None else check_range(score_range)
    if source.is_dir():
        return _read_folder(source, features, normalize, limits, seed, on_fault)
    return _read_score_table(source, features, limits, seed)


# ------------------------------------------------------------------ folders


def _read_folder(
    folder: Path,
    features: Sequence[str] | None,
    normalize: bool,
    score_range: tuple[float, float] | None,
    seed: int,
    on_fault: OnFault,
) -> Dataset:
    gallery = read_images(folder, features, normalize)
    images, matrices, about = gallery.images, gallery.embeddings, gallery.about
    pairs_file = find_table(folder, "pairs")
    pairs_table = _known_pairs(read_table(pairs_file), images, str(pairs_file), on_fault)
    pairs, scores = build_pairs(pairs_table, images, str(pairs_file), score_range)
    found = join_scores({name: m for name, (_, m) in matrices.items()}, scores, str(pairs_file))
    name = str(about.get("name", folder.resolve().name))
    data = Dataset.assemble(name, images, pairs, found, score_range, about, str(folder), seed)
    if on_fault is None:
        check_vectors(data, {feature: str(file) for feature, (file, _) in matrices.items()})
    return data


@dataclass(frozen=True, eq=False)
class Gallery:
    """A dataset folder without its pairs.

    Attributes
    ----------
    images : Images
    embeddings : mapping from feature to its file and embeddings
    fold : pyarrow.ChunkedArray, optional
        The fold of the person in each image; only who builds pairs needs it.
    about : dict
        What ``dataset.json`` says.
    """

    images: Images
    embeddings: Mapping[str, tuple[Path, Embeddings]]
    fold: pa.ChunkedArray | None
    about: dict[str, Any]


def read_images(
    folder: Path, features: Sequence[str] | None = None, normalize: bool = True
) -> Gallery:
    """Read a dataset folder but for its pairs, which need not be there yet."""
    about = read_about(folder)
    file = find_table(folder, "images")
    table = read_table(file)
    require_columns(table, ("image_id",), str(file))
    images = _with_default(build_images(table, str(file)), about, folder)
    matrices = _read_embeddings(folder, features, normalize)
    check_counts(images, {str(path): len(m) for path, m in matrices.values()}, file.name)
    fold = table["fold"] if "fold" in table.column_names else None
    return Gallery(images, matrices, fold, about)


def _with_default(images: Images, about: dict[str, Any], folder: Path) -> Images:
    """Let ``attribute`` of dataset.json say which groups there are unless the user says so."""
    attribute = about.get("attribute")
    if attribute is None:
        return images
    names = str(attribute).split("+")
    for name in names:
        if name not in images.attributes:
            hint = did_you_mean(name, images.attributes)
            raise DataError(
                f"{folder / 'dataset.json'}: attribute '{name}' is not in the images; {hint}"
            )
    return replace(images, crossed=tuple(names))


def _known_pairs(table: pa.Table, images: Images, where: str, on_fault: OnFault) -> pa.Table:
    """Leave out pairs with an unknown image, when the caller collects faults."""
    if on_fault is None:
        return table
    require_columns(table, _SIDES, where)
    usable = np.ones(table.num_rows, dtype=bool)
    for side in _SIDES:
        known = look_up(table[side], side, images, where) >= 0
        usable &= known
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            on_fault(
                Fault(
                    "error",
                    f"ids in column '{side}' of {Path(where).name} that are not among the images",
                    int((~known).sum()),
                    f"row {row + 1}: {table[side][row].as_py()!r}",
                    "add the images or remove these pairs",
                )
            )
    # Where no pair is usable, all are kept: the reader then says what is wrong with the first.
    return table.filter(pa.array(usable)) if usable.any() else table


def picture_home(root: Path, paths: Sequence[str], about: Mapping[str, Any]) -> Path | None:
    """Return the folder that pictures lie in: `root`, or the one inside it found on importing.

    None where not one of `paths` is there; `about` is what ``dataset.json`` says.
    """
    home = about.get("pictures")
    for place in [root] + ([root / home] if isinstance(home, str) else []):
        if any(os.path.isfile(place / path) for path in paths):  # noqa: PTH113 (speed)
            return place
    return None


def read_about(folder: Path) -> dict[str, Any]:
    """Return what ``dataset.json`` says; nothing where there is none."""
    path = folder / "dataset.json"
    if not path.exists():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); correct or remove it") from error
    if not isinstance(about, dict):
        raise DataError(f"{path}: expected an object with name, provenance, notes; correct it")
    return about


def _read_embeddings(
    folder: Path, features: Sequence[str] | None, normalize: bool
) -> dict[str, tuple[Path, Embeddings]]:
    """Return each feature's file and embeddings; empty where the folder has none."""
    single = [folder / f"embeddings{end}" for end in (".npy", ".npz")]
    several = folder / "embeddings"
    # Where all names begin with a point, the first embedding is under way.
    inside = [path.name for path in several.iterdir()] if several.is_dir() else [".none"]
    named = not inside or any(not name.startswith(".") for name in inside)
    here = [path for path in single if path.exists()] + ([several] if named else [])
    if len(here) > 1:
        names = " and ".join(path.name for path in here)
        raise DataError(f"{folder}: {names} are both there; keep one of them")
    arrays: dict[str, tuple[Path, Any]] = {}
    if named:
        arrays = {path.stem: (path, _read_array(path)) for path in sorted(several.glob("*.npy"))}
        if not arrays:
            raise DataError(f"{several}: expected one .npy file per network, found none; add them")
    elif here and here[0].suffix == ".npy":
        arrays = {DEFAULT_FEATURE: (here[0], _read_array(here[0]))}
    elif here:
        arrays = {name: (here[0], array) for name, array in _read_arrays(here[0]).items()}
    chosen = choose(arrays, features, str(folder), "embeddings") if arrays else []
    return {
        name: (arrays[name][0], Embeddings.of(arrays[name][1], str(arrays[name][0]), normalize))
        for name in chosen
    }


def _read_array(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # np.load would take other things, too
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise DataError(
            f"{path}: cannot be read ({short(error)}); save it again with numpy.save"
        ) from error


def _read_arrays(path: Path) -> dict[str, Any]:
    try:
        arrays = read_npz(path)
    except UNREADABLE as error:
        raise DataError(
            f"{path}: cannot be read ({short(error)}); save it again with numpy.savez"
        ) from error
    if not arrays:
        raise DataError(f"{path}: expected one array per network, found none; add them")
    return arrays


def choose(known: dict[str, Any], wanted: Sequence[str] | None, where: str, what: str) -> list[str]:
    """Return `wanted` (all of `known` unless told); an unknown one is an error with a hint."""
    for name in wanted or ():
        if name not in known:
            raise DataError(f"{where}: no {what} named '{name}'; {did_you_mean(name, known)}")
    return list(wanted or known)


# -------------------------------------------------------------- score tables


def _read_score_table(
    path: Path, features: Sequence[str] | None, score_range: tuple[float, float] | None, seed: int
) -> Dataset:
    table = read_table(path)
    where = str(path)
    require_columns(table, ("genuine",), where)
    genuine = parse_genuine(table["genuine"], where)
    scores = {
        name: Feature(None, parse_scores(table[name], name, where, score_range))
        for name in _score_columns(table, features, where)
    }
    images = _sides(table, set(scores), where)
    n = table.num_rows
    fold = parse_fold(table["fold"], where) if "fold" in table.column_names else None
    probability = None
    if "probability" in table.column_names:
        probability = parse_scores(table["probability"], "probability", where, (0.0, 1.0))
    pairs = Pairs(np.arange(n), np.arange(n, 2 * n), genuine, fold, probability)
    return Dataset.assemble(path.stem, images, pairs, scores, score_range, {}, where, seed)


def _score_columns(table: pa.Table, features: Sequence[str] | None, where: str) -> list[str]:
    if features:
        return choose(dict.fromkeys(table.column_names), features, where, "column")
    if "score" in table.column_names:
        return ["score"]
    floats = [
        field.name
        for field in table.schema
        if pa.types.is_floating(field.type) and field.name not in _RESERVED
    ]
    if not floats and "probability" in table.column_names:
        return ["probability"]
    if not floats:
        raise DataError(
            f"{where}: no column 'score' and no floating-point column; "
            "name the score columns with --features"
        )
    return floats


def _sides(table: pa.Table, scores: set[str], where: str) -> Images:
    """Read attributes and identities of both sides of each pair.

    A score table knows no images, so each side of each pair counts as an image of its own:
    rows 0…n−1 are the left sides, n…2n−1 the right ones.
    """
    attributes: dict[str, Column] = {}
    crossed: dict[str, Column] = {}
    for name in table.column_names:
        if name in _RESERVED or name in scores or not _is_attribute(table[name]):
            continue
        key = name.removeprefix("left_").removeprefix("right_")
        if key in attributes:
            continue
        both = name if key == name else None
        attributes[key] = _both_sides(table, key, both, where)
        # A whole number by itself (a split, a row number) makes no groups unless asked for.
        if both is None or not pa.types.is_integer(table[name].type):
            crossed[key] = attributes[key]
    require_crossable(attributes, where)
    identity = None
    if {"left_identity", "right_identity"} & set(table.column_names):
        identity = _both_sides(table, "identity", None, where)
    ids = pa.array(np.arange(2 * table.num_rows))
    return Images(ids, identity, attributes, crossable(crossed), by_side=True)


def _is_attribute(column: pa.ChunkedArray) -> bool:
    """Whether a column can be an attribute; in a score table, numbers with a point are scores."""
    return makes_groups(column) and not pa.types.is_floating(column.type)


def _both_sides(table: pa.Table, key: str, both: str | None, where: str) -> Column:
    if both is not None:
        column = Column.of(table[both], f"{where}, column '{both}'")
        return Column(np.concatenate([column.codes, column.codes]), column.names)
    names = [f"{side}_{key}" for side in _SIDES]
    require_columns(table, names, where)
    sides = [as_text(table[name], f"{where}, column '{name}'") for name in names]
    return Column.of(pa.chunked_array([chunk for side in sides for chunk in side.chunks]))
