"""The contract of figures: computed once, then drawn, printed as a table, or put in words."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal._base.files import atomic_path, output_folder, write_text
from faircal.metrics.results import csv_text
from faircal.report.figures.style import (
    CORNER,
    add_legend,
    heading,
    new_canvas,
    style,
    text,
)
from faircal.report.wording import titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(ABC):
    """One panel. A subclass says what is drawn in `table`, and draws just that.

    Parameters
    ----------
    key : str
        Name of its files.
    title : str
        One line over the figure.
    """

    key: str = ""
    title: str = ""

    #: Width and height in inches, alone and as one panel of several.
    _size: ClassVar[tuple[float, float]] = (5.2, 4.2)
    _panel_size: ClassVar[tuple[float, float]] = (3.1, 2.9)

    def __post_init__(self) -> None:
        for name, given in (("key", self._key), ("title", self._title())):
            if not getattr(self, name):
                object.__setattr__(self, name, given)

    #: The key, unless one is given.
    _key: ClassVar[str]

    @abstractmethod
    def _title(self) -> str:
        """Return the title, unless one is given."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """What is drawn and how to read it, in plain words."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """What is drawn: a long table."""

    @abstractmethod
    def _numbers(self) -> str:
        """Return the main numbers in words."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw into `ax`: everything but title and legend."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return self._size

    @property
    def panel_size(self) -> tuple[float, float]:
        """The same as one panel of several."""
        return self._panel_size

    @property
    def words(self) -> str:
        """The figure in words, for those who can't see it."""
        return f"{self.title}. {self._numbers()}"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not len(self.table)

    def draw(self, ax: Axes) -> dict[str, Any]:
        """Draw into `ax` without title and legend; return what a legend would list."""
        there = set(ax.get_legend_handles_labels()[0])
        self._draw(ax)
        handles, names = ax.get_legend_handles_labels()
        listed = zip(names, handles, strict=True)
        return {name: handle for name, handle in listed if handle not in there}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw into `ax`, or into a new figure of its own; return the axes."""
        if ax is None:
            return self.canvas().axes[0]
        with style():
            entries = self.draw(ax)
            ax.set_title(heading(self.title))
            add_legend(ax, entries)
        return ax

    def canvas(self) -> Canvas:
        """Draw into a new Matplotlib figure, with the legend below; return that."""
        with style():
            canvas = new_canvas(*self.size)
            ax = canvas.add_subplot()
            entries = self.draw(ax)
            ax.set_title(heading(self.title))
            add_legend(canvas, entries)
        return canvas

    def _repr_svg_(self) -> str:
        """Show the figure in a notebook."""
        return svg(self)


def long_table(columns: dict[str, Any], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows as a table with the columns, from name to type."""
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    pairs = zip(columns.items(), values, strict=True)
    return pa.table({name: pa.array(column, kind) for (name, kind), column in pairs})


