"""``faircal demo``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.options import check_folder, jobs_option, json_option, note, seed_option, working
from faircal.cli.running import benchmark_and_show

#: Large enough to resolve a false-positive rate of 0.1 % in each of its eight groups.
PRESET = "bfw-like"

#: For ``--all``: small enough to train networks on in minutes without a GPU.
SMALL = "small"


@click.command(
    epilog="Example: faircal demo --out /tmp/demo",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="faircal-demo",
    show_default=True,
    help="Folder.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Run every installed method, the trained ones too."
)
@jobs_option
@seed_option
@json_option
def command(out: Path, everything: bool, jobs: int | None, seed: int, as_json: bool) -> None:
    """Compare all methods on simulated faces: the main job in one command.

    A simulated population like that of the paper's BFW dataset is benchmarked with every method
    that needs no extra. Prints the three tables of the paper's main text; writes the results and
    report.html to the folder. With --all the population is a small one: training networks on the
    other takes hours without a GPU.
    """
    from faircal.benchmark import Settings
    from faircal.methods import METHODS
    from faircal.simulation import simulate

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
