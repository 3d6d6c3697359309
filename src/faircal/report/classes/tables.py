"""What a run measured of a classifier, looked up, and the tables that are made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from faircal.evaluation.classes import ClassDifference
from faircal.evaluation.curves import ScoreSource
from faircal.metrics import CLASS_METRICS, METRICS
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL, Result
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

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference leaves out 0."""
        return self.verdict != "no clear difference"


@dataclass(frozen=True, eq=False)
class ClassResults:
    """All that a store of kind ``classify`` holds of the groups of one attribute.

    Parameters
    ----------
    store : ResultsFolder
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """

    store: ResultsFolder
    attribute: str

    @cached_property
    def methods(self) -> dict[str, Variant]:
        """The methods by title, yardsticks last."""
        variants = self.store.main_variants.values()
        return {self.store.results.label(variant): variant for variant in variants}

    @property
    def spoken_of(self) -> Variant:
        """The method that the summary speaks of first: the probabilities as they come."""
        variants = self.store.main_variants
        name = next((name for name in REFERENCES if name in variants), None)
        return variants[name] if name else next(iter(variants.values()))

    @cached_property
    def metrics(self) -> list[str]:
        """What every group is measured by, in the order of the tables."""
        measured = {row.metric for row in self.store.results.rows}
        pairs = [f"top_{name}" for name in METRICS if name not in CLASS_METRICS]
        return [name for name in dict.fromkeys([*CLASS_METRICS, *pairs]) if name in measured]

    @cached_property
    def groups(self) -> list[str]:
        """The groups in order."""
        return self.store.results.groups[self.attribute]

    @cached_property
    def classes(self) -> list[str]:
        """The classes in order."""
        conditions, front = self.store.results.conditions, f"{CLASS}="
        return [text.removeprefix(front) for text in conditions if text.startswith(front)]

    @cached_property
    def withheld(self) -> dict[str, str]:
        """Why numbers must not be shown, by group; none where they may."""
        return {
            row.group: row.withheld
            for row in self.store.results.rows
            if row.attribute == self.attribute and row.withheld and row.group != ALL
        }

    @property
    def small(self) -> list[str]:
        """The groups without enough data."""
        return [group for group in self.groups if group in self.withheld]

    @property
    def reportable(self) -> list[str]:
        """The groups with enough data."""
        return [group for group in self.groups if group not in self.withheld]

    @cached_property
    def shown(self) -> list[str]:
        """The groups of tables: all, or of very many those with enough data and most rows."""
        if len(self.groups) <= MANY:
            return self.groups
        rows = {group: self.result("accuracy", None, group).trials for group in self.reportable}
        kept = set(sorted(rows, key=lambda group: -rows[group])[:MANY])
        return [group for group in self.groups if group in kept]

    def worst(self, metric: str, most: int, *, by_class: bool = False) -> list[str]:
        """Return the groups with enough data, or the classes, that fare worst: `most` of them."""
        places = {group: (group, "") for group in self.reportable}
        if by_class:
            places = {name: (GLOBAL, f"{CLASS}={name}") for name in self.classes}
        values = {name: self.result(metric, None, *place).value for name, place in places.items()}
        there = [name for name, value in values.items() if not math.isnan(value)]
        return sorted(there, key=values.__getitem__, reverse=better_way(metric) == "lower")[:most]

    def result(
        self,
        metric: str,
        variant: Variant | None = None,
        group: str = GLOBAL,
        condition: str = "",
    ) -> Result:
        """Return a measured value, of the method that is spoken of unless told."""
        feature, of = self.store.results.features[0], variant or self.spoken_of
        row = Result("", feature, *of, "", "", self.attribute, group, condition, metric)
        return self.store.results.get(row.key)

    def value(
        self, metric: str, variant: Variant | None = None, group: str = GLOBAL, condition: str = ""
    ) -> TableValue:
        """Return a value with its interval; NaN that `says` why where data is not enough."""
        return self.store.results.value(self.result(metric, variant, group, condition).key)

    @cached_property
    def _differences(self) -> dict[tuple[str, ...], ClassDifference]:
        return {
            (row.method, row.reference, row.group, row.metric): row
            for each in self.store.class_differences
            for row in (each.turned(), each)
            if row.attribute == self.attribute
        }

    @cached_property
    def references(self) -> list[Variant]:
        """The methods that others are compared with."""
        compared = {method for method, _, _, _ in self._differences}
        there = {v.method: v for v in self.methods.values() if v.method in compared}
        return [there[name] for name in REFERENCES if name in there] or [*there.values()][:1]

    def change(
        self, metric: str, method: Variant, reference: Variant, group: str = GLOBAL
    ) -> Change | None:
        """Return the value less that of `reference` on the same rows; None where not known."""
        row = self._differences.get((method.method, reference.method, group, metric))
        if row is None or row.withheld or math.isnan(row.difference) or math.isnan(row.low):
            return None
        verdict: Verdict = "no clear difference"
        if row.low > 0 or row.high < 0:
            verdict = "better" if (row.low > 0) == (better_way(metric) == "higher") else "worse"
        return Change(row, verdict)

    def sources(self, attribute: str | None = None) -> dict[str, ScoreSource]:
        """Return whose confidence was counted, by method; of `CLASS`, every class's probability."""
        of = self.attribute if attribute is None else attribute
        return {each.method: each for each in self.store.curves.sources if each.attribute == of}


