"""What the kept cells add up to: means over folds, the way to Oracle, intervals over people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.cells import Row
from studies.parts import Cell

Float64 = NDArray[np.float64]
Interval = tuple[float, float]
#: Of these, more is better.
_HIGHER = ("auroc", "tpr@0.001", "tpr@0.01")
#: The share of replicates that must have a way from Baseline to Oracle.
_ENOUGH = 0.95


@dataclass(frozen=True)
class Tally:
    """Kept rows by cell; a number that no row gives is NaN."""

    rows: Mapping[Cell, Row]

    def has(self, dataset: str, *methods: str) -> bool:
        """Say whether each method was run on the set."""
        there = {cell.method for cell in self.rows if cell.dataset == dataset}
        return set(methods) <= there

    def by_fold(self, dataset: str, method: str, metric: str) -> dict[int, float]:
        """Return the metric in each fold, mean over seeds."""
        found: dict[int, list[float]] = {}
        for cell, row in self.rows.items():
            if (cell.dataset, cell.method) == (dataset, method):
                found.setdefault(cell.fold, []).append(row["values"][metric])
        return {fold: float(np.mean(values)) for fold, values in sorted(found.items())}

    def mean(self, dataset: str, method: str, metric: str) -> float:
        """Return the mean over folds."""
        values = list(self.by_fold(dataset, method, metric).values())
        return float(np.mean(values)) if values else float("nan")

    def seeds(self, dataset: str, method: str) -> list[int]:
        """Return the seeds that were run."""
        cells = [c for c in self.rows if (c.dataset, c.method) == (dataset, method)]
        return sorted({cell.seed for cell in cells})

    def folds(self, dataset: str) -> int:
        """Return how many folds were run."""
        return len({cell.fold for cell in self.rows if cell.dataset == dataset})

    def of_seed(self, dataset: str, method: str, metric: str, seed: int) -> float:
        """Return the mean over folds for one seed."""
        one = {cell: row for cell, row in self.rows.items() if cell.seed == seed}
        return Tally(one).mean(dataset, method, metric)

    def closed(self, dataset: str, method: str, metric: str) -> float:
        """Return how much of the way from Baseline to Oracle the method goes, percent.

        NaN where Oracle is no better than Baseline.
        """
        start, end = (self.mean(dataset, one, metric) for one in ("baseline", "oracle"))
        return _share(start, self.mean(dataset, method, metric), end)

    def worse_folds(self, dataset: str, metric: str, method: str, than: str) -> tuple[int, int]:
        """Return in how many folds a method is worse than another, and of how many."""
        one, two = (self.by_fold(dataset, name, metric) for name in (method, than))
        sign = -1 if metric in _HIGHER else 1
        both = [fold for fold in one if fold in two]
        return sum(sign * (one[fold] - two[fold]) > 0 for fold in both), len(both)

    def is_worse(self, dataset: str, metric: str, method: str, than: str) -> bool:
        """Say whether the method's mean is worse than another's."""
        sign = -1 if metric in _HIGHER else 1
        gap = self.mean(dataset, method, metric) - self.mean(dataset, than, metric)
        return bool(sign * gap > 0)

    # ------------------------------------------------------- over people

    def replicates(self, dataset: str, method: str, metric: str) -> Float64:
        """Return replicates of the mean over folds and seeds; empty where there are none.

        Folds share no person, so that the first replicates of all folds are one, and so on.
        """
        found: dict[int, list[list[float]]] = {}
        for cell, row in self.rows.items():
            if (cell.dataset, cell.method) == (dataset, method) and "replicates" in row:
                found.setdefault(cell.fold, []).append(row["replicates"][metric])
        if not found:
            return np.empty(0)
        by_fold = [np.mean(of_fold, axis=0) for of_fold in found.values()]
        return np.asarray(np.mean(by_fold, axis=0))

    def interval(self, dataset: str, method: str, metric: str) -> Interval:
        """Return the 95 % interval of the mean over folds."""
        return _middle(self.replicates(dataset, method, metric))

    def interval_of_difference(self, dataset: str, metric: str, one: str, two: str) -> Interval:
        """Return the same for the difference of two methods, on the same people."""
        a, b = (self.replicates(dataset, name, metric) for name in (one, two))
        return _middle(a - b)

    def interval_of_closed(self, dataset: str, method: str, metric: str) -> Interval:
        """Return the same for the share of the way from Baseline to Oracle.

        Replicates in which Oracle is no better than Baseline have no such share: they are left
        out, and where they are over 5 %, there is no interval.
        """
        start, here, end = (
            self.replicates(dataset, name, metric) for name in ("baseline", method, "oracle")
        )
        if not (len(start) and len(here) and len(end)) or (start > end).mean() < _ENOUGH:
            return _middle(np.empty(0))
        some = start > end
        return _middle(100 * (start - here)[some] / (start - end)[some])

    def lift(self, dataset: str, method: str, metric: str) -> float:
        """Return how much larger replicates are than what was measured, on average."""
        found = self.replicates(dataset, method, metric)
        return float(found.mean() - self.mean(dataset, method, metric)) if len(found) else np.nan


def _middle(replicates: Float64) -> Interval:
    """Return what 95 % of the replicates lie between; NaN where there are none."""
    if not len(replicates):
        return float("nan"), float("nan")
    low, high = np.quantile(replicates, (0.025, 0.975))
    return float(low), float(high)


def _share(start: float, here: float, end: float) -> float:
    return 100 * (start - here) / (start - end) if start > end else float("nan")
