"""A rate or a calibration error of each group, by method: a dot plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.metrics.results import GLOBAL, Condition, Interval
from faircal.report.figures.base import Figure, long_table
from faircal.report.figures.dots import Dot, dots_height, draw_dots
from faircal.report.figures.style import percent_axis
from faircal.report.figures.wording import left_out, metric_title, percent
from faircal.report.tables import Results, Variant, method_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_COLUMNS = {"method": pa.string(), "group": pa.string()} | {
    name: pa.float64() for name in ("value", "low", "high")
}


@dataclass(frozen=True, eq=False)
class GroupRates(Figure):
    """A metric of each group, a marker per method.

    Parameters
    ----------
    results : Results
    feature, attribute : str
    metric, condition : str
        As in ``results.csv``: ``fpr`` at ``global_fpr=0.01``, or at a given threshold (no
        condition), or ``ks``.
    variants : sequence of Variant, optional
        Which methods; all unless told.
    intervals : sequence of Interval
        Drawn as bars. Without any, bars are one standard deviation over folds.

    Examples
    --------
    >>> from faircal.metrics.results import ResultRow
    >>> front = ("d", "", "fsn", "", "", "0", "mean", "sex")
    >>> rows = [Row(*front, group, "", "ks", value) for group, value in (("F", 0.2), ("M", 0.1))]
    >>> GroupRates(Results(rows), "", "sex", "ks").words
    'KS by group. FSN: F 20 %, M 10 %.'
    """

    results: Results
    feature: str
    attribute: str
    metric: str = "fpr"
    condition: str = ""
    variants: Sequence[Variant] | None = None
    intervals: Sequence[Interval] = ()

    _key = "rates"

    def _title(self) -> str:
        return metric_title(self.metric, self.condition, by=" by group")

    @cached_property
    def _variants(self) -> dict[str, Variant]:
        """The methods by name, which is as long as needed to tell them apart."""
        chosen = self.results.variants if self.variants is None else self.variants
        several = len({variant.method for variant in chosen}) < len(chosen)
        name = self.results.label if several else lambda variant: method_title(variant.method)
        return {name(variant): variant for variant in chosen}

    @cached_property
    def groups(self) -> list[str]:
        """The groups, top to bottom."""
        return self.results.groups(self.attribute)

    @cached_property
    def dots(self) -> list[Dot]:
        """What is drawn: methods in order, groups in order."""
        back = (self.condition, self.metric)
        ends = {
            (Variant(row.method, row.calibrator, row.clusters), row.group): (row.low, row.high)
            for row in self.intervals
            if (row.feature, row.attribute) == (self.feature, self.attribute)
            and (row.condition, row.metric) == back
        }
        found = []
        for name, variant in self._variants.items():
            for group in self.groups:
                value = self.results.value(self.feature, variant, self.attribute, group, *back)
                spread = value.mean - value.std, value.mean + value.std
                if value.mean == value.mean:
                    found.append(Dot(name, group, value.mean, *ends.get((variant, group), spread)))
        return found

    @property
    def mark(self) -> float:
        """The global rate: that of the condition, or of the only method; NaN without."""
        wanted = Condition.of(self.condition).wanted(self.metric)
        if wanted is not None:
            return wanted
        if len(self._variants) > 1:
            return float("nan")
        (variant,) = self._variants.values()
        back = (self.attribute, GLOBAL, self.condition, self.metric)
        return self.results.value(self.feature, variant, *back).mean

    @cached_property
    def table(self) -> pa.Table:
        """Columns `method`, `group`, `value`, `low`, `high` (ends of the bar, NaN without)."""
        return long_table(_COLUMNS, (dot[:5] for dot in self.dots))

    @property
    def caption(self) -> str:
        """How to read it."""
        said = [f"{metric_title(self.metric, self.condition)} of each group"]
        said[0] += ", a mark per method." if len(self._variants) > 1 else "."
        if any(dot.low == dot.low for dot in self.dots):
            levels = {row.level for row in self.intervals}
            said.append(
                f"Bars are {percent(levels.pop())} intervals."
                if levels
                else "Bars are one standard deviation over folds to either side."
            )
        if self.mark == self.mark:
            said.append(f"The dashed line is that of all pairs, {percent(self.mark)}.")
        said.append("Marks below each other mean equal treatment.")
        missing = [g for g in self.groups if g not in {dot.group for dot in self.dots}]
        return " ".join(said) + left_out(missing, "not enough data")

    def _numbers(self) -> str:
        said = [
            f"{name}: "
            + ", ".join(
                f"{dot.group} {percent(dot.value)}" for dot in self.dots if dot.method == name
            )
            for name in dict.fromkeys(dot.method for dot in self.dots)
        ]
        return "; ".join(said) + "."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return 7.0, dots_height(len(self.groups), len(self._variants))

    @property
    def panel_size(self) -> tuple[float, float]:
        """The same as a panel."""
        return 4.6, self.size[1]

    def _draw(self, ax: Axes) -> None:
        series = {name: [dot for dot in self.dots if dot.method == name] for name in self._variants}
        draw_dots(ax, self.groups, series, self.mark)
        ax.set_xlabel(f"{metric_title(self.metric)} (%)")
        ax.set_xlim(left=0)
        percent_axis(ax.xaxis)
