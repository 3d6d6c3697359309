"""Tables as people read them, made from the results store alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from faircal.evaluation.audit.label_noise import over_groups
from faircal.evaluation.audit.regions import distinct
from faircal.evaluation.classes import ClassDifference
from faircal.evaluation.compare import REFERENCE, Comparison
from faircal.metrics import FAIRNESS, METRICS
from faircal.metrics.intervals.sufficient_data import PeopleByGroup
from faircal.metrics.results import ALL, GLOBAL, Condition, ResultKey
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.store import LabelledResults, ResultsFolder, conditions, pair_counts
from faircal.report.wording import is_share, method_title, metric_title, rate_text

#: Measures of how unequal groups are, as in ``results.csv``, and which way each is better: of each
#: rate, then of both.
UNFAIRNESS = {
    **{
        f"{rate}_{name}": measure.better
        for rate in ("fpr", "fnr")
        for name, measure in FAIRNESS.items()
        if measure.of == "rate"
    },
    **{name: measure.better for name, measure in FAIRNESS.items() if measure.of == "both"},
}
#: What probabilities cost as evidence; 1 is as good as saying nothing.
_IN_BITS = ("cllr", "min_cllr")
_OVER = (("mean", "Mean"), ("aad", "AAD"), ("mad", "MAD"), ("std", "STD"))


@dataclass(frozen=True)
class ColumnSpec:
    """A column to be filled: where its values are in the results."""

    name: str
    metric: str
    group: str = GLOBAL
    condition: str = ""
    better: str = "lower"


def method_table(
    results: LabelledResults,
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
                    feature, *variant, attribute, column.group, column.condition, column.metric
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
        # As printed: of two that read the same, one alone in bold would look like a mistake.
        shown = {i: round(100 * grid[i][column].mean, 2) for i in contest}
        values = [value for value in shown.values() if value == value]
        if not heading.better or len(contest) < 2 or not values:
            continue
        best = max(values) if heading.better == "higher" else min(values)
        for i in contest:
            if shown[i] == best:
                grid[i][column] = replace(grid[i][column], best=True)


def main_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the three tables of the paper's main text, as far as they were measured."""
    results = store.results
    columns = [ColumnSpec("AUROC", "auroc", better="higher")]
    columns += [
        ColumnSpec(f"TPR @ {rate_text(under)} FPR", "tpr", condition=under, better="higher")
        for under in results.rates["fpr"]
    ]
    caption = "Over all pairs. Percent; higher is better."
    tables = [method_table(results, attribute, "accuracy", "Accuracy", caption, columns)]
    if results.groups[attribute]:
        tables += [calibration_table(results, attribute), equality_table(results, attribute)]
    return _measured(store, tables)


def _measured(store: ResultsFolder, tables: Iterable[Table]) -> list[Table]:
    """Return the tables that have something to show, with what their intervals assume."""
    shown = [table for table in tables if table.measured]
    if not str(store.run.get("interval_kind", "")).startswith("pair-wise"):
        return shown
    assumed = f"{Table.brackets} if no two pairs share a person"
    return [
        replace(table, brackets=assumed) if table.brackets == Table.brackets else table
        for table in shown
    ]


def calibration_table(results: LabelledResults, attribute: str, metric: str = "ks") -> Table:
    """The paper's second table: calibration error over groups."""
    title, mean = METRICS[metric].title, METRICS[metric].better
    columns = [
        ColumnSpec(f"{title} {name}", f"{metric}_{key}", ALL, better="lower" if of else mean)
        for of, (key, name) in enumerate(_OVER)
    ]
    return method_table(
        results,
        attribute,
        f"calibration-{metric}",
        f"Fairness calibration ({title})",
        f"{title} of each group: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; lower is better"
        + ("." if mean == "lower" else ", but for the mean.")
        + _caution(results, attribute, metric, [""]),
        columns,
    )


def equality_table(results: LabelledResults, attribute: str, metric: str = "fpr") -> Table:
    """The paper's third table: predictive equality (``fpr``), or equal opportunity (``fnr``)."""
    upper, rates = metric.upper(), results.rates[f"global_{metric}"]
    columns = [
        ColumnSpec(f"{name} @ {rate_text(under)}", f"{metric}_{key}", group=ALL, condition=under)
        for under in rates
        for key, name in _OVER[1:]
    ]
    title = "Predictive equality" if metric == "fpr" else "Equal opportunity"
    return method_table(
        results,
        attribute,
        f"equality-{metric}",
        f"{title} ({upper} deviations)",
        f"Deviation of the groups' {upper} at the threshold of a given global {upper}. "
        "Percent; lower is better." + _caution(results, attribute, metric, rates),
        columns,
    )


