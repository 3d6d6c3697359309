"""Who is taken for whom: false-positive rates between every two groups, as a map of squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from faircal.evaluation.audit.rates import MatrixRow
from faircal.report.figures.base import Anything, Figure, FigureScope, long_table
from faircal.report.figures.style import FAINT, text
from faircal.report.wording import metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = (
    "left_group",
    "right_group",
    "fpr",
    "low",
    "high",
    "errors",
    "imposters",
    "effective_people",
)
#: With more groups numbers no longer fit into the squares.
_MOST = 12


@dataclass(frozen=True, eq=False)
class GroupHeatmap(Figure):
    """The false-positive rate of pairs with one image of each of two groups.

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

    _key = "matrix"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give who is taken for whom, at the operating point that the summary speaks of."""
        at = (scope.feature, scope.attribute, scope.point)
        rows = [r for r in scope.store.matrix if (r.feature, r.attribute, r.condition) == at]
        yield scope.named(cls(rows))

    def _title(self) -> str:
        condition = self.rows[0].condition if self.rows else ""
        title = metric_title("fpr", condition, by=" between groups")
        return title if condition else f"{title} at the given threshold"

    @cached_property
    def reportable(self) -> list[MatrixRow]:
        """The squares with enough data."""
        return [row for row in self.rows if not row.withheld]

    @cached_property
    def groups(self) -> list[str]:
        """The groups, in order."""
        own = [row.left_group for row in self.rows]
        return list(dict.fromkeys([*own, *(row.right_group for row in self.rows)]))

    @property
    def across(self) -> bool:
        """Whether any pair joins two groups."""
        return any(row.left_group != row.right_group for row in self.rows)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw: without pairs of two groups it is a list."""
        return not self.reportable or not self.across

    @cached_property
    def table(self) -> pa.Table:
        """Columns `left_group`, `right_group`, `fpr`, `low`, `high` and counts; told ones only."""
        return long_table(
            _COLUMNS, [[getattr(row, name) for name in _COLUMNS] for row in self.reportable]
        )

    def _numbers(self) -> str:
        said = ", ".join(f"{_pair(row)} {rounded(row.fpr)}" for row in self.reportable)
        few = ", ".join(_pair(row) for row in self.rows if row not in self.reportable)
        return f"{said}{f'; not enough data: {few}' if few else ''}."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        side = 0.72 * max(len(self.groups), 3)
        return side + 2.2, side + 1.2

    def _draw(self, ax: Axes) -> None:
        place = {group: i for i, group in enumerate(self.groups)}
        n = len(place)
        highest = max((row.fpr for row in self.reportable), default=0.0) or 1.0
        for row in self.rows:
            for i, j in {(place[row.left_group], place[row.right_group])} | {
                (place[row.right_group], place[row.left_group])
            }:
                self._square(ax, i, j, row, row.fpr / highest)
        names = [text(group) for group in self.groups]
        ax.set_xticks(np.arange(n) + 0.5, names, rotation=40, ha="right")
        ax.set_yticks(np.arange(n) + 0.5, names)
        ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
        ax.grid(visible=False)
        ax.tick_params(length=0)

    def _square(self, ax: Axes, i: int, j: int, row: MatrixRow, share: float) -> None:
        from matplotlib.patches import Rectangle

        reportable = row in self.reportable
        light = np.array([0.94, 0.96, 0.98])
        colour = light + share * (np.array([0.04, 0.25, 0.50]) - light)
        look = {"facecolor": colour} if reportable else {"facecolor": "white", "hatch": "//"}
        ax.add_patch(Rectangle((j, i), 1, 1, edgecolor=FAINT, linewidth=0.5, **look))
        if reportable and len(self.groups) <= _MOST:
            ink = "white" if share > 0.5 else "black"
            middle: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
            ax.text(j + 0.5, i + 0.4, f"{100 * row.fpr:.2f}", fontsize=8, **middle)
            ax.text(j + 0.5, i + 0.72, f"{row.imposters:,.0f}", fontsize=5.5, **middle)


def _pair(row: MatrixRow) -> str:
    return f"{row.left_group} and {row.right_group}"
