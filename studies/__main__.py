"""The study of SmoothFairCal: run what is missing, keep it, write the document.

Others have their own parts:
python -m studies uncertainty --help         intervals and promises
python -m studies classes --help             classifiers
python -m studies monitoring --help          false alarms and power of monitoring
python -m studies libraries --help           what other libraries do

python -m studies --data FOLDER              every part but cost; what is kept is not run again
python -m studies real networks --data …     some parts
python -m studies cost --data FOLDER         by its name only: wants a quiet machine
python -m studies --write                    the document alone, from what is kept
python -m studies --data FOLDER --quick      one fold, nothing chosen: to try out; kept elsewhere
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from studies.cells import keep, read, run_cell
from studies.classes import running as classes
from studies.cohort import running as cohort
from studies.libraries import running as libraries
from studies.monitoring import running as monitoring
from studies.page import write
from studies.parts import PARTS, USUAL, cells_of
from studies.sets import Sets
from studies.uncertainty import running as uncertainty

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "results.jsonl", HERE.parent / "docs"
#: Studies with parts of their own.
_OTHERS = {
    "uncertainty": uncertainty.main,
    "classes": classes.main,
    "monitoring": monitoring.main,
    "cohort": cohort.main,
    "libraries": libraries.main,
}
#: Parts that need no real data.
_SIMULATED = ("simulated",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in _OTHERS:
        return _OTHERS[arguments[0]](arguments[1:])
    options = _options(arguments)
    results, docs = RESULTS, DOCS
    if options.quick:
        scratch = Path(tempfile.gettempdir()) / "faircal-study-quick"
        results, docs = scratch / "results.jsonl", scratch / "docs"
    if not options.write:
        _run(options.parts, Sets(options.data, options.quick), options.quick, results)
    write(read(results), docs)
    sys.stdout.write(f"{docs / 'study-smooth.md'}\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--data", type=Path, help="the folder lfw-mobilefacenet")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="write the document, run nothing")
    how.add_argument("--quick", action="store_true", help="one fold, in a scratch folder")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    options.parts = options.parts or list(USUAL)
    real = [part for part in options.parts if part not in _SIMULATED]
    if real and not options.write and options.data is None:
        parser.error(f"{', '.join(real)}: expected --data FOLDER, found none")
    return options


def _run(parts: Sequence[str], sets: Sets, quick: bool, results: Path) -> None:
    known = read(results)
    cells = dict.fromkeys(cell for part in parts for cell in cells_of(part, quick))
    left = [cell for cell in cells if cell not in known]
    sys.stderr.write(f"{len(cells) - len(left)} of {len(cells)} cells are kept\n")
    for done, cell in enumerate(left, start=1):
        started = time.perf_counter()
        keep(run_cell(cell, sets, quick), results)
        said = f"{cell.dataset}, fold {cell.fold}, {cell.method}, seed {cell.seed}"
        sys.stderr.write(f"[{done}/{len(left)}] {said}: {time.perf_counter() - started:.1f} s\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
