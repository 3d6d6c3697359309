"""What a part of the study is: cells to run, and a section of the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: What a cell is of; JSON, so that it is kept beside its numbers.
Spec = Mapping[str, Any]
Values = Mapping[str, Any]


class Kept(NamedTuple):
    """A cell that was run."""

    spec: Spec
    seed: int
    values: Values


@dataclass(frozen=True)
class Part:
    """A part of the study.

    Parameters
    ----------
    name : str
        As on the command line and in the picture's name.
    heading : str
        Of its section.
    cells : callable
        Returns pairs (spec, seed), each a cell; for a quick look (True) a few small ones.
    cell : callable
        From spec and seed to numbers, JSON; the same numbers every time, in any process.
    section : callable
        From kept cells to Markdown.
    picture : callable, optional
        From kept cells and ``matplotlib.pyplot`` to a figure, or None where there is nothing to
        draw.
    data : tuple of str
        The real sets that its cells read; such a cell also takes the folder of these.
    """

    name: str
    heading: str
    cells: Callable[[bool], list[tuple[Spec, int]]]
    cell: Callable[..., dict[str, Any]]
    section: Callable[[Sequence[Kept]], str]
    picture: Callable[[Sequence[Kept], Any], Any] | None = None
    data: tuple[str, ...] = ()


def key(part: str, spec: Spec, seed: int) -> str:
    """Return what tells a cell from all others.

    Examples
    --------
    >>> key("coverage", {"people": 30, "images": 1}, 4)
    'coverage {"images": 1, "people": 30} 4'
    """
    return f"{part} {json.dumps(spec, sort_keys=True)} {seed}"
