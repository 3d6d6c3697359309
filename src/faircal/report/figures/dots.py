"""Dot plots: a rate or a calibration error of each group, and how methods differ from one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from faircal.evaluation.compare import Comparison
from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import GLOBAL, Condition, ResultKey
from faircal.report.cells import TableValue
from faircal.report.figures.base import Anything, Figure, FigureScope, long_table, panels
from faircal.report.figures.style import RULE, label, marker_look, percent_axis, text
from faircal.report.store import LabelledResults, Variant
from faircal.report.wording import left_out, method_title, metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Dot(NamedTuple):
    """A value of one method in one group, or another row, with the ends of its bar (NaN without).

    One with a verdict that is neither better nor worse could be chance: it is drawn hollow.
    """

    method: str
    group: str
    value: float
    low: float
    high: float
    verdict: str = ""

    @property
    def sure(self) -> bool:
        """Whether it is filled."""
        return self.verdict in ("", "better", "worse")


@dataclass(frozen=True, eq=False)
class DotPlot(Figure):
    """Dots with bars in rows, a colour and a shape for each method."""

    @property
    @abstractmethod
    def dots(self) -> list[Dot]:
        """What is drawn."""

    @property
    @abstractmethod
    def rows(self) -> list[str]:
        """Names of the rows, top to bottom."""

    @property
    @abstractmethod
    def methods(self) -> list[str]:
        """The methods; one without a dot has its place, so that others keep their look."""

    @abstractmethod
    def _printed(self, value: float) -> str:
        """Print a value in words."""

    @property
    def mark(self) -> float:
        """Where a dashed line is drawn; NaN for none."""
        return float("nan")

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches: in each row room for every mark, one below the other."""
        return 7.0, 1.3 + max(0.32, 0.1 * len(self.methods) + 0.12) * len(self.rows)

    @property
    def panel_size(self) -> tuple[float, float]:
        """The same as a panel."""
        return 4.6, self.size[1]

    def _draw(self, ax: Axes) -> None:
        place = {name: i for i, name in enumerate(self.rows)}
        for i in range(0, len(place), 2):
            ax.axhspan(i - 0.5, i + 0.5, color="#F4F4F4", zorder=0)
        if self.mark == self.mark:
            ax.axvline(self.mark, color=RULE, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
        step = min(0.18, 0.8 / max(len(self.methods), 1))
        for index, name in enumerate(self.methods):
            dots = [dot for dot in self.dots if dot.method == name]
            if not dots:
                continue
            offset = (index - (len(self.methods) - 1) / 2) * step
            look = marker_look(index)
            at = {dot: place[dot.group] + offset for dot in dots}
            low, high = [dot.low for dot in dots], [dot.high for dot in dots]
            ax.hlines(list(at.values()), low, high, look["color"], linewidth=1)
            sure, unsure = ([dot for dot in dots if dot.sure is sure] for sure in (True, False))
            x, y = [dot.value for dot in sure], [at[dot] for dot in sure]
            ax.plot(x, y, linestyle="", label=label(name), zorder=3, **look)
            if unsure:
                x, y = [dot.value for dot in unsure], [at[dot] for dot in unsure]
                ax.plot(x, y, linestyle="", zorder=3, **look, markerfacecolor="white")
        ax.set_yticks(range(len(place)), [text(name) for name in place])
        ax.set(ylim=(len(place) - 0.5, -0.5))
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)


@dataclass(frozen=True, eq=False)
class GroupDotPlot(DotPlot):
    """A metric of each group: a row a group, a mark a method."""

    @cached_property
    def table(self) -> pa.Table:
        """Columns `method`, `group`, `value`, `low`, `high` (ends of the bar, NaN without)."""
        return long_table(Dot._fields[:5], (dot[:5] for dot in self.dots))

    def _numbers(self) -> str:
        by_method: dict[str, list[str]] = {}
        for dot in self.dots:
            text_of = f"{dot.group} {self._printed(dot.value)}"
            by_method.setdefault(dot.method, []).append(text_of)
        return "; ".join(f"{name}: {', '.join(of)}" for name, of in by_method.items()) + "."


