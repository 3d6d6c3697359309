"""Tables on standard output: every command prints its own with `print_table`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faircal.cli.options import out, printable
from faircal.report.terminal import fitted

#: Stands for a number that there is not.
NONE = "–"


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    caption: str = "",
    left: Iterable[int] = (0,),
    names: int = 1,
    blocks: Sequence[int] = (),
) -> None:
    """Print a table on standard output, below one another what does not fit side by side.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequence of str or Text
        Text is printed as it is, whatever the data names its groups; a `Text` may have a style.
    title, caption : str
    left : iterable of int
        Columns of words; the others are of numbers, and stand at the right.
    names : int
        How many columns, from the left, say what a row is of, and are beside each piece. Where
        all do, words go to the next line instead.
    blocks : sequence of int
        How many of the other columns, in turn, stay together.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.title = text(title) if title else None
    table.caption = text(caption) if caption else None
    words = set(left)
    for place, name in enumerate(columns):
        # Numbers are not cut; names go to the next line where there is no room.
        side = {"overflow": "fold"} if place in words else {"justify": "right", "no_wrap": True}
        table.add_column(text(name), **side)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else text(cell) for cell in row))
    console = out()
    for piece in fitted(table, console, names=names, blocks=blocks) or [table]:
        console.print(piece)


def text(words: str, style: str = "") -> Text:
    """Return words as they are: as text they can't be taken for markup, nor steer a terminal."""
    return Text(printable(words), style=style)


def number(value: float | None, how: str = ".3g") -> str:
    """Return a number, or a dash where there is none."""
    return NONE if value is None or value != value else f"{value:{how}}"


def percent(value: float | None, how: str = ".2f") -> str:
    """Return a share in percent, or a dash where there is none."""
    return number(None if value is None else 100 * value, how)


def interval(low: float, high: float, how: str = ".2f") -> str:
    """Return the ends of an interval in percent, or a dash where there is none."""
    return NONE if low != low else f"{percent(low, how)} to {percent(high, how)}"


def say(words: str, console: Console | None = None) -> None:
    """Print words on standard output: as one line, but broken between words in a terminal."""
    console = console or out()
    console.print(printable(words), soft_wrap=not console.is_terminal, markup=False)
