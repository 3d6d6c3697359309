"""The study of classifiers: run what is missing, in processes, keep it, write the page.

python -m studies classes prepare --data FOLDER  makes the files that are read (see its --help)
python -m studies classes --data FOLDER --jobs 16   every file; what is kept is not run again
python -m studies classes voters party --data FOLDER   some sets
python -m studies classes --write                the page alone, from what is kept
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from studies.cells import keep
from studies.classes import prepare
from studies.classes.page import PAGE, write
from studies.classes.table import load, n_splits

HERE = Path(__file__).parent.parent
RESULTS, DOCS = HERE / "classes.jsonl", HERE.parent / "docs"
Task = tuple[Path, int]
Row = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    if arguments[:1] == ["prepare"]:
        return prepare.main(arguments[1:])
    options = _options(arguments)
    if not options.write:
        _run(options.files, options.splits, options.results, options.jobs)
    if options.results == RESULTS:
        write(read(options.results), DOCS)
        sys.stdout.write(f"{DOCS / PAGE}\n")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies classes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("sets", nargs="*", metavar="set", help="[all that are in the folder]")
    parser.add_argument("--data", type=Path, help="the folder that `prepare` wrote")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each [1]")
    parser.add_argument("--splits", type=int, default=prepare.SPLITS, help="of each file [all]")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"[{RESULTS.name}]")
    parser.add_argument("--write", action="store_true", help="write the page, run nothing")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs: expected 1 or more, found {options.jobs}")
    if not options.write:
        if options.data is None or not options.data.is_dir():
            parser.error(f"--data: expected the folder that `prepare` wrote, found {options.data}")
        options.files = sorted(
            path
            for path in options.data.glob("*.npz")
            if not options.sets or path.stem.rsplit("-", 1)[0] in options.sets
        )
        if not options.files:
            parser.error(f"--data: expected files SET-BASE.npz in {options.data}, found none")
    return options


def read(path: Path) -> list[Row]:
    """Return the rows that are kept, sorted; a line that was cut off is left out."""
    found: dict[tuple[str, str, int], Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[row["set"], row["base"], row["seed"]] = row
    return [found[key] for key in sorted(found)]


def _run(files: Sequence[Path], splits: int, results: Path, jobs: int) -> None:
    known = {(f"{row['set']}-{row['base']}", row["seed"]) for row in read(results)}
    # One split of every file before the next: what is cut short is still about all sets.
    there = {path: min(splits, n_splits(path)) for path in files}
    tasks = [(path, seed) for seed in range(splits) for path in files if seed < there[path]]
    left = [(path, seed) for path, seed in tasks if (path.stem, seed) not in known]
    sys.stderr.write(f"{len(tasks) - len(left)} of {len(tasks)} cells are kept\n")
    results.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    for done, row in enumerate(_rows(left, min(jobs, len(left))), start=1):
        keep(row, results)
        seconds = time.perf_counter() - started
        said = f"{row['set']}-{row['base']}, split {row['seed']}"
        sys.stderr.write(f"[{done}/{len(left)}] {seconds:.0f} s: {said}\n")
        sys.stderr.flush()


def _rows(tasks: Sequence[Task], jobs: int) -> Iterator[Row]:
    if jobs < 2:
        yield from map(_row, tasks)
        return
    # Spawned, not forked: no process has threads of a linear algebra library half started.
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(_row, tasks)


def _row(task: Task) -> Row:
    from studies.classes.cell import cell  # the page alone needs no methods

    path, seed = task
    with threadpool_limits(1):
        return cell(load(path), seed)
