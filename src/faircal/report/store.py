"""Everything that a run left in its folder, read once: what reports are made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError
from faircal.evaluation.audit.label_noise import LabelNoiseRow, read_noise
from faircal.evaluation.audit.rates import MATRIX, MatrixRow
from faircal.evaluation.audit.regions import RegionRow, read_record, read_regions
from faircal.evaluation.benchmark.transfer import MovedRow, read_moved
from faircal.evaluation.classes import ClassDifference, read_differences
from faircal.evaluation.compare import ComparedRun, Comparison, differences
from faircal.evaluation.curves import Curves, read_curves
from faircal.metrics.results import (
    ClusterRow,
    Interval,
    Member,
    read_clusters,
    read_intervals,
    read_members,
    read_results,
    read_rows,
    read_run,
)
from faircal.report.tables import Results, Variant

#: The method that others are compared with.
REFERENCE = "baseline"


class StoredInterval(NamedTuple):
    """What a run wrote of how sure a value is: the ends of its interval, and of a rate the trials.

    `effective` is how many independent pairs would make a rate as uncertain as it is.
    """

    low: float
    high: float
    trials: float
    effective: float


@dataclass(frozen=True, eq=False)
class ResultsFolder:
    """What a benchmark, an audit, a reproduction of the paper or ``faircal classify`` wrote.

    Parameters
    ----------
    folder : Path
    results : Results
        ``results.csv``.
    run : dict
        ``run.json``; `kind` is ``"benchmark"``, ``"audit"``, ``"reproduce"`` or ``"classify"``.
    curves : Curves
        ``curves.parquet``: of the main variant of each method; empty in folders of old.
    clusters : list of ClusterRow
        ``clusters.csv``.
    members : list of Member
        ``members.csv``.
    intervals : list of Interval
        ``intervals.csv``: of a benchmark, those of means over folds of `main_variants`.
    """

    folder: Path
    results: Results
    run: dict[str, Any]
    curves: Curves
    clusters: list[ClusterRow]
    members: list[Member]
    intervals: list[Interval]

    @classmethod
    def read(cls, folder: str | Path) -> ResultsFolder:
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
            read_intervals(home),
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

    @cached_property
    def _known(self) -> dict[tuple[str | Variant, ...], StoredInterval]:
        return {
            (
                row.feature,
                Variant(row.method, row.calibrator, row.clusters),
                row.attribute,
                row.group,
                row.condition,
                row.metric,
            ): StoredInterval(row.low, row.high, row.trials, row.effective)
            for row in self.intervals
        }

    def known(
        self,
        feature: str,
        variant: Variant,
        attribute: str,
        group: str,
        condition: str,
        metric: str,
    ) -> StoredInterval | None:
        """Return how sure a value is, where that was written."""
        return self._known.get((feature, variant, attribute, group, condition, metric))

    @cached_property
    def _compared(self) -> dict[str, list[Comparison]]:
        if self.kind != "benchmark" or len(self.main_variants) < 2:
            return {}
        if not ComparedRun.kept(self.folder):
            return {}
        run = ComparedRun.of(self.folder, self.run, self.intervals)
        return {
            attribute: differences(run, REFERENCE, attribute=attribute)
            for attribute in self.results.attributes
        }

    def compared(self, attribute: str) -> list[Comparison]:
        """Return how the methods of a benchmark differ from `REFERENCE` on the same people."""
        return self._compared.get(attribute, [])

    @cached_property
    def class_differences(self) -> list[ClassDifference]:
        """``differences.csv`` of a classifier's run: methods on the same rows."""
        return read_differences(self.folder) if self.kind == "classify" else []

    @cached_property
    def matrix(self) -> list[MatrixRow]:
        """``matrix.csv`` of an audit: errors between every two groups."""
        return read_rows(self.folder / MATRIX, MatrixRow) if self.kind == "audit" else []

    @cached_property
    def label_noise(self) -> list[LabelNoiseRow]:
        """``label_noise.csv`` of an audit: how far wrong labels move the gaps."""
        return read_noise(self.folder) if self.kind == "audit" else []

    @cached_property
    def regions(self) -> list[RegionRow]:
        """``regions.csv`` of an audit: where in embedding space it is worst.

        Those that were found in other data, before the folder was written anew, are none of it.
        """
        made, audited = read_record(self.folder), self.run.get("data_sha256")
        of = (made.get("data_sha256"), made.get("all_features_sha256"))
        if self.kind != "audit" or audited is None or audited not in of:
            return []
        return read_regions(self.folder)

    @cached_property
    def moved(self) -> list[MovedRow]:
        """``moving.csv`` of a benchmark: what labelled pairs of another population gain."""
        return read_moved(self.folder) if self.moved_from else []

    @property
    def moved_from(self) -> str:
        """The data that methods were fitted on, where it is not that of the other folds."""
        moving = self.run.get("moving")
        return str(moving.get("calibrated_on", "")) if isinstance(moving, dict) else ""

    @property
    def simulated(self) -> bool:
        """Whether the data was simulated."""
        return bool(self.run.get("simulated"))


def _place(name: str, order: list[str]) -> int:
    """Return the place of a name; what isn't listed comes last."""
    return order.index(name) if name in order else len(order)
