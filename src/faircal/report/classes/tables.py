"""What a run measured of a classifier, looked up, and the tables that are made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

from faircal.evaluation.classes import ClassDifference
from faircal.metrics import CLASS_METRICS, METRICS
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL, Result, ResultKey
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.store import ResultsFolder, Variant
from faircal.report.tables import ColumnSpec, difference_value, mark_best, method_table
from faircal.report.wording import better_way, is_share, listing, metric_title

Verdict = Literal["better", "worse", "no clear difference"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

#: The methods that others are compared with, where they were run, and what each is in a sentence.
REFERENCES = {"uncalibrated": "no calibration", "global": "one map for everyone"}
#: In the curves, the attribute whose groups are the classes.
CLASS = "class"
#: So many groups stand in tables; ``results.csv`` has all.
MANY = 40
#: What is to be known of differences between calibration errors.
BEYOND = (
    "Noise makes calibration errors larger, small ones most, and intervals allow for that: so one "
    "may lie beyond the difference that was found."
)
_OVER = {"mean": "Mean", "aad": "AAD", "mad": "MAD", "std": "STD"}
#: What is shown over groups.
_SPREAD = ("top_ks", "class_ks", "nll", "accuracy")
#: What methods are compared by: of all rows, and over groups.
COMPARED = tuple((metric, GLOBAL) for metric in ("accuracy", "nll", "brier", "top_ks", "class_ks"))
COMPARED_OVER = tuple(
    (metric, ALL) for metric in ("top_ks_mean", "top_ks_mad", "class_ks_mean", "class_ks_mad")
)


class Change(NamedTuple):
    """By how much a method differs from another on the same rows, and what that comes to."""

    difference: ClassDifference
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class ClassResults:
    """All that a store of kind ``classify`` holds of the groups of one attribute.

    Parameters
    ----------
    store : ResultsFolder
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.

    Attributes
    ----------
    methods : dict from str to Variant
        The methods by title, yardsticks last.
    spoken_of : Variant
        The method that the summary speaks of first: the probabilities as they come.
    references : list of Variant
        The methods that others are compared with.
    differences : dict of ClassDifference
        By method, reference, group and metric; each pair of methods both ways.
    metrics, groups, classes : list of str
        What every group is measured by, in the order of the tables; the groups and the classes.
    withheld : dict from group to str
        Why numbers must not be shown; none where they may.
    small, reportable : list of str
        The groups without enough data, and those with it.
    """

    store: ResultsFolder
    attribute: str
    methods: dict[str, Variant] = field(init=False)
    spoken_of: Variant = field(init=False)
    references: list[Variant] = field(init=False)
    differences: dict[tuple[str, ...], ClassDifference] = field(init=False)
    metrics: list[str] = field(init=False)
    groups: list[str] = field(init=False)
    classes: list[str] = field(init=False)
    withheld: dict[str, str] = field(init=False)
    small: list[str] = field(init=False)
    reportable: list[str] = field(init=False)

    def __post_init__(self) -> None:
        results, variants = self.store.results, self.store.main_variants
        named = [variants[name] for name in REFERENCES if name in variants]
        differences = {
            (row.method, row.reference, row.group, row.metric): row
            for each in self.store.class_differences
            for row in (each.turned(), each)
            if row.attribute == self.attribute
        }
        compared = {method for method, *_ in differences}
        with_changes = [variant for name, variant in variants.items() if name in compared]
        pairs = [f"top_{name}" for name in METRICS if name not in CLASS_METRICS]
        measured = {row.metric for row in results.rows}
        groups, front = results.groups[self.attribute], f"{CLASS}="
        withheld = {
            row.group: row.withheld
            for row in results.rows
            if row.attribute == self.attribute and row.withheld and row.group != ALL
        }
        vars(self).update(
            methods={results.label(variant): variant for variant in variants.values()},
            spoken_of=next(iter([*named, *variants.values()])),
            references=[of for of in named if of in with_changes] or with_changes[:1],
            differences=differences,
            metrics=[m for m in dict.fromkeys([*CLASS_METRICS, *pairs]) if m in measured],
            groups=groups,
            classes=[c.removeprefix(front) for c in results.conditions if c.startswith(front)],
            withheld=withheld,
            small=[group for group in groups if group in withheld],
            reportable=[group for group in groups if group not in withheld],
        )

    def worst(self, metric: str, most: int, *, by_class: bool = False) -> list[str]:
        """Return the groups with enough data, or the classes, that fare worst: `most` of them."""
        places = {group: (group, "") for group in self.reportable}
        if by_class:
            places = {name: (GLOBAL, f"{CLASS}={name}") for name in self.classes}
        values = {name: self.result(metric, None, *place).value for name, place in places.items()}
        finite = [name for name, value in values.items() if not math.isnan(value)]
        return sorted(finite, key=values.__getitem__, reverse=better_way(metric) == "lower")[:most]

    def result(
        self,
        metric: str,
        variant: Variant | None = None,
        group: str = GLOBAL,
        condition: str = "",
    ) -> Result:
        """Return a measured value, by default of the method that is spoken of."""
        feature, of = self.store.results.features[0], variant or self.spoken_of
        key = ResultKey(feature, *of, self.attribute, group, condition, metric)
        return self.store.results.get(key)

    def change(
        self, metric: str, method: Variant, reference: Variant, group: str = GLOBAL
    ) -> Change | None:
        """Return the value less that of `reference` on the same rows; None where not known."""
        row = self.differences.get((method.method, reference.method, group, metric))
        if row is None or row.withheld or math.isnan(row.difference) or math.isnan(row.low):
            return None
        verdict: Verdict = "no clear difference"
        if row.low > 0 or row.high < 0:
            verdict = "better" if (row.low > 0) == (better_way(metric) == "higher") else "worse"
        return Change(row, verdict)


def class_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the main tables: overall, and over groups."""
    results = ClassResults(store, attribute)
    columns = [ColumnSpec(metric_title(m), m, better=better_way(m)) for m in results.metrics]
    caption = "Over all rows. Percent; NLL as it is. Accuracy: higher is better; the others: lower."
    tables = [method_table(store.results, attribute, "overall", "All rows", caption, columns)]
    if results.groups:
        names = [(metric, f"{metric}_{over}") for metric in _SPREAD for over in _OVER]
        columns = [
            ColumnSpec(title, name, ALL, better=better_way(name))
            for (_, name), title in zip(names, [*_OVER.values()] * len(_SPREAD), strict=True)
        ]
        caption = (
            "Of each group's number: mean over groups, average (AAD) and largest (MAD) absolute "
            "deviation from it, standard deviation (STD). Percent; NLL as it is. Lower is better, "
            "but for the mean accuracy."
        )
        if results.small and results.reportable:
            caption += (
                f" Part of it, but with not enough data to be told alone: {listing(results.small)}."
            )
        made = method_table(store.results, attribute, "groups", "Over groups", caption, columns)
        headings = zip(made.headings, names, strict=True)
        blocks = (replace(heading, block=metric_title(metric)) for heading, (metric, _) in headings)
        tables.append(replace(made, headings=tuple(blocks)))
    return _kept(tables, store)


