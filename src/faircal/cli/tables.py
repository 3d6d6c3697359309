"""Tables on standard output: no number and no name in them is ever cut.

Commands print their own with `print_table`, those of reports with `show`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from faircal.cli.options import out, printable

if TYPE_CHECKING:
    from faircal.report.cells import Line, Table, TableValue
    from faircal.report.paper import Claim

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
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
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
    for piece in pieces_that_fit(table, console, names=names, blocks=blocks) or [table]:
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


def show(table: Table, console: Console) -> None:
    """Print a table: percent, best in bold, yardsticks set apart in italics.

    One part under the other for several features, since terminals are narrow; intervals where they
    fit, and else in the page and the files only.
    """
    console.print(Text(table.title, style="bold"))
    parts = table.parts()
    wide = table.intervals and all(
        fits(tall(_part(table, part, intervals=True)), console) for _, part in parts
    )
    console.print(Text(table.legend if wide else table.caption, style="dim"))
    for block, columns in parts:
        if len(parts) > 1:
            console.print(Text(f"\n {block}", style="bold"))
        for piece in pieces_that_fit(_part(table, columns, wide), console):
            console.print(piece)


#: Names are not broken into shorter parts.
_SHORTEST = 8


def _part(table: Table, columns: list[int], intervals: bool) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    names = min(_SHORTEST, max((len(line.label) for line in table.lines), default=0))
    shown.add_column("", overflow="fold", min_width=names)
    for i in columns:
        head = Text(table.headings[i].name.replace(" @ ", "\n@ "))  # a name is no markup
        shown.add_column(head, justify="right", no_wrap=True)
    contest = [line for line in table.lines if not line.apart]
    apart = [line for line in table.lines if line.apart]
    for line in contest:
        _add(shown, line, columns, intervals, end=bool(apart) and line is contest[-1])
    for line in apart:
        _add(shown, line, columns, intervals, end=False)
    return shown


def _add(shown: RichTable, line: Line, columns: list[int], intervals: bool, end: bool) -> None:
    style = "italic" if line.apart else ""
    cells = [_cell(line.values[i], style, intervals) for i in columns]
    shown.add_row(Text(line.label, style=style), *cells, end_section=end)


def _cell(value: TableValue, style: str, intervals: bool) -> Text:
    cell = Text(value.text, style="bold" if value.best else style)
    if intervals and value.interval:
        cell.append(f" ({value.interval})", style=f"not bold {style}")
    return cell


def show_claims(claims: Sequence[Claim]) -> None:
    """Print the paper's claims: in how many cases each is true here, and in the paper."""
    compared = any(claim.published_of for claim in claims)
    rows = [
        [
            claim.text,
            _share(claim.won, claim.of),
            *[_share(claim.published_won, claim.published_of)] * compared,
        ]
        for claim in claims
    ]
    print_table(["", *("here", "paper")[: 1 + compared]], rows, title="The paper's claims")


def _share(won: int | None, of: int | None) -> str:
    return f"{won} of {of}" if of else NONE


def pieces_that_fit(
    table: RichTable, console: Console, *, names: int = 1, blocks: Sequence[int] = ()
) -> list[RichTable]:
    """Return a table as it fits the console: pieces to be printed one below the other.

    Where it is too wide, heads are broken, then columns stand closer, then the rest of them comes
    below, in as few pieces as hold about equally much.

    Parameters
    ----------
    table : RichTable
    console : Console
    names : int
        How many columns, from the left, say what a row is of: every piece has them.
    blocks : sequence of int
        How many of the other columns, in turn, stay together, such as a rate and its interval;
        where nothing is given, each may stand alone.
    """
    broken = tall(table)
    close = copy(broken)
    close.padding = (0, 0)
    for candidate in (table, broken, close):
        if fits(candidate, console):
            return [candidate]
    others = range(names, len(table.columns))
    ends = accumulate(blocks or [1] * len(others), initial=names)
    groups = [range(start, stop) for start, stop in pairwise(ends)]
    for count in range(2, len(groups) + 1):
        size = math.ceil(len(groups) / count)
        cut = [groups[i : i + size] for i in range(0, len(groups), size)]
        pieces = [_piece(broken, names, range(some[0].start, some[-1].stop)) for some in cut]
        if all(fits(piece, console) for piece in pieces):
            break
    else:  # a single column is too wide with the names: letters go to the next line
        pieces = [_folded(_piece(broken, names, [column])) for column in others]
    for piece in pieces[1:]:
        piece.title = None
    for piece in pieces[:-1]:
        piece.caption = None
    return pieces


def fits(table: RichTable, console: Console) -> bool:
    """Whether nothing has to be broken to print it."""
    room = console.options.update(width=10_000)
    return Measurement.get(console, room, table).maximum <= console.width


def tall(table: RichTable) -> RichTable:
    """Return it with heads over two lines, where they are of several words."""
    made = copy(table)
    made.columns = [replace(column, header=_broken(column.header)) for column in table.columns]
    return made


def _broken(head: RenderableType) -> RenderableType:
    """Return a head over two lines, where it is not yet; they are about equally long."""
    name = str(head)
    words = name.split(" ")
    if "\n" in name or len(words) == 1:
        return head
    ways = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(len(words) - 1, 0, -1)]
    return Text("\n".join(min(ways, key=lambda lines: max(map(len, lines)))))


def _piece(table: RichTable, names: int, others: Iterable[int]) -> RichTable:
    made = copy(table)
    made.columns = [
        replace(table.columns[column], _index=i)
        for i, column in enumerate([*range(names), *others])
    ]
    return made


def _folded(table: RichTable) -> RichTable:
    made = copy(table)
    made.columns = [replace(column, overflow="fold", no_wrap=False) for column in table.columns]
    return made
