"""Small pictures as inline SVG, without Matplotlib: histograms of scores, bars, points.

They stand in pages of services and monitoring, which need no extra. Text and axes take the colour
of the text around them, fills are seen on light and on dark and by people who see few colours, and
what differs in colour differs in its outline, too. No style, script or id is in them, so they can
stand in any page, as often as wanted. All text is escaped; each says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64 = NDArray[np.float64]

#: Both at least 3:1 against white and against black (Okabe and Ito's blue and vermilion); grey.
FIRST, SECOND, GREY = "#0072B2", "#D55E00", "#767676"
#: Width of a letter at 12 px, roughly.
LETTER = 6.6
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif"


class Stroke(NamedTuple):
    """How a series is drawn: its colour, and dashes, or None for a line without."""

    colour: str
    dash: str | None = None

    def fill(self, opacity: float) -> dict[str, object]:
        """Return the attributes of an area with this outline."""
        return {
            "fill": self.colour,
            "fill_opacity": f"{opacity}",
            "stroke": self.colour,
            "stroke_width": "1.6",
            "stroke_dasharray": self.dash,
        }


#: Of two series the second is outlined with dashes, wherever they are.
PAIR_LOOKS = (Stroke(FIRST), Stroke(SECOND, "5 3"))
#: Calibration and use: what was is grey and dashed.
CHANGE_LOOKS = (Stroke(GREY, "5 3"), Stroke(FIRST))


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; None leaves an attribute out, and places have one decimal.

    >>> element("line", x1=1.25, stroke_width="2", stroke_dasharray=None)
    '<line x1="1.2" stroke-width="2"/>'
    """
    written = "".join(
        f' {key.replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else value}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, anchor: str = "start", *, bold: bool = False) -> str:
    """Write words at a place, escaped."""
    look = {"fill": "currentColor", "font_weight": "600" if bold else None}
    return element("text", escape(words), x=float(x), y=float(y), text_anchor=anchor, **look)


def line(x1: float, y1: float, x2: float, y2: float, **look: object) -> str:
    """Draw a line in the colour of the text, unless another is given."""
    ends = {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2)}
    return element("line", **ends, **{"stroke": "currentColor", **look})