@dataclass(frozen=True, eq=False)
class Panels:
    """Several figures side by side, with one legend.

    Parameters
    ----------
    figures : sequence of Figure
        One or more.
    names : sequence of str, optional
        What stands over each; its title unless told.
    key, title, caption : str, optional
        As of a figure. Unless told, key and title are those of the first, and the caption is the
        one that all have, or all of them.
    columns : int
        Panels in a row.
    share_x, share_y : bool
        Whether all have the same horizontal, or vertical, axis.

    Examples
    --------
    >>> import faircal
    >>> from faircal.report.figures import DetCurves, RocCurves
    >>> audit = faircal.audit(score=[0.9, 0.2, 0.7, 0.1], genuine=[1, 0, 1, 0])
    >>> both = Panels([RocCurves(audit.curves), DetCurves(audit.curves)], ["ROC", "DET"])
    >>> both.table.column_names
    ['panel', 'group', 'fpr', 'tpr', 'fnr']
    >>> [ax.get_title() for ax in both.plot().axes]
    ['ROC', 'DET']
    """

    figures: Sequence[Figure]
    names: Sequence[str] = ()
    key: str = ""
    title: str = ""
    caption: str = ""
    columns: int = 3
    share_y: bool = False
    share_x: bool = False

    def __post_init__(self) -> None:
        if not self.figures:
            raise ParameterError("expected one figure or more; found none")
        if self.names and len(self.names) != len(self.figures):
            raise ParameterError(
                f"expected a name for each of {len(self.figures)} figures; found {len(self.names)}"
            )
        first = self.figures[0]
        self._default("key", first.key)
        self._default("title", first.title)
        self._default("names", [figure.title for figure in self.figures])
        if not self.caption:
            captions = [figure.caption for figure in self.figures]
            said = (f"{n}: {caption}" for n, caption in zip(self.names, captions, strict=True))
            self._default("caption", captions[0] if len(set(captions)) == 1 else " ".join(said))

    def _default(self, name: str, value: Any) -> None:
        if not getattr(self, name):
            object.__setattr__(self, name, value)

    @property
    def words(self) -> str:
        """All panels in words."""
        said = (
            f"{name}: {figure._numbers()}"
            for name, figure in zip(self.names, self.figures, strict=True)
        )
        return " ".join([f"{self.title}.", *said])

    @cached_property
    def table(self) -> pa.Table:
        """What is drawn, with a column `panel`; nothing where a panel has no such column."""
        tables = [
            figure.table.add_column(0, "panel", pa.array([name] * figure.table.num_rows, "string"))
            for name, figure in zip(self.names, self.figures, strict=True)
        ]
        return pa.concat_tables(tables, promote_options="default")

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not len(self.table)

    def plot(self) -> Canvas:
        """Draw all panels into a new Matplotlib figure; return it."""
        with style():
            columns = min(self.columns, len(self.figures))
            rows = -(-len(self.figures) // columns)
            width, height = (max(f.panel_size[i] for f in self.figures) for i in (0, 1))
            canvas = new_canvas(columns * width, rows * height)
            axes = canvas.subplots(
                rows, columns, sharex=self.share_x, sharey=self.share_y, squeeze=False
            ).flat
            entries: dict[str, Any] = {}
            for figure, name, ax in zip(self.figures, self.names, axes, strict=False):
                entries |= {k: v for k, v in figure.draw(ax).items() if k not in entries}
                ax.set_title(text(name))
            for ax in canvas.axes[len(self.figures) :]:
                ax.remove()
            self._tidy(canvas, columns)
            lines = add_legend(canvas, entries)
            canvas.set_size_inches(columns * width, rows * height + 0.2 * lines)
        return canvas

    def _tidy(self, canvas: Canvas, columns: int) -> None:
        """Say once what is the same: labels inside are left out where axes agree."""
        axes = canvas.axes
        if len({ax.get_ylabel() for ax in axes}) == 1:
            for i, ax in enumerate(axes):
                ax.set_ylabel(ax.get_ylabel() if i % columns == 0 else "")
        if len({ax.get_xlabel() for ax in axes}) == 1:
            for ax in axes[:-columns]:
                ax.set_xlabel("")
        if self.share_x:
            for ax in axes[-columns:]:  # the lowest of each column, also over an empty place
                ax.tick_params(axis="x", labelbottom=True)

    def _repr_svg_(self) -> str:
        """Show the panels in a notebook."""
        return svg(self)


#: What would tell when, or with which version, a file was made.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
}
_DPI = 150


def save(figure: Figure | Panels, folder: str | Path) -> list[Path]:
    """Write a figure as PDF and PNG, and the table behind it as CSV; return the paths.

    Parameters
    ----------
    figure : Figure or Panels
        Its `key` names the files.
    folder : path
        It is made where it is not there.

    Examples
    --------
    >>> import tempfile
    >>> import faircal
    >>> from faircal.report.figures import RocCurves
    >>> audit = faircal.audit(score=[0.9, 0.2, 0.7, 0.1], genuine=[1, 0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save(RocCurves(audit.curves), folder)]
    ['roc.pdf', 'roc.png', 'roc.csv']
    """
    return Drawing(figure).save(folder)


def svg(figure: Figure | Panels) -> str:
    """Return a figure as an ``<svg>`` element to put into a page, with its words as label.

    It holds text as text, names no address, and its ids differ from those of other figures.

    Examples
    --------
    >>> import faircal
    >>> from faircal.report.figures import Violins
    >>> audit = faircal.audit(score=[0.9, 0.2, 0.7, 0.1], genuine=[1, 0, 1, 0], groups=list("AABB"))
    >>> svg(Violins(audit.curves))[:14]
    '<svg role="img'
    """
    return Drawing(figure).svg()


