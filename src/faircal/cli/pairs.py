"""``faircal pairs``."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import (
    check_file,
    check_folder,
    feature_option,
    json_option,
    note,
    print_json,
    progress_bars,
    seed_option,
)
from faircal.cli.source import check_one_feature
from faircal.cli.values import among, registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from pyarrow import Array, Table

    from faircal.data.dataset_folder import ImageFolder
    from faircal.data.pairing import BuiltPairs


class GenuinePairs(click.ParamType[Any]):
    """``all``, or a number."""

    name = "all|number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Read a number; None is all."""
        if value is None or value == "all":
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"expected 'all' or a number, found {value!r}", param, ctx)


@click.command(
    cls=Command,
    examples={
        "Random strangers, three for each genuine pair": "faircal pairs faces/",
        "Strangers who are alike, without attributes": "faircal pairs faces/ --imposters matched",
        "Strangers of the same group, into a copy of the folder": "faircal pairs faces/ "
        "--imposters group --attribute ethnicity --out faces-within/",
        "Other pairs in place of those that are there": "faircal pairs faces/ --genuine all "
        "--ratio 1 --replace",
    },
    tables={
        "Kinds of imposters": {
            "random": "Any two people.",
            "group": "Two people of the same group; needs an attribute.",
            "cross": "Two people of two groups; needs an attribute.",
            "cluster": "Two people in the same K-means cluster; needs embeddings.",
            "matched": "Two people who are alike, in one cell of people; needs embeddings.",
            "hard": "Each image's most similar stranger first; needs embeddings.",
        },
        "Files": {
            "DATA/images.*": "Read: image_id, identity, attributes, fold where it is there.",
            "DATA/embeddings*": "Read for cluster, matched and hard.",
            "pairs.csv, .parquet": "Written, to DATA or OUT: left, right, genuine, fold. Parquet "
            "where there are many.",
            "dataset.json": "How the pairs were made.",
        },
    },
    see=("embed", "check", "fit", "benchmark", "how-to/pairs"),
)
@argument(
    "data",
    type=click.Path(path_type=Path),
    help="Dataset folder whose images have identities, as 'faircal embed' and 'faircal import' "
    "write it.",
)
@option(
    "--genuine",
    part=Part.GENUINE,
    type=GenuinePairs(),
    default="300",
    metavar="N|all",
    shell_complete=among("all"),
    help="At most so many genuine pairs of a person, drawn at random; or all.",
)
@option(
    "--imposters",
    part=Part.IMPOSTERS,
    default="random",
    metavar="KIND",
    shell_complete=registered("faircal.data.pairing", "IMPOSTERS"),
    help="Who is paired with whom: random, group, cross, cluster, matched or hard (see Kinds of "
    "imposters).",
)
@option(
    "--ratio",
    part=Part.IMPOSTERS,
    type=float,
    default=3.0,
    help="Imposter pairs for each genuine pair; fewer where people are few, which is said.",
)
@option(
    "--cap",
    part=Part.IMPOSTERS,
    type=int,
    default=10,
    help="At most so many imposter pairs of the same two people.",
)
@option(
    "--clusters",
    part=Part.IMPOSTERS,
    type=int,
    show_default="30 clusters, 10 cells; fewer for few people",
    help="Number of K-means clusters for cluster, most cells of people for matched.",
)
@option(
    "--size",
    part=Part.OUTPUT,
    type=int,
    show_default="no limit",
    help="Most pairs in all.",
)
@option(
    "--folds",
    part=Part.DATA,
    type=int,
    show_default="those of the images, else 5",
    help="Folds to draw; no person is in two of them.",
)
@option(
    "--attribute",
    part=Part.DATA,
    show_default="that of dataset.json, else all crossed",
    help="Attribute that makes the groups, and that folds are stratified by; a+b crosses two.",
)
@feature_option
@option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    show_default="into DATA itself",
    help="A folder to make, a copy of DATA with these pairs; or a .csv or .parquet file.",
)
@option(
    "--replace",
    part=Part.OUTPUT,
    is_flag=True,
    help="Replace the pairs that are in DATA. Without it, pairs that are there are an error.",
)
@seed_option
@json_option
def command(
    data: Path,
    imposters: str,
    genuine: int | None,
    ratio: float,
    size: int | None,
    cap: int,
    folds: int | None,
    clusters: int | None,
    attribute: str | None,
    feature: str | None,
    seed: int,
    out: Path | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Build pairs of images from identities.

    Reads who is in each image of DATA. Genuine pairs are of one person, imposter pairs of two.
    Folds share no person and are stratified by attribute; a pair never joins two folds. The same
    seed gives the same pairs.

    Which imposters a method is calibrated on decides what its probabilities mean. Random strangers
    are easy to tell apart: a probability calibrated on them is too bold among people who look
    alike. Choose those that the probability will be used for.

    Next: 'faircal check DATA', then 'faircal fit' or 'faircal benchmark'.
    """
    from faircal._base.errors import ParameterError
    from faircal.data.dataset_folder import read_images
    from faircal.data.pairing import BY_EMBEDDING, PairPlan, build_pairs
    from faircal.data.types import cross

    if folds is not None and folds < 2:
        raise ParameterError(f"--folds: expected 2 or more, found {folds}")
    plan = PairPlan(imposters, genuine, ratio, size, cap, folds or 5, clusters, seed)
    _check_replaceable(data, out, replace)
    _check_out(out)
    gallery = read_images(data, [feature] if feature else None)
    images = gallery.images
    people, fold = _people(data, gallery, keep_folds=folds is None)
    groups = attribute or "+".join(images.crossed)
    codes = cross(images.attributes, groups, str(data)).codes if groups else None
    with progress_bars() as progress:
        built = build_pairs(
            people,
            plan,
            strata=codes,
            groups=codes,
            vectors=_vectors(gallery, data) if imposters in BY_EMBEDDING else None,
            folds=fold,
            progress=progress,
        )
    record = {**asdict(plan), "feature": feature, "attribute": groups or None}
    _show(built, _write(_table(built, images.ids), data, out, record), as_json)


def _check_replaceable(data: Path, out: Path | None, replace: bool) -> None:
    """Raise where pairs would be lost that nobody said may be."""
    from faircal._base.errors import DataError
    from faircal._base.files import existing
    from faircal.data.tables import find_table, first_rows, has_table

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
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the person in each image, −1 for images that can be in no pair, and their folds."""
    import numpy as np
    import pyarrow as pa

    from faircal._base.errors import DataError
    from faircal.data.columns import parse_fold

    identity, given = gallery.images.identity, gallery.fold if keep_folds else None
    if identity is None or not identity.names:
        raise DataError(f"{data}: the images have no identity; add the column to make pairs")
    people = identity.codes.astype(np.int64)
    for path, embeddings in gallery.embeddings.values():
        if embeddings.unusable.any():
            note(f"{int(embeddings.unusable.sum()):,} images have no usable vector in {path}")
            people[embeddings.unusable] = -1
    if given is None:
        return people, None
    empty = np.asarray(given.is_null())
    if empty.any():
        note(f"{int(empty.sum()):,} images have no fold")
        people[empty] = -1
    fold = parse_fold(given.cast(pa.string()).fill_null("0"), str(data / "images"))
    if fold.dtype.kind != "i":
        raise DataError(
            f"{data / 'images'}, column 'fold': expected whole numbers, found text; number the "
            "folds, or have others drawn with --folds"
        )
    return people, fold


def _vectors(gallery: ImageFolder, data: Path) -> Any:
    import numpy as np

    check_one_feature(gallery.embeddings, data)
    for _, embeddings in gallery.embeddings.values():
        return embeddings.rows(np.arange(len(embeddings)))
    return None


def _table(built: BuiltPairs, ids: Array) -> Table:
    import numpy as np
    import pyarrow as pa

    return pa.table(
        {
            "left": ids.take(pa.array(built.left)),
            "right": ids.take(pa.array(built.right)),
            "genuine": built.genuine.astype(np.int8),
            "fold": built.fold,
        }
    )


def _check_out(out: Path | None) -> None:
    """Raise when the pairs can't be written to `out`, before any work is done for them."""
    from faircal._base.files import require_new

    if out is not None and out.suffix in (".csv", ".parquet"):
        check_file(out)
    elif out is not None:
        check_folder(out)
        require_new(out)


def _write(table: Table, data: Path, out: Path | None, record: Mapping[str, Any]) -> Path:
    """Write the pairs, and into a folder how they were made."""
    from faircal._base.files import new_folder
    from faircal.data.tables import write_csv, write_parquet, write_table

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
    from faircal.data.dataset_folder import read_about, write_about

    write_about(folder, {**read_about(folder), "pairs": dict(record)})


def _show(built: BuiltPairs, path: Path, as_json: bool) -> None:
    genuine = int(built.genuine.sum())
    for text in built.notes:
        note(text)
    if as_json:
        print_json(
            {
                "pairs": str(path),
                "genuine": genuine,
                "imposter": len(built) - genuine,
                "notes": list(built.notes),
            }
        )
        return
    note(f"{len(built):,} pairs: {genuine:,} genuine, {len(built) - genuine:,} imposter")
    click.echo(str(path))