class Frame:
    """Two axes in a picture of `width` times `height`, with room above for lines of text.

    `above` is how many: a legend is the first. The vertical axis is of shares.
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
        return self.left + _part(value, self.x) * (self.right - self.left)

    def up(self, value: float) -> float:
        """Return where a value lies from top to bottom."""
        return self.bottom - _part(value, self.y) * (self.bottom - self.top)

    def axes(self, x_label: str, y_label: str, x_ticks: Mapping[float, str]) -> str:
        """Draw ticks, thin lines and the names of both axes."""
        parts = []
        for value in ticks(*self.y):
            y = self.up(value)
            parts.append(line(self.left, y, self.right, y, stroke_opacity="0.18"))
            parts.append(text(self.left - 6, y + 4, number(value, percent=True), "end"))
        for value, words in x_ticks.items():
            x = self.across(value)
            parts.append(line(x, self.bottom, x, self.bottom + 4, stroke_opacity="0.6"))
            parts.append(text(x, self.bottom + 17, words, "middle"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, stroke_opacity="0.6"))
        parts.append(text((self.left + self.right) / 2, self.bottom + 35, x_label, "middle"))
        turned = f"translate(12 {(self.top + self.bottom) / 2:.1f}) rotate(-90)"
        parts.append(element("g", text(0, 0, y_label, "middle"), transform=turned))
        return "".join(parts)

    def steps(self, edges: Float64, values: Float64, look: Stroke) -> str:
        """Draw an outline over bins, filled down to the axis."""
        path = [f"M{self.across(edges[0]):.1f} {self.bottom:.1f}"]
        for start, end, value in zip(edges[:-1], edges[1:], values, strict=True):
            y = self.up(value)
            path.append(f"L{self.across(start):.1f} {y:.1f}L{self.across(end):.1f} {y:.1f}")
        path.append(f"L{self.across(edges[-1]):.1f} {self.bottom:.1f}")
        return element("path", d="".join(path), **look.fill(0.22))

    def rule(self, name: str, value: float, row: int) -> str:
        """Draw an upright line, with its name and value in a row of text above."""
        x, y = self.across(value), 15.0 + 16 * row
        dash = "2 3" if row > 1 else None
        # Words stand on the side where there is room.
        side, anchor = (-6, "end") if x > (self.left + self.right) / 2 else (6, "start")
        upright = line(x, y - 10, x, self.bottom, stroke_width="2", stroke_dasharray=dash)
        return upright + text(x + side, y, f"{name} {value:.2f}", anchor, bold=row == 1)


def legend(names: Sequence[str], looks: Sequence[Stroke]) -> str:
    """Draw the names of the series with their looks, above."""
    parts, x = [], 6.0
    for look, name in zip(looks, names, strict=False):
        parts.append(element("rect", y="5", x=x, width="18", height="11", **look.fill(0.4)))
        parts.append(text(x + 24, 15, name))
        x += 24 + LETTER * len(name) + 22
    return "".join(parts)


def picture(title: str, words: str, drawn: Sequence[str], width: int, height: float) -> str:
    """Put what is drawn into an ``<svg>`` that says what it shows."""
    return element(
        "svg",
        f"<title>{escape(title)}</title><desc>{escape(words)}</desc>{''.join(drawn)}",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {width} {height:g}",
        width=width,
        height=f"{height:g}",
        font_size="12",
        font_family=_FONT,
    )


def ticks(low: float, high: float, *, integers: bool = False) -> list[float]:
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
    if integers:
        step = max(1.0, float(round(step)))
    # Rounding must not lose the ends; adding 0 turns -0 to 0.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def number(value: float, percent: bool = False) -> str:
    """Return a number in three figures or fewer; a share as percent.

    >>> number(0.123456, percent=True), number(0.5)
    ('12.3 %', '0.5')
    """
    return f"{100 * value:.3g} %" if percent else f"{value:.4g}"


def histogram(
    edges: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    title: str,
    marks: Mapping[str, float] | None = None,
    looks: Sequence[Stroke] = PAIR_LOOKS,
    x_label: str = "score",
    x_ticks: Mapping[float, str] | None = None,
    width: int = 480,
    height: int = 230,
) -> str:
    """Draw series of counts in the same bins over each other, each as shares of its own sum.

    `marks` are upright lines by their names, such as a pair's score and the threshold; `x_ticks`
    are texts to stand along the axis, where they are not its numbers.

    Examples
    --------
    >>> histogram([0, 1], {"then": [3]}, title="One bin").count("<path")
    1
    """
    at, rules = np.asarray(edges, np.float64), marks or {}
    shares = {name: _share(counts) for name, counts in series.items()}
    top = max((float(part.max(initial=0)) for part in shares.values()), default=0.0) or 1.0
    frame = Frame((at[0], at[-1]), (0.0, top), width, height, 1 + len(rules))
    shown = {value: number(value) for value in ticks(*frame.x)} if x_ticks is None else x_ticks
    drawn = [frame.axes(x_label, "share of pairs", shown)]
    for look, part in zip(looks, shares.values(), strict=False):
        drawn.append(frame.steps(at, part, look))
    drawn.append(legend(list(shares), looks))
    for row, (name, value) in enumerate(rules.items(), start=1):
        drawn.append(frame.rule(name, value, row))
    words = [_spread(name, at, part, x_ticks is None) for name, part in shares.items()]
    words += [f"{name}: {value:.2f}." for name, value in rules.items()]
    return picture(title, " ".join(words), drawn, width, height)


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    width: int = 480,
) -> str:
    """Draw bars that lie: for each name one of each series, its share written at the end.

    Examples
    --------
    >>> drawn = bars(["A"], {"then": [0.25], "now": [0.5]}, title="Clusters")
    >>> "50 %" in drawn, drawn.count('height="12"')
    (True, 2)
    """
    count = len(series)
    room = min(0.4 * width, LETTER * max((len(name) for name in names), default=0) + 12)
    letters = max(int((room - 12) / LETTER), 4)
    most = max((max(values, default=0.0) for values in series.values()), default=0.0) or 1.0
    step, drawn, words = 14 * count + 8, [], []
    for row, name in enumerate(names):
        top = 26 + row * step
        short = name if len(name) <= letters else name[: letters - 1] + "…"
        drawn.append(text(room - 8, top + 7 * count + 4, short, "end"))
        for i, (look, values) in enumerate(zip(CHANGE_LOOKS, series.values(), strict=False)):
            y = float(top + 14 * i)
            # None is a hair's breadth: else its outline would not be there.
            long = max((width - room - 62) / most * values[row], 0.8)
            place = {"x": room, "y": y, "width": long, "height": "12"}
            drawn.append(element("rect", **place, **look.fill(0.55)))
            drawn.append(text(room + long + 5, y + 10, number(values[row], percent=True)))
        described = ", ".join(
            f"{key} {number(values[row], True)}" for key, values in series.items()
        )
        words.append(f"{name}: {described}.")
    drawn.append(legend(list(series), CHANGE_LOOKS))
    return picture(title, " ".join(words), drawn, width, 30 + step * len(names))


def points(
    x: Sequence[float],
    y: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str,
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
    level: float | None = None,
    diagonal: bool = False,
    x_percent: bool = False,
    x_integers: bool = False,
    width: int = 480,
    height: int = 230,
) -> str:
    """Draw shares `y` as points with their intervals, over the numbers that they belong to.

    A dashed line is at `level`, what was expected; with `diagonal` it is the line of ``y = x``,
    and both axes go from 0 to 1.

    Examples
    --------
    >>> drawn = points([1, 2], [0.1, 0.4], title="Outside", x_label="part", y_label="share")
    >>> drawn.count("<circle")
    2
    """
    ends = list(zip(low, high, strict=True)) if low is not None and high is not None else []
    top = 1.0 if diagonal else 1.08 * max([*(end for _, end in ends), *y, level or 0.0, 1e-3])
    frame = Frame((0.0, 1.0) if diagonal else _wide(x), (0.0, top), width, height)
    shown = {at: number(at, x_percent) for at in ticks(*frame.x, integers=x_integers)}
    drawn = [frame.axes(x_label, y_label, shown)]
    described = [] if level is None else [f"Expected: {number(level, True)}."]
    if diagonal or level is not None:
        first, last = (0.0, 1.0) if diagonal else (level or 0.0, level or 0.0)
        look = {"stroke": GREY, "stroke_width": "1.6", "stroke_dasharray": "5 3"}
        drawn.append(line(frame.left, frame.up(first), frame.right, frame.up(last), **look))
    for i, (at, value) in enumerate(zip(x, y, strict=True)):
        across, between = frame.across(at), ""
        if ends:
            down, up = map(frame.up, ends[i])
            drawn.append(line(across, down, across, up, stroke=FIRST, stroke_width="2"))
            between = f" ({number(ends[i][0], True)} to {number(ends[i][1], True)})"
        drawn.append(element("circle", cx=across, cy=frame.up(value), r="4", fill=FIRST))
        described.append(f"{number(at, x_percent)}: {number(value, True)}{between}.")
    return picture(title, " ".join(described), drawn, width, height)


def _part(value: float, ends: tuple[float, float]) -> float:
    """Return where a value lies between two ends, from 0 to 1."""
    low, high = ends
    return (min(max(value, low), high) - low) / ((high - low) or 1)


def _wide(x: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, with room beside the first and last point."""
    low, high = min(x, default=0.0), max(x, default=1.0)
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _share(counts: ArrayLike) -> Float64:
    counted = np.asarray(counts, np.float64)
    return counted / (counted.sum() or 1.0)


def _spread(name: str, edges: Float64, shares: Float64, plain: bool) -> str:
    """Say where the middle nine tenths of a series lie; or, by bins, where most of it does."""
    if not shares.sum():
        return f"{name}: no pairs."
    if not plain:
        top = int(shares.argmax())
        return f"{name}: most in bin {top + 1} of {len(shares)}, {number(shares[top], True)}."
    grown = np.cumsum(shares)
    low = edges[int(np.searchsorted(grown, 0.05))]
    high = edges[min(int(np.searchsorted(grown, 0.95)) + 1, len(edges) - 1)]
    return f"{name}: nine in ten between {low:.2f} and {high:.2f}."
