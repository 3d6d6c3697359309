"""Tables as people read them, made from the results store alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from faircal.metrics import METRICS
from faircal.metrics.fairness import FAIRNESS
from faircal.metrics.results import ALL, GLOBAL, Condition
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.store import ResultKey, Results
from faircal.report.wording import rate_text


@dataclass(frozen=True)
class ColumnSpec:
    """A column to be filled: where its values are in the results."""

    name: str
    metric: str
    group: str = GLOBAL
    condition: str = ""
    better: str = "lower"


def method_table(
    results: Results,
    attribute: str,
    key: str,
    title: str,
    caption: str,
    columns: Sequence[ColumnSpec],
) -> Table:
    """Build a table with a row per method and a block of columns per feature, best in bold."""
    headings = tuple(
        Heading(feature, column.name, column.better)
        for feature in results.features
        for column in columns
    )
    grid = [
        [
            results.value(
                ResultKey(
                    feature, variant, attribute, column.group, column.condition, column.metric
                )
            )
            for feature in results.features
            for column in columns
        ]
        for variant in results.variants
    ]
    contest = [i for i, variant in enumerate(results.variants) if not variant.yardstick]
    mark_best(grid, contest, headings)
    lines = tuple(
        Line(results.label(variant), tuple(values), variant.yardstick)
        for variant, values in zip(results.variants, grid, strict=True)
    )
    return Table(key, title, caption, headings, lines)


def mark_best(
    grid: list[list[TableValue]], contest: Sequence[int], headings: Sequence[Heading]
) -> None:
    """Mark in each column the best of the rows `contest`, and those that print the same."""
    for column, heading in enumerate(headings):
        shown = {i: round(100 * grid[i][column].mean, 2) for i in contest}
        known = [value for value in shown.values() if not np.isnan(value)]
        if not heading.better or len(contest) < 2 or not known:
            continue
        best = max(known) if heading.better == "higher" else min(known)
        for i in contest:
            if shown[i] == best:
                grid[i][column] = replace(grid[i][column], best=True)


def accuracy_table(results: Results, attribute: str) -> Table:
    """The paper's first table: global accuracy."""
    columns = [ColumnSpec("AUROC", "auroc", better="higher")]
    columns += [
        ColumnSpec(f"TPR @ {rate_text(under)} FPR", "tpr", condition=under, better="higher")
        for under in results.rates("fpr")
    ]
    return method_table(
        results,
        attribute,
        "accuracy",
        "Accuracy",
        "Over all pairs. Percent; higher is better.",
        columns,
    )


_OVER = (("mean", "Mean"), ("aad", "AAD"), ("mad", "MAD"), ("std", "STD"))


def calibration_table(results: Results, attribute: str, metric: str = "ks") -> Table:
    """The paper's second table: calibration error over groups."""
    title = METRICS[metric].title
    columns = [ColumnSpec(f"{title} {name}", f"{metric}_{key}", group=ALL) for key, name in _OVER]
    return method_table(
        results,
        attribute,
        f"calibration-{metric}",
        f"Fairness calibration ({title})",
        f"{title} of each group: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; lower is better."
        + results.caution(attribute, metric, [""]),
        columns,
    )


def equality_table(results: Results, attribute: str, metric: str = "fpr") -> Table:
    """The paper's third table: predictive equality (``fpr``), or equal opportunity (``fnr``)."""
    upper = metric.upper()
    columns = [
        ColumnSpec(f"{name} @ {rate_text(under)}", f"{metric}_{key}", group=ALL, condition=under)
        for under in results.rates(f"global_{metric}")
        for key, name in _OVER[1:]
    ]
    title = "Predictive equality" if metric == "fpr" else "Equal opportunity"
    return method_table(
        results,
        attribute,
        f"equality-{metric}",
        f"{title} ({upper} deviations)",
        f"Deviation of the groups' {upper} at the threshold of a given global {upper}. "
        "Percent; lower is better."
        + results.caution(attribute, metric, results.rates(f"global_{metric}")),
        columns,
    )


def fairness_table(results: Results, attribute: str, condition: str) -> Table:
    """How unequal groups are at one operating point, as standards and laboratories tell it."""
    columns = [
        ColumnSpec(title, metric, ALL, condition, FAIRNESS[metric.removeprefix(f"{rate}_")].better)
        for rate, metric, title in fairness_measures()
    ]
    return method_table(
        results,
        attribute,
        f"fairness-{condition}",
        f"Fairness measures at a global FPR of {rate_text(condition)}",
        "Max − min in percent, the rest as it is. Groups are alike where ratios, FDR and the "
        "inequity rate are 1 and the others 0. Undefined: a ratio to a group without an error."
        + results.caution(attribute, "fpr", [condition]),
        columns,
    )


def fairness_measures() -> list[tuple[str, str, str]]:
    """Return rate ("" for both), name as in ``results.csv``, and title of every measure."""
    single = [
        (rate, f"{rate}_{name}", f"{rate.upper()} {measure.title}")
        for rate in ("fpr", "fnr")
        for name, measure in FAIRNESS.items()
        if measure.of == "rate"
    ]
    return single + [("", n, m.title) for n, m in FAIRNESS.items() if m.of == "both"]


def group_table(results: Results, attribute: str, metric: str, condition: str = "") -> Table:
    """A metric of each group, and of all pairs, by method.

    Under a condition the values share a fixed global rate, so none is better than another.
    """
    title, better = metric.upper(), ""
    if metric in METRICS:
        title, better = METRICS[metric].title, METRICS[metric].better
    names = [(GLOBAL, "Global"), *((group, group) for group in results.groups(attribute))]
    columns = [ColumnSpec(name, metric, group, condition, better) for group, name in names]
    where, hint = "", f" {better} is better."
    if condition:
        rate = Condition.of(condition).metric.upper()
        where, hint = f" at a global {rate} of {rate_text(condition)}", " equal is better."
    return method_table(
        results,
        attribute,
        f"groups-{metric}" + (f"-{condition}" if condition else ""),
        f"{title} by group{where}",
        f"{title} of all pairs and of each group. Percent;{hint}",
        columns,
    )


def main_tables(results: Results, attribute: str) -> list[Table]:
    """The three tables of the paper's main text, as far as they were measured."""
    tables = [accuracy_table(results, attribute)]
    if results.groups(attribute):
        tables += [calibration_table(results, attribute), equality_table(results, attribute)]
    return [table for table in tables if table.measured]


def further_tables(results: Results, attribute: str) -> list[Table]:
    """What the report shows besides the main tables."""
    if not results.groups(attribute):
        return []
    tables = [equality_table(results, attribute, "fnr")]
    tables += [calibration_table(results, attribute, metric) for metric in ("ece", "brier")]
    tables.append(group_table(results, attribute, "ks"))
    tables += [
        group_table(results, attribute, "fpr", under) for under in results.rates("global_fpr")
    ]
    if len(results.variants) > 1:  # an audit has them in its outline
        tables += [fairness_table(results, attribute, c) for c in results.rates("global_fpr")[-1:]]
    return [table for table in tables if table.measured]
