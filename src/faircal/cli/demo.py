"""``faircal demo``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.help import Command, Part, option
from faircal.cli.options import check_folder, jobs_option, json_option, note, seed_option, working
from faircal.cli.running import PAIR_FILES, TABLE_FILES, benchmark_and_show

#: Large enough to resolve a false-positive rate of 0.1 % in each of its eight groups.
PRESET = "bfw-like"

#: For ``--all``: small enough to train networks on in minutes without a GPU.
SMALL = "small"


@click.command(
    cls=Command,
    examples={
        "Run it": "faircal demo",
        "Write elsewhere, with another population": "faircal demo --out /tmp/demo --seed 3",
        "Also run the methods that train networks": "faircal demo --all --out demo-all/",
    },
    tables={"Files": {**PAIR_FILES, **TABLE_FILES}},
    see=("simulate", "methods", "benchmark", "explanation/simulation"),
)
@option(
    "--all",
    "everything",
    part=Part.METHOD,
    is_flag=True,
    help="Run every installed method, those that train networks too, on a small population (8,000 "
    "pairs): on the other, that takes hours without a GPU.",
)
@option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    default="faircal-demo",
    metavar="DIR",
    help="Folder to write to. It is made where it is not there; results of an earlier run in it "
    "are replaced.",
)
@jobs_option
@seed_option
@json_option
def command(out: Path, everything: bool, jobs: int | None, seed: int, as_json: bool) -> None:
    """Compare the methods on simulated faces.

    The main job in one command, and nothing to prepare. A population like that of the paper's BFW
    dataset is simulated (890,000 pairs, eight groups). Every method that needs no extra is fitted
    and tested on it by leave-one-fold-out, as 'faircal benchmark' does. No photograph of anybody
    is used: the numbers say how methods behave, not how real people are treated.

    Prints the three tables of the paper's main text, and writes results and report.html. Open that
    in a browser next; then try 'faircal benchmark' on data of your own.
    """
    from faircal.data.simulation import simulate
    from faircal.evaluation.benchmark import Settings
    from faircal.methods import METHODS

    check_folder(out)
    needs = {name: method.needs for name, method in METHODS.items()}
    names = tuple(
        name
        for name, need in needs.items()
        if need.extra is None or (everything and need.uninstalled() is None)
    )
    if everything:
        for name in (name for name in needs if name not in names):
            note(f"note: {name} is left out: it needs {needs[name].uninstalled()}")
    preset = SMALL if everything else PRESET
    with working(f"simulating {preset}"):
        data = simulate(preset, seed=seed)
    note(f"{data.name}: {len(data)} pairs; simulated, no real people")
    benchmark_and_show(data, out, Settings(methods=names, seed=seed), jobs=jobs, as_json=as_json)
