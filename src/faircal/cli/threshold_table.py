"""What ``faircal threshold`` prints: each set at the threshold, and what is promised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from faircal.cli.options import out, printable

if TYPE_CHECKING:
    from faircal.uncertainty.guarantee import Guarantee, Row

_SCOPES = {"global": "all pairs", "groups": "every group", "clusters": "every cluster"}


def show(found: Guarantee, what: str) -> None:
    """Print the table, then the threshold or why there is none; `what` names the data."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    where = f"FPR at threshold {_number(found.told_threshold)}, percent"
    if math.isnan(found.told_threshold):
        where = "no threshold"
    table.title = Text(printable(f"{what}: {where}"))
    table.add_column(found.scope)
    for name in ("people", "effective", "imposters", "errors", "FPR", "interval", "at most"):
        table.add_column(name, justify="right")
    table.add_column("own threshold", justify="right")
    table.add_column("threshold is", overflow="fold")
    for row in found.rows:
        # Names come from the data: as text they can't be taken for markup.
        table.add_row(Text(printable(row.name)), *_cells(row))
    out().print(table)
    for text in _words(found):
        click.echo(printable(text))


def _cells(row: Row) -> list[str]:
    from faircal.uncertainty.enough import NOT_ENOUGH

    told = not math.isnan(row.rate)
    return [
        str(row.people),
        f"{row.effective_people:.0f}",
        str(row.imposters),
        str(row.errors) if told else "–",
        "not enough data" if NOT_ENOUGH in row.status else _percent(row.rate),
        f"{_percent(row.low)} to {_percent(row.high)}" if told else "–",
        _percent(row.upper),
        _number(row.own_threshold),
        row.status,
    ]


def _words(found: Guarantee) -> list[str]:
    sure, rate = f"{100 * found.confidence:g} %", f"{100 * found.fpr:g} %"
    where = _SCOPES[found.scope]
    if not found.refused:
        how = " (extrapolated)" if found.extrapolated else ""
        promise = f"FPR at most {rate} in {where}, with {sure} confidence{how}"
        return [promise, f"threshold: {found.threshold!r}"]
    names = ", ".join(row.name for row in found.refused)
    words = [f"no threshold promises an FPR of at most {rate} in {where}: refused for {names}"]
    if not math.isnan(found.told_threshold):
        words.append(f"for the others alone: {found.told_threshold!r}")
    return words


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.3g}"


def _number(value: float) -> str:
    """Return a threshold with five digits, rounded up: a higher one is as safe."""
    return "–" if math.isnan(value) else f"{math.ceil(value * 1e5) / 1e5:.5f}"
