"""Reliability diagrams: whether probabilities mean what they say, in each group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from faircal.evaluation.curves import Of, ScoreSource
from faircal.metrics.ranking import FloatArray, IntArray
from faircal.report.figures.base import FigureScope, long_table
from faircal.report.figures.curves import CurvesFigure
from faircal.report.figures.style import FAINT, draw_line, percent_axis
from faircal.report.wording import left_out, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bins with fewer pairs tell next to nothing and are left out of the line.
LEAST = 10


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(CurvesFigure):
    """The share of genuine pairs among those of about the same probability, by group.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    n_bins : int
        Bins of equal width. Their borders are moved to the nearest of the histogram's edges,
        which lie every 0.001.

    Examples
    --------
    >>> import faircal
    >>> found = faircal.audit(probability=[0.2] * 10 + [0.9] * 10, genuine=[0] * 10 + [1] * 10)
    >>> ReliabilityDiagram(found.curves).words
    'Reliability by group. Largest distance from the diagonal: all pairs 20 %.'
    """

    n_bins: int = 10

    _key, _about = "reliability", "Reliability by group"
    _of: ClassVar[Of] = "probability"
    #: What is counted, what it is sorted by, and what happens: columns of the table.
    _columns: ClassVar[tuple[str, str, str]] = ("pairs", "probability", "genuine")
    #: What stands along the axes.
    _axes: ClassVar[tuple[str, str]] = ("mean probability (%)", "genuine (%)")

    @classmethod
    def _drawable(cls, scope: FigureScope, source: ScoreSource) -> bool:
        """Whether there are probabilities, too."""
        likely = scope.store.curves.has("probability", source)
        return likely and super()._drawable(scope, source)

    @cached_property
    def bins(self) -> dict[str, tuple[IntArray, FloatArray, FloatArray]]:
        """Pairs, mean probability and share of genuine pairs in each bin of each group."""
        bins = {}
        for group in self.groups:
            histogram = self.histogram(group)
            borders = np.round(np.arange(1, self.n_bins) / self.n_bins, 3)
            which = np.searchsorted(borders, histogram.edges, side="right")
            pairs, genuine, total = (
                np.bincount(which, weights=values, minlength=self.n_bins)
                for values in (
                    histogram.genuine + histogram.imposter,
                    histogram.genuine,
                    histogram.total,
                )
            )
            some = np.maximum(pairs, 1)
            bins[group] = pairs.astype(np.int64), total / some, genuine / some
        return bins

    @cached_property
    def lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """What is drawn of each group: the bins with enough pairs."""
        enough = {group: pairs >= LEAST for group, (pairs, _, _) in self.bins.items()}
        return {
            group: (mean[enough[group]], share[enough[group]])
            for group, (_, mean, share) in self.bins.items()
            if enough[group].any()
        }

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `pairs`, `probability` (mean), `genuine` (share), a bin a row."""
        rows = [
            (group, int(n), float(mean), float(share))
            for group, columns in self.bins.items()
            for n, mean, share in zip(*columns, strict=True)
            if n >= LEAST
        ]
        return long_table(("group", *self._columns), rows)

    @property
    def gaps(self) -> dict[str, float]:
        """The largest distance from the diagonal in each group."""
        return {group: float(np.abs(y - x).max()) for group, (x, y) in self.lines.items()}

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        missing = left_out((g for g in self.groups if g not in self.lines), "for want of pairs")
        counts = {"bins": str(self.n_bins), "least": str(LEAST)}
        return counts | {"missing": missing, "pooled": self._pooled()}

    def _numbers(self) -> str:
        return f"Largest distance from the diagonal: {listed(self.gaps)}."

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8)
        for index, group in enumerate(self.groups):
            if group in self.lines:
                draw_line(ax, *self.lines[group], index, group)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=self._axes[0], ylabel=self._axes[1])
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)
