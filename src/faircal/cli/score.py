"""``faircal score``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.engine import Engine, engine_options
from faircal.cli.options import (
    CommaList,
    calibrated_at_option,
    check_file,
    check_folder,
    feature_option,
    json_option,
    note,
    print_json,
    resume_option,
)
from faircal.cli.source import Source, reads_data

if TYPE_CHECKING:
    pass

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
@engine_options
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
    engine: Engine,
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

    With --engine spark the pairs are scored by Spark's workers, with the same numbers, in any
    order. OUT may then also be a name without ending: a folder of Parquet files. All machines must
    see DATA and OUT (see docs/how-to/spark.md).
    """
    from faircal.cli.score_run import Wanted, score_here, score_on_spark
    from faircal.errors import ParameterError
    from faircal.methods import load_method
    from faircal.scoring import Adding

    if out.suffix not in (".parquet", ".csv") and not (engine.is_spark and not out.suffix):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )
    engine.check(source, resume=resume)
    if calibrated_at is not None and prior is None and "log_likelihood_ratio" not in add:
        raise ParameterError(
            "--calibrated-at: is for --prior or --add log_likelihood_ratio; give one or neither"
        )
    (check_file if out.suffix else check_folder)(out)
    source.check_kept(out, model)
    fitted = load_method(model)
    Adding.of(fitted, add, calibrated_at)  # what can't be added is said at once
    wanted = Wanted(fitted, source, feature, fold, keep, add, prior, calibrated_at)
    if engine.is_spark:
        count, notes, record = score_on_spark(wanted, out, engine)
    else:
        count, notes, record = score_here(wanted, model, out, resume)
    for text in notes:
        note(f"note: {text}")
    if as_json:
        print_json({"out": str(out), "pairs": count, **record})
    else:
        click.echo(str(out))
