"""``faircal score``."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from faircal.cli.options import (
    CommaList,
    calibrated_at_option,
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
    from faircal.jobs import Progress
    from faircal.methods import Method
    from faircal.scoring import Shift

#: For ``--prior``: find the share of genuine pairs out.
ESTIMATE = "estimate"


class Share(click.ParamType[Any]):
    """A share of genuine pairs, or ``estimate``."""

    name = "share|estimate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Read a number between 0 and 1, or the word."""
        if value == ESTIMATE:
            return ESTIMATE
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            self.fail(
                f"expected a share between 0 and 1 or 'estimate', found {value!r}", param, ctx
            )
        return share


class Prior(NamedTuple):
    """What ``--prior`` comes to: how to shift probabilities, and what to say of it."""

    shift: Shift | None
    notes: tuple[str, ...]
    record: dict[str, Any]


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
    help="Columns to carry over: genuine, fold, identity, attributes (as left_NAME, right_NAME).",
)
@click.option(
    "--add",
    type=CommaList(),
    default=(),
    help="More columns: log_likelihood_ratio, similarity, clusters, outside, decision.",
)
@click.option(
    "--prior",
    type=Share(),
    default=None,
    help="Give probabilities for this share of genuine pairs, such as 0.001, or estimate it.",
)
@calibrated_at_option
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
    add: tuple[str, ...],
    prior: float | str | None,
    calibrated_at: float | None,
    engine: str,  # noqa: ARG001  (one engine so far)
    resume: bool,
    as_json: bool,
) -> None:
    """Score the pairs of DATA with MODEL: columns left, right, score, probability.

    The pairs of a folder need no labels. Any number of pairs is scored in the same memory, unless
    folds have to be drawn first (--fold or --keep fold without a column fold). The file
    appears when all are scored; until then the work is kept in OUT.parts, and an interrupted run
    goes on with --resume.

    Probabilities hold for the share of genuine pairs that MODEL was fitted at. With --prior they
    hold for another; scores stay as they are. --prior estimate goes through the pairs once before,
    and tells the share that their probabilities speak for; no labels are used.

    --add clusters and outside say where each image lies in the population that MODEL was fitted on
    (left_cluster, right_cluster, left_outside, right_outside), decision is 1 where MODEL's
    operating point takes a pair for genuine. The log-likelihood ratio (nats) is the same at any
    share of genuine pairs; similarity is the cosine, or DATA's own score.
    """
    from faircal._version import __version__
    from faircal.errors import ParameterError
    from faircal.files import file_digest
    from faircal.methods import load_method
    from faircal.scoring import Adding, needed_columns, score_stream

    if out.suffix not in (".parquet", ".csv"):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )
    if calibrated_at is not None and prior is None and "log_likelihood_ratio" not in add:
        raise ParameterError(
            "--calibrated-at: is for --prior or --add log_likelihood_ratio; give one or neither"
        )
    check_file(out)
    source.check_kept(out, model)
    fitted = load_method(model)
    adding = Adding.of(fitted, add, calibrated_at)
    stream = source.open_one(feature, batch=BATCH)
    _check_keep(stream.attributes, keep)
    pairs, notes = _pairs(stream, source, feature, fold, keep)
    columns = needed_columns(fitted, keep, stream.attributes)
    with progress_bars() as update:
        wanted = _prior(fitted, pairs, prior, calibrated_at, columns, update)
    about = {
        "model": file_digest(model),
        "data": stream.fingerprint(),
        "feature": feature,
        "fold": fold,
        "keep": keep,
        "add": add,
        "calibrated_at": calibrated_at,
        "score_range": source.score_range,
        "raw": source.raw,
        "device": source.device,
        "prior": wanted.shift,
        "version": __version__,
    }
    with progress_bars() as update:
        count = score_stream(
            fitted,
            pairs,
            out,
            keep=keep,
            columns=columns,
            shift=wanted.shift,
            adding=adding,
            about=about,
            resume=resume,
            progress=update,
        )
    for text in (*notes, *wanted.notes):
        note(f"note: {text}")
    if as_json:
        print_json({"out": str(out), "pairs": count, **wanted.record})
    else:
        click.echo(str(out))


def _prior(
    model: Method,
    pairs: PairStream | Cut,
    prior: float | str | None,
    calibrated_at: float | None,
    columns: Collection[str],
    progress: Progress,
) -> Prior:
    """Return the shift of probabilities that is asked for; the share is estimated where told."""
    from faircal.errors import DataError
    from faircal.scoring import Shift, estimate_share, fitted_share

    if prior is None:
        return Prior(None, (), {})
    share = fitted_share(model, calibrated_at)
    if isinstance(prior, float):
        return Prior(Shift(share, prior), (), {"prior": prior, "calibrated_at": share})
    found, notes = estimate_share(
        model, pairs, calibrated_at=share, columns=columns, progress=progress
    )
    within = f"{found.low:.3g} to {found.high:.3g}, {100 * found.level:g} % interval"
    if not 0 < found.value < 1:
        kinds = {0.0: "genuine pairs", 1.0: "imposters"}
        kind = kinds.get(found.value, "any share")
        raise DataError(
            f"--prior estimate: nothing in the data speaks for {kind} (share of genuine pairs "
            f"{found.value:g}; {within}); give the share as a number"
        )
    said = (
        f"share of genuine pairs estimated at {found.value:.3g} ({within}); fitted at {share:.3g}"
    )
    return Prior(
        Shift(share, found.value),
        (said, *notes),
        {"prior": found.value, "calibrated_at": share, "estimate": asdict(found)},
    )


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

    known = ["genuine", "fold", "identity", *attributes]
    for name in keep:
        if name not in known:
            raise ParameterError(f"--keep {name}: no such column; {did_you_mean(name, known)}")