def fairness_table(results: LabelledResults, attribute: str, condition: str) -> Table:
    """How unequal groups are at one operating point, as standards and laboratories tell it."""
    columns = [
        ColumnSpec(metric_title(metric), metric, ALL, condition, better)
        for metric, better in UNFAIRNESS.items()
    ]
    return method_table(
        results,
        attribute,
        f"fairness-{condition}" if condition else "fairness",
        f"Fairness measures at {point_name(condition)}",
        "Max − min in percent, the rest as it is. Groups are alike where ratios, FDR and the "
        "inequity rate are 1 and the others 0. Undefined: a ratio to a group without an error."
        + _caution(results, attribute, "fpr", [condition]),
        columns,
    )


def point_name(condition: str) -> str:
    """Return an operating point in few words, ``a global FPR of 1 %``."""
    if not condition:
        return "the given threshold"
    return f"a global {Condition.of(condition).metric.upper()} of {rate_text(condition)}"


def _caution(
    results: LabelledResults, attribute: str, metric: str, conditions: Sequence[str]
) -> str:
    """Say which groups count in numbers over groups, but have not enough data themselves."""
    groups, where = results.groups[attribute], results.variants[0]
    small = {}
    for under in conditions:
        small[under] = [
            group
            for group in groups
            if any(
                results.value(ResultKey(feature, *where, attribute, group, under, metric)).says
                for feature in results.features
            )
        ]
    front = " Part of it, but with not enough data to be told alone: "
    if not any(small.values()):
        return ""
    if len({tuple(names) for names in small.values()}) == 1:
        return f"{front}{', '.join(small[conditions[0]])}."
    by_rate = [
        f"at {rate_text(condition)} " + ("each group" if names == groups else ", ".join(names))
        for condition, names in small.items()
        if names
    ]
    return f"{front}{'; '.join(by_rate)}."


def group_table(
    results: LabelledResults, attribute: str, metric: str, condition: str = ""
) -> Table:
    """A metric of each group, and of all pairs, by method.

    Under a condition the values share a fixed global rate, so none is better than another.
    """
    better = METRICS[metric].better if metric in METRICS else ""
    title, hint = metric_title(metric), f" {better} is better." if better else ""
    where = ""
    if condition or metric in ("fpr", "fnr"):
        where, hint = f" at {point_name(condition)}", " equal is better."
    names = [(GLOBAL, "Global"), *((group, group) for group in results.groups[attribute])]
    columns = [ColumnSpec(name, metric, group, condition, better) for group, name in names]
    unit = "Bits" if metric in _IN_BITS else "Percent"
    return method_table(
        results,
        attribute,
        f"groups-{metric}" + (f"-{condition}" if condition else ""),
        f"{title} by group{where}",
        f"{title} of all pairs and of each group. {unit};{hint or ' lower is better.'}",
        columns,
    )


def further_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return what the report shows besides; of an audit also who is in it, and its regions."""
    results = store.results
    every = conditions(results, attribute) if results.groups[attribute] else []
    tables = []
    if store.kind == "audit":
        tables.append(people_table(store, attribute))
        if results.groups[attribute]:
            tables += [group_table(results, attribute, "fnr", point) for point in every]
            tables += [group_table(results, attribute, metric) for metric in _IN_BITS]
        if store.label_noise:
            tables.append(label_noise_table(store))
        if store.regions:
            tables.append(region_table(store))
    if results.groups[attribute]:
        points = [point for point in every if not point.startswith("global_fnr")]
        tables.append(equality_table(results, attribute, "fnr"))
        over = [m.name for m in METRICS.values() if m.deviations and m.name != "ks"]
        tables += [calibration_table(results, attribute, metric) for metric in over]
        headlines = [m.name for m in METRICS.values() if m.headline]
        tables += [group_table(results, attribute, metric) for metric in headlines]
        tables += [group_table(results, attribute, "fpr", point) for point in points]
        # Twenty measures a method: of a benchmark only where it is strictest, else everywhere.
        shown = points if len(results.variants) == 1 else points[-1:]
        tables += [fairness_table(results, attribute, point) for point in shown]
    return _measured(store, tables)


def difference_value(row: Comparison | ClassDifference, verdict: str) -> TableValue:
    """Return a difference between methods as a cell: bold where better, a star where worse."""
    return TableValue(
        row.difference,
        best=verdict == "better",
        worse=verdict == "worse",
        low=row.low,
        high=row.high,
        unit=100.0 if is_share(row.metric) else 1.0,
        digits=2 if is_share(row.metric) else 4,
    )


def difference_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the table of differences to Baseline; none without replicates or other methods."""
    comparisons = [each for each in store.comparisons if each.attribute == attribute]
    if not comparisons:
        return []
    columns = list(dict.fromkeys((c.feature, c.group, c.condition, c.metric) for c in comparisons))
    headings = tuple(
        Heading(
            feature,
            metric_title(metric, condition) + (" (all pairs)" if group == GLOBAL else ""),
            "",
        )
        for feature, group, condition, metric in columns
    )
    cells = {
        (each.method_b, each.feature, each.group, each.condition, each.metric): difference_value(
            each, each.verdict
        )
        if each.reportable
        else TableValue(math.nan, says=each.verdict)
        for each in comparisons
    }
    lines = tuple(
        Line(
            method_title(name),
            tuple(cells.get((name, *column), TableValue(math.nan)) for column in columns),
            variant.yardstick,
        )
        for name, variant in store.main_variants.items()
        if name != REFERENCE
    )
    caption = (
        "Value of each method less that of Baseline, on the same people, in points of percent (NLL "
        "as it is). Bold: better, and told apart from none after correction for all "
        f"{comparisons[0].family:.0f} comparisons (Holm); a star: worse, and told apart."
    )
    return [Table("differences", "Difference to Baseline", caption, headings, lines)]


