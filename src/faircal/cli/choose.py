"""``faircal choose``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.text import Text

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import (
    NONE,
    notes,
    number,
    percent,
    print_json,
    print_table,
    printable,
    progress_bars,
    say,
)

if TYPE_CHECKING:
    from faircal.data import PairFiles
    from faircal.evaluation.tuning import Choice, TrialCandidate


@click.command(
    cls=Command,
    examples={
        "With one fold kept for testing": "faircal choose faces/ --leave-out 5",
        "Other numbers of clusters, one calibrator": "faircal choose faces/ --clusters 5,10,20,40 "
        "--calibrators beta",
        "Prefer few clusters: within one standard error of the best": "faircal choose faces/ "
        "--within 1 --leave-out 5",
    },
    see=("fit", "benchmark", "methods", "how-to/choose"),
)
@options.reads_data
@Part.METHOD.option(
    "--clusters",
    type=options.CommaList(int),
    default="10,25,50,100",
    help="Numbers of clusters (K) to try, with commas.",
)
@Part.METHOD.option(
    "--calibrators",
    type=options.CommaList(),
    default="beta,isotonic",
    help="Calibrators to try, with commas: beta, histogram, isotonic, platt, temperature, spline.",
)
@Part.METHOD.option(
    "--starts",
    type=click.IntRange(1),
    default=3,
    help="Starts of K-means; two or more tell how much depends on it.",
)
@Part.METHOD.option(
    "--folds",
    type=click.IntRange(2),
    default=5,
    help="Parts that people are dealt to; each is held out once.",
)
@Part.METHOD.option(
    "--within",
    type=click.FloatRange(0),
    default=0.0,
    help="Standard errors of the least loss within which fewer clusters are preferred.",
)
@options.feature
@options.leave_out
@options.seed
@options.as_json
def command(
    source: PairFiles,
    clusters: tuple[int, ...],
    calibrators: tuple[str, ...],
    starts: int,
    folds: int,
    within: float,
    feature: str | None,
    leave_out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Choose FairCal's clusters and calibrator on people held out.

    Reads the labelled pairs of DATA, which must have embeddings. People are held out in turn, and
    FairCal is fitted on the others with each number of clusters and each calibrator. What counts is
    the log-loss of the pairs held out, in which every region of the embeddings counts the same; no
    attribute is looked at. The least loss is chosen, or with --within the fewest clusters near it.

    Prints the losses, how much the answer changes with the start of K-means and with K, and the
    command that fits what was chosen: run that next. Writes nothing. Leave out the fold that you
    will test on, else it has had its say already.
    """
    from faircal.data.pair_files import fold_named
    from faircal.evaluation.tuning import choose

    with progress_bars() as update:
        data = source.load_one(feature, progress=update)
        if leave_out is not None:
            data = data.split(fold_named(data, leave_out))[0]
        choice = choose(
            data,
            clusters,
            calibrators,
            starts=starts,
            n_folds=folds,
            random_state=seed,
            within=within,
            progress=update,
        )
    notes([*(data.notes if leave_out is not None else ()), *choice.notes])
    chosen = {"clusters": choice.n_clusters, "calibrator": choice.calibrator}
    fit = _fit_command(
        source, {**chosen, "feature": feature, "leave-out": leave_out, "seed": seed or None}
    )
    if as_json:
        print_json({**asdict(choice), "fit": fit})
    else:
        _show(choice, f"{data.name}: {len(data)} pairs")
        click.echo(f"To fit it:\n  {fit}")


def _fit_command(source: PairFiles, chosen: dict[str, object]) -> str:
    """Return the command that fits what was chosen, on the same pairs read the same way."""
    words = ["faircal", "fit", str(source.path), "--method", "faircal"]
    limits = source.score_range
    more = {
        "score-range": limits and "{:g},{:g}".format(*limits),
        "device": source.device,
    }
    for name, value in {**chosen, **more}.items():
        if value is not None:
            words += [f"--{name}={value}"] if str(value)[0] == "-" else [f"--{name}", str(value)]
    words += ["--raw"] if not source.normalize else []
    return shlex.join([*words, "--out", "model.faircal"])


def _show(choice: Choice, what: str) -> None:
    """Print candidates, the choice, and how stable it is; `what` names the data."""
    from faircal.evaluation.tuning.choice import choice_words, stability_words

    times = "start" if choice.starts == 1 else "starts"
    held = f"{choice.n_folds} folds of people held out, {choice.starts} {times} of K-means"
    click.echo(f"{printable(what)}, {held}")
    tried_one = any(row.n_clusters == 1 for row in choice.table)
    candidates = choice.table if tried_one else (choice.baseline, *choice.table)
    print_table(
        ["clusters", "calibrator", "loss", "above best", "log-loss", "KS, %", ""],
        [
            _bold(
                row is choice.chosen,
                str(row.n_clusters),
                row.calibrator,
                f"{row.loss:.4f}",
                NONE if row is choice.best else _plus_minus(row.worse, row.worse_error),
                f"{row.log_loss:.4f}",
                percent(row.ks),
                _mark(choice, row),
            )
            for row in candidates
        ],
        left=(1, 6),
        names=2,
    )
    click.echo("Losses are in nats; in 'loss' every region of the embeddings counts the same.")
    click.echo("'above best' has its standard error over folds; KS is a mean over regions.\n")
    for words in choice_words(choice):
        say(words)
    click.echo(f"\nStability, with {choice.calibrator}, on people held out:")
    columns = ("moves by", "95 % below", "turned, %", "Rand", "loss SD", "loss vs fewer K")
    print_table(
        ["clusters", *columns],
        [
            _bold(
                row.n_clusters == choice.n_clusters,
                str(row.n_clusters),
                number(row.difference, ".4f"),
                number(row.difference_95, ".4f"),
                percent(1 - row.agreement),
                number(row.adjusted_rand, ".2f"),
                number(row.loss_spread, ".4f"),
                _plus_minus(row.change, row.change_error),
            )
            for row in choice.table
            if row.calibrator == choice.calibrator
        ],
        left=(),
    )
    for words in stability_words(choice):
        say(words)
    click.echo()


def _bold(bold: bool, *cells: str) -> list[Text]:
    return [Text(printable(cell), style="bold" if bold else "") for cell in cells]


def _mark(choice: Choice, row: TrialCandidate) -> str:
    if row is choice.baseline:  # K = 1
        return "one map"
    marks = {"chosen": choice.chosen, "best": choice.best}
    return ", ".join(mark for mark, of in marks.items() if of is row)


def _plus_minus(value: float, error: float) -> str:
    """Return a difference with its standard error; a dash where there is none."""
    return NONE if value != value else f"{value:+.4f} ± {error:.4f}"
