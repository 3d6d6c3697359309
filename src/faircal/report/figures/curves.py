"""Error rates over thresholds: ROC, DET and FPR curves; what is drawn from score histograms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from faircal.evaluation.curves import Curves, Of, ScoreSource
from faircal.metrics import Histogram
from faircal.metrics.ranking import FloatArray
from faircal.metrics.results import GLOBAL, Condition
from faircal.report.figures.base import Anything, Figure, FigureScope
from faircal.report.figures.style import FAINT, RULE, draw_line, percent_axis
from faircal.report.wording import left_out, listed, method_title, rounded, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


@dataclass(frozen=True, eq=False)
class CurvesFigure(Figure):
    """A figure of each group's scores or probabilities.

    Parameters
    ----------
    curves : Curves
    source : ScoreSource, optional
        Whose scores; may be left out where there is only one.
    fold : str, optional
        Which test fold; all of them together unless told.
    without : sequence of str
        Groups that are not drawn, for want of data.
    """

    curves: Curves
    source: ScoreSource | None = None
    fold: str | None = None
    without: Sequence[str] = field(default=(), kw_only=True)

    _of: ClassVar[Of] = "score"
    #: Whether panels have the same axes; whether a reproduction has it among the paper's own.
    _shared: ClassVar[bool] = True
    _papers: ClassVar[bool] = False

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give a panel for each method that has the scores, and the pairs, for it."""
        if cls._papers and scope.store.kind == "reproduce":
            return
        sources = [source for source in scope.sources if cls._drawable(scope, source)]
        more = cls._options(scope)
        yield from scope.panels(
            [cls(scope.store.curves, source, without=scope.small, **more) for source in sources],
            [method_title(source.method) for source in sources],
            cls._key,
            cls._about,
            share_x=cls._shared,
            share_y=cls._shared,
        )

    @classmethod
    def _drawable(cls, scope: FigureScope, source: ScoreSource) -> bool:
        """Whether there are scores of both kinds of pairs."""
        curves = scope.store.curves
        everybody = curves.get(source=source) if curves.has("score", source) else None
        return everybody is not None and bool(everybody.n_imposter and everybody.n_genuine)

    @classmethod
    def _options(cls, scope: FigureScope) -> dict[str, Any]:  # noqa: ARG003 - none by itself
        """Return further arguments that a report gives it."""
        return {}

    def _title(self) -> str:
        self.curves.groups(self.source)  # raises where there are several sources, and none is told
        source = self.source or self.curves.sources[0]
        return titled(self._about, method_title(source.method))

    def histogram(self, group: str = GLOBAL, of: Of | None = None) -> Histogram:
        """Return the histogram of a group, or of all pairs."""
        return self.curves.get(group, of or self._of, self.source, self.fold)

    @cached_property
    def groups(self) -> list[str]:
        """The groups; all pairs as one where there are none."""
        there = self.curves.groups(self.source)
        return [group for group in there if group not in self.without] or [GLOBAL]

    def _pooled(self) -> str:
        """Say which folds are shown, and which groups are not."""
        missing = left_out(self.without, "not enough data")
        if self.fold:
            return f"{missing} Test fold {self.fold}."
        return missing + (" All test folds together." if len(self.curves.folds) > 1 else "")


def spoken_rate(scope: FigureScope) -> float:
    """Return the false-positive rate that the summary speaks of; 5 % where it speaks of none."""
    return Condition.of(scope.point).rate if scope.point else 0.05


def lines_table(lines: dict[str, tuple[FloatArray, FloatArray]], x: str, y: str) -> pa.Table:
    """Return lines as a table with a column `group` and the coordinates."""
    names = [group for group, line in lines.items() for _ in line[0]]
    xs, ys = ([line[i] for line in lines.values()] or [np.zeros(0)] for i in (0, 1))
    columns = {x: np.concatenate(xs), y: np.concatenate(ys)}
    return pa.table({"group": pa.array(names, pa.string())} | columns)


def trimmed(x: FloatArray, y: FloatArray, upto: float) -> tuple[FloatArray, FloatArray]:
    """Cut a line with ascending `x` at `upto`, where it gets an interpolated end."""
    inside = x < upto
    end = np.interp(upto, x, y)
    return np.append(x[inside], upto), np.append(y[inside], end)


