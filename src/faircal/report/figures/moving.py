"""How many labelled pairs of another population restore calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.evaluation.benchmark.moving import MovedRow
from faircal.evaluation.benchmark.restoring import Restoring, restoring
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.figures.base import Figure, long_table
from faircal.report.figures.style import MARKERS, label, line_look, percent_axis
from faircal.report.figures.wording import percent
from faircal.report.tables import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {
    "line": pa.string(),
    "labels": pa.int64(),
    "people": pa.float64(),
    "value": pa.float64(),
    "error": pa.float64(),
}
#: Metric and group of each kind of line, and what it is of.
_OF = ((("ks", GLOBAL), "all pairs"), (("ks_mean", ALL), "mean over groups"))


@dataclass(frozen=True, eq=False)
class MovingCurves(Figure):
    """Calibration error (KS) of a method over the number of labelled pairs of new people.

    Parameters
    ----------
    rows : sequence of MovedRow
        ``moving.csv``.
    feature, attribute : str
    variant : Variant
        The method, with its calibrator and clusters.

    Examples
    --------
    >>> front = ("f", "baseline", "beta", "", "", "as-is", "0", "0")
    >>> rows = [MovedRow(*front, "1", "global", "", "ks", 0.1)]
    >>> figure = MovingCurves(rows, "f", "", Variant("baseline", "beta", ""))
    >>> figure.table["line"].to_pylist()
    ['recalibrated, all pairs']
    """

    rows: Sequence[MovedRow]
    feature: str
    attribute: str
    variant: Variant

    _key = "moving"

    def _title(self) -> str:
        return "Calibration error by labelled pairs of the new population"

    @cached_property
    def lines(self) -> dict[str, Restoring]:
        """The curves by name: each strategy, of all pairs and as mean over groups."""
        own = self.variant
        wanted = (self.feature, own.method, own.calibrator, own.clusters, self.attribute)
        rows = [row for row in self.rows if row[:5] == wanted]
        found = {}
        for (metric, group), of in _OF:
            for curve in restoring(rows, metric, group):
                found[f"{curve.strategy}, {of}"] = curve
        return found

    @cached_property
    def table(self) -> pa.Table:
        """Columns `line`, `labels`, `people`, `value` (mean over folds) and `error` (standard)."""
        return long_table(
            _COLUMNS,
            (
                (name, labels, at.people, at.mean, at.error)
                for name, curve in self.lines.items()
                for labels, at in curve.points.items()
            ),
        )

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            "Mean KS over folds of the new population; bars are standard errors over folds. At 0 "
            "stands the model of the other population as it is; recalibrated puts one map on top "
            "of it, fresh is fitted on the labelled pairs alone."
        )

    def _numbers(self) -> str:
        said = []
        for name, curve in self.lines.items():
            ends = dict.fromkeys((min(curve.points), curve.most))
            listed = ", ".join(f"{percent(curve.points[n].mean)} with {n}" for n in ends)
            said.append(f"{name}: {listed} labelled pairs, about {curve.enough} do as well")
        return "; ".join(said) + "."

    def _draw(self, ax: Axes) -> None:
        for index, (name, curve) in enumerate(self.lines.items()):
            look = line_look(index) | {"marker": MARKERS[index % len(MARKERS)]}
            values = list(curve.points.values())
            errors = [0.0 if at.error != at.error else at.error for at in values]
            means = [at.mean for at in values]
            ax.errorbar(
                list(curve.points), means, errors, label=label(name), elinewidth=0.8, **look
            )
        steps = sorted({labels for curve in self.lines.values() for labels in curve.points})
        # Logarithmic, but with room for no label at all.
        least = min((labels for labels in steps if labels), default=1)
        ax.set_xscale("symlog", linthresh=least, linscale=0.6)
        # Labels of neighbours would run together.
        apart = [a for a, b in pairwise(steps) if b > 1.6 * a] + steps[-1:]
        ax.set_xticks(apart, [f"{labels:,}" for labels in apart])
        ax.set_xticks([], minor=True)
        ax.tick_params(axis="x", rotation=45)
        ax.set_ylim(bottom=0)
        ax.set(xlabel="labelled pairs of the new population", ylabel="KS (%)")
        percent_axis(ax.yaxis)
