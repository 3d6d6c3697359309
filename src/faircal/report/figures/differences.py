"""How methods differ from one of them, with intervals: a dot plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.evaluation.compare import Comparison
from faircal.report.figures.base import Figure, Panels, long_table, panels
from faircal.report.figures.style import RULE, label, marker_look, percent_axis, text
from faircal.report.wording import method_title, metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {
    "metric": pa.string(),
    "method": pa.string(),
    "difference": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "p_holm": pa.float64(),
    "verdict": pa.string(),
}


@dataclass(frozen=True, eq=False)
class Differences(Figure):
    """By how much each method differs from the same one, in a few numbers.

    Parameters
    ----------
    compared : sequence of Comparison
        As `faircal.evaluation.compare.differences` gives them; those of one feature.

    Examples
    --------
    >>> from faircal.evaluation.compare import Comparison, Estimate, difference
    >>> ends = difference(Estimate(0.04, 0.03, 0.05), Estimate(0.02, 0.015, 0.025))
    >>> back = (ends, 0.001, 0.002, "better", 2, 90.0)
    >>> one = Comparison("f", "sex", "baseline", "fsn", "all", "", "ks_aad", 0.04, 0.02, *back)
    >>> Differences([one]).words
    'Difference to Baseline. KS AAD: FSN −2 % (−3.12 % to −0.882 %), better.'
    """

    compared: Sequence[Comparison]

    _key = "differences"

    def _title(self) -> str:
        return f"Difference to {method_title(self.compared[0].method_a) if self.compared else '–'}"

    @cached_property
    def _told(self) -> dict[str, list[Comparison]]:
        """What there is to tell, by the metric's name."""
        found: dict[str, list[Comparison]] = {}
        for each in self.compared:
            if each.reportable:
                found.setdefault(metric_title(each.metric, each.condition), []).append(each)
        return found

    @cached_property
    def table(self) -> pa.Table:
        """Columns `metric`, `method`, `difference`, `low`, `high`, `p_holm`, `verdict`."""
        return long_table(
            _COLUMNS,
            (
                (
                    name,
                    method_title(each.method_b),
                    each.difference.value,
                    each.difference.low,
                    each.difference.high,
                    each.corrected,
                    each.verdict,
                )
                for name, rows in self._told.items()
                for each in rows
            ),
        )

    @property
    def caption(self) -> str:
        """How to read it."""
        if not self.compared:
            return ""
        first = self.compared[0]
        return (
            f"Each method's value less that of {method_title(first.method_a)}, of the same people; "
            f"bars are {rounded(first.difference.level)} intervals of the difference. Filled: told "
            f"apart after correction for all {first.family} comparisons (Holm). AUROC and TPR are "
            "better to the right, errors and deviations to the left."
        )

    def _numbers(self) -> str:
        said = [
            f"{name}: " + ", ".join(f"{method_title(each.method_b)} {_said(each)}" for each in rows)
            for name, rows in self._told.items()
        ]
        return "; ".join(said) + "."

    @cached_property
    def _methods(self) -> list[str]:
        return list(dict.fromkeys(each.method_b for each in self.compared))

    @property
    def _height(self) -> float:
        return max(0.32, 0.11 * len(self._methods) + 0.12)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return 7.0, 1.3 + self._height * len(self._told)

    @property
    def panel_size(self) -> tuple[float, float]:
        """The same as a panel."""
        return 4.6, self.size[1]

    def _draw(self, ax: Axes) -> None:
        names = list(self._told)
        for i in range(0, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color="#F4F4F4", zorder=0)
        ax.axvline(0, color=RULE, linewidth=0.9, zorder=1)
        step = min(0.18, 0.8 / max(len(self._methods), 1))
        for index, method in enumerate(self._methods):
            look = marker_look(index)
            offset = (index - (len(self._methods) - 1) / 2) * step
            named = label(method_title(method))
            for i, name in enumerate(names):
                for each in (row for row in self._told[name] if row.method_b == method):
                    ends = each.difference
                    y = i + offset
                    ax.hlines(y, ends.low, ends.high, look["color"], linewidth=1)
                    sure = each.verdict in ("better", "worse")
                    face = look["color"] if sure else "white"
                    ax.plot(ends.value, y, linestyle="", zorder=3, **look, markerfacecolor=face)
            ax.plot([], [], linestyle="", label=named, **look)
        ax.set_yticks(range(len(names)), [text(name) for name in names])
        ax.set(ylim=(len(names) - 0.5, -0.5), xlabel="difference (percentage points)")
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        percent_axis(ax.xaxis)


def difference_figures(
    compared: Iterable[Comparison], feature: str, *, key: str = "differences", title: str = ""
) -> list[Figure | Panels]:
    """Return accuracy in one panel and errors in another, since they differ in size; or nothing."""
    own = [each for each in compared if each.feature == feature]
    accuracy = [each for each in own if each.metric in ("auroc", "tpr")]
    errors = [each for each in own if each.metric not in ("auroc", "tpr")]
    figures = [Differences(rows) for rows in (accuracy, errors) if rows]
    names = ["accuracy" if f.compared is accuracy else "errors and deviations" for f in figures]
    title = title or (figures[0].title if figures else "")
    return panels(figures, names, key=key, title=title, columns=2)


def _said(of: Comparison) -> str:
    ends = of.difference
    signed = [rounded(number).replace("-", "−") for number in (ends.value, ends.low, ends.high)]
    return f"{signed[0]} ({signed[1]} to {signed[2]}), {of.verdict}"
