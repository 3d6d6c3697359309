"""A rate or a calibration error of each group, by method: a dot plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from faircal.metrics.results import GLOBAL, Condition, Interval
from faircal.report.figures.base import Figure, long_table
from faircal.report.figures.style import RULE, label, marker_look, percent_axis, text
from faircal.report.store import ResultKey, Results, Variant
from faircal.report.wording import left_out, method_title, metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Dot(NamedTuple):
    """A value of one method in one group, or another row, with the ends of its bar (NaN without).

    One that is not `sure` is drawn hollow.
    """

    method: str
    group: str
    value: float
    low: float
    high: float
    sure: bool = True


def dots_height(rows: int, series: int) -> float:
    """Return the inches that a plot takes: in each row room for every mark, one below the other.

    Examples
    --------
    >>> round(dots_height(4, 2), 2), round(dots_height(4, 5), 2)
    (2.58, 3.78)
    """
    return 1.3 + max(0.32, 0.1 * series + 0.12) * rows


def draw_dots(
    ax: Axes, rows: Sequence[str], series: Mapping[str, Sequence[Dot]], mark: float = float("nan")
) -> None:
    """Draw series of dots, each with a colour and a shape of its own, and a line at `mark`.

    Parameters
    ----------
    ax : Axes
    rows : sequence of str
        Names, top to bottom; each dot's `group` is one of them.
    series : mapping
        From the name in the legend to its dots.
    mark : float
        Where a dashed line is drawn; NaN for none.
    """
    place = {name: i for i, name in enumerate(rows)}
    for i in range(0, len(rows), 2):
        ax.axhspan(i - 0.5, i + 0.5, color="#F4F4F4", zorder=0)
    if mark == mark:
        ax.axvline(mark, color=RULE, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
    step = min(0.18, 0.8 / max(len(series), 1))
    for index, (name, dots) in enumerate(series.items()):
        offset = (index - (len(series) - 1) / 2) * step
        look = marker_look(index)
        at = [place[dot.group] + offset for dot in dots]
        low, high = [dot.low for dot in dots], [dot.high for dot in dots]
        ax.hlines(at, low, high, look["color"], linewidth=1)
        sure = [i for i, dot in enumerate(dots) if dot.sure]
        x, y = [dots[i].value for i in sure], [at[i] for i in sure]
        ax.plot(x, y, linestyle="", label=label(name), zorder=3, **look)
        x, y = ([of[i] for i in range(len(dots)) if i not in sure] for of in (_values(dots), at))
        if x:
            ax.plot(x, y, linestyle="", zorder=3, **look, markerfacecolor="white")
    ax.set_yticks(range(len(rows)), [text(name) for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5))
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def _values(dots: Sequence[Dot]) -> list[float]:
    return [dot.value for dot in dots]


_COLUMNS = {"method": pa.string(), "group": pa.string()} | {
    name: pa.float64() for name in ("value", "low", "high")
}


@dataclass(frozen=True, eq=False)
class GroupRateDots(Figure):
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
    >>> ks = {"F": 0.2, "M": 0.1}
    >>> rows = [ResultRow(*front, group, "", "ks", value) for group, value in ks.items()]
    >>> GroupRateDots(Results(rows), "", "sex", "ks").words
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
                key = ResultKey(self.feature, variant, self.attribute, group, *back)
                value = self.results.value(key)
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
        return self.results.value(ResultKey(self.feature, variant, *back)).mean

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
                f"Bars are {rounded(levels.pop())} intervals."
                if levels
                else "Bars are one standard deviation over folds to either side."
            )
        if self.mark == self.mark:
            said.append(f"The dashed line is that of all pairs, {rounded(self.mark)}.")
        said.append("Marks below each other mean equal treatment.")
        missing = [g for g in self.groups if g not in {dot.group for dot in self.dots}]
        return " ".join(said) + left_out(missing, "not enough data")

    def _numbers(self) -> str:
        said = [
            f"{name}: "
            + ", ".join(
                f"{dot.group} {rounded(dot.value)}" for dot in self.dots if dot.method == name
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