def class_differences(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return how methods differ from each of those that others are compared with."""
    results = ClassResults(store, attribute)
    columns = [*COMPARED, *(COMPARED_OVER if results.groups else ())]
    headings = tuple(
        Heading("All rows" if group == GLOBAL else "Over groups", metric_title(metric), "")
        for metric, group in columns
    )
    tables = []
    for reference in results.references:
        lines = []
        for title, variant in results.methods.items():
            cells = []
            for metric, group in columns:
                change = results.change(metric, variant, reference, group)
                few = NOT_ENOUGH if group == ALL and results.small else ""
                none = TableValue(math.nan, says=few)
                cells.append(none if change is None else difference_value(*change))
            if variant != reference:
                lines.append(Line(title, tuple(cells), variant.yardstick))
        to = store.results.label(reference)
        caption = (
            f"Value of each method less that of {to}, on the same rows. Percentage points; NLL as "
            "it is. Bold: better, a star: worse, and the interval of the difference leaves out 0; "
            f"each interval is of one difference by itself. {BEYOND}"
        )
        key, title = f"differences-{reference.method}", f"Difference to {to}"
        tables.append(Table(key, title, caption, headings, tuple(lines)))
    return _kept(tables, store)


def further_class_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return every metric of every group, and every class.

    Of very many groups those with enough data and most rows.
    """
    results, tables = ClassResults(store, attribute), []
    shown, cut = results.groups, ""
    if len(shown) > MANY:
        rows = {group: results.result("accuracy", None, group).trials for group in shown}
        kept = set(sorted(results.reportable, key=lambda group: -rows[group])[:MANY])
        shown = [group for group in results.groups if group in kept]
        cut = (
            f" Shown are {len(shown):,} of {len(results.groups):,} groups, those with enough data "
            "and most rows; results.csv has all."
        )
    places = {"All rows": (GLOBAL, ""), **{group: (group, "") for group in shown}}
    for metric in results.metrics if shown else ():
        title, better = metric_title(metric), better_way(metric)
        hint = f"Percent; {better}" if is_share(metric) else better.capitalize()
        caption = f"{title} of all rows and of each group. {hint} is better.{cut}"
        made = _below_each_other(results, {metric: ""}, places, "Group")
        made = replace(made, key=f"groups-{metric}", title=f"{title} by group", caption=caption)
        tables.append(made)
    places = {name: (GLOBAL, f"{CLASS}={name}") for name in results.classes}
    names = {"class_ks": "KS", "class_ece": "ECE"}
    caption = (
        "How far each class's stated probability is from how often it is the true one. Percent; "
        "lower is better; the best method of each class in bold."
    )
    made = _below_each_other(results, names, places, "Class")
    title = "Calibration error by class"
    tables.append(replace(made, key="classes", title=title, caption=caption))
    return _kept(tables, store)


def _kept(tables: Sequence[Table], store: ResultsFolder) -> list[Table]:
    """Return the tables that show something; no folds stand behind a value here."""
    banner = " Simulated data." if store.simulated else ""
    return [
        replace(table, spreads=False, caption=table.caption + banner)
        for table in tables
        if table.measured
    ]


def _below_each_other(
    results: ClassResults,
    metrics: Mapping[str, str],
    places: Mapping[str, tuple[str, str]],
    stub: str,
) -> Table:
    """Return a table with groups or classes down and methods across, since there may be many.

    Parameters
    ----------
    results : ClassResults
    metrics : mapping from metric to the title of its block
    places : mapping from a line's label to its group and condition
    stub : str
    """
    headings, columns = [], []
    contest = [i for i, variant in enumerate(results.methods.values()) if not variant.yardstick]
    for metric, block in metrics.items():
        better = better_way(metric)
        grid = [
            [
                results.store.results.value(results.result(metric, variant, *place).key)
                for place in places.values()
            ]
            for variant in results.methods.values()
        ]
        mark_best(grid, contest, [Heading("", "", better)] * len(places))
        columns += grid
        headings += [Heading(block, title, better) for title in results.methods]
    lines = (Line(label, tuple(column[i] for column in columns)) for i, label in enumerate(places))
    return Table("", "", "", tuple(headings), tuple(lines), stub=stub)
