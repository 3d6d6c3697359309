"""Tables in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from faircal.report.tables import Line, Table, Value


def show(table: Table, console: Console) -> None:
    """Print a table: percent, best in bold, yardsticks set apart in italics."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("")
    several = len({heading.block for heading in table.headings}) > 1
    for heading in table.headings:
        name = f"{heading.block}\n{heading.name}" if several else heading.name
        shown.add_column(name, justify="right", no_wrap=True)
    contest = [line for line in table.lines if not line.apart]
    for line in contest:
        _add(shown, line, end=line is contest[-1] and len(contest) < len(table.lines))
    for line in table.lines:
        if line.apart:
            _add(shown, line, end=False)
    console.print(Text(table.title, style="bold"))
    console.print(Text(table.caption, style="dim"))
    console.print(shown)


def _add(shown: RichTable, line: Line, end: bool) -> None:
    style = "italic" if line.apart else ""
    cells = [_cell(value, style) for value in line.values]
    shown.add_row(Text(line.label, style=style), *cells, end_section=end)


def _cell(value: Value, style: str) -> Text:
    return Text(value.text, style="bold" if value.best else style)
