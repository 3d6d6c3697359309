"""``make bench``: measure, compare with what was kept, fail where something got slower.

python -m benchmarks                      every part but the long ones
python -m benchmarks fit pairs            the parts whose name contains one of the words
python -m benchmarks reproduce            a long part: by its whole name only (also stream-long)
python -m benchmarks [word …] --accept    keep the figures, write docs/benchmarks.md
python -m benchmarks [word …] --quick     small sizes, to try out: nothing is compared or kept
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import kept
from benchmarks.disturbance import MOST as MOST_OTHERS
from benchmarks.kept import RESULTS, Part, Row
from benchmarks.page import PAGE, PICTURE, draw, page
from benchmarks.parts import PARTS, Measured, chosen, run

_DISTURBED = "{}: others used {:.0%} of the processors; not judged, not kept: run it again alone"
_COLOURS = {"slower": "red", "missing": "red", "better": "green", "new": "cyan"}


def main(
    arguments: Sequence[str] | None = None,
    measure: Callable[[str, bool], Measured] = run,
    results: Path = RESULTS,
    document: Path = PAGE,
    picture: Path = PICTURE,
) -> int:
    """Run what is asked for; return the exit status.

    1 where a part failed or got slower, or could not be judged because others used the machine.
    """
    options = _options(arguments)
    before, console = kept.read(results), Console(width=120)
    failed, found = False, dict[str, Part]()
    for name in options.parts:
        console.print(f"{name} …", style="dim")
        try:
            figures, others = measure(name, options.quick)
        except RuntimeError as error:
            console.print(f"failed: {error}", style="red", markup=False)
            failed = True
            continue
        if options.quick:
            rows = [Row(replace(figure, goal=None), None, "") for figure in figures]
        else:
            rows = kept.compare(figures, before[name].figures if name in before else ())
        console.print(_table(name, rows))
        if options.quick:
            continue
        if others > MOST_OTHERS:
            console.print(_DISTURBED.format(name, others), style="red", markup=False)
            failed = True
            continue
        found[name] = kept.measured(name, figures, others)
        failed |= any(row.failed for row in rows) and not options.accept
    if options.accept:
        _accept({**before, **found}, results, document, picture)
        console.print(f"kept in {results}, written to {document}", markup=False)
    elif not options.quick:
        _say_where(found, before, console)
    return int(failed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=f"Parts: {', '.join(PARTS)}."
    )
    parser.add_argument("words", nargs="*", help="parts whose name contains a word [all]")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--accept", action="store_true", help="keep the figures and write the page")
    how.add_argument("--quick", action="store_true", help="small sizes; compare and keep nothing")
    options = parser.parse_args(arguments)
    try:
        options.parts = chosen(options.words)
    except ValueError as error:
        parser.error(str(error))
    return options


def _table(name: str, rows: Sequence[Row]) -> Table:
    table = Table("what", "figure", "kept", "", "goal", title=PARTS[name].about, title_style="bold")
    for row in rows:
        figure = row.figure
        met = {True: "met", False: "[red]missed[/]", None: ""}[figure.met]
        colour = _COLOURS.get(row.verdict, "default")
        table.add_row(
            figure.what,
            "" if row.verdict == "missing" else figure.shown,
            "" if row.before is None else f"{row.before:.4g}",
            f"[{colour}]{row.verdict}[/]",
            f"{figure.wanted} {met}".strip(),
        )
    return table


def _accept(parts: dict[str, Part], results: Path, document: Path, picture: Path) -> None:
    ordered = {name: parts[name] for name in PARTS if name in parts}
    kept.write(ordered, results)
    document.write_text(page(kept.read(results)), encoding="utf-8")
    draw([figure for part in ordered.values() for figure in part.figures], picture)


def _say_where(found: dict[str, Part], before: dict[str, Part], console: Console) -> None:
    """Say where kept figures come from another machine: they may differ for that alone."""
    others = {
        f"{told['cpu']}, {told['cores']} cores"
        for name in found
        if name in before and (told := before[name].machine)
    }
    here = kept.machine()
    others.discard(f"{here['cpu']}, {here['cores']} cores")
    for other in sorted(others):
        console.print(f"note: kept figures were measured on another machine: {other}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
