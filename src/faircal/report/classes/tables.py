"""Tables of a classifier's report: methods and groups, by calibration error and proper scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.classes.results import (
    BEYOND,
    CLASS,
    OVER,
    ClassResults,
    MetricColumn,
    ReportedMethod,
)
from faircal.report.store import ResultsFolder
from faircal.report.tables import mark_best
from faircal.report.wording import listing

#: What is shown over groups.
_SPREAD = ("top_ks", "class_ks", "nll", "accuracy")
#: What methods are compared by: of all rows, and over groups.
COMPARED = tuple((metric, GLOBAL) for metric in ("accuracy", "nll", "brier", "top_ks", "class_ks"))
COMPARED_OVER = tuple(
    (metric, ALL) for metric in ("top_ks_mean", "top_ks_mad", "class_ks_mean", "class_ks_mad")
)
_UNITS = "Percent; NLL and Brier as they are."


def class_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the main tables: overall, and over groups."""
    results = ClassResults(store, attribute)
    return _kept([_overall(results), *([_over_groups(results)] if results.groups else [])], store)


def class_differences(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return how methods differ from each of those that others are compared with."""
    return _kept(_differences(ClassResults(store, attribute)), store)


def further_class_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return every metric of every group, and every class."""
    results = ClassResults(store, attribute)
    by_group = [_by_group(results, metric) for metric in results.metrics] if results.shown else []
    return _kept([*by_group, _by_class(results)], store)


def _kept(tables: Sequence[Table], store: ResultsFolder) -> list[Table]:
    """Return the tables that show something; no folds stand behind a value here."""
    said = " Simulated data." if store.simulated else ""
    return [
        replace(table, spreads=False, caption=table.caption + said)
        for table in tables
        if table.measured
    ]


Look = Callable[[ReportedMethod], Sequence[TableValue]]


def _grid(
    headings: Sequence[Heading], look: Look, methods: Sequence[ReportedMethod]
) -> list[list[TableValue]]:
    """Return a row of values for each method, the best of each column marked."""
    grid = [list(look(method)) for method in methods]
    mark_best(grid, [i for i, method in enumerate(methods) if not method.yardstick], headings)
    return grid


def _by_method(
    headings: Sequence[Heading], look: Look, methods: Sequence[ReportedMethod]
) -> tuple[Line, ...]:
    """Return a line for each method, yardsticks apart."""
    return tuple(
        Line(method.title, tuple(values), method.yardstick)
        for method, values in zip(methods, _grid(headings, look, methods), strict=True)
    )


def _overall(results: ClassResults) -> Table:
    columns = [MetricColumn.of(name) for name in results.metrics]
    headings = tuple(Heading("", column.title, column.better) for column in columns)
    lines = _by_method(
        headings, lambda m: [results.value(name, m) for name in results.metrics], results.methods
    )
    caption = f"Over all rows. {_UNITS} Accuracy: higher is better; the others: lower."
    return Table("overall", "All rows", caption, headings, lines)


def _over_groups(results: ClassResults) -> Table:
    names = [f"{name}_{over}" for name in _SPREAD for over in OVER]
    headings = tuple(
        Heading(
            MetricColumn(column.name, "").title,
            OVER[column.over].capitalize() if column.over == "mean" else OVER[column.over],
            column.better,
        )
        for column in map(MetricColumn.of, names)
    )
    lines = _by_method(
        headings, lambda m: [results.value(name, m, ALL) for name in names], results.methods
    )
    caption = (
        "Of each group's number: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; NLL as it is. Lower is better, but "
        "for the mean accuracy."
    )
    if results.small and results.reportable:
        caption += (
            f" Part of it, but with not enough data to be told alone: {listing(results.small)}."
        )
    return Table("groups", "Over groups", caption, headings, lines)


def _differences(results: ClassResults) -> list[Table]:
    """Return a table for each method that others are compared with."""
    metrics = [*COMPARED, *(COMPARED_OVER if results.groups else ())]
    headings = tuple(
        Heading("All rows" if group == GLOBAL else "Over groups", MetricColumn.of(name).title, "")
        for name, group in metrics
    )
    tables = []
    for reference in results.references:

        def look(method: ReportedMethod, to: ReportedMethod = reference) -> list[TableValue]:
            return [_difference(results, name, method, to, group) for name, group in metrics]

        caption = (
            f"Value of each method less that of {reference.title}, on the same rows. Percentage "
            "points; NLL and Brier as they are. Bold: better, a star: worse, and the interval of "
            "the difference leaves out 0; each interval is of one difference by itself. " + BEYOND
        )
        title, key = f"Difference to {reference.title}", f"differences-{reference.name}"
        others = [method for method in results.methods if method.name != reference.name]
        lines = _by_method(headings, look, others)
        tables.append(Table(key, title, caption, headings, lines))
    return tables


def _difference(
    results: ClassResults, name: str, method: ReportedMethod, to: ReportedMethod, group: str
) -> TableValue:
    change = results.change(name, method, to, group)
    if change is None:
        few = group == ALL and results.small
        return TableValue(math.nan, says=NOT_ENOUGH if few else "")
    return change.value


def _below_each_other(
    results: ClassResults, metrics: Mapping[str, str], places: Mapping[str, tuple[str, str]]
) -> tuple[tuple[Heading, ...], tuple[Line, ...]]:
    """Return groups or classes down and methods across, since there may be many of them.

    Parameters
    ----------
    results : ClassResults
    metrics : mapping from metric to the title of its block
    places : mapping from a line's label to its group and condition
    """
    headings, columns = [], []
    for name, title in metrics.items():
        better = MetricColumn.of(name).better

        def look(method: ReportedMethod, of: str = name) -> list[TableValue]:
            return [results.value(of, method, *place) for place in places.values()]

        columns += _grid([Heading("", "", better)] * len(places), look, results.methods)
        headings += [Heading(title, method.title, better) for method in results.methods]
    lines = (Line(label, tuple(column[i] for column in columns)) for i, label in enumerate(places))
    return tuple(headings), tuple(lines)


def _by_group(results: ClassResults, name: str) -> Table:
    """A metric of every group."""
    metric = MetricColumn.of(name)
    places = {"All rows": (GLOBAL, ""), **{group: (group, "") for group in results.shown}}
    headings, lines = _below_each_other(results, {name: ""}, places)
    hint = f"{'Percent; ' * metric.share}{metric.better} is better."
    caption = f"{metric.title} of all rows and of each group. {hint[0].upper()}{hint[1:]}"
    if len(results.shown) < len(results.groups):
        caption += (
            f" Shown are {len(results.shown):,} of {len(results.groups):,} groups, those with "
            "enough data and most rows; results.csv has all."
        )
    title = f"{metric.title} by group"
    return Table(f"groups-{name}", title, caption, headings, lines, stub="Group")


def _by_class(results: ClassResults) -> Table:
    """KS and ECE of every class."""
    places = {name: (GLOBAL, f"{CLASS}={name}") for name in results.classes}
    names = {"class_ks": "KS", "class_ece": "ECE"}
    headings, lines = _below_each_other(results, names, places)
    caption = (
        "How far each class's stated probability is from how often it is the true one. Percent; "
        "lower is better; the best method of each class in bold."
    )
    return Table("classes", "Calibration error by class", caption, headings, lines, stub="Class")
