"""What every figure is: gathered once, then drawn, saved, printed as a table, or put in words.

A kind of figure says in `Figure.in_report` from which results it can be made; its line in
`faircal.report.figures` is then all that reports need.
"""

from __future__ import annotations

import io
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal._base.files import atomic_path, output_folder, write_text
from faircal.metrics.results import Condition, csv_text
from faircal.report.figures.style import CORNER, TITLE_LENGTH, add_legend, style, text
from faircal.report.rendering import resource
from faircal.report.store import (
    ResultsFolder,
    Variant,
    VariantResults,
    conditions,
    main_condition,
)
from faircal.report.wording import titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


#: How to read each kind of figure; what stands in braces is filled in.
CAPTIONS: dict[str, str] = tomllib.loads(resource("figures/captions.toml"))


@dataclass(eq=False, repr=False, kw_only=True)
class FigureRecord(ABC):
    """What people are given of a figure, all of it set as the figure is made.

    Parameters
    ----------
    key : str, optional
        Name of its files.
    title : str, optional
        One line over the figure.

    Attributes
    ----------
    caption : str
        What is drawn and how to read it.
    numbers : str
        The main numbers in words.
    table : pyarrow.Table
        What is drawn.
    """

    key: str = ""
    title: str = ""
    caption: str = field(default="", init=False)
    numbers: str = field(default="", init=False)
    table: pa.Table = field(init=False)

    @property
    def words(self) -> str:
        """The figure in words, for those who can't see it."""
        return f"{self.title}. {self.numbers}"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not len(self.table)

    @abstractmethod
    def canvas(self) -> Canvas:
        """Draw into a new Matplotlib figure, with the legend below; return that."""

    def _repr_svg_(self) -> str:
        """Show the figure in a notebook."""
        return svg(self)


@dataclass(eq=False, repr=False)
class Figure(FigureRecord):
    """One panel. A kind gathers in `__post_init__` what is drawn, shows it in `table`, draws that.

    Parameters
    ----------
    key, title : str, optional
        As of every figure; each kind has its own.

    Attributes
    ----------
    size, panel_size : tuple of float
        Width and height in inches, alone and as one panel of several.
    """

    size: tuple[float, float] = field(default=(5.2, 4.2), init=False)
    panel_size: tuple[float, float] = field(default=(3.1, 2.9), init=False)

    #: Which runs' reports can have it.
    runs: ClassVar[tuple[str, ...]] = ("audit", "benchmark", "reproduce")

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:  # noqa: ARG003 - none by itself
        """Return the figures of this kind that a report shows; also ones that are empty."""
        return []

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw into `ax`: everything but title and legend."""

    def draw(self, ax: Axes) -> dict[str, Any]:
        """Draw into `ax` without title and legend; return what a legend would list."""
        # Axes of the caller's own may hold lines already, which have no place in this legend.
        drawn_before = set(ax.get_legend_handles_labels()[0])
        self._draw(ax)
        handles, names = ax.get_legend_handles_labels()
        listed = zip(names, handles, strict=True)
        return {name: handle for name, handle in listed if handle not in drawn_before}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw into `ax`, or into a new figure of its own; return the axes."""
        if ax is None:
            return self.canvas().axes[0]
        with style():
            entries = self.draw(ax)
            ax.set_title(text(self.title, TITLE_LENGTH))
            add_legend(ax, entries)
        return ax

    def canvas(self) -> Canvas:
        """Draw into a new Matplotlib figure, with the legend below; return that."""
        with style():
            from matplotlib.figure import Figure as Canvas

            canvas = Canvas(figsize=self.size, layout="constrained")
            ax = canvas.add_subplot()
            entries = self.draw(ax)
            ax.set_title(text(self.title, TITLE_LENGTH))
            add_legend(canvas, entries)
        return canvas


