"""A figure drawn once, as PDF, PNG, the table behind it, or an element of a page."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.files import atomic_path, output_folder, write_text
from faircal.metrics.results import csv_text
from faircal.report.figures.base import Anything, Panels
from faircal.report.figures.style import CORNER, style, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

#: What would tell when, or with which version, a file was made.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
}
_DPI = 150


def save(figure: Anything, folder: str | Path) -> list[Path]:
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


def svg(figure: Anything) -> str:
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

    def __init__(self, figure: Anything, mark: str = "") -> None:
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


def _canvas(figure: Anything) -> Canvas:
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
