"""Small pictures as inline SVG, without Matplotlib: histograms of scores, bars side by side.

They stand in pages: text and axes take the colour of the text around them, fills are seen on light
and on dark and by people who see few colours, and what differs in colour differs in its outline,
too. No style, script or id is in them, so they can stand in any page, as often as wanted. All text
is escaped; each says in words what it shows.
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
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif"'


class Stroke(NamedTuple):
    """How a series is drawn."""

    colour: str
    dash: str = ""


#: Of two series the second is outlined with dashes, wherever they are.
PAIR_LOOKS = (Stroke(FIRST), Stroke(SECOND, "5 3"))
#: Calibration and use: what was is grey and dashed.
CHANGE_LOOKS = (Stroke(GREY, "5 3"), Stroke(FIRST))


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

    def steps(self, edges: Float64, values: Float64, look: Stroke) -> str:
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

    def legend(self, names: Sequence[str], looks: Sequence[Stroke]) -> str:
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


def score_histogram(
    edges: ArrayLike,
    genuine_counts: ArrayLike,
    imposter_counts: ArrayLike,
    *,
    mark: float | None = None,
    threshold: float | None = None,
    title: str,
    x_label: str = "score",
    width: int = 480,
    height: int = 230,
) -> str:
    """Draw where genuine and imposter pairs score, each as shares of its own kind.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
    genuine_counts, imposter_counts : array-like of shape (n_bins,)
    mark, threshold : float, optional
        A pair's score, and where decisions are made: lines with their names.
    title : str
    x_label : str
    width, height : int

    Examples
    --------
    >>> drawn = score_histogram([0, 0.5, 1], [1, 9], [8, 2], mark=0.7, title="Scores")
    >>> "<title>Scores</title>" in drawn, "this pair 0.70" in drawn
    (True, True)
    """
    marks = {"this pair": mark, "threshold": threshold}
    return histogram(
        edges,
        {"genuine": genuine_counts, "imposters": imposter_counts},
        title=title,
        marks={name: float(at) for name, at in marks.items() if at is not None},
        x_label=x_label,
        width=width,
        height=height,
    )


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

    `x_ticks` are texts to stand along the axis, where they are not its numbers.

    Examples
    --------
    >>> histogram([0, 1], {"then": [3]}, title="One bin").count("<path")
    1
    """
    at = np.asarray(edges, np.float64)
    shares = {name: _share(counts) for name, counts in series.items()}
    top = max((float(part.max(initial=0)) for part in shares.values()), default=0.0) or 1.0
    frame = Frame((at[0], at[-1]), (0.0, top), width, height, 1 + len(marks or {}))
    drawn = [frame.axes(x_label, "share of pairs", percent=True, x_ticks=x_ticks)]
    for look, part in zip(looks, shares.values(), strict=False):
        drawn.append(frame.steps(at, part, look))
    drawn.append(frame.legend(list(shares), looks))
    for row, (name, value) in enumerate((marks or {}).items(), start=1):
        drawn.append(frame.rule(name, value, row))
    words = [_spread(name, at, part, x_ticks is None) for name, part in shares.items()]
    words += [f"{name}: {value:.2f}." for name, value in (marks or {}).items()]
    return picture(title, " ".join(words), drawn, width, height)


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    width: int = 480,
) -> str:
    """Draw bars that lie: for each name one of each series, its value written at the end.

    Parameters
    ----------
    names : sequence of str
    series : mapping of str to sequence of float
        By name of the series, a share for each of `names`.
    title : str
    width : int

    Examples
    --------
    >>> drawn = bars(["A"], {"then": [0.25], "now": [0.5]}, title="Clusters")
    >>> "50 %" in drawn, drawn.count("<rect x=")
    (True, 2)
    """
    count = len(series)
    room = min(0.4 * width, LETTER * max((len(name) for name in names), default=0) + 12)
    most = max((max(values, default=0.0) for values in series.values()), default=0.0) or 1.0
    scale = (width - room - 62) / most
    step, thick, drawn = 14 * count + 8, 12, []
    for row, name in enumerate(names):
        top = 26 + row * step
        drawn.append(text(room - 8, top + 7 * count + 4, _cut(name, room), "end"))
        for i, (look, values) in enumerate(zip(CHANGE_LOOKS, series.values(), strict=False)):
            y, long = top + 14 * i, max(scale * values[row], 0.8)
            dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
            drawn.append(
                f'<rect x="{room:.1f}" y="{y:.1f}" width="{long:.1f}" height="{thick}" '
                f'fill="{look.colour}" fill-opacity="0.55" stroke="{look.colour}"{dash}/>'
            )
            drawn.append(text(room + long + 5, y + 10, number(values[row], percent=True)))
    height = 30 + step * len(names)
    drawn.append(Frame((0, 1), (0, 1), width, height).legend(list(series), CHANGE_LOOKS))
    words = [
        f"{name}: "
        + ", ".join(f"{key} {number(values[row], True)}" for key, values in series.items())
        + "."
        for row, name in enumerate(names)
    ]
    return picture(title, " ".join(words), drawn, width, height)


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
    x_whole: bool = False,
    width: int = 480,
    height: int = 230,
) -> str:
    """Draw shares as points with what they may be, over the numbers that they belong to.

    Parameters
    ----------
    x, y : sequence of float
        `y` are shares.
    title, x_label, y_label : str
    low, high : sequence of float, optional
        Ends of intervals.
    level : float, optional
        What was expected: a dashed line. With `diagonal` it is the line of ``y = x``, and both
        axes go from 0 to 1.
    diagonal, x_percent, x_whole : bool
    width, height : int

    Examples
    --------
    >>> drawn = points([1, 2], [0.1, 0.4], title="Outside", x_label="part", y_label="share")
    >>> drawn.count("<circle")
    2
    """
    ends = list(high if high is not None else y)
    top = 1.0 if diagonal else 1.08 * max([*ends, *y, level or 0.0, 1e-3])
    across = (0.0, 1.0) if diagonal else _wide(x)
    frame = Frame(across, (0.0, top), width, height)
    drawn = [frame.axes(x_label, y_label, percent=True, x_percent=x_percent, x_whole=x_whole)]
    if diagonal or level is not None:
        first, last = (0.0, 1.0) if diagonal else (level or 0.0, level or 0.0)
        drawn.append(
            f'<line x1="{frame.left:.1f}" y1="{frame.up(first):.1f}" x2="{frame.right:.1f}" '
            f'y2="{frame.up(last):.1f}" stroke="{GREY}" stroke-width="1.6" stroke-dasharray="5 3"/>'
        )
    for i, (at, value) in enumerate(zip(x, y, strict=True)):
        here = frame.across(at)
        if low is not None and high is not None:
            drawn.append(
                f'<line x1="{here:.1f}" y1="{frame.up(low[i]):.1f}" x2="{here:.1f}" '
                f'y2="{frame.up(high[i]):.1f}" stroke="{FIRST}" stroke-width="2"/>'
            )
        drawn.append(f'<circle cx="{here:.1f}" cy="{frame.up(value):.1f}" r="4" fill="{FIRST}"/>')
    said = [] if level is None else [f"Expected: {number(level, True)}."]
    said += [
        f"{number(at, x_percent)}: {number(value, True)}"
        + (f" ({number(low[i], True)} to {number(high[i], True)})." if low and high else ".")
        for i, (at, value) in enumerate(zip(x, y, strict=True))
    ]
    return picture(title, " ".join(said), drawn, width, height)


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


def _cut(name: str, room: float) -> str:
    most = max(int((room - 12) / LETTER), 4)
    return name if len(name) <= most else name[: most - 1] + "…"