def corners(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Drop the points that repeat the one before."""
    moved = np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0))
    return x[moved], y[moved]


#: Rates that are labelled on normal-deviate axes, far enough apart for their labels.
_DEVIATES = (1e-5, 1e-3, 1e-2, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.99999)


@dataclass(frozen=True, eq=False)
class _Tradeoff(CurvesFigure):
    """False positives against the other error, or its complement.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    mark : float
        The false-positive rate marked by a dashed line.
    """

    mark: float = 0.01

    _rate: ClassVar[str]
    _rate_words: ClassVar[str]

    @abstractmethod
    def _line(self, histogram: Histogram) -> tuple[FloatArray, FloatArray]:
        """Return false-positive rates, ascending, and the other rate, as far as data resolves."""

    @cached_property
    def lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """The curve of each group that has both kinds of pairs; all pairs last."""
        names = [group for group in self.groups if group != GLOBAL]
        histograms = {group: self.histogram(group) for group in [*names, GLOBAL]}
        return {
            group: self._line(histogram)
            for group, histogram in histograms.items()
            if histogram.n_genuine and histogram.n_imposter
        }

    @property
    def at_mark(self) -> dict[str, float]:
        """The rate of each group at the marked false-positive rate; NaN where not resolved."""
        return {
            group: float(np.interp(self.mark, x, y, left=np.nan, right=np.nan))
            if len(x)
            else np.nan
            for group, (x, y) in self.lines.items()
        }

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `fpr`, and `tpr` or `fnr`."""
        return lines_table(self.lines, "fpr", self._rate)

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        unresolved = [group for group in self.groups if group not in self.lines]
        missing = left_out(unresolved, "for want of genuine or imposter pairs")
        return {"mark": rounded(self.mark), "missing": missing, "pooled": self._pooled()}

    def _numbers(self) -> str:
        return f"{self._rate_words} at an FPR of {rounded(self.mark)}: {listed(self.at_mark)}."


@dataclass(frozen=True, eq=False)
class RocCurves(_Tradeoff):
    """True-positive rate against false-positive rate, the latter on a logarithmic axis.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> found = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"))
    >>> RocCurves(found.curves, mark=0.5).at_mark
    {'A': 1.0, 'B': 1.0, 'global': 1.0}
    """

    _key, _about = "roc", "ROC by group"
    _rate, _rate_words = "tpr", "True-positive rate"

    def _line(self, histogram: Histogram) -> tuple[FloatArray, FloatArray]:
        x, y = corners(histogram.fpr[::-1], 1 - histogram.fnr[::-1])
        first = np.searchsorted(x, x[x > 0].min(), side="right") - 1  # the best at one imposter
        return x[first:], y[first:]

    def _draw(self, ax: Axes) -> None:
        for index, (group, (x, y)) in enumerate(self.lines.items()):
            draw_line(ax, x, y, index, group)
        ax.axvline(self.mark, color=RULE, linestyle=(0, (4, 3)), linewidth=0.9)
        ax.set_xscale("log")
        ax.set(xlabel="FPR (%)", ylabel="TPR (%)", xlim=(None, 1))
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)


@dataclass(frozen=True, eq=False)
class DetCurves(_Tradeoff):
    """False-negative rate against false-positive rate on normal-deviate axes.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8], [0, 0, 1, 1, 0, 1]
    >>> found = faircal.audit(score=score, genuine=genuine)
    >>> DetCurves(found.curves).table["fnr"].to_pylist()
    [0.333...]
    """

    _key, _about = "det", "DET by group"
    _rate, _rate_words = "fnr", "False-negative rate"

    def _line(self, histogram: Histogram) -> tuple[FloatArray, FloatArray]:
        x, y = corners(histogram.fpr[::-1], histogram.fnr[::-1])
        seen = (x > 0) & (y > 0) & (x < 1) & (y < 1)
        x, y = x[seen], y[seen]
        if not len(x):
            return x, y
        # Where only one pair is counted, the best point: no run along the border.
        first = np.searchsorted(x, x[0], side="right") - 1
        last = np.searchsorted(-y, -y[-1], side="left") + 1
        return x[first:last], y[first:last]

    def _draw(self, ax: Axes) -> None:
        for index, (group, (x, y)) in enumerate(self.lines.items()):
            draw_line(ax, ndtri(x), ndtri(y), index, group)
        ax.axvline(ndtri(self.mark), color=RULE, linestyle=(0, (4, 3)), linewidth=0.9)
        for axis in (ax.xaxis, ax.yaxis):
            _deviate_axis(axis)
        ax.set(xlabel="FPR (%)", ylabel="FNR (%)")


