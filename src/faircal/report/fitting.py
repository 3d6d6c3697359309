"""Tables that fit a terminal: no number and no name in them is ever cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def fitted(
    table: Table, console: Console, *, names: int = 1, blocks: Sequence[int] = ()
) -> list[Table]:
    """Return a table as it fits the console: pieces to be printed one below the other.

    Where it is too wide, heads are broken, then columns stand closer, then the rest of them comes
    below, in as few pieces as hold about equally much.

    Parameters
    ----------
    table : Table
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
    for whole in (table, broken, close):
        if fits(whole, console):
            return [whole]
    others = range(names, len(table.columns))
    ends = accumulate(blocks or [1] * len(others), initial=names)
    together = [range(start, stop) for start, stop in pairwise(ends)]
    for count in range(2, len(together) + 1):
        size = math.ceil(len(together) / count)
        cut = [together[i : i + size] for i in range(0, len(together), size)]
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


def fits(table: Table, console: Console) -> bool:
    """Whether nothing has to be broken to print it."""
    room = console.options.update(width=10_000)
    return Measurement.get(console, room, table).maximum <= console.width


def tall(table: Table) -> Table:
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


def _piece(table: Table, names: int, others: Iterable[int]) -> Table:
    made = copy(table)
    made.columns = [
        replace(table.columns[column], _index=i)
        for i, column in enumerate([*range(names), *others])
    ]
    return made


def _folded(table: Table) -> Table:
    made = copy(table)
    made.columns = [replace(column, overflow="fold", no_wrap=False) for column in table.columns]
    return made
