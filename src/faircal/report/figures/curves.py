"""Error rates over thresholds: ROC, DET and FPR curves; what is drawn from score histograms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from faircal.evaluation.curves import Curves, Of, ScoreSource
from faircal.metrics import Histogram
from faircal.metrics.ranking import FloatArray
from faircal.metrics.results import GLOBAL
from faircal.report.figures.base import CAPTIONS, Figure, FigureRecord, FigureScope, long_table
from faircal.report.figures.style import FAINT, RULE, draw_line, percent_axis
from faircal.report.wording import left_out, listed, method_title, rounded, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CurvesFigure(Figure):
    """A figure of each group's scores or probabilities.

    Parameters
    ----------
    curves : Curves
    source : ScoreSource, optional
        Whose scores; may be left out where there is only one.
    fold : str, optional
        Which test fold; all of them together by default.
    of : {"score", "probability"}
    without : sequence of str
        Groups that are not drawn, for want of data.

    Attributes
    ----------
    histograms : dict of Histogram
        Of each group; of all pairs as one where there are none.
    """

    curves: Curves
    source: ScoreSource | None = None
    fold: str | None = None
    of: Of = field(default="score", kw_only=True)
    without: Sequence[str] = field(default=(), kw_only=True)

    _key: ClassVar[str]
    _about: ClassVar[str]
    _caption: ClassVar[str]
    #: Whether panels have the same axes.
    _shared: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names = self.curves.groups(self.source)  # raises where the source is open
        source = self.source or self.curves.sources[0]
        self.key = self.key or self._key
        self.title = self.title or titled(self._about, method_title(source.method))
        self.groups = [name for name in names if name not in self.without] or [GLOBAL]
        self.histograms = {
            name: self.curves.get(name, self.of, source, self.fold) for name in self.groups
        }
        #: Which folds are shown, and which groups are not.
        self.pooled = left_out(self.without, "not enough data")
        if self.fold:
            self.pooled += f" Test fold {self.fold}."
        elif len(self.curves.folds) > 1:
            self.pooled += " All test folds together."

    @classmethod
    def in_report(
        cls, scope: FigureScope, *, imposters_only: bool = False, **options: Any
    ) -> Sequence[FigureRecord]:
        """Return a panel for each method that has the scores, and the pairs, for it."""
        curves, sources = scope.store.curves, []
        for source in scope.sources:
            if curves.has("score", source) and curves.has(cls.of, source):
                pairs = curves.get(source=source)
                if pairs.n_imposter and (pairs.n_genuine or imposters_only):
                    sources.append(source)
        return scope.panels(
            [cls(curves, source, without=scope.small, **options) for source in sources],
            [method_title(source.method) for source in sources],
            cls._key,
            cls._about,
            share_x=cls._shared,
            share_y=cls._shared,
        )


def corners(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Drop the points that repeat the one before."""
    moved = np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0))
    return x[moved], y[moved]


#: Rates that are labelled on normal-deviate axes, far enough apart for their labels.
_DEVIATES = (1e-5, 1e-3, 1e-2, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999, 0.99999)