def _deviate_axis(axis: Axis) -> None:
    """Label a normal-deviate axis in percent."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axis.set_major_locator(FixedLocator(ndtri(_DEVIATES)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * ndtr(value):.5g}"))


@dataclass(frozen=True, eq=False)
class FprCurves(CurvesFigure):
    """Each group's false-positive rate against the global one, over all thresholds.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    upto : float
        Largest global rate that is drawn.
    mark : float
        A global rate marked by a dashed line.
    height : float
        The vertical axis reaches at least so far.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.2, 0.4, 0.8, 0.9], [0, 0, 0, 0, 1, 1]
    >>> found = faircal.audit(score=score, genuine=genuine, groups=list("AABBAB"))
    >>> figure = FprCurves(found.curves, upto=0.5, mark=0.5)
    >>> figure.at_mark
    {'A': 0.5, 'B': 0.5}
    """

    upto: float = 0.10
    mark: float = 0.05
    height: float = 0.0

    _key, _about, _papers = "fpr-by-group", "False-positive rate by group", True

    @classmethod
    def _drawable(cls, scope: FigureScope, source: ScoreSource) -> bool:
        """Whether there are imposters, and groups large enough to be drawn."""
        curves = scope.store.curves
        groups = set(curves.groups(source)) - set(scope.small)
        there = groups and curves.has("score", source)
        return bool(there and curves.get(source=source).n_imposter)

    @classmethod
    def _options(cls, scope: FigureScope) -> dict[str, Any]:
        """Mark the rate that the summary speaks of."""
        rate = spoken_rate(scope)
        return {"mark": rate, "upto": max(0.1, 2 * rate)}

    @cached_property
    def lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Global rates and the group's rates at the same thresholds; not without imposters."""
        overall = self.histogram()
        lines = {}
        for group in self.groups:
            histogram = self.histogram(group)
            if histogram.n_imposter:
                # From the highest threshold down, beginning with one that nobody passes.
                x = np.append(0.0, overall.fpr[::-1])
                y = np.append(0.0, histogram.fpr[::-1])
                lines[group] = trimmed(*corners(x, y), self.upto)
        return lines

    @property
    def at_mark(self) -> dict[str, float]:
        """The rate of each group at the marked global rate."""
        return {group: float(np.interp(self.mark, x, y)) for group, (x, y) in self.lines.items()}

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `global_fpr`, `fpr`."""
        return lines_table(self.lines, "global_fpr", "fpr")

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        unresolved = (group for group in self.groups if group not in self.lines)
        missing = left_out(unresolved, "for want of imposter pairs")
        return {"mark": rounded(self.mark), "missing": missing, "pooled": self._pooled()}

    def _numbers(self) -> str:
        return f"At a global FPR of {rounded(self.mark)}: {listed(self.at_mark)}."

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, self.upto], [0, self.upto], color=FAINT, linewidth=0.8)
        ax.axvline(self.mark, color=RULE, linestyle=(0, (4, 3)), linewidth=0.9)
        for index, group in enumerate(self.groups):
            if group in self.lines:
                draw_line(ax, *self.lines[group], index, group)
        ax.set(xlim=(0, self.upto), xlabel="global FPR (%)", ylabel="group FPR (%)")
        # Panels that share the axis were drawn before: none of their lines may be cut.
        highest = max((float(y.max()) for _, y in self.lines.values() if len(y)), default=0.0)
        ax.set_ylim(0, max(self.height, 1.03 * max(highest, self.upto), ax.get_ylim()[1]))
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)
