"""What the kept rows add up to: means, differences to Baseline with standard errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.cohort.conditions import REAL, Cell
from studies.words import number, signed

Float64 = NDArray[np.float64]
METRICS = ("auroc", "tpr@0.001", "ks", "ks_mean", "fpr_aad@0.01")
#: Notes that warn of nothing.
HARMLESS = re.compile(r"map is taken|the best on people held out|clusters have under")
#: Of these, more is better.
HIGHER = ("auroc", "tpr@0.001")


class Condition(NamedTuple):
    """What a method is fitted and measured on: a cell without seed and method."""

    data: str
    protocol: str = "random"
    cohort: str = "36"
    people: int = 0

    @property
    def reference(self) -> Condition:
        """The condition of Baseline's row: it has the same pairs, whatever is done to a cohort."""
        kept = self.cohort if self.cohort.endswith("norm") else self.cohort.partition(" ")[0]
        return self._replace(cohort=kept)


class Difference(NamedTuple):
    """A difference to Baseline, in points, and its standard error."""

    mean: float
    error: float

    def is_worse(self, metric: str) -> bool:
        """Say whether it is worse by more than two standard errors."""
        return (self.mean if metric not in HIGHER else -self.mean) > 2 * self.error

    def __str__(self) -> str:
        return f"{signed(self.mean)} ± {number(self.error)}"


@dataclass(frozen=True)
class Tally:
    """Kept rows by cell."""

    rows: Mapping[Cell, Mapping[str, Any]]

    def of(self, at: Condition, method: str) -> list[Mapping[str, Any]]:
        """Return the rows of all seeds; none where a method could not be fitted."""
        found = [
            row
            for cell, row in self.rows.items()
            if (Condition(*cell[:4]), cell.method) == (at, method)
        ]
        found.sort(key=lambda row: row["seed"])
        return [] if any("error" in row for row in found) else found

    def values(self, at: Condition, method: str, metric: str) -> Float64:
        """Return the metric, (seeds, folds)."""
        found = [row["values"][metric] for row in self.of(at, method)]
        return np.array(found, dtype=float) if found else np.empty((0, 0))

    def mean(self, at: Condition, method: str, metric: str) -> float:
        """Return the mean over folds and seeds; NaN where there is none."""
        found = self.values(at, method, metric)
        return float(found.mean()) if found.size else float("nan")

    def by_group(self, at: Condition, method: str, what: int) -> dict[str, float]:
        """Return false-positive rates (0) or KS (1) of groups, mean over folds and seeds."""
        found = self.of(at, method)
        names = found[0]["groups"] if found else ()
        return {
            name: float(np.mean([[fold[what] for fold in row["groups"][name]] for row in found]))
            for name in names
        }

    def difference(self, at: Condition, method: str, metric: str) -> Difference:
        """Return a method's difference to Baseline, of the same seeds and folds.

        Seeds of a real set share its test pairs, so that folds count once; those of a simulated set
        are other populations, and each fold of each counts.
        """
        own, base = (
            {row["seed"]: np.array(row["values"][metric]) for row in self.of(where, name)}
            for where, name in ((at, method), (at.reference, "baseline"))
        )
        seeds = [seed for seed in own if seed in base]
        if not seeds:
            return Difference(float("nan"), float("nan"))
        gap = np.array([own[seed] - base[seed] for seed in seeds])
        single = gap.mean(axis=0) if at.data in REAL else gap.ravel()
        return Difference(float(single.mean()), float(single.std(ddof=1) / np.sqrt(len(single))))

    def interval(self, at: Condition, method: str, metric: str) -> tuple[float, float]:
        """Return the middle 95 % of the difference to Baseline over people drawn anew."""
        found = [
            row["replicates"][metric]
            for name, of in ((method, at), ("baseline", at.reference))
            for row in self.of(of, name)
            if "replicates" in row
        ]
        if len(found) < 2:
            return float("nan"), float("nan")
        low, high = np.percentile(np.subtract(*found), [2.5, 97.5])
        return float(low), float(high)

    def warned(self, at: Condition, method: str) -> str:
        """Return in what share of fits and uses there was a warning."""
        rows = self.of(at, method)
        folds = sum(len(row["values"]["ks"]) for row in rows)
        told = sum(
            max((n for note, n in row["warnings"].items() if not HARMLESS.search(note)), default=0)
            for row in rows
        )
        return f"{told} of {folds}" if told else "none"

    def conditions(self, **fixed: Any) -> list[Condition]:
        """Return conditions that were run, in order, of the values given."""
        found = dict.fromkeys(Condition(*cell[:4]) for cell in self.rows)
        return [at for at in found if all(getattr(at, k) == v for k, v in fixed.items())]
