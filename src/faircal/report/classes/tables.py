"""Tables of a classifier's report: methods and groups, by calibration error and proper scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.classes.results import (
    CLASS,
    METRICS,
    ClassResults,
    MetricColumn,
    ReportedMethod,
)
from faircal.report.store import ResultsFolder
from faircal.report.tables import mark_best
from faircal.report.wording import listing

_OVER = {"mean": "Mean", "aad": "AAD", "mad": "MAD", "std": "STD"}
#: What is shown over groups.
_SPREAD = ("top_ks", "class_ks", "nll", "accuracy")
#: Up to so many groups stand across; more stand below each other.
_ACROSS = 8
#: What methods are compared by: of all rows, and over groups.
COMPARED = tuple((metric, GLOBAL) for metric in ("accuracy", "nll", "brier", "top_ks", "class_ks"))
COMPARED_OVER = tuple(
    (metric, ALL) for metric in ("top_ks_mean", "top_ks_mad", "class_ks_mean", "class_ks_mad")
)
_PARTS = {
    "brier": "Brier",
    "brier_miscalibration": "Miscalibration",
    "brier_discrimination": "Discrimination",
    "brier_uncertainty": "Uncertainty",
}
#: What is to be known of differences between calibration errors.
BEYOND = (
    "Noise makes calibration errors larger, small ones most, and intervals allow for that: so one "
    "may lie beyond the difference that was found."
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
    """Return every metric of every group, the parts of the Brier score, and every class."""
    results = ClassResults(store, attribute)
    by_group = [_by_group(results, metric) for metric in METRICS] if results.shown else []
    return _kept([*by_group, _decomposition(results), _by_class(results)], store)


def _kept(tables: Sequence[Table], store: ResultsFolder) -> list[Table]:
    """Return the tables that show something; no folds stand behind a value here."""
    said = " Simulated data." if store.simulated else ""
    return [
        replace(table, spreads=False, caption=table.caption + said)
        for table in tables
        if table.measured
    ]


def _by_method(
    results: ClassResults,
    headings: Sequence[Heading],
    look: Callable[[ReportedMethod], Sequence[TableValue]],
    methods: Sequence[ReportedMethod] | None = None,
) -> tuple[Line, ...]:
    """Return a line for each method, the best of each column in bold, yardsticks apart."""
    chosen = results.methods if methods is None else methods
    grid = [list(look(method)) for method in chosen]
    mark_best(grid, [i for i, method in enumerate(chosen) if not method.yardstick], headings)
    return tuple(
        Line(method.title, tuple(values), method.yardstick)
        for method, values in zip(chosen, grid, strict=True)
    )


def _overall(results: ClassResults) -> Table:
    headings = tuple(
        Heading("", MetricColumn.of(name).title, MetricColumn.of(name).better) for name in METRICS
    )
    lines = _by_method(results, headings, lambda m: [results.value(name, m) for name in METRICS])
    caption = f"Over all rows. {_UNITS} Accuracy: higher is better; the others: lower."
    return Table("overall", "All rows", caption, headings, lines)


def _over_groups(results: ClassResults) -> Table:
    names = [f"{name}_{over}" for name in _SPREAD for over in _OVER]
    headings = tuple(
        Heading(MetricColumn.of(name).title, title, MetricColumn.of(f"{name}_{over}").better)
        for name in _SPREAD
        for over, title in _OVER.items()
    )
    lines = _by_method(results, headings, lambda m: [results.value(name, m, ALL) for name in names])
    caption = (
        "Of each group's number: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; NLL as it is. Lower is better, but "
        f"for the mean accuracy.{_caution(results)}"
    )
    return Table("groups", "Over groups", caption, headings, lines)


def _caution(results: ClassResults) -> str:
    if not results.small or not results.reportable:
        return ""
    return f" Part of it, but with not enough data to be told alone: {listing(results.small)}."


def _differences(results: ClassResults) -> list[Table]:
    """Return a table for each method that others are compared with."""
    metrics = [*COMPARED, *(COMPARED_OVER if results.groups else ())]
    headings = tuple(
        Heading("All rows" if group == GLOBAL else "Over groups", MetricColumn.of(name).title, "")
        for name, group in metrics
    )
    tables = []
    for reference in results.references:
        others = [method for method in results.methods if method.name != reference.name]

        def look(method: ReportedMethod, to: ReportedMethod = reference) -> list[TableValue]:
            return [_difference(results, name, method, to, group) for name, group in metrics]

        caption = (
            f"Value of each method less that of {reference.title}, on the same rows. Percentage "
            "points; NLL and Brier as they are. Bold: better, a star: worse, and the interval of "
            "the difference leaves out 0; each interval is of one difference by itself. " + BEYOND
        )
        title, key = f"Difference to {reference.title}", f"differences-{reference.name}"
        lines = _by_method(results, headings, look, others)
        tables.append(Table(key, title, caption, headings, lines))
    return tables


def _difference(
    results: ClassResults, name: str, method: ReportedMethod, to: ReportedMethod, group: str
) -> TableValue:
    if group == ALL and results.small:
        return TableValue(math.nan, says=NOT_ENOUGH)
    change = results.change(name, method, to, group)
    return TableValue(math.nan) if change is None else change.value


def _by_group(results: ClassResults, name: str) -> Table:
    """A metric of every group: groups across, or down where they are many."""
    metric = MetricColumn.of(name)
    groups = {GLOBAL: "All rows", **{group: group for group in results.shown}}
    headings = tuple(Heading("", title, metric.better) for title in groups.values())
    lines = _by_method(
        results, headings, lambda m: [results.value(name, m, group) for group in groups]
    )
    unit = "Percent; " if metric.share else ""
    hint = f"{unit}{metric.better} is better."
    caption = f"{metric.title} of all rows and of each group. {hint[0].upper()}{hint[1:]}"
    made = Table(
        f"groups-{name}", f"{metric.title} by group", caption + _some(results), headings, lines
    )
    return _turned(made, "Group") if len(results.shown) > _ACROSS else made


def _some(results: ClassResults) -> str:
    """Say which groups are shown where not all are."""
    if len(results.shown) == len(results.groups):
        return ""
    return (
        f" Shown are {len(results.shown):,} of {len(results.groups):,} groups, those with enough "
        "data and most rows; results.csv has all."
    )


def _turned(table: Table, stub: str) -> Table:
    """Return a table of one metric with rows and columns changed round: methods across."""
    headings = tuple(Heading("", line.label, table.headings[0].better) for line in table.lines)
    lines = tuple(
        Line(heading.name, tuple(line.values[i] for line in table.lines))
        for i, heading in enumerate(table.headings)
    )
    return replace(table, headings=headings, lines=lines, stub=stub)


def _decomposition(results: ClassResults) -> Table:
    """The Brier score taken apart, of all rows and of each group."""
    better = dict(zip(_PARTS, ("lower", "lower", "higher", ""), strict=True))
    headings = tuple(Heading("", title, better[name]) for name, title in _PARTS.items())
    lines: list[Line] = []
    for group in (GLOBAL, *results.shown):

        def look(method: ReportedMethod, of: str = group) -> list[TableValue]:
            return [results.value(name, method, of) for name in _PARTS]

        block = "All rows" if group == GLOBAL else group
        lines += [replace(line, block=block) for line in _by_method(results, headings, look)]
    caption = (
        "Brier = miscalibration − discrimination + uncertainty. Miscalibration is what better "
        "probabilities for the same order of rows would save, discrimination what knowing more "
        "than the classes' shares saves, uncertainty what remains of rows of which nothing is "
        "known."
    )
    blocks = lines if results.shown else [replace(line, block="") for line in lines]
    caption += _some(results) if results.shown else ""
    return Table("brier", "The Brier score, taken apart", caption, headings, tuple(blocks))


def _by_class(results: ClassResults) -> Table:
    """KS and ECE of every class: classes down, methods across, since there may be many classes."""
    rows = [f"{CLASS}={name}" for name in results.classes]
    names = {"class_ks": "KS", "class_ece": "ECE"}
    every = [Heading("", text, "lower") for text in rows]
    headings, columns = [], []
    for name, title in names.items():

        def look(method: ReportedMethod, of: str = name) -> list[TableValue]:
            return [results.value(of, method, GLOBAL, condition) for condition in rows]

        lines = _by_method(results, every, look)
        headings += [Heading(title, line.label, "lower") for line in lines]
        columns += [line.values for line in lines]
    lines = tuple(
        Line(name, tuple(column[i] for column in columns)) for i, name in enumerate(results.classes)
    )
    caption = (
        "How far each class's stated probability is from how often it is the true one. Percent; "
        "lower is better; the best method of each class in bold."
    )
    return Table(
        "classes", "Calibration error by class", caption, tuple(headings), lines, stub="Class"
    )
