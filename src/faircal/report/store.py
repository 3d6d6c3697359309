"""Everything that a run left in its folder, read once: what reports are made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError
from faircal.evaluation.audit.label_noise import LABEL_NOISE, LabelNoiseRow
from faircal.evaluation.audit.rates import MATRIX, MatrixRow
from faircal.evaluation.audit.regions import REGIONS, RegionRow, read_record
from faircal.evaluation.benchmark.transfer import MovedRow, read_moved
from faircal.evaluation.classes import CLASS_METHODS, ClassDifference, read_class_differences
from faircal.evaluation.compare import Comparison, read_differences
from faircal.evaluation.curves import Curves, ScoreSource, read_curves
from faircal.methods import METHODS
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.results import (
    CLUSTERS,
    MEMBERS,
    ClusterRow,
    Member,
    Result,
    ResultKey,
    Results,
    read_results,
    read_rows,
    read_run,
)
from faircal.report.cells import TableValue
from faircal.report.wording import calibrator_title, digits_of, method_title, rate_text, unit_of

#: A ratio to a group without an error.
UNDEFINED = "undefined"


class Variant(NamedTuple):
    """A method with its calibrator and number of clusters: one row of a table."""

    method: str
    calibrator: str
    clusters: str

    @classmethod
    def of(cls, row: Result | ScoreSource) -> Variant:
        """Return the variant that a row of results or a curve is of."""
        return cls(row.method, row.calibrator, row.clusters)

    @property
    def yardstick(self) -> bool:
        """Whether the method is shown apart and never best."""
        known = METHODS if self.method in METHODS else CLASS_METHODS
        return self.method in known and known[self.method].yardstick


class LabelledResults(Results):
    """Results with the methods' titles, as the cells of tables: all numbers, as the paper has them.

    Attributes
    ----------
    variants : list of Variant
        Methods with calibrator and clusters; yardsticks last.
    unnamed : str
        What is called so where it has no method.
    """

    def __init__(self, rows: Iterable[Result], unnamed: str = "scores") -> None:
        super().__init__(rows)
        self.unnamed = unnamed
        variants = dict.fromkeys(map(Variant.of, self.rows))
        self.variants = sorted(variants, key=lambda variant: variant.yardstick)

    def label(self, variant: Variant) -> str:
        """Return the variant's name, as long as needed to tell it from the others."""
        same = [other for other in self.variants if other.method == variant.method]
        more = []
        if len({other.clusters for other in same}) > 1:
            more.append(f"K = {variant.clusters}")
        if len({other.calibrator for other in same}) > 1:
            more.append(calibrator_title(variant.calibrator))
        title = method_title(variant.method) if variant.method else self.unnamed
        return ", ".join([title, *more])

    def label_in_sentence(self, variant: Variant) -> str:
        """Return the variant's label as it stands in a sentence, ``FSN (K = 100, beta)``."""
        title, _, more = self.label(variant).partition(", ")
        return f"{title} ({more})" if more else title

    def caution(self, attribute: str, metric: str, conditions: Sequence[str]) -> str:
        """Say which groups count in numbers over groups, but have not enough data themselves."""
        groups = self.groups(attribute)
        small = {
            condition: [
                group
                for group in groups
                if any(
                    self.value(
                        ResultKey(feature, *variant, attribute, group, condition, metric)
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

    def value(self, key: ResultKey) -> TableValue:
        """Look a value up: mean and std over folds, or the one value of an audit."""
        mean = self.get(key).value
        if math.isinf(mean):
            return TableValue(math.nan, says=UNDEFINED)
        unit, digits = unit_of(key.metric), digits_of(key.metric)
        return TableValue(mean, self.spread(key), unit=unit, digits=digits)

    def with_interval(self, key: ResultKey) -> TableValue:
        """Look a value up with its interval, whether or not it may be shown."""
        value, result = LabelledResults.value(self, key), self.get(key)
        return value if math.isnan(value.mean) else replace(value, low=result.low, high=result.high)


class ReportableResults(LabelledResults):
    """Results as people are shown them: with intervals, or that there is not enough data."""

    def __init__(self, results: Results) -> None:
        vars(self).update(vars(results))  # the same rows, looked through already

    def value(self, key: ResultKey) -> TableValue:
        """Look a value up; NaN that `says` why where it must not be shown."""
        value = self.with_interval(key)
        few = self.get(key).withheld and not math.isnan(value.mean)
        return TableValue(math.nan, says=NOT_ENOUGH) if few else value


@dataclass(frozen=True, eq=False)
class ResultsFolder:
    """What a benchmark, an audit, a reproduction of the paper or ``faircal classify`` wrote.

    Parameters
    ----------
    folder : Path
    results : LabelledResults
        ``results.csv``.
    run : dict
        ``run.json``; `kind` is ``"benchmark"``, ``"audit"``, ``"reproduce"`` or ``"classify"``.
    curves : Curves
        ``curves.parquet``: of the main variant of each method; empty in folders of old.
    clusters : list of ClusterRow
        ``clusters.csv``.
    members : list of Member
        ``members.csv``.
    """

    folder: Path
    results: LabelledResults
    run: dict[str, Any]
    curves: Curves
    clusters: list[ClusterRow]
    members: list[Member]

    @classmethod
    def read(cls, folder: str | Path) -> ResultsFolder:
        """Read a folder of results."""
        home = Path(folder)
        run = read_run(home)
        unnamed = "probabilities" if run.get("kind") == "classify" else "scores"
        results = LabelledResults(read_results(home), unnamed)
        if not results.rows:
            raise DataError(f"{home}: results.csv has no rows; run the benchmark or audit again")
        return cls(
            home,
            results,
            run,
            read_curves(home),
            read_rows(home / CLUSTERS, ClusterRow),
            read_rows(home / MEMBERS, Member),
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
    def reportable(self) -> ReportableResults:
        """The results as people are shown them."""
        return ReportableResults(self.results)

    @cached_property
    def _compared(self) -> list[Comparison]:
        return read_differences(self.folder) if self.kind == "benchmark" else []

    def compared(self, attribute: str) -> list[Comparison]:
        """Return how the methods of a benchmark differ from `REFERENCE` on the same people."""
        return [each for each in self._compared if each.attribute == attribute]

    @cached_property
    def class_differences(self) -> list[ClassDifference]:
        """``differences.csv`` of a classifier's run: methods on the same rows."""
        return read_class_differences(self.folder) if self.kind == "classify" else []

    @cached_property
    def matrix(self) -> list[MatrixRow]:
        """``matrix.csv`` of an audit: errors between every two groups."""
        return read_rows(self.folder / MATRIX, MatrixRow) if self.kind == "audit" else []

    @cached_property
    def label_noise(self) -> list[LabelNoiseRow]:
        """``label_noise.csv`` of an audit: how far wrong labels move the gaps."""
        rows = self.folder / LABEL_NOISE
        return read_rows(rows, LabelNoiseRow) if self.kind == "audit" else []

    @cached_property
    def regions(self) -> list[RegionRow]:
        """``regions.csv`` of an audit: where in embedding space it is worst.

        Those that were found in other data, before the folder was written anew, are none of it.
        """
        rows = read_rows(self.folder / REGIONS, RegionRow) if self.kind == "audit" else []
        if not rows:
            return []
        made, audited = read_record(self.folder), self.run.get("data_sha256")
        of = (made.get("data_sha256"), made.get("all_features_sha256"))
        return rows if audited is not None and audited in of else []

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
