"""Tables as people read them, made from the results store alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from faircal.evaluation.audit.label_noise import LabelNoiseRow, over_groups
from faircal.evaluation.audit.regions import distinct
from faircal.metrics import FAIRNESS, METRICS
from faircal.metrics.results import ALL, GLOBAL, Condition, ResultKey
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.findings import VariantResults, conditions, effective_people, people
from faircal.report.store import LabelledResults, ResultsFolder
from faircal.report.wording import metric_title, rate_text


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
        shown = {i: round(100 * grid[i][column].mean, 2) for i in contest}
        known = [value for value in shown.values() if not np.isnan(value)]
        if not heading.better or len(contest) < 2 or not known:
            continue
        best = max(known) if heading.better == "higher" else min(known)
        for i in contest:
            if shown[i] == best:
                grid[i][column] = replace(grid[i][column], best=True)


def accuracy_table(results: LabelledResults, attribute: str) -> Table:
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
        + results.caution(attribute, metric, [""]),
        columns,
    )


def equality_table(results: LabelledResults, attribute: str, metric: str = "fpr") -> Table:
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


def fairness_table(results: LabelledResults, attribute: str, condition: str) -> Table:
    """How unequal groups are at one operating point, as standards and laboratories tell it."""
    columns = [
        ColumnSpec(title, metric, ALL, condition, FAIRNESS[metric.removeprefix(f"{rate}_")].better)
        for rate, metric, title in fairness_measures()
    ]
    return method_table(
        results,
        attribute,
        f"fairness-{condition}" if condition else "fairness",
        f"Fairness measures at {point_name(condition)}",
        "Max − min in percent, the rest as it is. Groups are alike where ratios, FDR and the "
        "inequity rate are 1 and the others 0. Undefined: a ratio to a group without an error."
        + results.caution(attribute, "fpr", [condition]),
        columns,
    )


def point_name(condition: str) -> str:
    """Return an operating point in few words, ``a global FPR of 1 %``."""
    if not condition:
        return "the given threshold"
    return f"a global {Condition.of(condition).metric.upper()} of {rate_text(condition)}"


def fairness_measures() -> list[tuple[str, str, str]]:
    """Return rate ("" for both), name as in ``results.csv``, and title of every measure."""
    single = [
        (rate, f"{rate}_{name}", f"{rate.upper()} {measure.title}")
        for rate in ("fpr", "fnr")
        for name, measure in FAIRNESS.items()
        if measure.of == "rate"
    ]
    return single + [("", n, m.title) for n, m in FAIRNESS.items() if m.of == "both"]


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
    names = [(GLOBAL, "Global"), *((group, group) for group in results.groups(attribute))]
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


#: What probabilities cost as evidence; 1 is as good as saying nothing.
_IN_BITS = ("cllr", "min_cllr")


def main_tables(results: LabelledResults, attribute: str) -> list[Table]:
    """The three tables of the paper's main text, as far as they were measured."""
    tables = [accuracy_table(results, attribute)]
    if results.groups(attribute):
        tables += [calibration_table(results, attribute), equality_table(results, attribute)]
    return [table for table in tables if table.measured]


def further_tables(results: LabelledResults, attribute: str) -> list[Table]:
    """What the report shows besides the main tables."""
    if not results.groups(attribute):
        return []
    tables = [equality_table(results, attribute, "fnr")]
    further = [m.name for m in METRICS.values() if m.deviations and m.name != "ks"]
    tables += [calibration_table(results, attribute, metric) for metric in further]
    points = [c for c in conditions(results, attribute) if not c.startswith("global_fnr")]
    tables += [group_table(results, attribute, m.name) for m in METRICS.values() if m.headline]
    tables += [group_table(results, attribute, "fpr", point) for point in points]
    # Twenty measures a method: of a benchmark only where it is strictest, of an audit everywhere.
    shown = points if len(results.variants) == 1 else points[-1:]
    tables += [fairness_table(results, attribute, point) for point in shown]
    return [table for table in tables if table.measured]


def audit_tables(store: ResultsFolder, results: LabelledResults, attribute: str) -> list[Table]:
    """What the report of an audit shows besides: of one set of scores, and of who is in them."""
    tables = [people_table(store, attribute)]
    if results.groups(attribute):
        every = conditions(results, attribute)
        tables += [group_table(results, attribute, "fnr", point) for point in every]
        tables += [group_table(results, attribute, metric) for metric in _IN_BITS]
    tables += [label_noise_table(store), region_table(store)]
    return [table for table in tables if table.measured]


def _plain_table(key: str, title: str, caption: str, names: list[str], lines: list[Line]) -> Table:
    headings = tuple(Heading("", name, "") for name in names)
    return Table(key, title, caption, headings, tuple(lines), spreads=False, stub="")


def _count(n: float | None) -> TableValue:
    return TableValue(np.nan if n is None else float(n), unit=1, digits=0)


def people_table(store: ResultsFolder, attribute: str) -> Table:
    """People and pairs of each group, which are the same for all features."""
    of = VariantResults(store, attribute, store.results.features[0], store.results.variants[0])
    counted = people(store, attribute)
    same, strangers = (effective_people(store, attribute, metric) for metric in ("fnr", "fpr"))
    lines = []
    for group in (GLOBAL, *of.groups):
        genuine, imposter = of.counts(group) or (None, None)
        values = [counted.get(group), imposter, strangers.get(group), genuine, same.get(group)]
        name = "All pairs" if group == GLOBAL else group
        lines.append(Line(name, tuple(map(_count, values))))
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
    lines = []
    for row in over_groups(store.label_noise):
        drawn = TableValue(row.median, low=row.low, high=row.high)
        back = TableValue(np.nan, says="not known")
        if row.reliable:
            said = row.taken_back(lambda value: TableValue(value).text)
            back = TableValue(row.corrected, says=said if " to " in said else "")
        name = f"{row.name} at {point_name(row.condition)}" if row.of_rate else row.name
        lines.append(Line(name, (TableValue(row.value), drawn, back), block=_block(store, row)))
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
                _count(row.people),
                _count(row.imposters),
                TableValue(row.fpr, low=row.low, high=row.high),
                TableValue(row.rest_fpr),
                TableValue(row.gap, low=row.gap_low, high=row.gap_high),
                TableValue(row.rest_gap),
                TableValue(np.nan, says=row.composition or "–"),
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


def _block(store: ResultsFolder, row: LabelNoiseRow) -> str:
    return row.feature if len(store.results.features) > 1 else ""
