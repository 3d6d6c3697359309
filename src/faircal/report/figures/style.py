"""How figures look, in one place: colours, line styles, markers, hatches, axes, legends."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from faircal._base.errors import MissingExtraError
from faircal.metrics.results import GLOBAL
from faircal.report.wording import group_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas

#: Okabe and Ito's colours, told apart by colour-blind readers; black is kept for all pairs.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Six colours by four styles: twelve pairs before one comes again; markers differ throughout.
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "*", ">", "p", "h", "d", "8", "H")
#: The two blues of the paper's violins, one dark and one light in grey print, too.
GENUINE, IMPOSTER = "#2F5AA8", "#A9D3F0"
MARK, RULE, FAINT = "#C8102E", "#444444", "#BBBBBB"

_STYLE: dict[str, Any] = {
    # DejaVu comes with Matplotlib; a browser without it takes the next of the list.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": RULE,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
}
_LOCK = threading.RLock()
#: So many letters of a name, and of a title, are shown.
_NAME_LENGTH, TITLE_LENGTH = 32, 64
#: Look of the words in a figure's corner.
CORNER: dict[str, Any] = {"fontsize": 6, "color": "#555555"}


def require_matplotlib() -> None:
    """Raise a one-line error where Matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib: pip install 'faircal[figures]'"
        ) from error


@contextmanager
def style(**more: Any) -> Iterator[None]:
    """Hold Matplotlib to our style, whatever the user's settings; they come back at the end.

    Settings belong to the process, so one figure at a time is drawn.
    """
    require_matplotlib()
    import matplotlib.style

    with (
        _LOCK,
        matplotlib.style.context(["default", {**_STYLE, **more}]),
        warnings.catch_warnings(),
    ):
        # A name in a script that no installed font has is drawn as boxes; tables have it in full.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


def text(words: str, longest: int = _NAME_LENGTH) -> str:
    r"""Return a name as Matplotlib shows it: letter by letter, on one line, not too long.

    Examples
    --------
    >>> print(text("$x_1$ <b>"))
    \$x_1\$ <b>
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in words)
    # Cut in the middle: names that begin alike often end differently.
    tail = longest // 3
    short = plain if len(plain) <= longest else f"{plain[: longest - tail - 1]}…{plain[-tail:]}"
    return short.replace("$", r"\$")


def label(name: str) -> str:
    """Return a name for a legend; Matplotlib would leave out one that begins with an underscore."""
    shown = text(group_name(name))
    return "\u200a" + shown if shown.startswith("_") else shown


def marker_look(index: int) -> dict[str, Any]:
    """Return colour and shape of the i-th marker."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def draw_line(
    ax: Axes, x: Any, y: Any, index: int, name: str, errors: Sequence[float] | None = None
) -> None:
    """Draw the i-th line: all pairs as a thick black one, others with markers of their own.

    With `errors` every point has a marker and, where they are not NaN, a bar to either side; else
    there are few markers.
    """
    look = marker_look(index) | {"linestyle": LINES[index % len(LINES)]}
    if errors is not None:
        bars = [0.0 if error != error else error for error in errors]
        ax.errorbar(x, y, bars, label=label(name), elinewidth=0.8, **look)
        return
    if name == GLOBAL:
        look = {"color": "black", "linestyle": "-", "linewidth": 2.2, "zorder": 1.9}
    else:
        # Fractions of the figure's diagonal: where lines run together, markers still alternate.
        look["markevery"] = (0.02 + 0.018 * index, 0.17)
    ax.plot(x, y, label=label(name), **look)


def percent_axis(axis: Axis) -> None:
    """Label an axis of fractions in percent."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g}"))


def add_legend(where: Axes | Canvas, entries: dict[str, Any]) -> int:
    """Draw a legend inside axes, or below a figure; return how many rows it takes there."""
    from matplotlib.figure import Figure

    names, handles = list(entries), list(entries.values())
    if len(names) < 2:
        return 0
    if not isinstance(where, Figure):
        where.legend(handles, names, ncols=1 if len(names) <= 6 else 2)
        return 0
    inches = 0.55 + 0.075 * max(map(len, names))  # of an entry
    most = max(1, int(where.get_figwidth() / inches))
    rows = -(-len(names) // most)
    columns = -(-len(names) // rows)  # in even rows
    where.legend(handles, names, loc="outside lower center", ncols=columns)
    return -(-len(names) // columns)
