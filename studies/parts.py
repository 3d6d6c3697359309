"""The parts of the study, each a list of cells; a cell that two parts share is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from faircal.data.pairing import IMPOSTERS
from studies.contenders import ABLATIONS
from studies.sets import NETWORKS, PROTOCOLS, REAL, SHUFFLES, SIMULATED

FOLDS = (1, 2, 3, 4, 5)
#: Folds of a set where not all five are run.
_FEWER = {"bfw-like, seed 0": (1, 2)}
#: Methods that depend on a seed and are run with each of these on the real set.
_SEEDED, _SEEDS = ("faircal", "smooth"), (0, 1, 2)
ALL = ("baseline", "gst", "fsn", "faircal", "smooth", "oracle")
FEW = ("baseline", "faircal", "smooth", "oracle")


class Cell(NamedTuple):
    """What is fitted and measured once."""

    dataset: str
    fold: int
    method: str
    seed: int = 0


def cells_of(part: str, quick: bool) -> list[Cell]:
    """Return the cells of a part, fold by fold, so that methods share what a fold gives."""
    makers: dict[str, Callable[[], list[Cell]]] = {
        "real": _real,
        "shuffles": lambda: _grid(SHUFFLES, ALL),
        "protocol": lambda: _grid([REAL, *_protocols()], FEW),
        "ablations": lambda: _grid([REAL], ["baseline", "oracle", "smooth", *ABLATIONS]),
        "networks": lambda: _grid(NETWORKS, FEW),
        "simulated": lambda: _grid(SIMULATED, ("baseline", "fsn", "faircal", "smooth", "oracle")),
        "cost": lambda: [Cell("cost, bfw-like", 1, "both"), Cell("cost, lfw", 1, "both")],
    }
    cells = makers[part]()
    return [c for c in cells if c.fold == 1 and c.seed == 0] if quick else cells


#: The parts in order. `cost` is run by its name only: its times want a machine of their own.
PARTS = ("real", "shuffles", "protocol", "ablations", "networks", "simulated", "cost")
USUAL = PARTS[:-1]


def _real() -> list[Cell]:
    return [
        Cell(REAL, fold, method, seed)
        for fold in FOLDS
        for method in ALL
        for seed in (_SEEDS if method in _SEEDED else (0,))
    ]


def _grid(datasets: Iterable[str], methods: Sequence[str]) -> list[Cell]:
    return [
        Cell(dataset, fold, method)
        for dataset in datasets
        for fold in _FEWER.get(dataset, FOLDS)
        for method in methods
    ]


def _protocols() -> list[str]:
    """Return the protocols whose imposters this version can draw."""
    return [name for name, (kind, _) in PROTOCOLS.items() if kind in IMPOSTERS]