@dataclass(eq=False, repr=False)
class Panels(FigureRecord):
    """Several figures side by side, with one legend.

    Parameters
    ----------
    figures : sequence of Figure
        One or more.
    names : sequence of str, optional
        What stands over each; its title by default.
    columns : int
        Panels in a row.
    share_x, share_y : bool
        Whether all have the same horizontal, or vertical, axis.
    key, title : str, optional
        As of a figure; those of the first by default. The caption is the one that all have, or
        all of them.

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
        self.key = self.key or self.figures[0].key
        self.title = self.title or self.figures[0].title
        self.names = self.names or [figure.title for figure in self.figures]
        panels = list(zip(self.names, self.figures, strict=True))
        same = len({figure.caption for figure in self.figures}) == 1
        captions = (f"{name}: {figure.caption}" for name, figure in panels)
        self.caption = self.figures[0].caption if same else " ".join(captions)
        self.numbers = " ".join(f"{name}: {figure.numbers}" for name, figure in panels)
        tables = [
            figure.table.add_column(0, "panel", pa.array([name] * figure.table.num_rows, "string"))
            for name, figure in panels
        ]
        # Nothing where a panel has no such column.
        self.table = pa.concat_tables(tables, promote_options="default")

    def plot(self) -> Canvas:
        """Draw all panels into a new Matplotlib figure; return it."""
        return self.canvas()

    def canvas(self) -> Canvas:
        """Draw all panels into a new Matplotlib figure, with the legend below; return that."""
        columns = min(self.columns, len(self.figures))
        rows = -(-len(self.figures) // columns)
        width, height = (max(f.panel_size[i] for f in self.figures) for i in (0, 1))
        entries: dict[str, Any] = {}
        with style():
            from matplotlib.figure import Figure as Canvas

            canvas = Canvas(figsize=(columns * width, rows * height), layout="constrained")
            grid = canvas.subplots(
                rows, columns, sharex=self.share_x, sharey=self.share_y, squeeze=False
            )
            for figure, name, ax in zip(self.figures, self.names, grid.flat, strict=False):
                entries = figure.draw(ax) | entries
                ax.set_title(text(name))
            for ax in canvas.axes[len(self.figures) :]:
                ax.remove()
            axes = canvas.axes
            # What is the same is said once: labels inside are left out where axes agree.
            if len({ax.get_ylabel() for ax in axes}) == 1:
                for i, ax in enumerate(axes):
                    ax.set_ylabel(ax.get_ylabel() if i % columns == 0 else "")
            if len({ax.get_xlabel() for ax in axes}) == 1:
                for ax in axes[:-columns]:
                    ax.set_xlabel("")
            for ax in axes[-columns:]:  # the lowest of each column, also over an empty place
                ax.tick_params(axis="x", labelbottom=True)
            lines = add_legend(canvas, entries)
            canvas.set_size_inches(columns * width, rows * height + 0.2 * lines)
        return canvas


def long_table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows as a table with columns of these names."""
    names = list(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(column) for column in values], names)


def slug(*words: str) -> str:
    """Join words to a name for files: letters, digits, ``-``, ``_`` and ``.`` only.

    Examples
    --------
    >>> slug("fig", "ethnicity+gender"), slug("roc", ""), slug("../<b>")
    ('fig-ethnicity-gender', 'roc', 'b')
    """
    safe = (re.sub(r"[^\w.]+", "-", word, flags=re.ASCII).strip("-.") for word in words)
    return "-".join(word for word in safe if word) or "figure"


class FigureScope:
    """What a report's figures are made of: one feature and attribute of a folder of results.

    Parameters
    ----------
    store : ResultsFolder
    feature, attribute : str

    Attributes
    ----------
    point : str or None
        The operating point that the summary speaks of.
    rate : float
        The false-positive rate that it speaks of; 5 % where it speaks of none.
    variants : list of Variant
        The variant of each method to speak of.
    sources : list of ScoreSource
        Whose scores there are, in the order of the tables: yardsticks last.
    small : list of str
        The groups that have pairs for an error rate, but too few at every operating point: their
        curves are not shown.
    """

    def __init__(self, store: ResultsFolder, feature: str, attribute: str) -> None:
        self.store, self.feature, self.attribute = store, feature, attribute
        self.point = main_condition(store.results, attribute)
        self.rate = Condition.of(self.point).rate if self.point else 0.05
        self.variants = list(store.main_variants.values())
        sources = [
            s for s in store.curves.sources if (s.feature, s.attribute) == (feature, attribute)
        ]
        self.sources = sorted(sources, key=lambda source: Variant.of(source).yardstick)
        measured = VariantResults(store, attribute, feature, self.variants[0])
        points = [measured.point(each).rates for each in conditions(store.results, attribute)]
        self.small: list[str] = []
        for group in store.results.groups[attribute]:
            for metric in ("fpr", "fnr"):
                rates = [rates[metric].groups[group] for rates in points if metric in rates]
                if rates and all(rate.withheld and rate.trials for rate in rates):
                    self.small.append(group)
                    break

    def panels(
        self, figures: Sequence[Figure], names: Sequence[str], key: str, title: str, **look: Any
    ) -> list[FigureRecord]:
        """Return figures as panels, their key and title with the feature if there are several."""
        results = self.store.results
        feature = self.feature if len(results.features) > 1 else ""
        attribute = self.attribute if len(results.attributes) > 1 else ""
        title = f"{title} ({feature})" if feature else title
        return panels(figures, names, key=slug(key, feature, attribute), title=title, **look)


