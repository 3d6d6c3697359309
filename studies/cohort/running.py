"""The study of the cohort: run what is missing, keep it, write the page.

python -m studies cohort --data FOLDER     all; FOLDER has lfw-mobilefacenet and lfw-dlib
python -m studies cohort main --data …     some parts
python -m studies cohort --write           the page alone, from what is kept
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from faircal._base.errors import FairCalError
from faircal.data import Dataset
from faircal.methods import Method, make_method
from faircal.metrics.measures import Rankings, measure
from studies.cells import KEPT as MEASURED
from studies.cohort.conditions import REAL, SHIFTS, SIMULATED, Cell, attribute, load, prepare
from studies.cohort.page import PAGE, write
from studies.cohort.tally import HARMLESS
from studies.resampling import People, Weighted, replicate

HERE = Path(__file__).parent.parent
RESULTS, DOCS = HERE / "cohort.jsonl", HERE.parent / "docs"
Row = dict[str, Any]
#: What is kept of a fold: group, condition and metric of `measure`.
KEPT = {key: MEASURED[key] for key in ("auroc", "tpr@0.001", "ks", "ks_mean", "fpr_aad@0.01")}
PROTOCOLS = ("random", "given", "matched", "hard")
USUAL = ("baseline", "faircal", "cohort", "snorm", "asnorm", "falcon", "oracle", "dsn")
COMPARED = ("baseline", "faircal", "cohort")
SIZES = ("3", "5", "10", "20", "100")
GROUPS = {
    "lfw-mobilefacenet": [f"{e} {g}" for e in ("Asian", "Black", "Other", "White") for g in "FM"],
    "lfw-dlib": [f"{e} {g}" for e in ("Asian", "Black", "White") for g in "FM"],
    "bfw-like": ["African F", "Asian M"],
}
_REPLICATES = 200


def cells() -> dict[str, list[Cell]]:
    """Return all that is run, by part."""
    real, made = _seeds(REAL, 3), _seeds(SIMULATED, 2)
    once = [one for one in real if one[1] == 0]
    first = [one for one in real if one[0] == REAL[0]]
    bfw = [one for one in made if one[0] == "bfw-like"]
    conditions = [f"36 {name}" for name in ("out of balance", "10 % wrong", *SHIFTS)]
    sizes = [size for size in SIZES if size != "100"]
    parts = {
        "main": [
            *_grid(real, USUAL, PROTOCOLS),
            *_grid(once, ("baseline", "faircal", "dsn", "oracle"), ("given",), ("none",)),
        ],
        "sizes": _grid(real, COMPARED, cohorts=SIZES),
        "cohorts": [
            *_without_groups([*real, *bfw]),
            *_grid([*real, *bfw], ("cohort",), cohorts=conditions),
            *_grid(real, ("cohort",), ("given",), ("36 moved",)),
            *_grid(first, (*COMPARED, "oracle"), cohorts=("36 low norm", "36 high norm")),
        ],
        "people": _grid(real, COMPARED, people=(30, 60, 150)),
        "simulated": [
            *_grid(made, (*COMPARED, "snorm", "asnorm", "oracle"), PROTOCOLS),
            *_grid(made, COMPARED, cohorts=sizes),
        ],
    }
    # SmoothFairCal by itself: it takes the longest.
    parts["smooth"] = [
        cell._replace(method="smooth")
        for part in ("main", "people", "simulated")
        for cell in parts[part]
        if cell.method == "baseline" and cell.cohort in ("36", "none")
    ]
    return parts


def _seeds(names: Iterable[str], seeds: int) -> list[tuple[str, int]]:
    return [(name, seed) for name in names for seed in range(seeds)]


def _grid(
    sets: Iterable[tuple[str, int]],
    methods: Iterable[str],
    protocols: Iterable[str] = ("random",),
    cohorts: Iterable[str] = ("36",),
    people: Iterable[int] = (0,),
) -> list[Cell]:
    every = product(protocols, cohorts, people, sets, methods)
    return [Cell(name, how, cohort, n, seed, m) for how, cohort, n, (name, seed), m in every]


def _without_groups(sets: Iterable[tuple[str, int]]) -> list[Cell]:
    return [
        Cell(name, "random", f"36 without {group}", 0, seed, "cohort")
        for name, seed in sets
        for group in GROUPS[name]
    ]


def run(cell: Cell, folds: Mapping[Any, tuple[Dataset, Dataset]]) -> Row:
    """Return the row of a cell, as a line of ``cohort.jsonl``; values are percent, by fold."""
    row: Row = {**cell._asdict(), "values": {}, "groups": {}, "kinds": [], "warnings": {}}
    drawn: list[dict[str, list[float]]] = []
    for fold, (calibration, test) in folds.items():
        try:
            model = _make(cell.method, calibration).fit(calibration)
            output = model.apply(test)
        except FairCalError as error:
            return {**cell._asdict(), "error": str(error)}
        groups = test.groups(attribute(cell.data))
        given = (output.score, output.probability, test.genuine)
        upper = test.score_range[1]
        found = {
            (m.group, m.condition, m.metric): round(100 * m.value, 4)
            for m in measure(Rankings.of(*given, groups, upper))
        }
        for name, key in KEPT.items():
            row["values"].setdefault(name, []).append(found[key])
        for name in groups.names:
            both = [found.get((name, *what)) for what in (("global_fpr=0.01", "fpr"), ("", "ks"))]
            row["groups"].setdefault(name, []).append(both)
        if cell.method == "cohort":
            row["kinds"].append(model.map_.kind)
        notes = {_bare(note) for note in (*model.diagnostics_.notes, *model.remarks(test, output))}
        for note in notes - {""}:
            row["warnings"][note] = row["warnings"].get(note, 0) + 1
        if _is_resampled(cell):
            weighted = Weighted(*given, groups.pair, upper)
            drawn.append(replicate(weighted, People.of(test), _REPLICATES, int(fold)))
    if drawn:
        row["replicates"] = {
            name: np.mean([100 * np.array(one[name]) for one in drawn], axis=0).round(3).tolist()
            for name in ("ks", "ks_mean", "fpr_aad@0.01")
        }
    return row


def _make(method: str, calibration: Dataset) -> Method:
    """Return a method as a user would choose it: 100 clusters, fewer where images are few."""
    few = min(100, len(calibration.used_images()) // 5)
    return make_method(method, **({"n_clusters": few} if method == "faircal" else {}))


def _bare(note: str) -> str:
    """Return a note without its numbers; nothing where it warns of nothing."""
    return "" if HARMLESS.search(note) else re.sub(r"\d[\d,.]*", "#", note)


def _is_resampled(cell: Cell) -> bool:
    usual = (cell.data in REAL, cell.cohort, cell.people, cell.seed) == (True, "36", 0, 0)
    compared = cell.method in (*COMPARED, "smooth", "oracle")
    return usual and compared and cell.protocol in ("given", "random")


def read(path: Path) -> dict[Cell, Row]:
    """Return the rows that are kept; a line that was cut off is left out."""
    found: dict[Cell, Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[Cell(*(row[name] for name in Cell._fields))] = row
    return found


def _run_missing(wanted: Iterable[Cell], known: dict[Cell, Row], folder: Path | None) -> None:
    last: tuple[Any, Dataset] | None = None
    ready: tuple[Cell, dict[Any, tuple[Dataset, Dataset]]] | None = None
    for cell in [one for one in dict.fromkeys(wanted) if one not in known]:
        started = time.perf_counter()
        source = (cell.data, cell.seed if cell.data in SIMULATED else 0)
        if last is None or last[0] != source:
            last = source, load(*source, folder)
        # Methods of one condition come one after the other, on the same pairs.
        condition, data = cell._replace(method=""), last[1]
        if ready is None or ready[0] != condition:
            folds = {fold: prepare(cell, data, fold) for fold in data.fold_names}
            ready = condition, folds
        with threadpool_limits(1):
            known[cell] = run(cell, ready[1])
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[cell], ensure_ascii=False) + "\n")
        sys.stderr.write(f"{' | '.join(map(str, cell))}: {time.perf_counter() - started:.1f} s\n")
        sys.stderr.flush()


def _parts(asked: Sequence[str]) -> Iterator[Cell]:
    for part, of_part in cells().items():
        if not asked or part in asked:
            yield from of_part


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies cohort", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(cells())} [all]")
    parser.add_argument("--data", type=Path, help="the folder of the real sets")
    parser.add_argument("--write", action="store_true", help="write the page, run nothing")
    options = parser.parse_args(arguments)
    known = read(RESULTS)
    if not options.write:
        _run_missing(_parts(options.parts), known, options.data)
    write(known, DOCS)
    sys.stdout.write(f"{DOCS / PAGE}\n")
    return 0
