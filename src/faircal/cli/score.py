"""``faircal score``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import notes, print_json, progress_bars

if TYPE_CHECKING:
    from faircal.data import PairFiles

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


@click.command(
    cls=Command,
    examples={
        "Score all pairs": "faircal score faces.faircal new-pairs/ --out scored.parquet",
        "Pairs of one fold, with labels and groups, to audit next": "faircal score faces.faircal "
        "faces/ --fold 5 --keep genuine,identity,ethnicity --out scored.csv",
        "All that 'faircal monitor' watches": "faircal score faces.faircal today/ "
        "--add clusters,outside,decision --keep genuine --out today.parquet",
        "Probabilities where one pair in a thousand is genuine": "faircal score faces.faircal "
        "new-pairs/ --prior 0.001 --out scored.csv",
        "Go on with a run that was interrupted": "faircal score faces.faircal new-pairs/ "
        "--out scored.parquet --resume",
        "On a Spark cluster, into a folder of Parquet files": "faircal score faces.faircal "
        "new-pairs/ --out scored --engine spark --master spark://host:7077",
    },
    tables={
        "Columns": {
            "left, right": "The two images, where the data names them.",
            "score": "What the method ranks by: higher is more alike.",
            "left_identity, right_identity": "Who is in the images, where DATA tells.",
            "probability": "P(genuine), at the share of genuine pairs of the fit, or --prior.",
            "prior": "With --prior: that share.",
            "log_likelihood_ratio": "Added: in nats; the same at any share of genuine pairs.",
            "at_bound": "With those, and --prior: 1 where evidence is at least that strong.",
            "similarity": "Added: the cosine, or DATA's own score.",
            "left_cluster, right_cluster": "Added by clusters: where each image lies in the "
            "population that MODEL was fitted on.",
            "left_outside, right_outside": "Added by outside: whether it lies outside of it.",
            "decision": "Added: 1 where MODEL's operating point takes the pair for genuine.",
        },
        "Files": {
            "OUT": "The table. It appears when all pairs are scored.",
            "OUT.parts": "The work so far; removed at the end.",
        },
    },
    see=("fit", "threshold", "audit", "monitor", "how-to/prior", "how-to/big-data", "how-to/spark"),
)
@argument(
    "model",
    type=click.Path(path_type=Path),
    help="Model file, as 'faircal fit' writes it.",
)
@options.reads_data(engine=True)
@options.feature
@options.fold
@Part.PRIOR.option(
    "--prior",
    type=Share(),
    metavar="SHARE|estimate",
    show_default="that of the fit",
    help="Give probabilities for this share of genuine pairs, such as 0.001; estimate finds it "
    "out.",
)
@Part.OUTPUT.option(
    "--keep",
    type=options.CommaList(),
    default=(),
    show_default="none",
    help="Columns to carry over, with commas: genuine, fold, and attributes (as left_NAME, "
    "right_NAME). identity is kept anyway, where DATA has it.",
)
@Part.OUTPUT.option(
    "--add",
    type=options.CommaList(),
    default=(),
    show_default="none",
    help="More columns, with commas: log_likelihood_ratio, similarity, clusters, outside, "
    "decision.",
)
@options.table_out
@options.resume
@options.as_json
def command(
    model: Path,
    source: PairFiles,
    out: Path,
    as_json: bool,
    **how: Any,
) -> None:
    """Score pairs with a model.

    Reads MODEL and the pairs of DATA, which need no labels, and writes a table with a row for each
    pair: left, right, score, probability, what --keep and --add ask for, and who is in the images
    where DATA says so, which audits need. Measure it next with 'faircal audit', or watch it with
    'faircal monitor'.

    Any number of pairs is scored in the same memory, unless folds have to be drawn first (--fold
    or --keep fold without a column fold). The file appears when all are scored; until then the work
    is kept in OUT.parts, and an interrupted run goes on with --resume.

    Probabilities hold for the share of genuine pairs that MODEL was fitted at. With --prior they
    hold for another; scores stay as they are. --prior estimate goes through the pairs once before,
    and tells the share that their probabilities speak for; no labels are used.

    With --engine spark the pairs are scored by Spark's workers, with the same numbers, in any
    order. OUT may then also be a name without ending: a folder of Parquet files. All machines must
    see DATA and OUT (see the guide 'On a Spark cluster' in the documentation).
    """
    from faircal.workflows.score import score_file

    with progress_bars() as update:
        scored = score_file(model, source, out, progress=update, **how)
    notes(scored.notes)
    if as_json:
        print_json({"out": str(out), "pairs": scored.pairs, **scored.record})
    else:
        click.echo(str(out))