def panels(
    figures: Sequence[Figure], names: Sequence[str], *, key: str, title: str, **look: Any
) -> list[FigureRecord]:
    """Return the figures that show something as panels; one alone as it is, and none as none."""
    kept = [(f, name) for f, name in zip(figures, names, strict=True) if not f.empty]
    if len(kept) == 1:
        figure, name = kept[0]
        figure.key, figure.title = key, titled(title, name) if name else title
        return [figure]
    shown, shown_names = [figure for figure, _ in kept], [name for _, name in kept]
    return [Panels(shown, shown_names, key=key, title=title, **look)] if kept else []


def tell_apart(figures: Iterable[FigureRecord]) -> list[FigureRecord]:
    """Return the figures that show something, each with a key of its own."""
    by_key: dict[str, FigureRecord] = {}
    for figure in figures:
        if figure.empty:
            continue
        key, n = figure.key, 1
        while figure.key.lower() in by_key:  # file systems may not tell capitals apart
            n += 1
            figure.key = f"{key}-{n}"
        by_key[figure.key.lower()] = figure
    return list(by_key.values())


#: What would tell when, or with which version, a file was made.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
}
_DPI = 150


def save(figure: FigureRecord, folder: str | Path) -> list[Path]:
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


def svg(figure: FigureRecord) -> str:
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

    def __init__(self, figure: FigureRecord, mark: str = "") -> None:
        self.figure, self._mark = figure, mark
        self._canvas = figure.canvas()
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
                temporary.write_bytes(self._render(kind))
        table = figure.table
        if self._mark:
            table = table.append_column("note", [[self._mark] * len(table)])
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        paths.append(home / f"{figure.key}.csv")
        write_text(paths[-1], csv_text(table.column_names, rows))
        return paths

    def svg(self) -> str:
        """Return it as an element for a page; see `svg`."""
        _, _, body = self._render("svg").decode("utf-8").partition("<svg")
        head, _, body = body.partition(">")
        box = re.search(r'viewBox="0 0 (\S+) (\S+)"', head)
        width, height = box.groups() if box else ("", "")
        # Matplotlib's style sheet would hold for the whole page; attributes hold for this element.
        body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
        body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
        body = re.sub(r"<[^>]*>", _shorter, body)
        return (
            f'<svg role="img" aria-label="{escape(self.figure.words)}" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'stroke-linejoin="round" stroke-linecap="butt">'
            f"{re.sub(chr(10) + ' *', chr(10), body).strip()}\n"
        )

    def _render(self, kind: str) -> bytes:
        """Return it as a file; ids in it are the figure's own."""
        buffer = io.BytesIO()
        with style(**{"svg.hashsalt": self.figure.key}):
            self._canvas.savefig(buffer, format=kind, dpi=_DPI, metadata=_METADATA[kind])
        return buffer.getvalue()


def _shorter(tag: re.Match[str]) -> str:
    """Drop a group's id, which repeats from figure to figure; round places to 0.1 points."""
    short = re.sub(r'^<g id="[^"]*"', "<g", tag[0]).replace("xlink:href", "href")
    if 'href="data:' in short:
        return short
    parts = short.split('"')  # names of attributes, and after each its value
    for i in range(1, len(parts), 2):
        if parts[i - 1].endswith((" d=", " x=", " y=")):
            places = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", parts[i])
            parts[i] = " ".join(places.split())
        parts[i] = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", parts[i])
    return '"'.join(parts)
