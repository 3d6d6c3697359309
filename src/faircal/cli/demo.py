"""``faircal demo``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import note, progress_bars, show_report


@click.command(
    cls=Command,
    examples={
        "Run it": "faircal demo",
        "Write elsewhere, with another population": "faircal demo --out /tmp/demo --seed 3",
        "Also run the methods that train networks": "faircal demo --all --out demo-all/",
    },
    tables={"Files": {**options.PAIR_FILES, **options.TABLE_FILES}},
    see=("simulate", "methods", "benchmark", "explanation/simulation"),
)
@Part.METHOD.option(
    "--all",
    "everything",
    is_flag=True,
    help="Run every installed method, those that train networks too, on a small population (8,000 "
    "pairs): on the other, that takes hours without a GPU.",
)
@Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    default="faircal-demo",
    metavar="DIR",
    help="Folder to write to. It is made where it is not there; results of an earlier run in it "
    "are replaced.",
)
@options.seed
@options.as_json
def command(out: Path, everything: bool, seed: int, as_json: bool) -> None:
    """Compare the methods on simulated faces.

    The main job in one command, and nothing to prepare. A population like that of the paper's BFW
    dataset is simulated (100,000 pairs, eight groups). Every method that needs no extra is fitted
    and tested on it by leave-one-fold-out, as 'faircal benchmark' does. No photograph of anybody
    is used: the numbers say how methods behave, not how real people are treated.

    Prints the three tables of the paper's main text, and writes results and report.html. Open that
    in a browser next; then try 'faircal benchmark' on data of your own.
    """
    from faircal.workflows.benchmark import demo

    with progress_bars() as update:
        report = demo(out, everything=everything, seed=seed, progress=update, note=note)
    show_report(report, as_json)
