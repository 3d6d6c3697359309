"""Everything that a run left in its folder, read once: what reports are made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
from faircal.evaluation.curves import Curves, ScoreSource, read_curves
from faircal.methods import METHODS
from faircal.metrics.results import (
    ALL,
    GLOBAL,
    MEAN,
    STD,
    ClusterRow,
    Condition,
    Interval,
    Member,
    ResultRow,
    read_clusters,
    read_intervals,
    read_members,
    read_results,
    read_rows,
    read_run,
)
from faircal.report.cells import TableValue
from faircal.report.wording import calibrator_title, method_title, rate_text, unit_of

#: The method that others are compared with.
REFERENCE = "baseline"


class Variant(NamedTuple):
    """A method with its calibrator and number of clusters: one row of a table."""

    method: str
    calibrator: str
    clusters: str

    @classmethod
    def of(cls, row: ResultRow | ScoreSource | Interval) -> Variant:
        """Return the variant that a row of results, a curve or an interval is of."""
        return cls(row.method, row.calibrator, row.clusters)

    @property
    def yardstick(self) -> bool:
        """Whether the method is shown apart and never best."""
        return self.method in METHODS and METHODS[self.method].yardstick


class ResultKey(NamedTuple):
    """Which number of a run: all that names it in ``results.csv`` but the fold."""

    feature: str
    variant: Variant
    attribute: str
    group: str
    condition: str
    metric: str

    @classmethod
    def of(cls, row: ResultRow | Interval) -> ResultKey:
        """Return what a row of ``results.csv`` or ``intervals.csv`` is of."""
        where = row.attribute, row.group, row.condition, row.metric
        return cls(row.feature, Variant.of(row), *where)


#: A ratio to a group without an error.
UNDEFINED = "undefined"


class Results:
    """The rows of a results store, looked up by what they are.

    Attributes
    ----------
    rows : list of ResultRow
    dataset : str
    features, attributes : list of str
        In order of appearance.
    variants : list of Variant
        Methods with calibrator and clusters; yardsticks last.
    """

    def __init__(self, rows: Iterable[ResultRow]) -> None:
        self.rows = list(rows)
        self._values: dict[ResultKey, float] = {}  # means over folds, and what has no folds
        self._spreads: dict[ResultKey, float] = {}
        # Looked through once: a sweep has hundreds of thousands of rows.
        features: dict[str, None] = {}
        variants: dict[Variant, None] = {}
        conditions: dict[str, None] = {}
        groups: dict[str, dict[str, None]] = {}  # by attribute
        for row in self.rows:
            if row.fold in (MEAN, ""):
                self._values[ResultKey.of(row)] = row.value
            elif row.fold == STD:
                self._spreads[ResultKey.of(row)] = row.value
            features[row.feature] = conditions[row.condition] = None
            variants[Variant.of(row)] = None
            groups.setdefault(row.attribute, {})[row.group] = None
        self.dataset = self.rows[0].dataset if self.rows else ""
        self.features, self.attributes = list(features), list(groups)
        self.variants = sorted(variants, key=lambda variant: variant.yardstick)
        self._conditions = list(conditions)
        self._groups = {
            attribute: [group for group in names if group not in (GLOBAL, ALL)]
            for attribute, names in groups.items()
        }

    def label(self, variant: Variant) -> str:
        """Return the variant's name, as long as needed to tell it from the others."""
        same = [other for other in self.variants if other.method == variant.method]
        more = []
        if len({other.clusters for other in same}) > 1:
            more.append(f"K = {variant.clusters}")
        if len({other.calibrator for other in same}) > 1:
            more.append(calibrator_title(variant.calibrator))
        return ", ".join([method_title(variant.method), *more])

    def label_in_sentence(self, variant: Variant) -> str:
        """Return the variant's label as it stands in a sentence, ``FSN (K = 100, beta)``."""
        title, _, more = self.label(variant).partition(", ")
        return f"{title} ({more})" if more else title

    def groups(self, attribute: str) -> list[str]:
        """Return the groups of `attribute`."""
        return self._groups.get(attribute, [])

    def rates(self, kind: str) -> list[str]:
        """Return the conditions of a kind, ``["global_fpr=0.001", …]``."""
        return [under for under in self._conditions if Condition.of(under).kind == kind]

    def caution(self, attribute: str, metric: str, conditions: Sequence[str]) -> str:
        """Say which groups count in numbers over groups, but have not enough data themselves."""
        groups = self.groups(attribute)
        small = {
            condition: [
                group
                for group in groups
                if any(
                    self.value(
                        ResultKey(feature, variant, attribute, group, condition, metric)
                    ).says
                    for feature in self.features
                    for variant in self.variants[:1]
                )
            ]
            for condition in conditions
        }
        front = " Part of it, but with not enough data to be told alone: "
        if not any(small.values()):
            return ""
        if len({tuple(names) for names in small.values()}) == 1:
            return f"{front}{', '.join(small[conditions[0]])}."
        by_rate = [
            f"at {rate_text(condition)} " + ("each group" if names == groups else ", ".join(names))
            for condition, names in small.items()
            if names
        ]
        return f"{front}{'; '.join(by_rate)}."

    def has(self, key: ResultKey) -> bool:
        """Whether a value was measured, be it undefined."""
        return key in self._values

    def value(self, key: ResultKey) -> TableValue:
        """Look a value up: mean and std over folds, or the one value of an audit."""
        mean = self._values.get(key, math.nan)
        if math.isinf(mean):
            return TableValue(math.nan, says=UNDEFINED)
        return TableValue(mean, self._spreads.get(key, math.nan), unit=unit_of(key.metric))


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
    def _intervals(self) -> dict[ResultKey, StoredInterval]:
        return {
            ResultKey.of(row): StoredInterval(row.low, row.high, row.trials, row.effective)
            for row in self.intervals
        }

    def interval(self, key: ResultKey) -> StoredInterval | None:
        """Return how sure a value is, where that was written."""
        return self._intervals.get(key)

    def with_interval(self, key: ResultKey) -> TableValue:
        """Look a value up with its interval, whether or not there is data enough for it."""
        value, interval = self.results.value(key), self.interval(key)
        if interval is None or math.isnan(value.mean):
            return value
        return replace(value, low=interval.low, high=interval.high)

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
