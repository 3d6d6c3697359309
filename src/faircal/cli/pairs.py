"""``faircal pairs``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import note, print_json, progress_bars


def _all_or_number(value: str) -> int | None:
    """Read the number of genuine pairs a person; None is all."""
    try:
        return None if value == "all" else int(value)
    except ValueError as error:
        raise click.BadParameter(f"expected 'all' or a number, found {value!r}") from error


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
@Part.GENUINE.option(
    "--genuine",
    type=_all_or_number,
    default="300",
    metavar="N|all",
    help="At most so many genuine pairs of a person, drawn at random; or all.",
)
@Part.IMPOSTERS.option(
    "--imposters",
    default="random",
    metavar="KIND",
    help="Who is paired with whom: random, group, cross, cluster, matched or hard (see Kinds of "
    "imposters).",
)
@Part.IMPOSTERS.option(
    "--ratio",
    type=float,
    default=3.0,
    help="Imposter pairs for each genuine pair; fewer where people are few, which is said.",
)
@Part.IMPOSTERS.option(
    "--cap",
    type=int,
    default=10,
    help="At most so many imposter pairs of the same two people.",
)
@Part.IMPOSTERS.option(
    "--clusters",
    type=int,
    show_default="30 clusters, 10 cells; fewer for few people",
    help="Number of K-means clusters for cluster, most cells of people for matched.",
)
@Part.OUTPUT.option(
    "--size",
    type=int,
    show_default="no limit",
    help="Most pairs in all.",
)
@Part.DATA.option(
    "--folds",
    type=int,
    show_default="those of the images, else 5",
    help="Folds to draw; no person is in two of them.",
)
@Part.DATA.option(
    "--attribute",
    show_default="that of dataset.json, else all crossed",
    help="Attribute that makes the groups, and that folds are stratified by; a+b crosses two.",
)
@options.feature
@Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="into DATA itself",
    help="A folder to make, a copy of DATA with these pairs; or a .csv or .parquet file.",
)
@Part.OUTPUT.option(
    "--replace",
    is_flag=True,
    help="Replace the pairs that are in DATA. Without it, pairs that are there are an error.",
)
@options.seed
@options.as_json
def command(data: Path, out: Path | None, as_json: bool, **how: Any) -> None:
    """Build pairs of images from identities.

    Reads who is in each image of DATA. Genuine pairs are of one person, imposter pairs of two.
    Folds share no person and are stratified by attribute; a pair never joins two folds. The same
    seed gives the same pairs.

    Which imposters a method is calibrated on decides what its probabilities mean. Random strangers
    are easy to tell apart: a probability calibrated on them is too bold among people who look
    alike. Choose those that the probability will be used for.

    Next: 'faircal check DATA', then 'faircal fit' or 'faircal benchmark'.
    """
    from faircal.data.pairing.folder import make_pairs

    with progress_bars() as update:
        built, path = make_pairs(data, out, **how, progress=update)
    for words in built.notes:
        note(words)
    count = int(built.genuine.sum())
    if as_json:
        imposter = len(built) - count
        record = {"pairs": str(path), "genuine": count, "imposter": imposter}
        print_json({**record, "notes": list(built.notes)})
        return
    note(f"{len(built):,} pairs: {count:,} genuine, {len(built) - count:,} imposter")
    click.echo(str(path))
