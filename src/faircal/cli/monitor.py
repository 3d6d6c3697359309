"""``faircal monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import notes, number, print_json, print_table, printable, progress_bars

if TYPE_CHECKING:
    from faircal.production.monitoring.report import MonitoringResult


@click.command(
    cls=Command,
    examples={
        "A file that was scored, once": "faircal monitor faces.faircal today.parquet",
        "Every night, with a report": "faircal monitor faces.faircal today.parquet "
        "--state faces.watch --out watch/",
        "Decisions that the service exported": "faircal monitor faces.faircal decisions.csv "
        "--state faces.watch",
        "Some days in the order of time, for machines": "faircal monitor faces.faircal "
        "monday.parquet tuesday.parquet --json",
    },
    tables={
        "What is watched": {
            "clusters": "The share of images in each cluster.",
            "scores": "How scores are spread.",
            "outside": "The share of images outside of the calibration population.",
            "calibration": "Whether probabilities mean what they say, where a column genuine has "
            "labels.",
        },
        "Files": {
            "DIR/report.html": "What changed, and since when.",
            "DIR/monitor.json": "The same for machines.",
            "DIR/monitor.csv": "The numbers, a row for each.",
            "--state FILE": "Counts between calls, and which files were counted; nobody's data.",
        },
    },
    exits={
        0: "All is quiet, or there is not enough data yet.",
        1: "Recalibration is due: an alarm was raised.",
        2: "Something can't be read, or wrong usage; one line on standard error says what.",
    },
    see=("score", "serve", "fit", "threshold", "how-to/monitoring"),
)
@argument(
    "model", type=click.Path(path_type=Path), help="Model file that the pairs were scored with."
)
@argument(
    "scores",
    type=click.Path(path_type=Path),
    nargs=-1,
    required=True,
    help="One or more, in the order of time: files that 'faircal score' wrote, exports of the "
    "service's decisions, or dataset folders, which are scored on the way.",
)
@Part.MONITORING.option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="each call begins anew",
    help="File that keeps counts between calls: each adds what is new.",
)
@Part.MONITORING.option(
    "--false-alarms",
    type=click.FloatRange(0, 0.5, min_open=True),
    metavar="SHARE",
    show_default="0.01",
    help="Chance that all tests together ever raise an alarm while nothing changes.",
)
@Part.MONITORING.option(
    "--ordered",
    is_flag=True,
    help="Pairs within each file are in the order of time, too. Without it they are taken in "
    "random order, unless they have a column at.",
)
@options.feature
@Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default="no report",
    help="Folder to write a report to.",
)
@options.as_json
def command(model: Path, scores: tuple[Path, ...], as_json: bool, **how: Any) -> int:
    """Tell whether pairs in use still are what a model was calibrated for.

    Reads MODEL, which says what its calibration population was like, and pairs in use, and compares
    the two. Score with --add clusters,outside to have clusters watched, and with --keep genuine
    where labels are known.

    Prints what was found; the exit code tells a job. At an alarm, look at what it is of: a camera,
    a detector, other people, another share of genuine pairs. Then collect labelled pairs of those
    who come now, and run 'faircal fit' and 'faircal threshold' on them.

    With --state a nightly job adds the day's file to what was counted before, and false alarms stay
    at the rate that was set, however long it runs.
    """
    from faircal.production.monitoring.run import monitor

    with progress_bars() as update:
        monitored, paths = monitor(model, scores, **how, progress=update)
    notes(monitored.notes)
    if as_json:
        files = {key: str(path) for key, path in paths.items()}
        print_json({**monitored.as_json(), "files": files})
    else:
        _show(monitored)
        for name, path in paths.items():
            click.echo(f"{name}: {path}")
    return int(monitored.verdict.due)


def _show(monitored: MonitoringResult) -> None:
    """Print a line a test, the verdict and what to do."""
    from faircal.production.monitoring.report import advice, verdict_of

    verdict = monitored.verdict
    print_table(
        ["what", "how far", "tolerance", "p-value", "level", "verdict"],
        [
            (
                finding.title,
                number(finding.statistic),
                number(finding.details.get("tolerance")),
                number(finding.p_value),
                number(finding.level),
                Text(verdict_of(finding), style="bold" if finding.alarm else ""),
            )
            for finding in verdict.findings
        ],
        title=f"{monitored.model['name']}: {verdict.pairs:,} pairs",
        left=(0, 5),
    )
    for finding in verdict.findings:
        if finding.alarm or not finding.enough:
            click.echo(printable(f"{finding.title}: {finding.words}"))
    click.echo(printable(verdict.words))
    for words in advice(verdict):
        click.echo(printable(f"  {words}"))
