"""Pages of the documentation as tests run them."""

from __future__ import annotations

import pytest

from pages import comparing, figures
from pages.parsing import ROOT, Page, every_page
from pages.running import run

DOCS = ROOT / "docs"
#: Folders whose pages have a file of tests each; all others are in ``test_front.py``.
FOLDERS = ("tutorials", "how-to", "explanation", "gallery")


def programs(folder=None):
    """Pages of a folder that have something to run; without one, those of no folder above."""
    paths = (path for path in every_page() if Page.read(path).is_program)
    return [
        pytest.param(path, id=path.relative_to(ROOT).as_posix())
        for path in paths
        if folder == next((f for f in FOLDERS if DOCS / f in path.parents), None)
    ]


def check(path, folder, tools):
    """Run a page: it prints what it shows, and draws what it shows."""
    page = Page.read(path)
    printed = run(page, folder, timeout=400, tools=tools)
    found = comparing.differences(page, printed)
    assert not found, "\n".join(map(str, found))
    pictures = figures.made(page, folder)
    for image in page.images:
        shown = (path.parent / image.target).resolve()
        drawn = {place.resolve(): file for place, file in pictures.items()}
        if shown.parent == path.parent / "images":  # beside the page: its own
            assert shown in drawn, f"{image.target} is not made by the page"
        if shown in drawn:
            assert figures.is_shown(shown, drawn[shown]), f"{image.target} is another picture"
