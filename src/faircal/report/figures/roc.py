"""ROC and DET curves of all pairs and of each group."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from faircal.metrics import Histogram
from faircal.metrics.ranking import FloatArray
from faircal.metrics.results import GLOBAL
from faircal.report.figures.counted import CurvesFigure, corners, lines_table
from faircal.report.figures.style import RULE, draw_line, percent_axis
from faircal.report.figures.wording import left_out, listed, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

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

    def _missing(self) -> str:
        return left_out(
            [group for group in self.groups if group not in self.lines],
            "for want of genuine or imposter pairs",
        )

    def _numbers(self) -> str:
        return f"{self._rate_words} at an FPR of {percent(self.mark)}: {listed(self.at_mark)}."


@dataclass(frozen=True, eq=False)
class RocCurves(_Tradeoff):
    """True-positive rate against false-positive rate, the latter on a logarithmic axis.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    mark : float
        The false-positive rate marked by a dashed line.

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

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            "Across: share of pairs of strangers that are accepted (FPR), on a logarithmic axis; "
            "up: share of pairs of the same person that are accepted (TPR), as the threshold "
            "moves. Higher is better. Each line begins where one imposter pair is accepted; "
            "further to the left the data tells nothing. The dashed line marks an FPR of "
            f"{percent(self.mark)}.{self._missing()}{self._pooled()}"
        )

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

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    mark : float
        The false-positive rate marked by a dashed line.

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

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            "Across: share of pairs of strangers that are accepted (FPR); up: share of pairs of "
            "the same person that are rejected (FNR), as the threshold moves; both axes are "
            "stretched so that normally distributed scores give straight lines. Lower and further "
            "to the left is better. Lines end where the data counts less than one pair. The "
            f"dashed line marks an FPR of {percent(self.mark)}.{self._missing()}{self._pooled()}"
        )

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