def _plain_table(key: str, title: str, caption: str, names: list[str], lines: list[Line]) -> Table:
    headings = tuple(Heading("", name, "") for name in names)
    return Table(key, title, caption, headings, tuple(lines), spreads=False, stub="")


def people_table(store: ResultsFolder, attribute: str) -> Table:
    """People and pairs of each group, which are the same for all features."""
    pairs = pair_counts(store, attribute, store.results.features[0])
    people = PeopleByGroup.of(store.run, attribute)
    lines = []
    for group in (GLOBAL, *store.results.groups[attribute]):
        genuine, imposter = pairs.get(group, (math.nan, math.nan))
        values = (
            people.people.get(group, math.nan),
            imposter,
            people.effective["fpr"].get(group, math.nan),
            genuine,
            people.effective["fnr"].get(group, math.nan),
        )
        name = "All pairs" if group == GLOBAL else group
        lines.append(Line(name, tuple(TableValue(float(n), unit=1, digits=0) for n in values)))
    return _plain_table(
        "population",
        "People and pairs",
        "Effective people: how many, each in equally many such pairs, would tell as much.",
        [
            "People",
            "Pairs of strangers",
            "Effective people in them",
            "Pairs of one person",
            "Effective people in these",
        ],
        lines,
    )


def label_noise_table(store: ResultsFolder) -> Table:
    """How far gaps move when labels of groups are wrong."""
    several, lines = len(store.results.features) > 1, []
    for row in over_groups(store.label_noise):
        drawn = TableValue(row.median, low=row.low, high=row.high)
        back = TableValue(math.nan, says="not known")
        if row.reliable:
            interval = row.taken_back(lambda value: TableValue(value).text)
            back = TableValue(row.corrected, says=interval if " to " in interval else "")
        name = f"{row.name} at {point_name(row.condition)}" if row.of_rate else row.name
        block = row.feature if several else ""
        lines.append(Line(name, (TableValue(row.value), drawn, back), block=block))
    share = 100 * store.label_noise[0].noise if lines else 0.0
    names = ["As labelled", f"With {share:g} % wrong", f"If {share:g} % are wrong already"]
    caption = (
        "So many labels of groups were drawn anew at random: how far gaps move, and what they "
        "would be if as many are wrong already and are taken back. Percent."
    )
    made = _plain_table("label-noise", "Wrong labels: how far gaps move", caption, names, lines)
    return replace(made, brackets="where 95 % of the draws lie")


def region_table(store: ResultsFolder) -> Table:
    """The regions that were found to be worse than the rest."""
    lines = [
        Line(
            row.region,
            (
                TableValue(row.people, unit=1, digits=0),
                TableValue(row.imposters, unit=1, digits=0),
                TableValue(row.fpr, low=row.low, high=row.high),
                TableValue(row.rest_fpr),
                TableValue(row.gap, low=row.gap_low, high=row.gap_high),
                TableValue(row.rest_gap),
                TableValue(math.nan, says=row.composition or "–"),
            ),
        )
        for row in distinct(store.regions)
    ]
    names = ["People", "Pairs of strangers", "FPR", "Rest", "Probabilities off by", "Rest ", "Who"]
    caption = (
        "Where in embedding space it is worst, without labels of groups, as the half of the people "
        "that did not make a region shows it, with control of false discoveries. Percent."
    )
    return _plain_table("regions", "Regions that are worse", caption, names, lines)