# ---------------------------------------------------------------------- tables


def class_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the main tables: overall, and over groups."""
    results = ClassResults(store, attribute)
    return _kept([_overall(results), *([_over_groups(results)] if results.groups else [])], store)


def class_differences(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return how methods differ from each of those that others are compared with."""
    results = ClassResults(store, attribute)
    return _kept([_differences(results, reference) for reference in results.references], store)


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


def _overall(results: ClassResults) -> Table:
    columns = [ColumnSpec(metric_title(m), m, better=better_way(m)) for m in results.metrics]
    caption = "Over all rows. Percent; NLL as it is. Accuracy: higher is better; the others: lower."
    reportable = results.store.results
    return method_table(reportable, results.attribute, "overall", "All rows", caption, columns)


def _over_groups(results: ClassResults) -> Table:
    names = [
        (f"{metric}_{key}", metric, title) for metric in _SPREAD for key, title in _OVER.items()
    ]
    columns = [ColumnSpec(title, name, ALL, better=better_way(name)) for name, _, title in names]
    caption = (
        "Of each group's number: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; NLL as it is. Lower is better, but "
        "for the mean accuracy."
    )
    if results.small and results.reportable:
        caption += (
            f" Part of it, but with not enough data to be told alone: {listing(results.small)}."
        )
    reportable = results.store.results
    made = method_table(reportable, results.attribute, "groups", "Over groups", caption, columns)
    blocks = [metric_title(metric) for _, metric, _ in names]
    headings = zip(made.headings, blocks, strict=True)
    return replace(made, headings=tuple(replace(h, block=block) for h, block in headings))


def _differences(results: ClassResults, reference: Variant) -> Table:
    """Return how methods differ from one that others are compared with."""
    metrics = [*COMPARED, *(COMPARED_OVER if results.groups else ())]
    headings = tuple(
        Heading("All rows" if group == GLOBAL else "Over groups", metric_title(name), "")
        for name, group in metrics
    )
    lines = tuple(
        Line(
            title,
            tuple(_difference(results, name, variant, reference, of) for name, of in metrics),
            variant.yardstick,
        )
        for title, variant in results.methods.items()
        if variant != reference
    )
    to = results.store.results.label(reference)
    caption = (
        f"Value of each method less that of {to}, on the same rows. Percentage points; NLL as it "
        "is. Bold: better, a star: worse, and the interval of the difference leaves out 0; each "
        f"interval is of one difference by itself. {BEYOND}"
    )
    key = f"differences-{reference.method}"
    return Table(key, f"Difference to {to}", caption, headings, lines)


def _difference(
    results: ClassResults, name: str, method: Variant, to: Variant, group: str
) -> TableValue:
    change = results.change(name, method, to, group)
    if change is None:
        few = group == ALL and results.small
        return TableValue(math.nan, says=NOT_ENOUGH if few else "")
    return difference_value(change.difference, change.verdict)


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
    contest = [i for i, variant in enumerate(results.methods.values()) if not variant.yardstick]
    for name, block in metrics.items():
        better = better_way(name)
        grid = [
            [results.value(name, variant, *place) for place in places.values()]
            for variant in results.methods.values()
        ]
        mark_best(grid, contest, [Heading("", "", better)] * len(places))
        columns += grid
        headings += [Heading(block, title, better) for title in results.methods]
    lines = (Line(label, tuple(column[i] for column in columns)) for i, label in enumerate(places))
    return tuple(headings), tuple(lines)


def _by_group(results: ClassResults, name: str) -> Table:
    """A metric of every group."""
    title, better = metric_title(name), better_way(name)
    places = {"All rows": (GLOBAL, ""), **{group: (group, "") for group in results.shown}}
    headings, lines = _below_each_other(results, {name: ""}, places)
    hint = f"Percent; {better}" if is_share(name) else better.capitalize()
    caption = f"{title} of all rows and of each group. {hint} is better."
    if len(results.shown) < len(results.groups):
        caption += (
            f" Shown are {len(results.shown):,} of {len(results.groups):,} groups, those with "
            "enough data and most rows; results.csv has all."
        )
    key, stub = f"groups-{name}", "Group"
    return Table(key, f"{title} by group", caption, headings, lines, stub=stub)


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
