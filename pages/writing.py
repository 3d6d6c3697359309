"""Putting what a page printed into the page."""

from __future__ import annotations

from collections.abc import Sequence

from pages.comparing import GAP, Difference
from pages.parsing import Page


def written(page: Page, found: Sequence[Difference]) -> tuple[str, list[Difference]]:
    """Return the page with the outputs put right, and those with gaps, which a hand must mend."""
    lines, left = page.text.splitlines(), []
    for difference in reversed(found):
        block = difference.shown
        if GAP in block.text:
            left.append(difference)
            continue
        text = "\n".join(line.rstrip() for line in difference.printed.strip("\n").splitlines())
        indented = [f"{block.indent}{line}" if line else "" for line in text.splitlines()]
        lines[block.first : block.end] = indented
    return "\n".join(lines) + "\n", left[::-1]
