"""``faircal choose``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from faircal.cli.help import Command, Part, option
from faircal.cli.options import (
    CommaList,
    feature_option,
    json_option,
    leave_out_option,
    note,
    print_json,
    progress_bars,
    seed_option,
)
from faircal.cli.source import Source, fold_named, reads_data
from faircal.cli.values import registered

if TYPE_CHECKING:
    from faircal.data import Dataset


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
@reads_data
@option(
    "--clusters",
    part=Part.METHOD,
    type=CommaList(int),
    default="10,25,50,100",
    help="Numbers of clusters (K) to try, with commas.",
)
@option(
    "--calibrators",
    part=Part.METHOD,
    type=CommaList(),
    default="beta,isotonic",
    shell_complete=registered("faircal.calibrators", "CALIBRATORS", commas=True),
    help="Calibrators to try, with commas: beta, histogram, isotonic, platt, temperature, spline.",
)
@option(
    "--starts",
    part=Part.METHOD,
    type=click.IntRange(1),
    default=3,
    help="Starts of K-means; two or more tell how much depends on it.",
)
@option(
    "--folds",
    part=Part.METHOD,
    type=click.IntRange(2),
    default=5,
    help="Parts that people are dealt to; each is held out once.",
)
@option(
    "--within",
    part=Part.METHOD,
    type=click.FloatRange(0),
    default=0.0,
    help="Standard errors of the least loss within which fewer clusters are preferred.",
)
@feature_option
@leave_out_option
@seed_option
@json_option
def command(
    source: Source,
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
    from faircal.cli.choose_table import show
    from faircal.evaluation.tuning import choose

    data = _calibration(source, feature, leave_out)
    with progress_bars() as update:
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
    for text in (*(data.notes if leave_out is not None else ()), *choice.notes):
        note(f"note: {text}")
    chosen = {"clusters": choice.n_clusters, "calibrator": choice.calibrator}
    fit = _fit_command(
        source, {**chosen, "feature": feature, "leave-out": leave_out, "seed": seed or None}
    )
    if as_json:
        print_json({**asdict(choice), "fit": fit})
    else:
        show(choice, f"{data.name}: {len(data)} pairs")
        click.echo(f"To fit it:\n  {fit}")


def _calibration(source: Source, feature: str | None, leave_out: str | None) -> Dataset:
    data = source.load_one(feature)
    return data if leave_out is None else data.split(fold_named(data, leave_out))[0]


def _fit_command(source: Source, options: dict[str, object]) -> str:
    """Return the command that fits what was chosen, on the same pairs read the same way."""
    words = ["faircal", "fit", str(source.path), "--method", "faircal"]
    limits = source.score_range
    more = {
        "score-range": limits and "{:g},{:g}".format(*limits),
        "device": source.device,
    }
    for name, value in {**options, **more}.items():
        if value is not None:
            words += [f"--{name}={value}"] if str(value)[0] == "-" else [f"--{name}", str(value)]
    words += ["--raw"] if source.raw else []
    return shlex.join([*words, "--out", "model.faircal"])