class Drawing:
    """A figure drawn once, for any number of forms.

    Parameters
    ----------
    figure : Figure or Panels
    mark : str
        Words in its lower right corner, such as that the data is simulated; a column of its table.
    """

    def __init__(self, figure: Figure | Panels, mark: str = "") -> None:
        self.figure, self._mark = figure, mark
        self._canvas = _canvas(figure)
        if mark:
            self._canvas.text(0.998, 0.004, text(mark), ha="right", va="bottom", **CORNER)
        with style():  # places are found once, not for each form
            self._canvas.draw_without_rendering()
            self._canvas.set_layout_engine(None)

    def save(self, folder: str | Path) -> list[Path]:
        """Write it as PDF, PNG and CSV; see `save`."""
        home, figure = output_folder(folder), self.figure
        paths = []
        for kind in ("pdf", "png"):
            paths.append(home / f"{figure.key}.{kind}")
            with atomic_path(paths[-1]) as temporary:
                temporary.write_bytes(_render(self._canvas, kind, figure.key))
        table = figure.table
        if self._mark:
            table = table.append_column("note", [[self._mark] * len(table)])
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        paths.append(home / f"{figure.key}.csv")
        write_text(paths[-1], csv_text(table.column_names, rows))
        return paths

    def svg(self) -> str:
        """Return it as an element for a page; see `svg`."""
        drawn = _render(self._canvas, "svg", self.figure.key).decode("utf-8")
        return _embeddable(drawn, self.figure.words)


def _canvas(figure: Figure | Panels) -> Canvas:
    return figure.plot() if isinstance(figure, Panels) else figure.canvas()


def _render(canvas: Canvas, kind: str, salt: str) -> bytes:
    buffer = io.BytesIO()
    with style(**{"svg.hashsalt": salt}):
        canvas.savefig(buffer, format=kind, dpi=_DPI, metadata=_METADATA[kind])
    return buffer.getvalue()


def _embeddable(drawn: str, words: str) -> str:
    """Turn Matplotlib's SVG file into an element for a page."""
    _, _, body = drawn.partition("<svg")
    head, _, body = body.partition(">")
    box = re.search(r'viewBox="0 0 (\S+) (\S+)"', head)
    width, height = box.groups() if box else ("", "")
    # Matplotlib's style sheet would hold for the whole page; the attributes hold for this element.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", _shorter, body)
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" stroke-linejoin="round" stroke-linecap="butt">'
        f"{re.sub(chr(10) + ' *', chr(10), body).strip()}\n"
    )


def _shorter(tag: re.Match[str]) -> str:
    """Drop a group's id, which repeats from figure to figure; round places to 0.1 points."""
    short = re.sub(r'^<g id="[^"]*"', "<g", tag[0]).replace("xlink:href", "href")
    if 'href="data:' in short:
        return short
    short = re.sub(r' (d|x|y)="([^"]*)"', _rounded_places, short)
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", short)


def _rounded_places(attribute: re.Match[str]) -> str:
    name, places = attribute.groups()
    places = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", places)
    return f' {name}="{" ".join(places.split())}"'


Anything = Figure | Panels


def slug(*words: str) -> str:
    """Join words to a name for files: letters, digits, ``-``, ``_`` and ``.`` only.

    Examples
    --------
    >>> slug("fig", "ethnicity+gender"), slug("roc", ""), slug("../<b>")
    ('fig-ethnicity-gender', 'roc', 'b')
    """
    safe = (re.sub(r"[^\w.]+", "-", word, flags=re.ASCII).strip("-.") for word in words)
    return "-".join(word for word in safe if word) or "figure"


def panels(
    figures: Sequence[Figure],
    names: Sequence[str],
    *,
    key: str,
    title: str,
    columns: int = 3,
    share_x: bool = False,
    share_y: bool = False,
) -> list[Anything]:
    """Return the figures that show something as panels; one alone as it is, and none as none."""
    kept = [(f, name) for f, name in zip(figures, names, strict=True) if not f.empty]
    if not kept:
        return []
    if len(kept) == 1:
        return [replace(kept[0][0], key=key, title=titled(title, kept[0][1]))]
    shown, shown_names = zip(*kept, strict=True)
    look: dict[str, Any] = {"columns": columns, "share_x": share_x, "share_y": share_y}
    return [Panels(shown, shown_names, key=key, title=title, **look)]


def tell_apart(figures: Iterable[Anything]) -> list[Anything]:
    """Return the figures that show something, each with a key of its own."""
    by_key: dict[str, Anything] = {}
    for figure in figures:
        if figure.empty:
            continue
        key, n = figure.key, 1
        while key.lower() in by_key:  # file systems may not tell capitals apart
            n += 1
            key = f"{figure.key}-{n}"
        by_key[key.lower()] = figure if key == figure.key else replace(figure, key=key)
    return list(by_key.values())
