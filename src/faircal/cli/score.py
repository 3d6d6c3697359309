"""``faircal score``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.options import (
    CommaList,
    check_file,
    feature_option,
    json_option,
    note,
    print_json,
    progress_bars,
    resume_option,
    working,
)
from faircal.cli.source import BATCH, Source, fold_named, reads_data

if TYPE_CHECKING:
    from faircal.data import PairStream
    from faircal.data.stream import Cut


@click.command(epilog="Example: faircal score faces.faircal new-pairs/ --out scored.parquet")
@click.argument("model", type=click.Path(path_type=Path))
@reads_data
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help=".parquet or .csv file to write."
)
@feature_option
@click.option("--fold", default=None, help="Score the pairs of this fold only.")
@click.option(
    "--keep",
    type=CommaList(),
    default=(),
    help="Columns to carry over: genuine, fold, attributes (as left_NAME and right_NAME).",
)
@click.option(
    "--engine",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="Where to run.",
)
@resume_option
@json_option
def command(
    model: Path,
    source: Source,
    out: Path,
    feature: str | None,
    fold: str | None,
    keep: tuple[str, ...],
    engine: str,  # noqa: ARG001  (one engine so far)
    resume: bool,
    as_json: bool,
) -> None:
    """Score the pairs of DATA with MODEL: columns left, right, score, probability.

    The pairs of a folder need no labels. Any number of pairs is scored in the same memory, unless
    folds have to be drawn first (--fold or --keep fold without a column fold). The file
    appears when all are scored; until then the work is kept in OUT.parts, and an interrupted run
    goes on with --resume.
    """
    from faircal._version import __version__
    from faircal.errors import ParameterError
    from faircal.files import file_digest
    from faircal.methods import load_model
    from faircal.scoring import needed_columns, score_stream

    if out.suffix not in (".parquet", ".csv"):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )
    check_file(out)
    source.check_kept(out, model)
    fitted = load_model(model)
    stream = source.open_one(feature, batch=BATCH)
    _check_keep(stream.attributes, keep)
    pairs, notes = _pairs(stream, source, feature, fold, keep)
    about = {
        "model": file_digest(model),
        "data": stream.fingerprint(),
        "feature": feature,
        "fold": fold,
        "keep": keep,
        "score_range": source.score_range,
        "raw": source.raw,
        "device": source.device,
        "version": __version__,
    }
    with progress_bars() as update:
        count = score_stream(
            fitted,
            pairs,
            out,
            keep=keep,
            columns=needed_columns(fitted, keep, stream.attributes),
            about=about,
            resume=resume,
            progress=update,
        )
    for text in notes:
        note(f"note: {text}")
    if as_json:
        print_json({"out": str(out), "pairs": count})
    else:
        click.echo(str(out))


def _pairs(
    stream: PairStream,
    source: Source,
    feature: str | None,
    fold: str | None,
    keep: tuple[str, ...],
) -> tuple[PairStream | Cut, tuple[str, ...]]:
    """Return the pairs to score, and what was done to them.

    Where folds have to be drawn, that is done over all pairs, which are then in memory.
    """
    from faircal.data.stream import Cut

    if fold is not None and stream.has_folds:
        with working(f"reading {source.path}"):
            return stream.only(fold), ()
    if fold is None and (stream.has_folds or "fold" not in keep):
        return stream, ()
    loaded = source.load_one(feature)
    if fold is None:
        return Cut(loaded, BATCH), ()
    return Cut(loaded.split(fold_named(loaded, fold))[1], BATCH), loaded.notes


def _check_keep(attributes: Collection[str], keep: tuple[str, ...]) -> None:
    from faircal.errors import ParameterError
    from faircal.registry import did_you_mean

    known = ["genuine", "fold", *attributes]
    for name in keep:
        if name not in known:
            raise ParameterError(f"--keep {name}: no such column; {did_you_mean(name, known)}")
