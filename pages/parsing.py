"""The blocks of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Languages of blocks that are run, and of blocks that are only looked at.
RUN = ("sh", "python")
SHOWN = ("console", "csv", "html", "json", "math", "toml", "yaml")

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*)(?P<info>.*)$")
_TITLE = re.compile(r"""title=["']([^"']+)["']""")
_HIDDEN = re.compile(r"^<!-- (?P<language>sh|python)$")
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^)\s]+)\)")


class PageError(ValueError):
    """A page that can't be run as it stands, or does not do what it shows."""


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, its text, and which lines of the page that is."""

    language: str
    text: str
    first: int  # line numbers of the text, from 0; `end` is the line after it
    end: int
    indent: str = ""
    title: str | None = None

    @property
    def is_run(self) -> bool:
        """Whether the block is code to be run."""
        return self.language in RUN and self.title is None

    @property
    def is_output(self) -> bool:
        """Whether the block shows what the one before it printed."""
        return self.language == "text" and self.title is None


@dataclass(frozen=True)
class Image:
    """A picture of a page."""

    alt: str
    target: str


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    path: Path
    text: str
    blocks: tuple[Block, ...]

    @classmethod
    def read(cls, path: Path) -> Page:
        """Read a page and find its blocks."""
        text = path.read_text("utf-8")
        page = cls(path, text, tuple(_blocks(text.splitlines())))
        page._check()
        return page

    def _check(self) -> None:
        """Refuse blocks of which nobody knows whether they are to be run."""
        printed = False
        for block in self.blocks:
            place = f"{self.path}:{block.first}"
            if block.is_output and not printed:
                raise PageError(f"{place}: shows an output, but there is no block before it")
            known = block.is_run or block.is_output or block.title or block.language in SHOWN
            if not known:
                raise PageError(
                    f"{place}: block in {block.language or 'no language'!r}; expected one of "
                    f"{', '.join((*RUN, 'text', *SHOWN))}, or a title"
                )
            printed = block.is_run or (printed and not block.is_output)

    @property
    def is_program(self) -> bool:
        """Whether there is anything to run."""
        return any(block.is_run for block in self.blocks)

    @property
    def images(self) -> list[Image]:
        """The pictures of the page that are files of ours."""
        found = (Image(m["alt"], m["target"]) for m in _IMAGE.finditer(self.text))
        return [image for image in found if "://" not in image.target]


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        fence, hidden = _FENCE.match(lines[at]), _HIDDEN.match(lines[at])
        if fence is None and hidden is None:
            at += 1
            continue
        first = at + 1
        end = _end(lines, first, f"{fence['indent']}{fence['ticks']}" if fence else "-->")
        if fence is None:
            assert hidden is not None  # noqa: S101
            yield Block(hidden["language"], "\n".join(lines[first:end]) + "\n", first, end)
        else:
            indent, title = fence["indent"], _TITLE.search(fence["info"])
            text = "".join(f"{line.removeprefix(indent)}\n" for line in lines[first:end])
            named = title and title[1]
            yield Block(fence["language"], text, first, end, indent, named or None)
        at = end + 1


def _end(lines: Sequence[str], first: int, closing: str) -> int:
    for at in range(first, len(lines)):
        if lines[at].rstrip() == closing:
            return at
    raise PageError(f"line {first}: a block begins here that never ends")


def every_page() -> list[Path]:
    """The pages of the project: the README, and all in docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
