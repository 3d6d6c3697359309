"""A dot plot as inline SVG: groups down, values across, a marker per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

import numpy as np
from numpy.typing import NDArray

#: Okabe and Ito's colours: told apart by colour-blind readers; markers tell them apart in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_WIDTH, _LEFT, _RIGHT, _TOP = 760, 150, 24, 16


@dataclass(frozen=True, eq=False)
class DotPlot:
    """What is drawn: the table behind the figure.

    Parameters
    ----------
    title : str
    axis : str
        What the horizontal axis shows.
    rows : sequence of str
        Groups, top to bottom.
    series : mapping from method to its value (a fraction) in each row
    mark : float, optional
        A vertical line, such as the global rate.
    low, high : mapping as `series`, optional
        Ends of intervals, drawn as bars.
    """

    title: str
    axis: str
    rows: Sequence[str]
    series: Mapping[str, Sequence[float]]
    mark: float | None = None
    low: Mapping[str, Sequence[float]] | None = None
    high: Mapping[str, Sequence[float]] | None = None

    def svg(self) -> str:
        """Return the figure as an ``<svg>`` element with a description for screen readers."""
        height = _TOP + self._row * len(self.rows) + 44
        words = escape(self._words(), quote=True)
        parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{words}">']
        parts += self._frame()
        for index, (name, values) in enumerate(self.series.items()):
            parts += self._dots(index, name, values)
        return "\n".join([*parts, "</svg>"])

    def legend(self) -> list[tuple[str, str]]:
        """Return (method, marker as SVG) pairs."""
        open_tag = '<svg viewBox="-7 -7 14 14" class="key" aria-hidden="true">'
        return [(name, f"{open_tag}{_marker(i, 0, 0)}</svg>") for i, name in enumerate(self.series)]

    def _words(self) -> str:
        said = []
        for name, values in self.series.items():
            listed = ", ".join(
                f"{row} {100 * value:.2f} %"
                for row, value in zip(self.rows, values, strict=True)
                if not np.isnan(value)
            )
            said.append(f"{name}: {listed}")
        return f"{self.title}. {'; '.join(said)}."

    @cached_property
    def _row(self) -> float:
        """Height of a row: room for a marker of each method, one below the other."""
        return max(34.0, 5.0 * len(self.series) + 10)

    @cached_property
    def _ticks(self) -> NDArray[np.float64]:
        """Round numbers from 0 to at least the largest value, about five of them."""
        ends = [*self.series.values(), *(self.high or {}).values(), [self.mark or 0.0]]
        values = [value for several in ends for value in several if not np.isnan(value)]
        largest = max(values, default=0.0) or 1e-3
        base = 10.0 ** np.floor(np.log10(largest / 4))
        step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= largest / 4)
        return np.asarray(step * np.arange(np.ceil(largest / step - 1e-9) + 1))

    def _x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / float(self._ticks[-1])

    def _frame(self) -> list[str]:
        high = self._row
        bottom = _TOP + high * len(self.rows)
        parts = [
            f'<rect class="band" x="0" y="{_TOP + high * i}" width="{_WIDTH}" height="{high}"/>'
            for i in range(0, len(self.rows), 2)
        ]
        for tick in self._ticks:
            x = self._x(float(tick))
            parts.append(_vertical("grid", x, bottom))
            parts.append(_text("tick", x, bottom + 16, f"{100 * tick:.3g}"))
        if self.mark is not None:
            parts.append(_vertical("mark", self._x(self.mark), bottom))
        for i, row in enumerate(self.rows):
            parts.append(
                _text("row", _LEFT - 10, _TOP + self._row * (i + 0.5) + 4, row, anchor="end")
            )
        parts.append(_text("axis", (_LEFT + _WIDTH - _RIGHT) / 2, bottom + 36, self.axis))
        return parts

    def _dots(self, index: int, name: str, values: Sequence[float]) -> list[str]:
        parts = []
        # Methods stand a little above each other so that equal values stay visible.
        step = min(6.0, (self._row - 10) / len(self.series))
        offset = (index - (len(self.series) - 1) / 2) * step
        for i, (row, value) in enumerate(zip(self.rows, values, strict=True)):
            if np.isnan(value):
                continue
            y = _TOP + self._row * (i + 0.5) + offset
            if self.low is not None and self.high is not None:
                ends = self._x(self.low[name][i]), self._x(self.high[name][i])
                path = f"M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"
                parts.append(f'<path class="bar" d="{path}" stroke="{_colour(index)}"/>')
            words = escape(f"{name}, {row}: {100 * value:.2f} %")
            parts.append(f"<g><title>{words}</title>{_marker(index, self._x(value), y)}</g>")
        return parts


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _vertical(kind: str, x: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'


def _text(kind: str, x: float, y: float, words: str, anchor: str = "middle") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


#: Shapes around the origin; filled first, then open ones, so that grey print tells them apart.
_FILLED = (
    '<circle r="5"/>',
    '<rect x="-4.5" y="-4.5" width="9" height="9"/>',
    '<path d="M0 -6l5.5 10h-11z"/>',
    '<path d="M0 -6l6 6l-6 6l-6 -6z"/>',
)
_OPEN = (
    '<circle r="4.5"/>',
    '<rect x="-4" y="-4" width="8" height="8"/>',
    '<path d="M-5 -5l10 10m0 -10l-10 10"/>',
    '<path d="M0 -5.5l5 9h-10z"/>',
    '<path d="M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>',
    '<path d="M0 -6v12m-6 -6h12"/>',
)


def _marker(index: int, x: float, y: float) -> str:
    """Return a marker: shape and colour both tell the method."""
    which = index % (len(_FILLED) + len(_OPEN))
    where = f'transform="translate({x:.1f} {y:.1f})"'
    if which < len(_FILLED):
        return f'<g {where} fill="{_colour(index)}">{_FILLED[which]}</g>'
    paint = f'fill="none" stroke="{_colour(index)}" stroke-width="2"'
    return f"<g {where} {paint}>{_OPEN[which - len(_FILLED)]}</g>"
