"""Dot plots of a classifier: a metric of each group, and how methods differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.metrics.intervals import LEVEL
from faircal.report.classes.results import Change, ClassResults, MetricColumn, ReportedMethod
from faircal.report.classes.tables import BEYOND
from faircal.report.figures.base import long_table
from faircal.report.figures.dots import Dot, DotPlot, GroupDotPlot
from faircal.report.figures.style import RULE, label, percent_axis
from faircal.report.wording import left_out, listing, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: So many groups are drawn.
_MOST = 24


def printed(metric: str, value: float) -> str:
    """Print a value: a share in percent, a cost as it is.

    Examples
    --------
    >>> printed("top_ks", 0.0123), printed("nll", 0.4321), printed("nll", -0.5)
    ('1.23 %', '0.432', '−0.5')
    """
    text = rounded(value) if MetricColumn.of(metric).share else f"{value:.3g}"
    return text.replace("-", "−")


@dataclass(frozen=True, eq=False)
class GroupDots(GroupDotPlot):
    """A metric of each group, a mark per method, with intervals.

    Parameters
    ----------
    results : ClassResults
    metric : str
        As in ``results.csv``: ``top_ks``, ``accuracy``, …
    """

    results: ClassResults
    metric: str

    _key = "groups"

    def _title(self) -> str:
        return f"{MetricColumn.of(self.metric).title} by group"

    @cached_property
    def rows(self) -> list[str]:
        """The groups that are drawn: those with enough data, of many the ones that fare worst."""
        reportable, method = self.results.reportable, self.results.spoken_of
        if len(reportable) <= _MOST:
            return reportable
        sign = -1 if MetricColumn.of(self.metric).better == "lower" else 1
        value = {group: self.results.value(self.metric, method, group).mean for group in reportable}
        known = [group for group in reportable if value[group] == value[group]]
        worst = set(sorted(known, key=lambda group: sign * value[group])[:_MOST])
        return [group for group in reportable if group in worst]

    @cached_property
    def dots(self) -> list[Dot]:
        """What is drawn: methods in order, groups in order."""
        looked_up = (
            (method, group, self.results.value(self.metric, method, group))
            for method in self.results.methods
            for group in self.rows
        )
        return [
            Dot(method.title, group, value.mean, value.low, value.high)
            for method, group, value in looked_up
            if value.mean == value.mean
        ]

    @property
    def series(self) -> dict[str, list[Dot]]:
        """The dots by method."""
        titles = [method.title for method in self.results.methods]
        return {title: [dot for dot in self.dots if dot.method == title] for title in titles}

    @property
    def caption(self) -> str:
        """How to read it."""
        metric = MetricColumn.of(self.metric)
        several = ", a mark per method." if len(self.results.methods) > 1 else "."
        return (
            f"{metric.title} of each group{several} Bars are {rounded(LEVEL)} "
            "intervals. Marks below each other mean that groups fare alike; "
            f"{'further left' if metric.better == 'lower' else 'further right'} is "
            f"better.{self._some()}"
        )

    def _some(self) -> str:
        """Say which groups are not drawn."""
        small, reportable = self.results.small, self.results.reportable
        said = left_out([listing(small)], "not enough data") if small else ""
        if len(self.rows) < len(reportable):
            said += (
                f" Drawn are the {len(self.rows)} of {len(reportable):,} groups that fare worst."
            )
        return said

    def _printed(self, value: float) -> str:
        return printed(self.metric, value)

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        metric = MetricColumn.of(self.metric)
        ax.set_xlabel(f"{metric.title} (%)" if metric.share else metric.title)
        if metric.share:
            percent_axis(ax.xaxis)
        if metric.share and metric.better == "lower":
            ax.set_xlim(left=0)  # where none is off


@dataclass(frozen=True, eq=False)
class ChangeDots(DotPlot):
    """By how much methods differ from one of them, in a few numbers, with intervals.

    Parameters
    ----------
    results : ClassResults
    reference : ReportedMethod
        The one that others are compared with.
    metrics : sequence of (str, str)
        Metrics and groups, as in ``differences.csv``; all shares, or all costs.
    """

    results: ClassResults
    reference: ReportedMethod
    metrics: Sequence[tuple[str, str]]

    _key = "differences"

    def _title(self) -> str:
        return f"Difference to {self.reference.title}"

    @cached_property
    def _others(self) -> list[ReportedMethod]:
        return [m for m in self.results.methods if m.name != self.reference.name]

    @cached_property
    def _changes(self) -> dict[str, dict[str, Change]]:
        """The changes by the metric's title and the method's."""
        by_metric: dict[str, dict[str, Change]] = {}
        for metric, group in self.metrics:
            for method in self._others:
                change = self.results.change(metric, method, self.reference, group)
                if change is not None:
                    by_metric.setdefault(MetricColumn.of(metric).title, {})[method.title] = change
        return by_metric

    @cached_property
    def table(self) -> pa.Table:
        """Columns `metric`, `method`, `difference`, `low`, `high`, `verdict`."""
        columns = {"metric": pa.string(), "method": pa.string(), "difference": pa.float64()}
        columns |= {"low": pa.float64(), "high": pa.float64(), "verdict": pa.string()}
        rows = (
            (title, method, each.value.mean, each.value.low, each.value.high, each.verdict)
            for title, by in self._changes.items()
            for method, each in by.items()
        )
        return long_table(columns, rows)

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            f"Each method's value less that of {self.reference.title}, on the same rows; bars are "
            f"{rounded(LEVEL)} intervals of the difference. Filled: the interval leaves out 0. "
            f"Accuracy is better to the right, everything else to the left. {BEYOND}"
        )

    def _numbers(self) -> str:
        said = (
            f"{title}: " + ", ".join(f"{method} {_in_words(each)}" for method, each in by.items())
            for title, by in self._changes.items()
        )
        return "; ".join(said) + "."

    @property
    def rows(self) -> list[str]:
        """The metrics, top to bottom."""
        return list(self._changes)

    @property
    def series(self) -> dict[str, list[Dot]]:
        """The changes by method; the reference has its place, so that others keep their look."""
        return {
            method.title: [
                Dot(method.title, metric, *_ends(by[method.title]))
                for metric, by in self._changes.items()
                if method.title in by
            ]
            for method in self.results.methods
        }

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        for line in list(ax.get_lines()):
            if line.get_label() == label(self.reference.title):
                line.remove()
        ax.axvline(0, color=RULE, linewidth=0.9, zorder=1)
        share = MetricColumn.of(self.metrics[0][0]).share
        ax.set_xlabel(f"difference{' (percentage points)' if share else ''}")
        if share:
            percent_axis(ax.xaxis)


def _ends(change: Change) -> tuple[float, float, float, bool]:
    value = change.value
    return value.mean, value.low, value.high, change.clear


def _in_words(change: Change) -> str:
    value = change.value
    number, low, high = (printed(change.metric, n) for n in (value.mean, value.low, value.high))
    return f"{number} ({low} to {high}), {change.verdict}"
