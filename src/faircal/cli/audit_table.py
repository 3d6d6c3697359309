"""What ``faircal audit`` prints: a table of error rates, and what it says in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from faircal.cli.options import printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.report.findings import Measured, Point, Rate
    from faircal.report.store import Store


def show(store: Store) -> None:
    """Print the error rates of each feature, and then what they say in words."""
    from faircal.cli.options import out
    from faircal.report.findings import Measured, main_condition
    from faircal.report.words import summary

    results = store.results
    attribute, variant = results.attributes[0], results.variants[0]
    condition = main_condition(results, attribute)
    for feature in results.features:
        measured = Measured(store, attribute, feature, variant)
        if condition is not None:
            out().print(_table(measured, measured.point(condition)))
    for text in summary(store, attribute).who:
        click.echo(printable(text))


def _table(measured: Measured, point: Point) -> Table:
    """Return the error rates of all pairs and of each group; "too few" where they would mislead."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.report.findings import people
    from faircal.report.tables import percent
    from faircal.results import GLOBAL

    where = (
        f"at a global FPR of {percent(point.condition)}"
        if point.condition
        else f"at threshold {point.threshold:g}"
    )
    title = f"{measured.store.results.dataset}, {point.feature}: error rates {where}, percent"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(printable(title)))
    # Names come from the data: as text they can't be taken for markup.
    table.add_column(Text(printable(measured.attribute or "pairs")))
    for name in ("people", "genuine", "imposter", "FPR", "interval", "FNR", "interval", "KS"):
        table.add_column(name, justify="right")
    for group in (GLOBAL, *measured.groups):
        counts = measured.counts(group) or ("–", "–")
        cells = [str(people(measured.store).get(group, "–")), *map(str, counts)]
        for rates in point.rates.values():
            cells += _cells(rates.overall if group == GLOBAL else rates.groups[group])
        table.add_row(Text(printable(group)), *cells, _calibration(measured, group))
    return table


def _cells(rate: Rate) -> tuple[str, str]:
    if rate.enough:
        return _percent(rate.value), f"{_percent(rate.low)} to {_percent(rate.high)}"
    return "too few" if rate.too_few else "–", "–"


def _calibration(measured: Measured, group: str) -> str:
    value = measured.value("ks", group).mean
    too_few = value == value and measured.too_few("ks", group, "")
    return "too few" if too_few else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.2f}" if value == value else "–"
