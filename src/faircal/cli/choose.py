"""``faircal choose``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from faircal.cli.options import (
    CommaList,
    feature_option,
    json_option,
    note,
    print_json,
    progress_bars,
    seed_option,
)
from faircal.cli.source import Source, fold_named, reads_data

if TYPE_CHECKING:
    from faircal.data import Dataset


@click.command(epilog="Example: faircal choose faces/ --clusters 10,25,50,100 --leave-out 5")
@reads_data
@click.option(
    "--clusters",
    type=CommaList(int),
    default="10,25,50,100",
    show_default=True,
    help="Numbers of clusters (K) to try.",
)
@click.option(
    "--calibrators",
    type=CommaList(),
    default="beta,isotonic",
    show_default=True,
    help="Calibrators to try: beta, histogram, isotonic, platt, temperature, spline.",
)
@click.option(
    "--starts",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Starts of K-means; two or more tell how much depends on it.",
)
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds of people."
)
@click.option(
    "--within",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Standard errors within which fewer clusters are preferred to less loss.",
)
@feature_option
@click.option("--leave-out", default=None, metavar="FOLD", help="Fold to keep for testing.")
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
    """Choose FairCal's number of clusters and calibrator on the pairs of DATA.

    People are held out in turn. What counts is the log-loss of their pairs, in which every region
    of the embeddings counts the same; no attribute is looked at. The least loss is chosen, or with
    --within the fewest clusters near it. Then it is said how much the answer changes with the
    start of K-means and with K, and how to fit what was chosen.
    """
    from faircal.cli.choose_table import show
    from faircal.tuning import choose

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
