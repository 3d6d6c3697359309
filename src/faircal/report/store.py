"""Everything that a run left in its folder, read once: what reports are made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from faircal.curves import Curves, read_curves
from faircal.errors import DataError
from faircal.report.tables import Results, Variant
from faircal.results import (
    ClusterRow,
    Interval,
    Member,
    read_clusters,
    read_intervals,
    read_members,
    read_results,
    read_run,
)


@dataclass(frozen=True, eq=False)
class Store:
    """What a benchmark, an audit or a reproduction of the paper wrote.

    Parameters
    ----------
    folder : Path
    results : Results
        ``results.csv``.
    run : dict
        ``run.json``; `kind` is ``"benchmark"``, ``"audit"`` or ``"reproduce"``.
    curves : Curves
        ``curves.parquet``: of the main variant of each method; empty in folders of old.
    clusters : list of ClusterRow
        ``clusters.csv``.
    members : list of Member
        ``members.csv``.
    intervals : list of Interval
        ``intervals.csv``, of an audit.
    """

    folder: Path
    results: Results
    run: dict[str, Any]
    curves: Curves
    clusters: list[ClusterRow]
    members: list[Member]
    intervals: list[Interval]

    @classmethod
    def read(cls, folder: str | Path) -> Store:
        """Read a folder of results."""
        home = Path(folder)
        results = Results(read_results(home))
        if not results.rows:
            raise DataError(f"{home}: results.csv has no rows; run the benchmark or audit again")
        run = read_run(home)
        return cls(
            home,
            results,
            run,
            read_curves(home),
            read_clusters(home),
            read_members(home),
            read_intervals(home) if run.get("kind") == "audit" else [],
        )

    @property
    def kind(self) -> str:
        """What made the folder."""
        return str(self.run.get("kind", "benchmark"))

    @cached_property
    def main_variants(self) -> dict[str, Variant]:
        """The variant of each method to speak of, in the order of the tables.

        The one whose curves are kept. Where there are none: the one of beta, else of the first
        calibrator in the run's settings, with the number of clusters nearest to 100.
        """
        kept = set(map(Variant.of, self.curves.sources))
        settings = self.run.get("settings", {})
        calibrators = ["beta", *map(str, settings.get("calibrators") or ())]

        def rank(variant: Variant) -> tuple[bool, int, int]:
            away = abs(int(variant.clusters) - 100) if variant.clusters else 0
            return variant not in kept, _place(variant.calibrator, calibrators), away

        chosen: dict[str, Variant] = {}
        for variant in sorted(self.results.variants, key=rank):
            chosen.setdefault(variant.method, variant)
        return {variant.method: chosen[variant.method] for variant in self.results.variants}

    @property
    def simulated(self) -> bool:
        """Whether the data was simulated."""
        return bool(self.run.get("simulated"))


def _place(name: str, order: list[str]) -> int:
    """Return the place of a name; what isn't listed comes last."""
    return order.index(name) if name in order else len(order)
