"""What ``faircal audit`` prints: a table of error rates, and what it says in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from faircal.cli.options import print_table, printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.report.findings import VariantResults
    from faircal.report.rates import Rate, RatesAtPoint
    from faircal.report.store import ResultsFolder


def show(store: ResultsFolder) -> None:
    """Print the error rates of each feature, and then what they say in words."""
    from faircal.report.findings import VariantResults, main_condition
    from faircal.report.words import summary

    results = store.results
    attribute, variant = results.attributes[0], results.variants[0]
    condition = main_condition(results, attribute)
    for feature in results.features:
        measured = VariantResults(store, attribute, feature, variant)
        if condition is not None:
            together = (4, 2, 2, 2) if measured.has("ks") else (4, 2, 2)  # a value, its interval
            print_table(_table(measured, measured.point(condition)), blocks=together)
    for text in summary(store, attribute).who:
        click.echo(printable(text))


def _table(measured: VariantResults, point: RatesAtPoint) -> Table:
    """Return the error rates of all pairs and of each group, where there is enough data."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.metrics.results import GLOBAL
    from faircal.report.findings import effective_people, people
    from faircal.report.tables import rate_text

    where = (
        f"at a global FPR of {rate_text(point.condition)}"
        if point.condition
        else f"at threshold {point.threshold:g}"
    )
    title = f"{measured.store.results.dataset}, {point.feature}: error rates {where}, percent"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(printable(title)))
    # Names come from the data: as text they can't be taken for markup.
    table.add_column(Text(printable(measured.attribute or "pairs")))
    names = ["people", "effective", "genuine", "imposter", "FPR", "interval", "FNR", "interval"]
    calibrated = measured.has("ks")
    for name in [*names, *["KS", "interval"] * calibrated]:
        table.add_column(name, justify="right")
    of = measured.store, measured.attribute
    counted, effective = people(*of), effective_people(*of)
    for group in (GLOBAL, *measured.groups):
        counts = measured.counts(group) or ("–", "–")
        known = f"{effective[group]:.0f}" if group in effective else "–"
        cells = [str(counted.get(group, "–")), known, *map(str, counts)]
        for rates in point.rates.values():
            cells += _cells(rates.overall if group == GLOBAL else rates.groups[group])
        if calibrated:
            cells += _calibration(measured, group)
        table.add_row(Text(printable(group)), *cells)
    return table


def _cells(rate: Rate) -> tuple[str, str]:
    from faircal.metrics.intervals.enough import NOT_ENOUGH

    if rate.enough:
        return _percent(rate.value), _range(rate.low, rate.high)
    return "–", NOT_ENOUGH if rate.too_few else "–"


def _calibration(measured: VariantResults, group: str) -> tuple[str, str]:
    from faircal.metrics.intervals.enough import NOT_ENOUGH

    value = measured.value("ks", group)
    if value.mean == value.mean and measured.too_few("ks", group, ""):
        return "–", NOT_ENOUGH
    return _percent(value.mean), _range(value.low, value.high)


def _range(low: float, high: float) -> str:
    return f"{_percent(low)} to {_percent(high)}" if low == low else "–"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}" if value == value else "–"
