"""One cell: fit, apply, measure; what is kept are numbers over many pairs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from faircal.data import Dataset
from faircal.metrics.measures import Rankings, measure
from studies import cost
from studies.contenders import METHODS, make
from studies.parts import Cell
from studies.resampling import REPLICATES, People, Weighted, replicate
from studies.sets import REAL, Sets

#: What is kept of a cell: our name -> group, condition and metric of `measure`.
KEPT = {
    "auroc": ("global", "", "auroc"),
    "tpr@0.001": ("global", "fpr=0.001", "tpr"),
    "tpr@0.01": ("global", "fpr=0.01", "tpr"),
    "nll": ("global", "", "nll"),
    "ks": ("global", "", "ks"),
    "ks_mean": ("all", "", "ks_mean"),
    "ks_aad": ("all", "", "ks_aad"),
    "fpr_aad@0.001": ("all", "global_fpr=0.001", "fpr_aad"),
    "fpr_aad@0.01": ("all", "global_fpr=0.01", "fpr_aad"),
    "fpr_mad@0.01": ("all", "global_fpr=0.01", "fpr_mad"),
}
Row = dict[str, Any]


def run_cell(cell: Cell, sets: Sets, quick: bool) -> Row:
    """Return the row of a cell, as a line of ``results.jsonl``; values are percent."""
    if cell.method == "both":
        return {**cell._asdict(), "values": cost.measured(cell.dataset, sets, quick)}
    calibration, test = sets.split(cell.dataset, cell.fold)
    started = time.process_time()
    model = make(cell.method, cell.seed, quick).fit(calibration)
    seconds, output = time.process_time() - started, model.apply(test)
    groups = test.groups()
    upper = test.score_range[1]
    rankings = Rankings.of(output.score, output.probability, test.genuine, groups, upper)
    found = {(m.group, m.condition, m.metric): 100 * m.value for m in measure(rankings)}
    row: Row = {
        **cell._asdict(),
        "cpu_seconds": round(seconds, 2),
        "imposters": int((~calibration.genuine).sum()),
        "values": {name: round(found[key], 4) for name, key in KEPT.items()},
        "groups": _by_group(found, groups.names, test),
        "figures": {name: round(v, 6) for name, v in model.diagnostics_.figures.items()},
    }
    if cell.dataset == REAL and cell.method in METHODS:
        metrics = Weighted(output.score, output.probability, test.genuine, groups.pair, upper)
        drawn = replicate(metrics, People.of(test), 20 if quick else REPLICATES, cell.fold)
        row["replicates"] = {
            name: [round(100 * value, 3) for value in values] for name, values in drawn.items()
        }
    return row


def _by_group(
    found: Mapping[tuple[str, str, str], float], names: Iterable[str], test: Dataset
) -> dict[str, Any]:
    """Return calibration error and false positives of each group, with its number of pairs."""
    group = test.groups().pair
    return {
        name: {
            "pairs": int((group == code).sum()),
            "ks": round(found[name, "", "ks"], 4),
            "fpr@0.01": round(found[name, "global_fpr=0.01", "fpr"], 4),
        }
        for code, name in enumerate(names)
    }


def read(path: Path) -> dict[Cell, Row]:
    """Return the rows that are there, by cell; a last line that was cut off is left out."""
    found: dict[Cell, Row] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[Cell(*(row[name] for name in Cell._fields))] = row
    return found


def keep(row: Row, path: Path) -> None:
    """Add a row at the end, on a line of its own even where the last line was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = not path.exists() or not path.stat().st_size or path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("" if whole else "\n") + json.dumps(row, ensure_ascii=False) + "\n")
