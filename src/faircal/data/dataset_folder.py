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

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path, existing, output_folder, write_text
from faircal._base.registry import did_you_mean
from faircal.data.build import ScoreColumns, build_images, build_pairs, build_scored
from faircal.data.cohort import Cohort
from faircal.data.cohort_overlap import join_cohort
from faircal.data.columns import Index
from faircal.data.dataset import (
    COSINE_RANGE,
    Dataset,
    check_counts,
    check_range,
    check_vectors,
    join_scores,
    why_no_groups,
)
from faircal.data.tables import (
    choose,
    decoded,
    find_table,
    is_table,
    open_npy,
    read_table,
    require_columns,
    write_csv,
)
from faircal.data.types import DEFAULT_FEATURE, Embeddings, Fault, Images, cross

_SIDES = ("left", "right")


def load(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    device: str = "cpu",
    score_range: tuple[float, float] | None = COSINE_RANGE,
    seed: int = 0,
    on_fault: Callable[[Fault], None] | None = None,
    cohort: Cohort | str | Path | None = None,
) -> Dataset:
    r"""Read a dataset folder or a score table.

    Parameters
    ----------
    path : path
        A folder with ``images``, ``pairs`` and embeddings, or one table with ``genuine`` and
        scores (``.csv``, ``.parquet``, or a folder of ``part-*.parquet`` files).
    features : sequence of str, optional
        Which networks (embedding files, score columns) to read; all by default.
    normalize : bool
        Scale embeddings to unit length before clustering and scoring.
    device : str
        Where heavy work on embeddings is done: ``cpu``, or ``cuda`` with the extra torch.
    score_range : (float, float)
        The range of ready-made scores; a score outside is an error. None takes any finite score,
        for measuring only.
    seed : int
        For drawing folds where there are none.
    on_fault : callable, optional
        Called with each fatal `Fault`, whose pairs are then left out (``faircal check`` collects
        faults this way). Without it the first one is raised as `DataError`.
    cohort : Cohort or path, optional
        People of known groups, run through the same networks, for methods that compare with them.

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
    if is_table(source):
        table, where = read_table(source), str(source)
        layout = ScoreColumns.of(table.schema, features, where)
        images, pairs, joined = build_scored(table, layout, where, limits)
        data = Dataset.assemble(source.stem, images, pairs, joined, limits, {}, where, seed)
        return data if cohort is None else join_cohort(data, as_cohort(cohort))
    folder = read_images(source, features, normalize, device)
    images, about, pairs_file = folder.images, folder.about, find_table(source, "pairs")
    index, table, where = Index(images.ids), read_table(pairs_file), str(pairs_file)
    if on_fault is not None:
        table = _pairs_of_images(table, index, where, on_fault)
    pairs, scores = build_pairs(table, index, where, limits)
    joined = join_scores(folder.embeddings, scores, where)
    name = str(about.get("name", source.resolve().name))
    data = Dataset.assemble(name, images, pairs, joined, limits, about, str(source), seed)
    if on_fault is None:
        check_vectors(data)
    return data if cohort is None else join_cohort(data, as_cohort(cohort))


def load_cohort(
    path: str | Path, attribute: str | None = None, *, features: Sequence[str] | None = None
) -> Cohort:
    """Read a cohort: a dataset folder with people and attributes, whose pairs are not looked at.

    Parameters
    ----------
    path : path
    attribute : str, optional
        What makes its groups; ``a+b`` crosses two. That of ``dataset.json``, or all crossed, by
        default.
    features : sequence of str, optional
        Which networks to read; all by default.

    Examples
    --------
    >>> import tempfile
    >>> import faircal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_dataset(faircal.simulate("small", seed=9, people=80), folder)
    ...     load_cohort(folder, attribute="ethnicity")
    <Cohort 'small (simulated)': 800 images of 80 people in 4 groups>
    """
    source = existing(path)
    if not source.is_dir():
        raise DataError(f"{source}: expected a dataset folder with a cohort, found a file")
    folder, where = read_images(source, features), str(source)
    images = folder.images
    if images.identity is None:
        raise DataError(f"{where}: a cohort needs a column 'identity' in its images; add it")
    attribute = attribute or "+".join(images.crossed)
    if not attribute:
        raise DataError(f"{where}: a cohort needs groups, and {why_no_groups(images.attributes)}")
    return Cohort(
        embeddings=folder.embeddings,
        identity=images.identity,
        groups=cross(images.attributes, attribute, where),
        name=str(folder.about.get("name", source.resolve().name)),
        attribute=attribute,
        provenance=folder.about,
        where=where,
    )


def as_cohort(cohort: Cohort | str | Path | None, attribute: str | None = None) -> Cohort | None:
    """Return the cohort, or the one in a folder, with the groups of `attribute`; or none."""
    if isinstance(cohort, str | Path):
        return load_cohort(cohort, attribute)
    if attribute is not None:
        raise ParameterError("--cohort-attribute: goes with --cohort DIR; leave it out")
    return cohort


# ------------------------------------------------------------------ folders


@dataclass(frozen=True, eq=False)
class ImageFolder:
    """A dataset folder without its pairs.

    `about` is what ``dataset.json`` says, and `fold` that of the person in each image, for those
    who build pairs.
    """

    images: Images
    embeddings: Mapping[str, Embeddings]
    fold: pa.ChunkedArray | None
    about: dict[str, Any]


def read_images(
    folder: Path,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    device: str = "cpu",
) -> ImageFolder:
    """Read a dataset folder but for its pairs, which need not be there yet."""
    about = read_about(folder)
    file = find_table(folder, "images")
    table = read_table(file)
    require_columns(table, ("image_id",), str(file))
    images = build_images(table, str(file))
    if about.get("attribute") is not None:  # which groups there are unless the user says so
        crossed = tuple(str(about["attribute"]).split("+"))
        for name in crossed:
            if name not in images.attributes:
                hint = did_you_mean(name, images.attributes)
                raise DataError(
                    f"{folder / 'dataset.json'}: attribute '{name}' is not in the images; {hint}"
                )
        images = replace(images, crossed=crossed)
    single, several = folder / "embeddings.npy", folder / "embeddings"
    files: dict[str, Path] = {}
    if several.is_dir():
        files = {path.stem: path for path in sorted(several.glob("*.npy"))}
        # Where all names begin with a point, the first embedding is under way.
        names = [path.name for path in several.iterdir()]
        if not files and not (names and all(name.startswith(".") for name in names)):
            raise DataError(f"{several}: expected one .npy file per network, found none; add them")
    if files and single.exists():
        raise DataError(f"{folder}: embeddings.npy and embeddings are both there; keep one of them")
    files = files or ({DEFAULT_FEATURE: single} if single.exists() else {})
    matrices = {
        name: Embeddings.of(open_npy(files[name]), str(files[name]), normalize, device)
        for name in (choose(files, features, str(folder), "embeddings") if files else ())
    }
    check_counts(images, matrices.values(), file.name)
    fold = table["fold"] if "fold" in table.column_names else None
    return ImageFolder(images, matrices, fold, about)


def _pairs_of_images(
    table: pa.Table, index: Index, where: str, on_fault: Callable[[Fault], None]
) -> pa.Table:
    """Leave out pairs with an unknown image: the caller collects faults."""
    require_columns(table, _SIDES, where)
    usable = np.ones(table.num_rows, dtype=bool)
    for side in _SIDES:
        listed = index.find(table[side], side, where) >= 0
        usable &= listed
        if not listed.all():
            row = int(np.flatnonzero(~listed)[0])
            on_fault(
                Fault(
                    "error",
                    f"ids in column '{side}' of {Path(where).name} that are not among the images",
                    int((~listed).sum()),
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


# ------------------------------------------------------------------ writing


def save_dataset(data: Dataset, path: str | Path) -> Path:
    """Write `data` as a dataset folder; each file appears whole or not at all.

    Folds that faircal drew are not written: they are drawn again, and reported, on reading.

    Examples
    --------
    >>> import faircal
    >>> faircal.save_dataset(faircal.simulate("small", seed=0), "faces/")  # doctest: +SKIP
    """
    if not data.has_images:
        raise DataError(f"{data.where}: only datasets with images can be written as a folder")
    folder = output_folder(path)
    _check_free(folder, several=DEFAULT_FEATURE not in data.features)
    images = {"image_id": data.images.ids}
    if data.images.identity is not None:
        images["identity"] = decoded(data.images.identity)
    images |= {name: decoded(column) for name, column in data.images.attributes.items()}
    write_csv(folder / "images.csv", pa.table(images))

    ids = data.images.ids
    pairs: dict[str, Any] = {
        "left": ids.take(pa.array(data.pairs.left)),
        "right": ids.take(pa.array(data.pairs.right)),
    }
    if data.pairs.genuine is not None:
        pairs["genuine"] = data.pairs.genuine.astype(np.int8)
    if data.pairs.fold is not None and not data.drawn_folds:
        pairs["fold"] = pa.array(data.pairs.fold)
    for feature in data.features.values():
        if feature.scores is not None:
            pairs["score"] = feature.scores
    write_csv(folder / "pairs.csv", pa.table(pairs))

    for name, feature in data.features.items():
        if feature.embeddings is None:
            continue
        single = name == DEFAULT_FEATURE
        target = folder / ("embeddings.npy" if single else f"embeddings/{name}.npy")
        with atomic_path(target) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(feature.embeddings.vectors), allow_pickle=False)
    write_about(folder, {"name": data.name, **data.provenance})
    return folder


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write ``dataset.json``."""
    write_text(folder / "dataset.json", json.dumps(about, indent=2) + "\n")


def write_dropped(folder: Path, dropped: Mapping[str, str], before: pa.Table | None = None) -> None:
    """Write ``dropped.csv``, the images that were left out and why, after those of `before`."""
    rows = pa.table({"image_id": list(dropped), "reason": list(dropped.values())})
    if before is not None:
        rows = pa.concat_tables([before.select(rows.column_names).cast(rows.schema), rows])
    write_csv(folder / "dropped.csv", rows)


def _check_free(folder: Path, several: bool) -> None:
    """Raise where a file of another format would stand beside ours and make two of one thing."""
    embeddings = "embeddings.npy" if several else "embeddings"
    for name in ("images.parquet", "pairs.parquet", embeddings):
        if (folder / name).exists():
            raise DataError(
                f"{folder}: {name} is there already, and a dataset has one of each; "
                "remove it or choose another folder"
            )
