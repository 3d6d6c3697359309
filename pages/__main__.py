"""``python -m pages``: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pages
from pages import claims, comparing, figures, writing
from pages.parsing import Page, PageError, every_page
from pages.running import run


def main() -> int:
    """Run pages; return 1 where one does not do what it shows."""
    parser = argparse.ArgumentParser(
        prog="python -m pages",
        description=pages.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", nargs="*", type=Path, help="Markdown files  [default: all]")
    parser.add_argument("--write", action="store_true", help="put outputs and pictures in")
    parser.add_argument("--folder", type=Path, help="run in this folder, and keep it")
    parser.add_argument("--claims", action="store_true", help="numbers in prose only, run nothing")
    told = parser.parse_args()
    paths = [path.resolve() for path in told.page or every_page()]
    if told.claims:
        return max((_claims(path, told.write) for path in paths), default=0)
    return max((_one(path, told.write, told.folder) for path in paths), default=0)


def _claims(path: Path, write: bool) -> int:
    page = Page.read(path)
    if write:
        path.write_text(claims.written(page), encoding="utf-8")
        page = Page.read(path)
    found = list(claims.problems(page))
    for problem in found:
        print(f"{path}: {problem}")
    return 1 if found else 0


def _one(path: Path, write: bool, kept: Path | None) -> int:
    page = Page.read(path)
    if not page.is_program:
        return 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faircal-docs-") as made:
        folder = kept or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            printed = run(page, folder.resolve())
        except PageError as error:
            print(error, file=sys.stderr)
            return 1
        found = comparing.differences(page, printed)
        pictures = figures.made(page, folder)
        other = [shown for shown, file in pictures.items() if not figures.is_shown(shown, file)]
        if write:
            text, found = writing.written(page, found)
            page.path.write_text(text, encoding="utf-8")
            for shown, file in pictures.items():
                figures.put(shown, file)
            other = []
    for difference in found:
        print(f"{path}: {difference}")
    for shown in other:
        print(f"{path}: the picture {shown.name} is not the one that the page makes")
    print(f"{path}: {'differs' if found or other else 'ok'}, {time.monotonic() - start:.0f} s")
    return 1 if found or other else 0


if __name__ == "__main__":
    sys.exit(main())
