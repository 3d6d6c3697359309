"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from faircal.report.fitting import fits, fitted, tall
from faircal.report.paper import Claim
from faircal.report.tables import Line, Table, Value


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
        for piece in fitted(_part(table, columns, wide), console):
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
