"""What ``faircal monitor`` prints: a line a test, then what follows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from faircal.cli.options import print_table, printable

if TYPE_CHECKING:
    from faircal.production.monitoring.report import Monitored


def show(found: Monitored) -> None:
    """Print the tests, the verdict and what to do."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.production.monitoring.report import advice, verdict_of

    verdict = found.verdict
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.title = Text(printable(f"{found.model['name']}: {verdict.pairs:,} pairs"))
    table.add_column("what")
    for name in ("how far", "tolerance", "p-value", "level"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for finding in verdict.findings:
        said = verdict_of(finding)
        table.add_row(
            Text(finding.title),
            *(
                _number(value)
                for value in (
                    finding.statistic,
                    finding.details.get("tolerance"),
                    finding.p_value,
                    finding.level,
                )
            ),
            Text(said, style="bold" if finding.alarm else ""),
        )
    print_table(table)
    for finding in verdict.findings:
        if finding.alarm or not finding.enough:
            click.echo(printable(f"{finding.title}: {finding.words}"))
    click.echo(printable(verdict.words))
    for text in advice(verdict):
        click.echo(printable(f"  {text}"))


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3g}"
