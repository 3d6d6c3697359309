"""Groups side by side: a metric of each, of every two, and how methods differ from one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from faircal.evaluation.audit.rates import MatrixRow
from faircal.evaluation.compare import Comparison
from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import GLOBAL, Condition, ResultKey
from faircal.report.figures.base import CAPTIONS, Figure, FigureRecord, FigureScope, long_table
from faircal.report.figures.style import FAINT, RULE, label, marker_look, percent_axis, text
from faircal.report.store import LabelledResults, Variant
from faircal.report.wording import (
    better_way,
    is_share,
    left_out,
    method_title,
    metric_title,
    rounded,
)

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


@dataclass(eq=False, repr=False)
class DotPlot(Figure):
    """Dots with bars in rows, a colour and a shape for each method.

    Attributes
    ----------
    dots : list of Dot
    rows : list of str
        Names of the rows, top to bottom.
    methods : list of str
        One without a dot has its place, so that others keep their look.
    shares : bool
        Whether values are shares of something, which are given in percent, or costs.
    mark : float
        Where a dashed line is drawn; NaN for none.
    """

    dots: list[Dot] = field(init=False)
    rows: list[str] = field(init=False)
    methods: list[str] = field(init=False)
    shares: bool = field(default=True, init=False)
    mark: float = field(default=math.nan, init=False)
    _x_label: str = field(default="", init=False)
    _from_zero: bool = field(default=False, init=False)

    def _printed(self, value: float) -> str:
        """Print a value in words."""
        return (rounded(value) if self.shares else f"{value:.3g}").replace("-", "−")

    def _finish(self, printed: Mapping[str, Sequence[str]]) -> None:
        """Set the numbers in words, and the size: in a row the marks stand one below the other."""
        listed = (f"{name}: {', '.join(values)}" for name, values in printed.items() if values)
        self.numbers = f"{'; '.join(listed)}."
        height = 1.3 + max(0.32, 0.1 * len(self.methods) + 0.12) * len(self.rows)
        self.size, self.panel_size = (7.0, height), (4.6, height)

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
            clear = [dot for dot in dots if dot.verdict in ("", "better", "worse")]
            x, y = [dot.value for dot in clear], [at[dot] for dot in clear]
            ax.plot(x, y, linestyle="", label=label(name), zorder=3, **look)
            if hollow := [dot for dot in dots if dot not in clear]:
                x, y = [dot.value for dot in hollow], [at[dot] for dot in hollow]
                ax.plot(x, y, linestyle="", zorder=3, **look, markerfacecolor="white")
        ax.set_yticks(range(len(place)), [text(name) for name in place])
        ax.set(ylim=(len(place) - 0.5, -0.5), xlabel=self._x_label)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        if self._from_zero:
            ax.set_xlim(left=0)
        if self.shares:
            percent_axis(ax.xaxis)


@dataclass(eq=False, repr=False)
class GroupRateDots(DotPlot):
    """A metric of each group, a marker per method.

    Parameters
    ----------
    results : LabelledResults
    feature, attribute : str
    metric, condition : str
        As in ``results.csv``: ``fpr`` at ``global_fpr=0.01``, or at a given threshold (no
        condition), or ``ks``.
    variants : sequence of Variant, optional
        Which methods; all by default.
    only : sequence of str, optional
        Which groups; all by default.

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
    only: Sequence[str] | None = field(default=None, kw_only=True)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return false-positive rates at the point that the summary speaks of, and KS."""
        figures: list[FigureRecord] = []
        for metric, condition in (("fpr", scope.point), ("ks", "")):
            if condition is not None:
                where = scope.feature, scope.attribute, metric, condition
                figure = cls(scope.store.results, *where, scope.variants)
                figures += scope.panels([figure], [""], f"rates-{metric}", figure.title)
        return figures

    def __post_init__(self) -> None:
        results, at = self.results, (self.condition, self.metric)
        if self.variants is None:  # labels tell variants of one method apart
            chosen = {results.label(variant): variant for variant in results.variants}
        else:
            chosen = {method_title(variant.method): variant for variant in self.variants}
        self.methods = list(chosen)
        self.rows = results.groups[self.attribute] if self.only is None else list(self.only)
        self.dots, bars = [], ""
        for name, variant in chosen.items():
            for group in self.rows:
                key = ResultKey(self.feature, *variant, self.attribute, group, *at)
                value = results.value(key)
                low, high = value.low, value.high
                if not math.isnan(low):
                    bars = f" Bars are {rounded(LEVEL)} intervals."
                else:
                    low, high = value.mean - value.std, value.mean + value.std
                if not math.isnan(value.mean):
                    self.dots.append(Dot(name, group, value.mean, low, high))
        if not bars and any(not math.isnan(dot.low) for dot in self.dots):
            bars = " Bars are one standard deviation over folds to either side."
        wanted = Condition.of(self.condition).wanted(self.metric)
        if wanted is not None:
            self.mark = wanted
        elif len(chosen) == 1:
            (variant,) = chosen.values()
            key = ResultKey(self.feature, *variant, self.attribute, GLOBAL, *at)
            self.mark = results.value(key).mean
        self.shares = is_share(self.metric)
        self._from_zero = self.shares and better_way(self.metric) != "higher"
        self._x_label = f"{metric_title(self.metric)}{' (%)' * self.shares}"
        self.key = self.key or "rates"
        given = " at the given threshold" if self.metric == "fpr" and not self.condition else ""
        about = metric_title(self.metric, self.condition, by=" by group")
        self.title = self.title or f"{about}{given}"
        several = ", a mark per method." if len(chosen) > 1 else "."
        dashed = f" The dashed line is that of all pairs, {rounded(self.mark)}."
        missing = [group for group in self.rows if group not in {dot.group for dot in self.dots}]
        self.caption = (
            f"{metric_title(self.metric, self.condition)} of each group{several}{bars}"
            f"{dashed * (self.mark == self.mark)} Marks below each other mean equal treatment."
            f"{left_out(missing, 'not enough data')}"
        )
        printed: dict[str, list[str]] = {name: [] for name in self.methods}
        for dot in self.dots:
            printed[dot.method].append(f"{dot.group} {self._printed(dot.value)}")
        self._finish(printed)
        self.table = long_table(Dot._fields[:5], (dot[:5] for dot in self.dots))


@dataclass(eq=False, repr=False)
class DifferencePlot(DotPlot):
    """By how much methods differ from one of them: a row a metric, a mark a method."""

    def _compare(self, dots: Sequence[Dot], methods: Sequence[str], shares: bool = True) -> None:
        """Set what is drawn: a dot's group is its metric."""
        self.rows, self.methods = list(dict.fromkeys(dot.group for dot in dots)), list(methods)
        self.dots = sorted(dots, key=lambda dot: self.rows.index(dot.group))
        self.shares = shares
        self._x_label = f"difference{' (percentage points)' * shares}"
        self.key = self.key or "differences"
        printed: dict[str, list[str]] = {name: [] for name in self.rows}
        for dot in self.dots:
            value, low, high = (self._printed(number) for number in dot[2:5])
            words = f"{dot.method} {value} ({low} to {high}), {dot.verdict}"
            printed[dot.group].append(words)
        self._finish(printed)
        names = ("metric", "method", "difference", "low", "high", "verdict")
        self.table = long_table(names, ((dot.group, dot.method, *dot[2:]) for dot in self.dots))

    def _draw(self, ax: Axes) -> None:
        super()._draw(ax)
        ax.axvline(0, color=RULE, linewidth=0.9, zorder=1)  # last: it is in sight with the dots


