"""The study of uncertainty: run what is missing, in processes, keep it, write the page.

python -m studies uncertainty --jobs 15          every part; what is kept is not run again
python -m studies uncertainty coverage           some parts
python -m studies uncertainty --data FOLDER      real people too; without it they are skipped
python -m studies uncertainty --write            the page alone, from what is kept
python -m studies uncertainty --quick            a few small cells: to try out; kept elsewhere
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from studies.cells import keep
from studies.uncertainty.page import PAGE, write
from studies.uncertainty.part import Kept, Spec, key
from studies.uncertainty.parts import PARTS

HERE = Path(__file__).parent.parent
RESULTS, DOCS = HERE / "uncertainty.jsonl", HERE.parent / "docs"
Task = tuple[str, Spec, int]


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    options = _options(arguments)
    results, docs = RESULTS, DOCS
    if options.quick:
        scratch = Path(tempfile.gettempdir()) / "faircal-study-uncertainty-quick"
        results, docs = scratch / "uncertainty.jsonl", scratch / "docs"
    if not options.write:
        parts = _possible(options.parts, options.data)
        tasks = [(name, *c) for name in parts for c in PARTS[name].cells(options.quick)]
        _run(tasks, results, options.jobs, options.data)
    write(read(results), docs)
    sys.stdout.write(f"{docs / PAGE}\n")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies uncertainty", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--jobs", type=int, default=1, help="processes [1]")
    parser.add_argument("--data", type=Path, help="the folder of the real sets")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="write the page, run nothing")
    how.add_argument("--quick", action="store_true", help="a few cells, in a scratch folder")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    if options.jobs < 1:
        parser.error(f"--jobs: expected 1 or more, found {options.jobs}")
    options.parts = options.parts or list(PARTS)
    return options


def _possible(parts: Sequence[str], data: Path | None) -> list[str]:
    """Return the parts whose real sets are there, if they read any; say which are skipped."""
    possible = []
    for name in parts:
        absent = [each for each in PARTS[name].data if data is None or not (data / each).is_dir()]
        if absent:
            where = "none" if data is None else f"{data} without {', '.join(absent)}"
            sets = " and ".join(PARTS[name].data)
            sys.stderr.write(
                f"{name}: skipped; expected --data FOLDER with {sets}, found {where}\n"
            )
        else:
            possible.append(name)
    return possible


def read(path: Path) -> dict[str, list[Kept]]:
    """Return the cells that are kept, by part; a line that was cut off is left out."""
    found: dict[str, dict[str, Kept]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        kept = Kept(row["spec"], row["seed"], row["values"])
        found.setdefault(row["part"], {})[key(row["part"], kept.spec, kept.seed)] = kept
    return {part: list(cells.values()) for part, cells in found.items()}


def _run(tasks: Sequence[Task], results: Path, jobs: int, data: Path | None = None) -> None:
    known = {
        key(part, kept.spec, kept.seed) for part, cells in read(results).items() for kept in cells
    }
    left = [task for task in tasks if key(*task) not in known]
    sys.stderr.write(f"{len(tasks) - len(left)} of {len(tasks)} cells are kept\n")
    started = time.perf_counter()
    for done, row in enumerate(_rows(left, min(jobs, len(left)), data), start=1):
        keep(row, results)
        if done % 20 == 0 or done == len(left):
            seconds = time.perf_counter() - started
            sys.stderr.write(f"[{done}/{len(left)}] {seconds:.0f} s\n")
            sys.stderr.flush()


def _rows(tasks: Sequence[Task], jobs: int, data: Path | None) -> Iterator[dict[str, Any]]:
    row = partial(_row, data=data)
    if jobs < 2:
        yield from map(row, tasks)
        return
    # Spawned, not forked: no process has threads of a linear algebra library half started.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(row, tasks)


def _row(task: Task, data: Path | None) -> dict[str, Any]:
    part, spec, seed = task
    with threadpool_limits(1):
        values = PARTS[part].cell(spec, seed, *([data] if PARTS[part].data else []))
    return {"part": part, "spec": dict(spec), "seed": seed, "values": values}
