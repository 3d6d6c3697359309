"""What the figures that are drawn from score histograms share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from faircal.evaluation.curves import Curves, Of, ScoreSource
from faircal.metrics import Histogram
from faircal.metrics.ranking import FloatArray
from faircal.metrics.results import GLOBAL
from faircal.report.figures.base import Figure
from faircal.report.figures.wording import left_out, titled
from faircal.report.tables import method_title


@dataclass(frozen=True, eq=False)
class CurvesFigure(Figure):
    """A figure of each group's scores or probabilities.

    Parameters
    ----------
    curves : Curves
    source : Source, optional
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

    _about: ClassVar[str]
    _of: ClassVar[Of] = "score"

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
