"""Tables on standard output: no number and no name in them is ever cut.

Commands print their own with `print_table`, those of reports with `show`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from faircal.cli.options import out, printable

if TYPE_CHECKING:
    from faircal.report.cells import Table, TableValue

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
        How many columns, from the left, say what a row is of, and are beside each piece.
    blocks : sequence of int
        How many of the other columns, in turn, stay together, such as a rate and its interval;
        where nothing is given, each may stand alone.
    """
    console = out()
    pieces = laid_out(columns, rows, console, left=left, names=names, blocks=blocks)
    pieces[0].title = text(title) if title else None
    pieces[-1].caption = text(caption) if caption else None
    for piece in pieces:
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


def say(words: str) -> None:
    """Print words on standard output: as one line, but broken between words in a terminal."""
    console = out()
    console.print(printable(words), soft_wrap=not console.is_terminal, markup=False)


def show(table: Table) -> None:
    """Print a table of a report: percent, best in bold, yardsticks set apart in italics.

    One part under the other for several features, since terminals are narrow; intervals where they
    fit, and else in the page and the files only.
    """
    console = out()
    parts = table.parts()
    pieces = [_part(table, columns, console, table.intervals) for _, columns in parts]
    wide = table.intervals and all(len(part) == 1 and fits(part[0], console) for part in pieces)
    if not wide:
        pieces = [_part(table, columns, console, False) for _, columns in parts]
    console.print(Text(table.title, style="bold"))
    console.print(Text(table.legend if wide else table.caption, style="dim"))
    for (block, _), part in zip(parts, pieces, strict=True):
        if len(parts) > 1:
            console.print(Text(f"\n {block}", style="bold"))
        for piece in part:
            console.print(piece)


def _part(
    table: Table, columns: Sequence[int], console: Console, intervals: bool
) -> list[RichTable]:
    """Return the tables of some columns; yardsticks come last, below a line."""
    lines = sorted(table.lines, key=lambda line: line.apart)
    rows = []
    for line in lines:
        style = "italic" if line.apart else ""
        cells = (_cell(line.values[i], style, intervals) for i in columns)
        rows.append([Text(line.label, style=style), *cells])
    heads = ["", *(table.headings[i].name.replace(" @ ", "\n@ ") for i in columns)]
    contest = sum(not line.apart for line in lines)
    return laid_out(heads, rows, console, rule=contest if contest < len(lines) else 0)


def _cell(value: TableValue, style: str, intervals: bool) -> Text:
    cell = Text(value.text, style="bold" if value.best else style)
    if intervals and value.interval:
        cell.append(f" ({value.interval})", style=f"not bold {style}")
    return cell


def laid_out(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    console: Console,
    *,
    left: Iterable[int] = (0,),
    names: int = 1,
    blocks: Sequence[int] = (),
    rule: int = 0,
) -> list[RichTable]:
    """Return a table as it fits the console: pieces to be printed one below the other.

    Where it is too wide, heads are broken first, then blocks of columns come below (`print_table`);
    where a single one is too wide, its cells go on in the next line. There is a line below the row
    `rule`, counted from 1.
    """
    words = set(left)
    cells = [[cell if isinstance(cell, Text) else text(cell) for cell in row] for row in rows]

    def piece(heads: Sequence[str], shown: Sequence[int], *, fold: bool = False) -> RichTable:
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for i in shown:
            # Numbers are not cut; words go to the next line where there is no room.
            words_here = i in words
            table.add_column(
                text_lines(heads[i]),
                justify="left" if words_here else "right",
                no_wrap=not words_here and not fold,
                overflow="fold",
            )
        for count, row in enumerate(cells, start=1):
            table.add_row(*(row[i] for i in shown), end_section=count == rule)
        return table

    broken = [_broken(head) for head in columns]
    for heads in (columns, broken):
        table = piece(heads, range(len(columns)))
        if fits(table, console):
            return [table]
    ends = accumulate(blocks or [1] * (len(columns) - names), initial=names)
    pieces: list[list[int]] = []
    for start, stop in pairwise(ends):
        wider = [*(pieces[-1] if pieces else range(names)), *range(start, stop)]
        if pieces and fits(piece(broken, wider), console):
            pieces[-1] = wider
        else:
            pieces.append([*range(names), *range(start, stop)])
    # Where names are all there is, or a block is too wide, cells go on in the next line.
    return [
        table if fits(table := piece(broken, shown), console) else piece(broken, shown, fold=True)
        for shown in pieces or [list(range(names))]
    ]


def fits(table: RichTable, console: Console) -> bool:
    """Whether nothing has to be broken to print it."""
    room = console.options.update(width=10_000)
    return Measurement.get(console, room, table).maximum <= console.width


def text_lines(words: str) -> Text:
    """Return words that may be of several lines as `text`."""
    return Text("\n").join(text(line) for line in words.split("\n"))


def _broken(head: str) -> str:
    """Return a head over two lines, where it is not yet; they are about equally long."""
    words = head.split(" ")
    if "\n" in head or len(words) == 1:
        return head
    ways = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(len(words) - 1, 0, -1)]
    return "\n".join(min(ways, key=lambda lines: max(map(len, lines))))
