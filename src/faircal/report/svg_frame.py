"""What pictures as inline SVG are made of: axes, outlines, lines, text, round numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

#: Both at least 3:1 against white and against black (Okabe and Ito's blue and vermilion); grey.
FIRST, SECOND, GREY = "#0072B2", "#D55E00", "#767676"
#: Width of a letter at 12 px, roughly.
LETTER = 6.6
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif"'


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    dash: str = ""


#: Of two series the second is outlined with dashes, wherever they are.
PAIR_LOOKS = (Look(FIRST), Look(SECOND, "5 3"))
#: Calibration and use: what was is grey and dashed.
CHANGE_LOOKS = (Look(GREY, "5 3"), Look(FIRST))


class Frame:
    """Two axes in a picture of `width` times `height`, with room above for lines of text.

    `above` is how many: a legend is the first.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        width: int,
        height: float,
        above: int = 0,
    ) -> None:
        self.x, self.y = x, y
        self.left, self.right = 66.0, width - 24.0
        self.top, self.bottom = 10.0 + 16 * above, height - 42.0

    def across(self, value: float) -> float:
        """Return where a value lies from left to right; what is beyond the ends is at them."""
        low, high = self.x
        part = (min(max(value, low), high) - low) / ((high - low) or 1)
        return self.left + part * (self.right - self.left)

    def up(self, value: float) -> float:
        """Return where a value lies from top to bottom."""
        low, high = self.y
        part = (min(max(value, low), high) - low) / ((high - low) or 1)
        return self.bottom - part * (self.bottom - self.top)

    def axes(
        self,
        x_label: str,
        y_label: str,
        *,
        percent: bool = False,
        x_percent: bool = False,
        x_whole: bool = False,
        x_ticks: Mapping[float, str] | None = None,
    ) -> str:
        """Draw ticks, thin lines and the names of both axes."""
        if x_ticks is None:
            x_ticks = {at: number(at, x_percent) for at in ticks(*self.x, whole=x_whole)}
        parts = []
        for value in ticks(*self.y):
            y = self.up(value)
            parts.append(line(self.left, y, self.right, y, 0.18))
            parts.append(text(self.left - 6, y + 4, number(value, percent), "end"))
        for value, words in x_ticks.items():
            x = self.across(value)
            parts.append(line(x, self.bottom, x, self.bottom + 4, 0.6))
            parts.append(text(x, self.bottom + 17, words, "middle"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, 0.6))
        middle = (self.left + self.right) / 2
        parts.append(text(middle, self.bottom + 35, x_label, "middle"))
        y = (self.top + self.bottom) / 2
        parts.append(
            f'<g transform="translate(12 {y:.1f}) rotate(-90)">{text(0, 0, y_label, "middle")}</g>'
        )
        return "".join(parts)

    def steps(self, edges: Float64, values: Float64, look: Look) -> str:
        """Draw an outline over bins, filled down to the axis."""
        path = [f"M{self.across(edges[0]):.1f} {self.bottom:.1f}"]
        for start, end, value in zip(edges[:-1], edges[1:], values, strict=True):
            y = self.up(value)
            path.append(f"L{self.across(start):.1f} {y:.1f}L{self.across(end):.1f} {y:.1f}")
        path.append(f"L{self.across(edges[-1]):.1f} {self.bottom:.1f}")
        dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
        return (
            f'<path d="{"".join(path)}" fill="{look.colour}" fill-opacity="0.22" '
            f'stroke="{look.colour}" stroke-width="1.6"{dash}/>'
        )

    def rule(self, name: str, value: float, row: int) -> str:
        """Draw an upright line, with its name and value in a row of text above."""
        x = self.across(value)
        right = x > (self.left + self.right) / 2
        y = 15.0 + 16 * row
        dash = ' stroke-dasharray="2 3"' if row > 1 else ""
        return (
            f'<line x1="{x:.1f}" y1="{y - 10:.1f}" x2="{x:.1f}" y2="{self.bottom:.1f}" '
            f'stroke="currentColor" stroke-width="2"{dash}/>'
            + text(
                x + (-6 if right else 6),
                y,
                f"{name} {value:.2f}",
                "end" if right else "start",
                bold=row == 1,
            )
        )

    def legend(self, names: Sequence[str], looks: Sequence[Look]) -> str:
        """Draw the names of the series with their looks, above."""
        parts, x = [], 6.0
        for look, name in zip(looks, names, strict=False):
            dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
            parts.append(
                f'<rect y="5" x="{x:.1f}" width="18" height="11" fill="{look.colour}" '
                f'fill-opacity="0.4" stroke="{look.colour}" stroke-width="1.6"{dash}/>'
            )
            parts.append(text(x + 24, 15, name))
            x += 24 + LETTER * len(name) + 22
        return "".join(parts)


def picture(title: str, words: str, drawn: Sequence[str], width: int, height: float) -> str:
    """Put what is drawn into an ``<svg>`` that says what it shows."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" height="{height:g}" font-size="12" {_FONT}>'
        f"<title>{escape(title)}</title><desc>{escape(words)}</desc>{''.join(drawn)}</svg>"
    )


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return about five round numbers from `low` to `high`.

    >>> ticks(-1, 1)
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * by for by in (1, 2, 2.5, 5, 10) if size * by >= raw * 0.999)
    if whole:
        step = max(1.0, float(round(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def number(value: float, percent: bool = False) -> str:
    """Return a number in three figures or fewer; a share as percent.

    >>> number(0.123456, percent=True), number(0.5)
    ('12.3 %', '0.5')
    """
    return f"{100 * value:.3g} %" if percent else f"{value:.4g}"


def text(x: float, y: float, words: str, anchor: str = "start", *, bold: bool = False) -> str:
    """Write words at a place, escaped."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{weight}>'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, opacity: float) -> str:
    """Draw a thin line."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="currentColor" stroke-opacity="{opacity}"/>'
    )
