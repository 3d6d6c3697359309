"""``faircal report``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.help import Command, argument
from faircal.cli.options import json_option
from faircal.cli.running import REPORT_FILES, report_and_show


@click.command(
    cls=Command,
    examples={
        "Of a benchmark": "faircal report results/",
        "Of an audit, for machines": "faircal report audit/ --json",
    },
    tables={"Files": REPORT_FILES},
    see=("audit", "benchmark", "classify", "reproduce", "regions", "explanation/report"),
)
@argument(
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of results, as 'faircal benchmark', 'audit', 'reproduce', 'demo', 'classify "
    "audit' and 'classify benchmark' write it.",
)
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Write the report of a benchmark or an audit again.

    Reads the numbers in DIR (results.csv, intervals.csv, curves.parquet, run.json) and writes
    report.html, tables/ and figures/ from them; nothing is measured anew. For after an update of
    faircal, after installing matplotlib (pip install 'faircal[figures]'), or when 'faircal regions'
    has written to the same folder.

    Prints the main tables, and where the files are.
    """
    from faircal.cli import classify_show
    from faircal.results import read_run

    classes = read_run(folder).get("kind") == "classify"
    (classify_show.report_and_show if classes else report_and_show)(folder, as_json)