@dataclass(eq=False, repr=False)
class _Tradeoff(CurvesFigure):
    """False positives against the other error, or its complement.

    Parameters
    ----------
    curves, source, fold, of, without
        As of every figure of curves.
    mark : float
        The false-positive rate marked by a dashed line.

    Attributes
    ----------
    lines : dict
        The curve of each group that has both kinds of pairs; all pairs last.
    at_mark : dict of float
        The rate of each group at the marked false-positive rate; NaN where not resolved.
    """

    mark: float = 0.01

    _rate: ClassVar[str]
    _rate_words: ClassVar[str]

    @abstractmethod
    def _line(self, histogram: Histogram) -> tuple[FloatArray, FloatArray]:
        """Return false-positive rates, ascending, and the other rate, as far as data resolves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        overall = self.curves.get(GLOBAL, self.of, self.source, self.fold)
        self.lines = {
            name: self._line(histogram)
            for name, histogram in (self.histograms | {GLOBAL: overall}).items()
            if histogram.n_genuine and histogram.n_imposter
        }
        self.at_mark = {
            name: float(np.interp(self.mark, x, y, left=np.nan, right=np.nan)) if len(x) else np.nan
            for name, (x, y) in self.lines.items()
        }
        unresolved = [name for name in self.groups if name not in self.lines]
        missing = left_out(unresolved, "for want of genuine or imposter pairs")
        mark = rounded(self.mark)
        self.caption = self._caption.format(mark=mark, missing=missing, pooled=self.pooled)
        self.numbers = f"{self._rate_words} at an FPR of {mark}: {listed(self.at_mark)}."
        self.table = long_table(
            ("group", "fpr", self._rate),
            ((name, *at) for name, line in self.lines.items() for at in zip(*line, strict=True)),
        )


@dataclass(eq=False, repr=False)
class RocCurves(_Tradeoff):
    """True-positive rate against false-positive rate, the latter on a logarithmic axis.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> audit = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"))
    >>> RocCurves(audit.curves, mark=0.5).at_mark
    {'A': 1.0, 'B': 1.0, 'global': 1.0}
    """

    _key, _about, _caption = "roc", "ROC by group", CAPTIONS["RocCurves"]
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


@dataclass(eq=False, repr=False)
class DetCurves(_Tradeoff):
    """False-negative rate against false-positive rate on normal-deviate axes.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8], [0, 0, 1, 1, 0, 1]
    >>> audit = faircal.audit(score=score, genuine=genuine)
    >>> DetCurves(audit.curves).table["fnr"].to_pylist()
    [0.333...]
    """

    _key, _about, _caption = "det", "DET by group", CAPTIONS["DetCurves"]
    _rate, _rate_words = "fnr", "False-negative rate"

    def _line(self, histogram: Histogram) -> tuple[FloatArray, FloatArray]:
        x, y = corners(histogram.fpr[::-1], histogram.fnr[::-1])
        inside = (x > 0) & (y > 0) & (x < 1) & (y < 1)
        x, y = x[inside], y[inside]
        if not len(x):
            return x, y
        # Where only one pair is counted, the best point: no run along the border.
        first = np.searchsorted(x, x[0], side="right") - 1
        last = np.searchsorted(-y, -y[-1], side="left") + 1
        return x[first:last], y[first:last]

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter

        for index, (group, (x, y)) in enumerate(self.lines.items()):
            draw_line(ax, ndtri(x), ndtri(y), index, group)
        ax.axvline(ndtri(self.mark), color=RULE, linestyle=(0, (4, 3)), linewidth=0.9)
        for axis in (ax.xaxis, ax.yaxis):  # normal deviates, labelled in percent
            axis.set_major_locator(FixedLocator(ndtri(_DEVIATES)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * ndtr(value):.5g}"))
        ax.set(xlabel="FPR (%)", ylabel="FNR (%)")


@dataclass(eq=False, repr=False)
class FprCurves(CurvesFigure):
    """Each group's false-positive rate against the global one, over all thresholds.

    Parameters
    ----------
    curves, source, fold, of, without
        As of every figure of curves.
    upto : float
        Largest global rate that is drawn.
    mark : float
        A global rate marked by a dashed line.
    height : float
        The vertical axis reaches at least so far.

    Attributes
    ----------
    lines : dict
        Global rates and the group's rates at the same thresholds; not without imposters.
    at_mark : dict of float
        The rate of each group at the marked global rate.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.2, 0.4, 0.8, 0.9], [0, 0, 0, 0, 1, 1]
    >>> audit = faircal.audit(score=score, genuine=genuine, groups=list("AABBAB"))
    >>> figure = FprCurves(audit.curves, upto=0.5, mark=0.5)
    >>> figure.at_mark
    {'A': 0.5, 'B': 0.5}
    """

    upto: float = 0.10
    mark: float = 0.05
    height: float = 0.0

    _key, _about = "fpr-by-group", "False-positive rate by group"
    _caption = CAPTIONS["FprCurves"]
    runs = ("audit", "benchmark")  # a reproduction has it among the paper's own

    @classmethod
    def in_report(cls, scope: FigureScope, **options: Any) -> Sequence[FigureRecord]:
        """Return a panel for each method, where groups are large enough; genuine pairs or none."""
        groups = {name for source in scope.sources for name in scope.store.curves.groups(source)}
        if groups <= set(scope.small):
            return []
        options |= {"mark": scope.rate, "upto": max(0.1, 2 * scope.rate)}
        return super().in_report(scope, imposters_only=True, **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        overall = self.curves.get(GLOBAL, self.of, self.source, self.fold)
        self.lines: dict[str, tuple[FloatArray, FloatArray]] = {}
        for group, histogram in self.histograms.items():
            if histogram.n_imposter:
                # From the highest threshold down, beginning with one that nobody passes.
                x = np.append(0.0, overall.fpr[::-1])
                x, y = corners(x, np.append(0.0, histogram.fpr[::-1]))
                inside = x < self.upto
                end = np.interp(self.upto, x, y)
                self.lines[group] = np.append(x[inside], self.upto), np.append(y[inside], end)
        self.at_mark = {name: float(np.interp(self.mark, *at)) for name, at in self.lines.items()}
        unresolved = [name for name in self.groups if name not in self.lines]
        missing, mark = left_out(unresolved, "for want of imposter pairs"), rounded(self.mark)
        self.caption = self._caption.format(mark=mark, missing=missing, pooled=self.pooled)
        self.numbers = f"At a global FPR of {mark}: {listed(self.at_mark)}."
        self.table = long_table(
            ("group", "global_fpr", "fpr"),
            ((name, *at) for name, line in self.lines.items() for at in zip(*line, strict=True)),
        )

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
