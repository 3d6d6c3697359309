"""Dots with bars in rows, a mark for each series: what dot plots share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from faircal.report.figures.style import RULE, label, marker_look, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Dot(NamedTuple):
    """A value of one method in one group, or another row, with the ends of its bar (NaN without).

    One that is not `sure` is drawn hollow.
    """

    method: str
    group: str
    value: float
    low: float
    high: float
    sure: bool = True


def dots_height(rows: int, series: int) -> float:
    """Return the inches that a plot takes: in each row room for every mark, one below the other.

    Examples
    --------
    >>> round(dots_height(4, 2), 2), round(dots_height(4, 5), 2)
    (2.58, 3.78)
    """
    return 1.3 + max(0.32, 0.1 * series + 0.12) * rows


def draw_dots(
    ax: Axes, rows: Sequence[str], series: Mapping[str, Sequence[Dot]], mark: float = float("nan")
) -> None:
    """Draw series of dots, each with a colour and a shape of its own, and a line at `mark`.

    Parameters
    ----------
    ax : Axes
    rows : sequence of str
        Names, top to bottom; each dot's `group` is one of them.
    series : mapping
        From the name in the legend to its dots.
    mark : float
        Where a dashed line is drawn; NaN for none.
    """
    place = {name: i for i, name in enumerate(rows)}
    for i in range(0, len(rows), 2):
        ax.axhspan(i - 0.5, i + 0.5, color="#F4F4F4", zorder=0)
    if mark == mark:
        ax.axvline(mark, color=RULE, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1)
    step = min(0.18, 0.8 / max(len(series), 1))
    for index, (name, dots) in enumerate(series.items()):
        offset = (index - (len(series) - 1) / 2) * step
        look = marker_look(index)
        at = [place[dot.group] + offset for dot in dots]
        low, high = [dot.low for dot in dots], [dot.high for dot in dots]
        ax.hlines(at, low, high, look["color"], linewidth=1)
        sure = [i for i, dot in enumerate(dots) if dot.sure]
        x, y = [dots[i].value for i in sure], [at[i] for i in sure]
        ax.plot(x, y, linestyle="", label=label(name), zorder=3, **look)
        x, y = ([of[i] for i in range(len(dots)) if i not in sure] for of in (_values(dots), at))
        if x:
            ax.plot(x, y, linestyle="", zorder=3, **look, markerfacecolor="white")
    ax.set_yticks(range(len(rows)), [text(name) for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.5))
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def _values(dots: Sequence[Dot]) -> list[float]:
    return [dot.value for dot in dots]
