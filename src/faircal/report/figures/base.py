"""The contract of figures: gathered once, then drawn, printed as a table, or put in words.

A figure says in `Figure.in_report` from which results it can be made; its line in
`faircal.report.figures` is then all that reports need.
"""

from __future__ import annotations

import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from faircal._base.errors import ParameterError
from faircal.evaluation.curves import ScoreSource
from faircal.report.figures.style import add_legend, heading, new_canvas, style, text
from faircal.report.rendering import resource
from faircal.report.store import (
    LabelledResults,
    RatesByGroup,
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


_CAPTIONS: dict[str, str] = tomllib.loads(resource("figures/captions.toml"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(ABC):
    """One panel. A subclass gathers what is drawn, shows that in `table`, and draws just that.

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

    #: Key and title, unless others are given.
    _key: ClassVar[str]
    _about: ClassVar[str]

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:  # noqa: ARG003 - none by itself
        """Give the figures of this kind that a report shows; also ones that are empty."""
        yield from ()

    def _title(self) -> str:
        """Return the title, unless one is given."""
        return self._about

    @property
    def caption(self) -> str:
        """What is drawn and how to read it: the words of ``captions.toml``, filled in."""
        own = (_CAPTIONS.get(kind.__name__) for kind in type(self).__mro__)
        return next(filter(None, own), "").format(**self._in_caption())

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        return {}

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
        from faircal.report.figures.drawing import svg

        return svg(self)


def long_table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows as a table with columns of these names."""
    names = list(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(column) for column in values], names)


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
        from faircal.report.figures.drawing import svg

        return svg(self)


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


@dataclass(frozen=True, eq=False)
class FigureScope:
    """What a report's figures are made of: one feature and attribute of a folder of results.

    Parameters
    ----------
    store : ResultsFolder
    feature, attribute : str
    """

    store: ResultsFolder
    feature: str
    attribute: str

    @cached_property
    def results(self) -> LabelledResults:
        """The values, but for those that rest on too little data to be shown."""
        return self.store.results

    @cached_property
    def point(self) -> str | None:
        """The operating point that the summary speaks of."""
        return main_condition(self.store.results, self.attribute)

    @cached_property
    def variants(self) -> list[Variant]:
        """The variant of each method to speak of."""
        return list(self.store.main_variants.values())

    @cached_property
    def sources(self) -> list[ScoreSource]:
        """Whose scores there are, in the order of the tables: yardsticks last."""
        there = self.store.curves.sources
        own = [s for s in there if (s.feature, s.attribute) == (self.feature, self.attribute)]
        return sorted(own, key=lambda source: Variant.of(source).yardstick)

    @cached_property
    def small(self) -> tuple[str, ...]:
        """The groups without enough data for their curves to be shown."""
        of = VariantResults(self.store, self.attribute, self.feature, self.variants[0])
        points = [of.point(each).rates for each in conditions(self.store.results, self.attribute)]
        return tuple(
            g
            for g in self.results.groups[self.attribute]
            if any(_never_shown(points, g, m) for m in ("fpr", "fnr"))
        )

    def key(self, *words: str) -> str:
        """Return a key that names feature and attribute where there are several."""
        results = self.store.results
        feature = self.feature if len(results.features) > 1 else ""
        return slug(*words, feature, self.attribute if len(results.attributes) > 1 else "")

    def titled(self, title: str) -> str:
        """Return a title that names the feature where there are several."""
        several = len(self.store.results.features) > 1
        return f"{title} ({self.feature})" if several and self.feature else title

    def named(self, figure: Figure, *words: str) -> Figure:
        """Return a figure with the key and title that it has in this report."""
        return replace(figure, key=self.key(figure.key, *words), title=self.titled(figure.title))

    def panels(
        self, figures: Sequence[Figure], names: Sequence[str], key: str, title: str, **look: Any
    ) -> list[Anything]:
        """Return figures as panels with the key and title that they have in this report."""
        return panels(figures, names, key=self.key(key), title=self.titled(title), **look)


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


def _never_shown(points: Sequence[Mapping[str, RatesByGroup]], group: str, metric: str) -> bool:
    """Whether a group has pairs for an error rate, but too few of them at every operating point."""
    rates = [rates[metric].groups[group] for rates in points if metric in rates]
    return bool(rates) and all(rate.withheld and rate.trials for rate in rates)