@dataclass(eq=False, repr=False)
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

    runs = ("benchmark",)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return accuracy in one panel and errors in another, since they differ in size."""
        at, compared = (scope.feature, scope.attribute), scope.store.comparisons
        selected = [each for each in compared if (each.feature, each.attribute) == at]
        parts = {
            "accuracy": [each for each in selected if each.metric in ("auroc", "tpr")],
            "errors and deviations": [
                each for each in selected if each.metric not in ("auroc", "tpr")
            ],
        }
        return scope.panels(
            [cls(part) for part in parts.values()],
            list(parts),
            "differences",
            "Difference to Baseline",
            columns=2,
        )

    def __post_init__(self) -> None:
        self._compare(
            [
                Dot(
                    method_title(each.method_b),
                    metric_title(each.metric, each.condition),
                    *(each.difference, each.low, each.high, each.verdict),
                )
                for each in self.compared
                if each.reportable
            ],
            list(dict.fromkeys(method_title(each.method_b) for each in self.compared)),
        )
        first = self.compared[0] if self.compared else None
        reference = method_title(first.method_a) if first else "–"
        self.title = self.title or f"Difference to {reference}"
        if first:
            self.caption = (
                f"Each method's value less that of {reference}, of the same people; bars are "
                f"{rounded(first.level)} intervals of the difference. Filled: told apart after "
                f"correction for all {first.family:.0f} comparisons (Holm). AUROC and TPR are "
                "better to the right, errors and deviations to the left."
            )


#: With more groups numbers no longer fit into the squares.
_MOST = 12


@dataclass(eq=False, repr=False)
class GroupHeatmap(Figure):
    """Who is taken for whom: the false-positive rate of every two groups, as a map of squares.

    Parameters
    ----------
    rows : sequence of MatrixRow
        Of one feature, attribute and operating point.

    Examples
    --------
    >>> at = ("f", "sex", "global_fpr=0.01")
    >>> rows = [MatrixRow(*at, "F", "F", 800, 16, 0.02, 0.01, 0.04, 40),
    ...         MatrixRow(*at, "F", "M", 500, 0, 0.0, 0.0, 0.01, 45),
    ...         MatrixRow(*at, "M", "M", 90, 1, 0.011, 0.0, 0.06, 30, "only 90 pairs")]
    >>> GroupHeatmap(rows).words
    'FPR between groups at 1 % global FPR. F and F 2 %, F and M 0 %; not enough data: M and M.'
    """

    rows: Sequence[MatrixRow]

    runs = ("audit",)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return who is taken for whom, at the operating point that the summary speaks of."""
        at = (scope.feature, scope.attribute, scope.point)
        rows = [r for r in scope.store.matrix if (r.feature, r.attribute, r.condition) == at]
        figure = cls(rows)
        return scope.panels([figure], [""], figure.key, figure.title)

    def __post_init__(self) -> None:
        condition = self.rows[0].condition if self.rows else ""
        title = metric_title("fpr", condition, by=" between groups")
        self.key = self.key or "matrix"
        self.title = self.title or (title if condition else f"{title} at the given threshold")
        self.caption = CAPTIONS["GroupHeatmap"]
        left, right = [r.left_group for r in self.rows], [r.right_group for r in self.rows]
        self.groups = list(dict.fromkeys([*left, *right]))
        side = 0.72 * max(len(self.groups), 3)
        self.size = side + 2.2, side + 1.2
        shown = [row for row in self.rows if not row.withheld]
        few = [f"{row.left_group} and {row.right_group}" for row in self.rows if row.withheld]
        rates = (f"{row.left_group} and {row.right_group} {rounded(row.fpr)}" for row in shown)
        self.numbers = ", ".join(rates) + (f"; not enough data: {', '.join(few)}." if few else ".")
        names = ["left_group", "right_group", "fpr", "low", "high"]
        names += ["errors", "imposters", "effective_people"]
        self.table = long_table(names, ([getattr(row, name) for name in names] for row in shown))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw: without pairs of two groups it is a list."""
        return not len(self.table) or all(row.left_group == row.right_group for row in self.rows)

    def _draw(self, ax: Axes) -> None:
        from matplotlib.patches import Rectangle

        place = {group: i for i, group in enumerate(self.groups)}
        n = len(place)
        highest = max((row.fpr for row in self.rows if not row.withheld), default=0.0) or 1.0
        light = np.array([0.94, 0.96, 0.98])
        for row in self.rows:
            share, at = row.fpr / highest, (place[row.left_group], place[row.right_group])
            colour = light + share * (np.array([0.04, 0.25, 0.50]) - light)
            look: dict[str, Any] = {"facecolor": "white", "hatch": "//"}
            look = look if row.withheld else {"facecolor": colour}
            for i, j in {at} | {at[::-1]}:
                ax.add_patch(Rectangle((j, i), 1, 1, edgecolor=FAINT, linewidth=0.5, **look))
                if not row.withheld and n <= _MOST:
                    ink = "white" if share > 0.5 else "black"
                    middle: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
                    ax.text(j + 0.5, i + 0.4, f"{100 * row.fpr:.2f}", fontsize=8, **middle)
                    ax.text(j + 0.5, i + 0.72, f"{row.imposters:,.0f}", fontsize=5.5, **middle)
        names = [text(group) for group in self.groups]
        ax.set_xticks(np.arange(n) + 0.5, names, rotation=40, ha="right")
        ax.set_yticks(np.arange(n) + 0.5, names)
        ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
        ax.grid(visible=False)
        ax.tick_params(length=0)