@dataclass(frozen=True, eq=False)
class DifferencePlot(DotPlot):
    """By how much methods differ from one of them: a row a metric, a mark a method."""

    @property
    def rows(self) -> list[str]:
        """The metrics, top to bottom."""
        return list(dict.fromkeys(dot.group for dot in self.dots))

    @cached_property
    def table(self) -> pa.Table:
        """Columns `metric`, `method`, `difference`, `low`, `high`, `verdict`."""
        names = ("metric", "method", "difference", "low", "high", "verdict")
        return long_table(names, ((dot.group, dot.method, *dot[2:]) for dot in self.dots))

    def _numbers(self) -> str:
        by_metric: dict[str, list[str]] = {}
        for dot in self.dots:
            value, low, high = (self._printed(number) for number in dot[2:5])
            words = f"{dot.method} {value} ({low} to {high}), {dot.verdict}"
            by_metric.setdefault(dot.group, []).append(words)
        return "; ".join(f"{name}: {', '.join(of)}" for name, of in by_metric.items()) + "."

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        ax.axvline(0, color=RULE, linewidth=0.9, zorder=1)


@dataclass(frozen=True, eq=False)
class GroupRateDots(GroupDotPlot):
    """A metric of each group, a marker per method.

    Parameters
    ----------
    results : LabelledResults
    feature, attribute : str
    metric, condition : str
        As in ``results.csv``: ``fpr`` at ``global_fpr=0.01``, or at a given threshold (no
        condition), or ``ks``.
    variants : sequence of Variant, optional
        Which methods; all unless told.

    Bars are intervals where the results have some, else one standard deviation over folds.

    Examples
    --------
    >>> from faircal.metrics.results import Result
    >>> front = ("d", "", "fsn", "", "", "0", "mean", "sex")
    >>> ks = {"F": 0.2, "M": 0.1}
    >>> rows = [Result(*front, group, "", "ks", value) for group, value in ks.items()]
    >>> GroupRateDots(LabelledResults(rows), "", "sex", "ks").words
    'KS by group. FSN: F 20 %, M 10 %.'
    """

    results: LabelledResults
    feature: str
    attribute: str
    metric: str = "fpr"
    condition: str = ""
    variants: Sequence[Variant] | None = None

    _key = "rates"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give false-positive rates at the point that the summary speaks of, and KS."""
        if not scope.results.groups[scope.attribute]:
            return
        of_rates = [] if scope.point is None else [("fpr", scope.point)]
        for metric, condition in (*of_rates, ("ks", "")):
            where = scope.feature, scope.attribute, metric, condition
            yield scope.named(cls(scope.results, *where, scope.variants), metric)

    def _title(self) -> str:
        given = " at the given threshold" if self.metric == "fpr" and not self.condition else ""
        return metric_title(self.metric, self.condition, by=" by group") + given

    @cached_property
    def _variants(self) -> dict[str, Variant]:
        """The methods by name, which tells variants of one method apart."""
        if self.variants is None:
            return {self.results.label(variant): variant for variant in self.results.variants}
        return {method_title(variant.method): variant for variant in self.variants}

    @property
    def rows(self) -> list[str]:
        """The groups, top to bottom."""
        return self.results.groups[self.attribute]

    @property
    def methods(self) -> list[str]:
        """The methods that were chosen."""
        return list(self._variants)

    def _printed(self, value: float) -> str:
        return rounded(value)

    @cached_property
    def dots(self) -> list[Dot]:
        """What is drawn: methods in order, groups in order."""
        dots = []
        for name, variant in self._variants.items():
            for group in self.rows:
                value = self._value(variant, group)
                ends = value.low, value.high
                if math.isnan(value.low):
                    ends = value.mean - value.std, value.mean + value.std
                if not math.isnan(value.mean):
                    dots.append(Dot(name, group, value.mean, *ends))
        return dots

    def _value(self, variant: Variant, group: str) -> TableValue:
        where = self.feature, *variant, self.attribute, group, self.condition, self.metric
        return self.results.value(ResultKey(*where))

    @property
    def mark(self) -> float:
        """The global rate: that of the condition, or of the only method; NaN without."""
        wanted = Condition.of(self.condition).wanted(self.metric)
        if wanted is not None:
            return wanted
        if len(self._variants) > 1:
            return float("nan")
        (variant,) = self._variants.values()
        return self._value(variant, GLOBAL).mean

    @property
    def caption(self) -> str:
        """How to read it."""
        said = [f"{metric_title(self.metric, self.condition)} of each group"]
        said[0] += ", a mark per method." if len(self._variants) > 1 else "."
        values = [self._value(v, group) for v in self._variants.values() for group in self.rows]
        if any(not math.isnan(value.low) for value in values):
            said.append(f"Bars are {rounded(LEVEL)} intervals.")
        elif any(not math.isnan(dot.low) for dot in self.dots):
            said.append("Bars are one standard deviation over folds to either side.")
        if self.mark == self.mark:
            said.append(f"The dashed line is that of all pairs, {rounded(self.mark)}.")
        said.append("Marks below each other mean equal treatment.")
        missing = [g for g in self.rows if g not in {dot.group for dot in self.dots}]
        return " ".join(said) + left_out(missing, "not enough data")

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        ax.set_xlabel(f"{metric_title(self.metric)} (%)")
        ax.set_xlim(left=0)
        percent_axis(ax.xaxis)


@dataclass(frozen=True, eq=False)
class Differences(DifferencePlot):
    """By how much each method differs from the same one, in a few numbers.

    Parameters
    ----------
    compared : sequence of Comparison
        As `faircal.evaluation.compare.differences` gives them; those of one feature.

    Examples
    --------
    >>> from faircal.evaluation.compare import Comparison
    >>> values = (0.04, 0.02, -0.02, -0.0312, -0.00882, 0.95, 0.0, 1e9, 0.001, 0.002)
    >>> back = ("better", 2, 90.0)
    >>> one = Comparison("f", "sex", "baseline", "fsn", "all", "", "ks_aad", *values, *back)
    >>> Differences([one]).words
    'Difference to Baseline. KS AAD: FSN −2 % (−3.12 % to −0.882 %), better.'
    """

    compared: Sequence[Comparison]

    _key = "differences"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give accuracy in one panel and errors in another, since they differ in size."""
        compared = [c for c in scope.store.comparisons if c.attribute == scope.attribute]
        key, title = scope.key(cls._key), scope.titled("Difference to Baseline")
        yield from difference_figures(compared, scope.feature, key=key, title=title)

    def _title(self) -> str:
        return f"Difference to {method_title(self.compared[0].method_a) if self.compared else '–'}"

    @cached_property
    def dots(self) -> list[Dot]:
        """What is reported, by metric."""
        dots = [
            Dot(
                method_title(each.method_b),
                metric_title(each.metric, each.condition),
                each.difference,
                each.low,
                each.high,
                each.verdict,
            )
            for each in self.compared
            if each.reportable
        ]
        rows = list(dict.fromkeys(dot.group for dot in dots))
        return sorted(dots, key=lambda dot: rows.index(dot.group))

    @property
    def methods(self) -> list[str]:
        """The methods that are compared."""
        return list(dict.fromkeys(method_title(each.method_b) for each in self.compared))

    def _printed(self, value: float) -> str:
        return rounded(value).replace("-", "−")

    @property
    def caption(self) -> str:
        """How to read it."""
        if not self.compared:
            return ""
        first = self.compared[0]
        return (
            f"Each method's value less that of {method_title(first.method_a)}, of the same people; "
            f"bars are {rounded(first.level)} intervals of the difference. Filled: told apart "
            f"after correction for all {first.family:.0f} comparisons (Holm). AUROC and TPR are "
            "better to the right, errors and deviations to the left."
        )

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        ax.set_xlabel("difference (percentage points)")
        percent_axis(ax.xaxis)


def difference_figures(
    compared: Iterable[Comparison], feature: str, *, key: str = "differences", title: str = ""
) -> list[Anything]:
    """Return accuracy in one panel and errors in another, since they differ in size; or nothing."""
    own = [each for each in compared if each.feature == feature]
    accuracy = [each for each in own if each.metric in ("auroc", "tpr")]
    errors = [each for each in own if each.metric not in ("auroc", "tpr")]
    figures = [Differences(rows) for rows in (accuracy, errors) if rows]
    names = ["accuracy" if f.compared is accuracy else "errors and deviations" for f in figures]
    title = title or (figures[0].title if figures else "")
    return panels(figures, names, key=key, title=title, columns=2)
