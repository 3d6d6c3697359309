"""``faircal report``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.options import json_option
from faircal.cli.running import report_and_show


@click.command(epilog="Example: faircal report results/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Write tables, figures and report.html of the results in DIR; recomputes nothing.

    Prints the main tables. Figures need matplotlib: pip install 'faircal[figures]'.
    """
    from faircal.cli import classify_show
    from faircal.results import read_run

    classes = read_run(folder).get("kind") == "classify"
    (classify_show.report_and_show if classes else report_and_show)(folder, as_json)
