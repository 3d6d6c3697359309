"""What a page shows against what it printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pages.parsing import Block, Page
from pages.running import Printed

#: Stands for anything.
GAP = "…"
#: Another processor or library may move a number so far.
SHARE = 0.02

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_RULE = re.compile(r"[─━═\-=_]{4,}")


@dataclass(frozen=True)
class Difference:
    """A block that shows something else than was printed."""

    shown: Block
    printed: str

    def __str__(self) -> str:
        return f"line {self.shown.first}: shown\n{self.shown.text}\nprinted\n{self.printed}"


def differences(page: Page, printed: Sequence[Printed]) -> list[Difference]:
    """Return the outputs of a page that are not what its blocks printed."""
    found, latest = [], ""
    texts = {result.block.first: result.text for result in printed}
    for block in page.blocks:
        if block.is_run:
            latest = texts[block.first]
        elif block.is_output and not is_shown(latest, block.text):
            found.append(Difference(block, latest))
    return found


def is_shown(printed: str, shown: str) -> bool:
    """Whether a text is what is shown: the same words, numbers that are close, gaps filled."""
    return _match(_words(printed), _words(shown))


def _words(text: str) -> list[str]:
    return _RULE.sub("----", text).split()


def _match(words: Sequence[str], pattern: Sequence[str]) -> bool:
    """Match words with gaps: the last gap is made longer until the rest fits."""
    at = place = 0
    gap, from_gap = -1, 0
    while at < len(words):
        if place < len(pattern) and pattern[place] == GAP:
            gap, from_gap, place = place, at, place + 1
        elif place < len(pattern) and _alike(words[at], pattern[place]):
            at, place = at + 1, place + 1
        elif gap >= 0:
            from_gap += 1
            at, place = from_gap, gap + 1
        else:
            return False
    return all(word == GAP for word in pattern[place:])


def _alike(word: str, shown: str) -> bool:
    if word == shown:
        return True
    if GAP in shown:
        parts = (re.sub(r"([*?\[])", r"[\1]", part) for part in shown.split(GAP))
        return fnmatchcase(word, "*".join(parts))
    if _NUMBER.sub("#", word) != _NUMBER.sub("#", shown):
        return False
    numbers = zip(_NUMBER.findall(word), _NUMBER.findall(shown), strict=True)
    return all(_close(got, expected) for got, expected in numbers)


def _close(got: str, expected: str) -> bool:
    """Close by share, or by one in the last digit after the point."""
    one, two = (float(text.replace(",", "")) for text in (got, expected))
    digits = [len(text.partition(".")[2]) for text in (got, expected) if "e" not in text.lower()]
    last = 1.01 * 10.0 ** -min(digits) if digits and min(digits) > 0 else 0.0
    return abs(one - two) <= max(SHARE * max(abs(one), abs(two)), last)
