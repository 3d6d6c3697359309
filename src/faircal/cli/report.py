"""``faircal report``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli import options
from faircal.cli.help import Command, argument
from faircal.cli.printing import progress_bars, show_report


@click.command(
    cls=Command,
    examples={
        "Of a benchmark": "faircal report results/",
        "Of an audit, for machines": "faircal report audit/ --json",
    },
    tables={"Files": {**options.REPORT_FILES, **options.TABLE_FILES}},
    see=("audit", "benchmark", "classify", "reproduce", "regions", "explanation/report"),
)
@argument(
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of results, as 'faircal benchmark', 'audit', 'reproduce', 'demo', 'classify "
    "audit' and 'classify benchmark' write it.",
)
@options.all_files
@options.as_json
def command(folder: Path, all_files: bool, as_json: bool) -> None:
    """Write the report of a benchmark or an audit again.

    Reads the numbers in DIR (results.csv, curves.parquet, run.json) and writes
    report.html from them, and tables/ and figures/: of a benchmark always, of an audit with
    --all-files, and without it those that are there are removed. Nothing is measured anew.

    For after an update of faircal, after installing matplotlib (pip install 'faircal[figures]'), or
    when 'faircal regions' has written to the same folder.

    Prints the main tables, and where the files are.
    """
    from faircal.report.writing import make_report

    with progress_bars() as update:
        report = make_report(folder, all_files=all_files, progress=update)
    show_report(report, as_json, of_run=False)
