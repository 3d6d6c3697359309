"""One cell: a split of a set under one base classifier; calibrate every way, and measure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from faircal.evaluation.classes import CLASS_METHODS, MethodRows
from studies.classes.measures import Measured, units_drawn
from studies.classes.table import CALIBRATION, TEST, Float64, Prepared

#: The setting that verdicts are about, settled beforehand: defaults of `FairCalClassifier`.
CALIBRATOR, CLUSTERS = "dirichlet", 20
OTHER_CALIBRATOR, OTHER_CLUSTERS = "temperature", (5, 50)
#: Draws of units for standard errors, and of labels for what chance leaves.
DRAWS, FLOORS = 200, 50


class Contender(NamedTuple):
    """A method with its settings."""

    name: str
    method: str
    calibrator: str
    clusters: int = CLUSTERS


def contenders() -> list[Contender]:
    """Return all that is run in a cell; the first five are what verdicts are about."""
    found = [Contender("uncalibrated", "uncalibrated", CALIBRATOR)]
    for calibrator in (CALIBRATOR, OTHER_CALIBRATOR):
        found += [
            Contender(f"{calibrator}/{method}", method, calibrator)
            for method in ("global", "faircal", "groupwise", "oracle")
        ]
    return found + [
        Contender(f"{CALIBRATOR}/faircal-{k}", "faircal", CALIBRATOR, k) for k in OTHER_CLUSTERS
    ]


#: Differences whose standard errors are kept: a − b.
PAIRS = tuple(
    (f"{CALIBRATOR}/{a}", b if b == "uncalibrated" else f"{CALIBRATOR}/{b}")
    for a, b in (
        ("faircal", "uncalibrated"),
        ("faircal", "global"),
        ("oracle", "global"),
        ("faircal", "oracle"),
        ("global", "uncalibrated"),
    )
)
_MAIN = tuple(dict.fromkeys(name for pair in PAIRS for name in pair))


def cell(prepared: Prepared, seed: int) -> dict[str, Any]:
    """Calibrate and measure a split; return a line of ``classes.jsonl``.

    Parameters
    ----------
    prepared : Prepared
    seed : int
        Number of the split; also the methods' random state.
    """
    table = prepared.table
    test = prepared.rows(seed, TEST)
    rng = np.random.default_rng([seed, *f"{table.name}-{prepared.base}".encode()])
    groups, names = table.groups[test], table.group_names
    weights = units_drawn(table.units[test], DRAWS, rng)
    values: dict[str, dict[str, float]] = {}
    by_group: dict[str, dict[str, float]] = {}
    drawn: dict[str, dict[str, Float64]] = {}
    for contender in contenders():
        said = _calibrated(contender, prepared, seed)
        measured = Measured(said, table.codes[test], groups, len(names))
        values[contender.name] = _rounded(measured.values())
        if table.truth is not None:
            true = table.truth[test]
            excess = (true * (np.log(true) - np.log(said))).sum(axis=1).mean()
            values[contender.name]["excess"] = round(float(excess), 6)
        if contender.name in _MAIN:
            drawn[contender.name] = measured.drawn(weights)
            values[contender.name]["floor"] = round(measured.floor(rng, FLOORS), 6)
            each = measured.by_group(np.ones((1, len(test))))[0]
            by_group[contender.name] = _rounded(dict(zip(names, each.tolist(), strict=True)))
    errors = {
        f"{a} - {b}": _rounded({m: float(np.std(drawn[a][m] - drawn[b][m])) for m in drawn[a]})
        for a, b in PAIRS
    }
    return {
        "set": table.name,
        "base": prepared.base,
        "seed": seed,
        "rows": [len(prepared.rows(seed, part)) for part in range(3)],
        "classes": len(table.classes),
        "groups": {name: int((groups == g).sum()) for g, name in enumerate(names)},
        "units": len(np.unique(table.units)),
        "values": values,
        "by_group": by_group,
        "errors": errors,
    }


def _calibrated(contender: Contender, prepared: Prepared, seed: int) -> Float64:
    """Fit on the calibration part; return the test part's probabilities."""
    method, table = CLASS_METHODS[contender.method], prepared.table

    def visible(part: int) -> MethodRows:
        """Return a part's rows as the method may see them: no group reaches one that needs none."""
        rows = prepared.rows(seed, part)
        return MethodRows(
            prepared.said(seed, rows),
            prepared.seen(seed, rows) if method.needs_features else None,
            table.groups[rows] if method.needs_groups else None,
            np.unique(table.units[rows], return_inverse=True)[1],
        )

    calibrate = method.fit(
        visible(CALIBRATION),
        table.codes[prepared.rows(seed, CALIBRATION)],
        calibrator=contender.calibrator,
        n_clusters=contender.clusters,
        random_state=seed,
    )
    return np.asarray(calibrate(visible(TEST)), np.float64)


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in values.items()}
