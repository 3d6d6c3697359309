"""Regions of embedding space that are worse than the rest: how much, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.evaluation.audit.regions import Question, RegionRow, distinct, in_words
from faircal.report.figures.base import (
    Anything,
    Figure,
    FigureScope,
    long_table,
    slug,
    tell_apart,
)
from faircal.report.figures.clusters import Montage
from faircal.report.figures.style import COLOURS, MARK, RULE, percent_axis, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Regions in one figure; those found come first.
_MOST = 16
_MONTAGES = 6


@dataclass(frozen=True, eq=False)
class RegionDots(Figure):
    """False-positive rate, or calibration gap, of the regions that were tested, against the rest.

    Parameters
    ----------
    rows : sequence of RegionRow
        ``regions.csv``.
    of : {"fpr", "gap"}
    """

    rows: Sequence[RegionRow]
    of: Question = "fpr"

    _key = "regions"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give the regions of a feature."""
        yield from region_figures([r for r in scope.store.regions if r.feature == scope.feature])

    def _title(self) -> str:
        return "False matches by region" if self.of == "fpr" else "Calibration by region"

    def _values(self, row: RegionRow) -> tuple[float, float, float, float]:
        if self.of == "fpr":
            return row.fpr, row.low, row.high, row.rest_fpr
        return row.gap, row.gap_low, row.gap_high, row.rest_gap

    def _found(self, row: RegionRow) -> bool:
        return bool(row.found if self.of == "fpr" else row.gap_found)

    @cached_property
    def shown(self) -> list[RegionRow]:
        """What is drawn, top to bottom: regions found, then others tested, furthest off first."""
        tested = [row for row in self.rows if (row.p if self.of == "fpr" else row.gap_p) >= 0]

        def order(row: RegionRow) -> tuple[bool, float]:
            value, _, _, rest = self._values(row)
            return not self._found(row), -(value - rest if self.of == "fpr" else abs(value - rest))

        return sorted(tested, key=order)[:_MOST]

    @cached_property
    def table(self) -> pa.Table:
        """Columns `region`, `found`, `value`, `low`, `high`, `rest`."""
        return long_table(
            ("region", "found", "value", "low", "high", "rest"),
            ((row.region, self._found(row), *self._values(row)) for row in self.shown),
        )

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gap."""
        gap = "Mean probability less share of genuine pairs (positive: says too much)"
        return {"what": "False-positive rate" if self.of == "fpr" else gap}

    def _numbers(self) -> str:
        found = [in_words(row, self.of) for row in self.shown if self._found(row)]
        return "; ".join(found) + "." if found else "No region differs by more than chance."

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return 7.0, 1.4 + 0.3 * len(self.shown)

    def _draw(self, ax: Axes) -> None:
        for found in (True, False):
            rows = [(i, row) for i, row in enumerate(self.shown) if self._found(row) == found]
            values = [(i, *self._values(row)) for i, row in rows]
            if not values:
                continue
            y, value, low, high, _ = zip(*values, strict=True)
            colour, name = (COLOURS[1], "found") if found else (RULE, "tested")
            ax.hlines(y, low, high, colour, linewidth=1.2 if found else 0.8)
            fill = colour if found else "white"
            ax.plot(value, y, "o", color=colour, markerfacecolor=fill, label=name, zorder=3)
        rest = [self._values(row)[3] for row in self.shown]
        ax.plot(rest, range(len(rest)), "|", color=MARK, markersize=9, label="rest", zorder=2)
        names = [text(f"{row.region}, {row.people:.0f} people") for row in self.shown]
        ax.set_yticks(range(len(names)), names)
        label = "FPR (%)" if self.of == "fpr" else "probability less share genuine (points)"
        ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=label)
        if self.of == "fpr":
            ax.set_xlim(left=0)
        ax.grid(visible=False, axis="y")
        percent_axis(ax.xaxis)


def region_figures(rows: Sequence[RegionRow]) -> list[Anything]:
    """Return the figures of ``regions.csv``; none without regions."""
    questions: dict[Question, str] = {"fpr": "regions-fpr", "gap": "regions-calibration"}
    return tell_apart(RegionDots(rows, of, key=key) for of, key in questions.items())


def region_montages(rows: Sequence[RegionRow], pictures: Path) -> list[Anything]:
    """Return the example images of the regions found, where they are in the folder `pictures`."""
    home = pictures.resolve()
    made: list[Anything] = []
    for row in distinct(rows)[:_MONTAGES]:
        paths = [(home / name).resolve() for name in row.example_ids]
        inside = [path if path.is_relative_to(home) and path.is_file() else None for path in paths]
        made.append(Montage(inside, key=slug("region", row.region), title=f"Region {row.region}"))
    return tell_apart(made)
