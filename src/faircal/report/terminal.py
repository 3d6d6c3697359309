"""Tables in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from faircal.report.paper import Claim
from faircal.report.tables import Line, Table, Value


def show(table: Table, console: Console) -> None:
    """Print a table: percent, best in bold, yardsticks set apart in italics.

    One part under the other for several features, since terminals are narrow; intervals where they
    fit, and else in the page and the files only. No number is ever cut: where a part is too wide,
    heads are broken, then columns stand closer, then the rest of them comes below.
    """
    console.print(Text(table.title, style="bold"))
    parts = table.parts()
    wide = table.intervals and all(
        any(_fits(_part(table, part, look), console) for look in (_WIDE, _WIDE.broken()))
        for _, part in parts
    )
    console.print(Text(table.legend if wide else table.caption, style="dim"))
    for block, columns in parts:
        if len(parts) > 1:
            console.print(Text(f"\n {block}", style="bold"))
        for shown in _pieces(table, columns, wide, console):
            console.print(shown)


class _Look(NamedTuple):
    """How a part is laid out: with intervals, heads over several lines, columns close together."""

    intervals: bool = False
    tall: bool = False
    close: bool = False

    def broken(self) -> _Look:
        """Return the same with heads over several lines."""
        return self._replace(tall=True)


_WIDE = _Look(intervals=True)
#: Names are not broken into shorter parts.
_SHORTEST = 8


def _pieces(
    table: Table, columns: list[int], intervals: bool, console: Console
) -> Iterator[RichTable]:
    """Give a part as it fits the console: whole, or as few pieces as hold about equally much."""
    whole = _Look(intervals)
    for look in (whole, whole.broken(), whole.broken()._replace(close=True)):
        shown = _part(table, columns, look)
        if _fits(shown, console):
            yield shown
            return
    for count in range(2, len(columns) + 1):
        size = math.ceil(len(columns) / count)
        cut = [columns[i : i + size] for i in range(0, len(columns), size)]
        pieces = [_part(table, some, whole.broken()) for some in cut]
        if all(_fits(piece, console) for piece in pieces):
            break
    else:  # the names alone are too long: they are what is broken
        pieces = [_part(table, [column], whole.broken()) for column in columns]
    yield from pieces


def _fits(shown: RichTable, console: Console) -> bool:
    room = console.options.update(width=10_000)
    return Measurement.get(console, room, shown).maximum <= console.width


def _part(table: Table, columns: list[int], look: _Look) -> RichTable:
    padding = (0, 0) if look.close else (0, 1)
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
    names = min(_SHORTEST, max((len(line.label) for line in table.lines), default=0))
    shown.add_column("", overflow="fold", min_width=names)
    for i in columns:
        shown.add_column(_head(table.headings[i].name, look.tall), justify="right", no_wrap=True)
    contest = [line for line in table.lines if not line.apart]
    apart = [line for line in table.lines if line.apart]
    for line in contest:
        _add(shown, line, columns, look.intervals, end=bool(apart) and line is contest[-1])
    for line in apart:
        _add(shown, line, columns, look.intervals, end=False)
    return shown


def _head(name: str, tall: bool) -> Text:
    """Return a column's head; a name is no markup."""
    broken = name.replace(" @ ", "\n@ ")
    if tall and "\n" not in broken:
        broken = "\n".join(name.rsplit(" ", 1))
    return Text(broken)


def _add(shown: RichTable, line: Line, columns: list[int], intervals: bool, end: bool) -> None:
    style = "italic" if line.apart else ""
    cells = [_cell(line.values[i], style, intervals) for i in columns]
    shown.add_row(Text(line.label, style=style), *cells, end_section=end)


def _cell(value: Value, style: str, intervals: bool) -> Text:
    found = Text(value.text, style="bold" if value.best else style)
    if intervals and value.interval:
        found.append(f" ({value.interval})", style=f"not bold {style}")
    return found


def show_claims(claims: Sequence[Claim], console: Console) -> None:
    """Print the paper's claims: in how many cases each is true here, and in the paper."""
    compared = any(claim.published_of for claim in claims)
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title="The paper's claims")
    shown.title_justify = "left"
    shown.add_column("")
    for name in ("here", "paper")[: 1 + compared]:
        shown.add_column(name, justify="right", no_wrap=True)
    for claim in claims:
        cells = [_share(claim.won, claim.of)]
        cells += [_share(claim.published_won, claim.published_of)] * compared
        shown.add_row(Text(claim.text), *cells)
    console.print(shown)


def _share(won: int | None, of: int | None) -> str:
    return f"{won} of {of}" if of else "–"
