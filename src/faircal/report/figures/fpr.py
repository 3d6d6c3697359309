"""False-positive rates of groups against that of all pairs: the paper's first figure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from faircal.metrics.ranking import FloatArray
from faircal.report.figures.counted import CurvesFigure, corners, lines_table, trimmed
from faircal.report.figures.style import FAINT, RULE, draw_line, percent_axis
from faircal.report.figures.wording import left_out, listed, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    _key, _about = "fpr-by-group", "False-positive rate by group"

    @cached_property
    def lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Global rates and the group's rates at the same thresholds; not without imposters."""
        overall = self.histogram()
        found = {}
        for group in self.groups:
            histogram = self.histogram(group)
            if histogram.n_imposter:
                # From the highest threshold down, beginning with one that nobody passes.
                x = np.append(0.0, overall.fpr[::-1])
                y = np.append(0.0, histogram.fpr[::-1])
                found[group] = trimmed(*corners(x, y), self.upto)
        return found

    @property
    def at_mark(self) -> dict[str, float]:
        """The rate of each group at the marked global rate."""
        return {group: float(np.interp(self.mark, x, y)) for group, (x, y) in self.lines.items()}

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `global_fpr`, `fpr`."""
        return lines_table(self.lines, "global_fpr", "fpr")

    @property
    def caption(self) -> str:
        """How to read it."""
        missing = left_out(
            (g for g in self.groups if g not in self.lines), "for want of imposter pairs"
        )
        return (
            "Each line is a group. Across: share of all pairs of strangers that are taken for the "
            "same person (global FPR), as the threshold moves. Up: the same share within the "
            "group. On the thin diagonal a group has the global rate; lines close together mean "
            f"equal treatment. The dashed line marks a global FPR of {percent(self.mark)}."
            f"{missing}{self._pooled()}"
        )

    def _numbers(self) -> str:
        return f"At a global FPR of {percent(self.mark)}: {listed(self.at_mark)}."

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
