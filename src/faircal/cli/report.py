"""``faircal report``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.options import json_option
from faircal.cli.running import show_tables


@click.command(epilog="Example: faircal report results/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Write report.html of the results in DIR and print the main tables; recomputes nothing."""
    from faircal.report import write_report
    from faircal.results import RESULTS, read_results

    rows = read_results(folder)
    page = write_report(folder)
    show_tables(rows, as_json, {"results": str(folder / RESULTS), "report": str(page)})
