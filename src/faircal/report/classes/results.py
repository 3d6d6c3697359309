"""What a run found of a classifier, and what of it can be told.

Tables, figures and sentences are all made from this. Methods have the titles that ``run.json``
gives them, so that a folder can be shown wherever it was made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from faircal.evaluation.classes import ClassDifference
from faircal.evaluation.curves import ScoreSource
from faircal.metrics import Histogram
from faircal.metrics.classes import CLASS_METRICS
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import ALL, GLOBAL, ResultKey
from faircal.report.cells import TableValue
from faircal.report.store import ResultsFolder, Variant

Verdict = Literal["better", "worse", "no clear difference"]

#: What every group and class is measured by, in the order of the tables.
METRICS = ("accuracy", "nll", "brier", "top_ks", "top_ece", "class_ks", "class_ece")
#: The methods that others are compared with, where they were run, and what each is in a sentence.
REFERENCES = {"uncalibrated": "no calibration", "global": "one map for everyone"}
#: In the curves, the attribute whose groups are the classes.
CLASS = "class"
_OVER = {"mean": "mean", "aad": "AAD", "mad": "MAD", "std": "STD"}
#: So many groups stand in tables; ``results.csv`` has all.
MANY = 40
#: Costs, which are no shares of anything.
_PLAIN = ("nll", "brier")


class MetricColumn(NamedTuple):
    """A column of ``results.csv``, taken apart: ``top_ks_mad`` is the ``mad`` of ``top_ks``."""

    name: str
    over: str

    @classmethod
    def of(cls, text: str) -> MetricColumn:
        """Take a name apart.

        Examples
        --------
        >>> MetricColumn.of("top_ks_mad")
        MetricColumn(name='top_ks', over='mad')
        >>> MetricColumn.of("class_ece").over, MetricColumn.of("brier_uncertainty").title
        ('', 'Brier uncertainty')
        """
        name, _, over = text.rpartition("_")
        return cls(name, over) if over in _OVER else cls(text, "")

    @property
    def title(self) -> str:
        """What it is called, ``Top-label KS MAD``."""
        if self.name in CLASS_METRICS:
            title = CLASS_METRICS[self.name].title
        else:
            front, _, rest = self.name.partition("_")
            title = f"{front.capitalize()} {rest.replace('_', ' ')}".strip()
        return f"{title} {_OVER[self.over]}" if self.over else title

    @property
    def better(self) -> str:
        """Which way is better: deviations over groups are lower where groups fare alike."""
        if self.over not in ("", "mean"):
            return "lower"
        return CLASS_METRICS[self.name].better if self.name in CLASS_METRICS else ""

    @property
    def share(self) -> bool:
        """Whether it is a share, which people read in percent; NLL and Brier are none."""
        return not self.name.startswith(_PLAIN)

    def shown(self, value: TableValue) -> TableValue:
        """Return a value as it is printed: percent with two decimals, else four."""
        return value if self.share else replace(value, unit=1.0, digits=4)


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
        order = [*self._described_methods, *self.store.main_variants]
        methods = [
            ReportedMethod(name, *self._called(name), variant)
            for name, variant in self.store.main_variants.items()
        ]
        return sorted(methods, key=lambda method: (method.yardstick, order.index(method.name)))

    @property
    def _described_methods(self) -> Mapping[str, Any]:
        described = self.store.run.get("methods")
        return described if isinstance(described, dict) else {}

    def _called(self, name: str) -> tuple[str, bool]:
        about = self._described_methods.get(name)
        about = about if isinstance(about, dict) else {}
        title = str(about.get("title") or name or "probabilities")
        return title, bool(about.get("yardstick"))

    @property
    def rivals(self) -> list[ReportedMethod]:
        """The methods that can be used: all but the yardsticks."""
        return [method for method in self.methods if not method.yardstick]

    @property
    def spoken_of(self) -> ReportedMethod:
        """The method that the summary speaks of first: the probabilities as they come."""
        by_name = {method.name: method for method in self.methods}
        return next((by_name[n] for n in REFERENCES if n in by_name), self.methods[0])

    @cached_property
    def groups(self) -> list[str]:
        """The groups in order."""
        return self.store.results.groups(self.attribute)

    @cached_property
    def classes(self) -> list[str]:
        """The classes in order."""
        named = self.store.run.get("classes")
        if isinstance(named, list) and named:
            return [str(name) for name in named]
        conditions = dict.fromkeys(row.condition for row in self.store.results.rows)
        front = f"{CLASS}="
        return [text.removeprefix(front) for text in conditions if text.startswith(front)]

    @property
    def feature(self) -> str:
        """The feature column of the rows: the same throughout."""
        return self.store.results.features[0]

    @cached_property
    def insufficient_data(self) -> dict[str, str]:
        """What there is too little of, by group: those whose numbers are not shown."""
        reasons = self.store.run.get("not_enough")
        if not isinstance(reasons, dict):
            return {}
        return {str(name): str(why) for name, why in reasons.items()}

    def is_reportable(self, group: str) -> bool:
        """Whether there is data enough for a group's numbers to be shown."""
        return group not in self.insufficient_data and GLOBAL not in self.insufficient_data

    @cached_property
    def small(self) -> list[str]:
        """The groups without enough data."""
        return [group for group in self.groups if not self.is_reportable(group)]

    @cached_property
    def reportable(self) -> list[str]:
        """The groups with enough data."""
        return [group for group in self.groups if self.is_reportable(group)]

    @cached_property
    def shown(self) -> list[str]:
        """The groups of tables: all, or of very many those with enough data and most rows."""
        if len(self.groups) <= MANY:
            return self.groups
        kept = set(sorted(self.reportable, key=lambda group: -(self.rows(group) or 0))[:MANY])
        return [group for group in self.groups if group in kept]

    def _over(self) -> bool:
        """Whether numbers over groups say anything: of one group alone, noise would decide."""
        return len(self.reportable) >= min(2, len(self.groups))

    def value(
        self, metric: str, method: ReportedMethod, group: str = GLOBAL, condition: str = ""
    ) -> TableValue:
        """Look a value up with its interval; NaN that `says` why where data is not enough."""
        key = ResultKey(self.feature, *method.variant, self.attribute, group, condition, metric)
        value = self.store.results.with_interval(key)
        if math.isnan(value.mean):
            return value
        if not (self._over() if group == ALL else self.is_reportable(group)):
            return TableValue(math.nan, says=NOT_ENOUGH)
        return MetricColumn.of(metric).shown(replace(value, unit=100.0))

    @cached_property
    def _differences(self) -> dict[tuple[str, ...], ClassDifference]:
        return {
            (row.method, row.reference, row.group, row.condition, row.metric): row
            for row in self.store.class_differences
            if row.attribute == self.attribute
        }

    @cached_property
    def references(self) -> list[ReportedMethod]:
        """The methods that others are compared with."""
        compared = {name for pair in self._differences for name in pair[:2]}
        by_name = {method.name: method for method in self.methods if method.name in compared}
        ours = [by_name[name] for name in REFERENCES if name in by_name]
        return ours or list(by_name.values())[:1]

    def change(
        self, metric: str, method: ReportedMethod, reference: ReportedMethod, group: str = GLOBAL
    ) -> Change | None:
        """Return the value less that of `reference` on the same rows; None where not known.

        Over groups it is not told where one of them has not enough data: noise would decide.
        """
        ends = self._difference(metric, method.name, reference.name, group)
        reportable = not self.small if group == ALL else self.is_reportable(group)
        if math.isnan(ends[0]) or math.isnan(ends[1]) or not reportable:
            return None
        kind, (difference, low, high) = MetricColumn.of(metric), ends
        verdict: Verdict = "no clear difference"
        if low > 0 or high < 0:
            verdict = "better" if (low > 0) == (kind.better == "higher") else "worse"
        value = TableValue(
            difference, low=low, high=high, best=verdict == "better", worse=verdict == "worse"
        )
        return Change(metric, kind.shown(value), verdict)

    def _difference(
        self, metric: str, method: str, reference: str, group: str
    ) -> tuple[float, float, float]:
        """Look a difference up, whichever way round it was written."""
        row = self._differences.get((method, reference, group, "", metric))
        if row is not None:
            return row.difference, row.low, row.high
        row = self._differences.get((reference, method, group, "", metric))
        if row is None:
            return math.nan, math.nan, math.nan
        return 0.0 - row.difference, 0.0 - row.high, 0.0 - row.low  # no −0 of 0

    @cached_property
    def sources(self) -> dict[str, ScoreSource]:
        """Whose confidence was counted, by method."""
        return self._sources(self.attribute)

    @cached_property
    def class_sources(self) -> dict[str, ScoreSource]:
        """Whose probabilities of every class were counted, by method."""
        return self._sources(CLASS)

    def _sources(self, attribute: str) -> dict[str, ScoreSource]:
        sources = self.store.curves.sources
        return {source.method: source for source in sources if source.attribute == attribute}

    def counted(self, group: str) -> Histogram | None:
        """Return the confidence of a group's rows, counted by right and wrong; None if not kept."""
        source = self.sources.get(self.spoken_of.name)
        if source is None or group not in (GLOBAL, *self.store.curves.groups(source)):
            return None
        return self.store.curves.get(group, "probability", source)

    def effective(self, group: str) -> float:
        """Return how many independent rows would tell a group's accuracy as well; NaN if unknown.

        Of the method that is spoken of.
        """
        variant = self.spoken_of.variant
        key = ResultKey(self.feature, *variant, self.attribute, group, "", "accuracy")
        return self.store.results.get(key).effective

    def rows(self, group: str) -> int | None:
        """Return the number of a group's rows; None where that is not known."""
        rows = self.store.run.get("group_rows")
        return rows.get(group) if isinstance(rows, dict) else None
