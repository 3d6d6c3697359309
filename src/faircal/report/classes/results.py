"""What a run measured of a classifier, looked up: titles, units, and whether a number may be shown.

Tables, figures and sentences are all made from this. Methods have the titles that ``run.json``
gives them, so that a folder can be shown wherever it was made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from faircal.evaluation.classes import ClassDifference
from faircal.evaluation.curves import ScoreSource
from faircal.metrics.catalogue import METRICS as PAIR_METRICS
from faircal.metrics.catalogue import Metric
from faircal.metrics.classes import CLASS_METRICS, ClassMetric
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL, Result
from faircal.report.cells import TableValue
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import rounded

Verdict = Literal["better", "worse", "no clear difference"]

#: The methods that others are compared with, where they were run, and what each is in a sentence.
REFERENCES = {"uncalibrated": "no calibration", "global": "one map for everyone"}
#: In the curves, the attribute whose groups are the classes.
CLASS = "class"
#: Deviations over groups, and how they are called.
OVER = {"mean": "mean", "aad": "AAD", "mad": "MAD", "std": "STD"}
#: So many groups stand in tables; ``results.csv`` has all.
MANY = 40
#: Costs, which are no shares of anything.
_COSTS = ("nll", "brier")
#: What is to be known of differences between calibration errors.
BEYOND = (
    "Noise makes calibration errors larger, small ones most, and intervals allow for that: so one "
    "may lie beyond the difference that was found."
)


class MetricColumn(NamedTuple):
    """A metric of ``results.csv``, taken apart: ``top_ks_mad`` is the ``mad`` of ``top_ks``."""

    name: str
    over: str

    @classmethod
    def of(cls, text: str) -> MetricColumn:
        """Take a name apart.

        Examples
        --------
        >>> MetricColumn.of("top_ks_mad"), MetricColumn.of("top_ks_mad").title
        (MetricColumn(name='top_ks', over='mad'), 'Top-label KS MAD')
        """
        name, _, over = text.rpartition("_")
        return cls(name, over) if over in OVER else cls(text, "")

    @property
    def _registered(self) -> ClassMetric | Metric | None:
        pairs = self.name.removeprefix("top_")  # a metric of pairs that is put to the top label
        if self.name in CLASS_METRICS:
            return CLASS_METRICS[self.name]
        return {**PAIR_METRICS}.get(pairs)

    @property
    def title(self) -> str:
        """What it is called, ``Top-label KS MAD``."""
        metric = self._registered
        front = "Top-label " if isinstance(metric, Metric) else ""
        title = f"{front}{metric.title}" if metric else self.name
        return f"{title} {OVER[self.over]}" if self.over else title

    @property
    def better(self) -> str:
        """Which way is better: deviations over groups are lower where groups fare alike."""
        metric = self._registered
        return "lower" if self.over not in ("", "mean") else metric.better if metric else ""

    @property
    def share(self) -> bool:
        """Whether it is a share, which people read in percent; NLL and Brier are none."""
        return self.name not in _COSTS

    def shown(self, value: TableValue) -> TableValue:
        """Return a value as it is printed: percent with two decimals, else four."""
        return replace(value, unit=100.0) if self.share else replace(value, unit=1.0, digits=4)

    def text(self, value: float) -> str:
        """Print a value in a caption: a share in percent, a cost as it is.

        Examples
        --------
        >>> [MetricColumn.of(name).text(-0.0123) for name in ("top_ks", "nll")]
        ['−1.23 %', '−0.0123']
        """
        return (rounded(value) if self.share else f"{value:.3g}").replace("-", "−")


class ReportedMethod(NamedTuple):
    """A method, its title, whether it is a yardstick, and where its values are."""

    name: str
    title: str
    yardstick: bool
    variant: Variant


class Change(NamedTuple):
    """By how much a method differs from another on the same rows, and what that comes to."""

    metric: str
    value: TableValue
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
    def methods(self) -> list[ReportedMethod]:
        """The methods in the run's order, yardsticks last."""
        described = self.store.run.get("methods")
        described = described if isinstance(described, dict) else {}
        order = [*described, *self.store.main_variants]
        methods = []
        for name, variant in self.store.main_variants.items():
            about = described.get(name)
            about = about if isinstance(about, dict) else {}
            title = str(about.get("title") or name or "probabilities")
            methods.append(ReportedMethod(name, title, bool(about.get("yardstick")), variant))
        return sorted(methods, key=lambda method: (method.yardstick, order.index(method.name)))

    @property
    def spoken_of(self) -> ReportedMethod:
        """The method that the summary speaks of first: the probabilities as they come."""
        by_name = {method.name: method for method in self.methods}
        return next((by_name[n] for n in REFERENCES if n in by_name), self.methods[0])

    @cached_property
    def metrics(self) -> list[str]:
        """What every group is measured by, in the order of the tables."""
        measured = dict.fromkeys(row.metric for row in self.store.results.rows)
        pairs = [f"top_{name}" for name in PAIR_METRICS if name not in CLASS_METRICS]
        return [name for name in dict.fromkeys([*CLASS_METRICS, *pairs]) if name in measured]

    @cached_property
    def groups(self) -> list[str]:
        """The groups in order."""
        return self.store.results.groups(self.attribute)

    @cached_property
    def classes(self) -> list[str]:
        """The classes in order."""
        conditions = dict.fromkeys(row.condition for row in self.store.results.rows)
        front = f"{CLASS}="
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
        kept = set(sorted(self.reportable, key=lambda group: -self.rows(group))[:MANY])
        return [group for group in self.groups if group in kept]

    def rows(self, group: str) -> int:
        """Return the number of a group's rows; 0 where that is not known."""
        trials = self.result("accuracy", None, group).trials
        return 0 if math.isnan(trials) else int(trials)

    def worst(self, metric: str, most: int, *, by_class: bool = False) -> list[str]:
        """Return the groups with enough data, or the classes, that fare worst: `most` of them."""
        places = {group: (group, "") for group in self.reportable}
        if by_class:
            places = {name: (GLOBAL, f"{CLASS}={name}") for name in self.classes}
        values = {name: self.result(metric, None, *place).value for name, place in places.items()}
        there = [name for name, value in values.items() if not math.isnan(value)]
        highest_first = MetricColumn.of(metric).better == "lower"
        return sorted(there, key=values.__getitem__, reverse=highest_first)[:most]

    def result(
        self,
        metric: str,
        method: ReportedMethod | None = None,
        group: str = GLOBAL,
        condition: str = "",
    ) -> Result:
        """Return a measured value, of the method that is spoken of unless told."""
        variant = (method or self.spoken_of).variant
        feature = self.store.results.features[0]  # the same throughout
        row = Result("", feature, *variant, "", "", self.attribute, group, condition, metric)
        return self.store.results.get(row.key)

    def value(
        self,
        metric: str,
        method: ReportedMethod | None = None,
        group: str = GLOBAL,
        condition: str = "",
    ) -> TableValue:
        """Return a value with its interval; NaN that `says` why where data is not enough."""
        row = self.result(metric, method, group, condition)
        if row.withheld and not math.isnan(row.value):
            return TableValue(math.nan, says=NOT_ENOUGH)
        return MetricColumn.of(metric).shown(TableValue(row.value, low=row.low, high=row.high))

    @cached_property
    def _differences(self) -> dict[tuple[str, ...], ClassDifference]:
        return {
            (row.method, row.reference, row.group, row.metric): row
            for each in self.store.class_differences
            for row in (each.turned(), each)
            if row.attribute == self.attribute
        }

    @cached_property
    def references(self) -> list[ReportedMethod]:
        """The methods that others are compared with."""
        compared = {method for method, _, _, _ in self._differences}
        by_name = {method.name: method for method in self.methods if method.name in compared}
        ours = [by_name[name] for name in REFERENCES if name in by_name]
        return ours or list(by_name.values())[:1]

    def change(
        self, metric: str, method: ReportedMethod, reference: ReportedMethod, group: str = GLOBAL
    ) -> Change | None:
        """Return the value less that of `reference` on the same rows; None where not known."""
        row = self._differences.get((method.name, reference.name, group, metric))
        if row is None or row.withheld or math.isnan(row.difference) or math.isnan(row.low):
            return None
        column = MetricColumn.of(metric)
        verdict: Verdict = "no clear difference"
        if row.low > 0 or row.high < 0:
            verdict = "better" if (row.low > 0) == (column.better == "higher") else "worse"
        value = TableValue(
            row.difference,
            low=row.low,
            high=row.high,
            best=verdict == "better",
            worse=verdict == "worse",
        )
        return Change(metric, column.shown(value), verdict)

    def sources(self, attribute: str | None = None) -> dict[str, ScoreSource]:
        """Return whose confidence was counted, by method; of `CLASS`, every class's probability."""
        of = self.attribute if attribute is None else attribute
        return {each.method: each for each in self.store.curves.sources if each.attribute == of}
