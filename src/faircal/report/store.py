"""Everything that a run left in its folder, read once: what reports are made from.

Sentences, tables, ``audit.json`` and the terminal all look values up here, as `Result`s that carry
their interval and why they must not be shown; `VariantResults.point` has the rates of all groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError
from faircal.evaluation.audit.label_noise import LABEL_NOISE, LabelNoiseRow
from faircal.evaluation.audit.rates import MATRIX, MatrixRow
from faircal.evaluation.audit.regions import REGIONS, RegionRow, read_record
from faircal.evaluation.benchmark.transfer import MOVING, MovedRow
from faircal.evaluation.classes import CLASS_METHODS, ClassDifference
from faircal.evaluation.compare import Comparison
from faircal.evaluation.compare.compare import DIFFERENCES
from faircal.evaluation.curves import Curves, ScoreSource, read_curves
from faircal.methods import METHODS
from faircal.metrics.intervals import worst_and_best
from faircal.metrics.intervals.sufficient_data import CAUTION_PEOPLE, NOT_ENOUGH
from faircal.metrics.results import (
    ALL,
    CLUSTERS,
    GLOBAL,
    MEMBERS,
    ClusterRow,
    Condition,
    Member,
    Result,
    ResultKey,
    Results,
    read_results,
    read_rows,
    read_run,
)
from faircal.report.cells import TableValue
from faircal.report.wording import calibrator_title, is_share, method_title

#: A ratio to a group without an error.
UNDEFINED = "undefined"
#: The tables that a run may leave beside its results: of which kinds of runs, file and rows.
_TABLES: dict[str, tuple[tuple[str, ...], str, type[Any]]] = {
    "clusters": (("benchmark", "reproduce"), CLUSTERS, ClusterRow),
    "members": (("benchmark", "reproduce"), MEMBERS, Member),
    "comparisons": (("benchmark",), DIFFERENCES, Comparison),
    "moved": (("benchmark",), MOVING, MovedRow),
    "class_differences": (("classify",), DIFFERENCES, ClassDifference),
    "matrix": (("audit",), MATRIX, MatrixRow),
    "label_noise": (("audit",), LABEL_NOISE, LabelNoiseRow),
    "regions": (("audit",), REGIONS, RegionRow),
}


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
        methods = METHODS if self.method in METHODS else CLASS_METHODS
        return self.method in methods and methods[self.method].yardstick


class LabelledResults(Results):
    """Results with the methods' titles, as people are shown them.

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

    def label(self, variant: Variant, *, in_sentence: bool = False) -> str:
        """Return the variant's name, as long as needed to tell it from the others.

        ``FSN, K = 100, beta``; in a sentence ``FSN (K = 100, beta)``.
        """
        same = [other for other in self.variants if other.method == variant.method]
        more = []
        if len({other.clusters for other in same}) > 1:
            more.append(f"K = {variant.clusters}")
        if len({other.calibrator for other in same}) > 1:
            more.append(calibrator_title(variant.calibrator))
        title = method_title(variant.method) if variant.method else self.unnamed
        if in_sentence and more:
            return f"{title} ({', '.join(more)})"
        return ", ".join([title, *more])

    def value(self, key: ResultKey) -> TableValue:
        """Look a value up as a cell shows it: with spread and interval, or why there is none."""
        result = self.get(key)
        if math.isinf(result.value):
            return TableValue(math.nan, says=UNDEFINED)
        if result.withheld and not math.isnan(result.value):
            return TableValue(math.nan, says=NOT_ENOUGH)
        return TableValue(
            result.value,
            self.spread(key),
            low=result.low,
            high=result.high,
            unit=100.0 if is_share(key.metric) else 1.0,
            digits=4 if key.metric.partition("_")[0] == "nll" else 2,  # these differ in the third
        )


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
        ``curves.parquet``: of the main variant of each method; empty where there is no such file.
    clusters, members : list
        ``clusters.csv`` and ``members.csv``.
    comparisons : list of Comparison
        ``differences.csv`` of a benchmark: methods beside `REFERENCE`, on the same people.
    moved : list of MovedRow
        ``moving.csv`` of a benchmark: what labelled pairs of another population gain.
    class_differences : list of ClassDifference
        ``differences.csv`` of a classifier's run: methods on the same rows.
    matrix : list of MatrixRow
        ``matrix.csv`` of an audit: errors between every two groups.
    label_noise : list of LabelNoiseRow
        ``label_noise.csv`` of an audit: how far wrong labels move the gaps.
    regions : list of RegionRow
        ``regions.csv`` of an audit: where in embedding space it is worst.

    Attributes
    ----------
    kind : str
        What made the folder.
    simulated : bool
        Whether the data was simulated.
    moved_from : str
        The data that methods were fitted on, where it is not that of the other folds.
    main_variants : dict of Variant by str
        The variant of each method to speak of, in the order of the tables: the one whose curves are
        kept. Where there are none: the one of beta, else of the first calibrator in the run's
        settings, with the number of clusters nearest to 100.
    """

    folder: Path
    results: LabelledResults
    run: dict[str, Any]
    curves: Curves
    clusters: list[ClusterRow] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    moved: list[MovedRow] = field(default_factory=list)
    class_differences: list[ClassDifference] = field(default_factory=list)
    matrix: list[MatrixRow] = field(default_factory=list)
    label_noise: list[LabelNoiseRow] = field(default_factory=list)
    regions: list[RegionRow] = field(default_factory=list)
    kind: str = field(init=False)
    simulated: bool = field(init=False)
    moved_from: str = field(init=False)
    main_variants: dict[str, Variant] = field(init=False)

    def __post_init__(self) -> None:
        run, variants = self.run, self.results.variants
        moving = run.get("moving")
        kept = set(map(Variant.of, self.curves.sources))
        calibrators = ["beta", *map(str, run.get("settings", {}).get("calibrators") or ())]
        chosen: dict[str, Variant] = {}
        for variant in sorted(
            variants,
            key=lambda of: (
                of not in kept,
                calibrators.index(of.calibrator)
                if of.calibrator in calibrators
                else len(calibrators),
                abs(int(of.clusters) - 100) if of.clusters else 0,
            ),
        ):
            chosen.setdefault(variant.method, variant)
        vars(self).update(
            kind=str(run.get("kind", "benchmark")),
            simulated=bool(run.get("simulated")),
            moved_from=str(moving.get("calibrated_on", "")) if isinstance(moving, dict) else "",
            main_variants={variant.method: chosen[variant.method] for variant in variants},
        )

    @classmethod
    def read(cls, folder: str | Path) -> ResultsFolder:
        """Read a folder of results."""
        home = Path(folder)
        run = read_run(home)
        kind = str(run.get("kind", "benchmark"))
        unnamed = "probabilities" if kind == "classify" else "scores"
        results = LabelledResults(read_results(home), unnamed)
        if not results.rows:
            raise DataError(f"{home}: results.csv has no rows; run the benchmark or audit again")
        tables = {
            name: read_rows(home / file, rows)
            for name, (kinds, file, rows) in _TABLES.items()
            if kind in kinds
        }
        # Regions that were found in other data, before the folder was written anew, are none of it.
        made = read_record(home) if tables.get("regions") else {}
        of = (made.get("data_sha256"), made.get("all_features_sha256"))
        if run.get("data_sha256") is None or run["data_sha256"] not in of:
            tables.pop("regions", None)
        return cls(home, results, run, read_curves(home), **tables)


@dataclass(frozen=True)
class RatesByGroup:
    """One error rate of all pairs and of each group, at an operating point.

    Parameters
    ----------
    metric : {"fpr", "fnr"}
    overall : Result
    groups : dict from group to Result
    least_ratio : float
        How many times the best group's rate the worst group's is at least; above 1 the two differ.
        NaN where that was not measured.

    Attributes
    ----------
    reportable, withheld : dict from group to Result
        The groups with enough data and those without; none of these where the rate is undefined for
        all pairs already.
    worst, best : str or None
        The groups with the highest and the lowest rate, the largest of equals; None with fewer than
        two.
    ratio : float
        How many times the best group's rate the worst group's is; NaN without such groups.
    differ : bool or None
        Whether the worst group differs from the best; None where that is not known.
    overlap : bool
        Whether the ordinary intervals of the two overlap.

    Examples
    --------
    >>> rates = {name: Result(metric="fpr", value=v) for name, v in (("A", 0.2), ("B", 0.1))}
    >>> rates["C"] = Result(metric="fpr", value=0.9, withheld="only 5 pairs")
    >>> rates = RatesByGroup("fpr", Result(metric="fpr", value=0.15), rates, least_ratio=1.4)
    >>> rates.worst, rates.best, rates.ratio, rates.differ, list(rates.withheld)
    ('A', 'B', 2.0, True, ['C'])
    """

    metric: str
    overall: Result
    groups: dict[str, Result]
    least_ratio: float = math.nan
    reportable: dict[str, Result] = field(init=False)
    withheld: dict[str, Result] = field(init=False)
    worst: str | None = field(init=False)
    best: str | None = field(init=False)
    ratio: float = field(init=False)
    differ: bool | None = field(init=False)
    overlap: bool = field(init=False)

    def __post_init__(self) -> None:
        reportable = {group: rate for group, rate in self.groups.items() if rate.reportable}
        withheld = {group: rate for group, rate in self.groups.items() if not rate.reportable}
        ends = worst_and_best(self.groups)
        ratio, overlap = math.nan, True
        if ends is not None:
            worst, best = (reportable[group] for group in ends)
            least = best.whole_errors().value
            ratio = worst.value / least if least > 0 else math.inf if worst.value > 0 else 1.0
            overlap = worst.low <= best.high
        vars(self).update(
            reportable=reportable,
            withheld={} if math.isnan(self.overall.value) else withheld,
            worst=ends and ends[0],
            best=ends and ends[1],
            ratio=ratio,
            differ=None if math.isnan(self.least_ratio) else self.least_ratio > 1,
            overlap=overlap,
        )


@dataclass(frozen=True)
class RatesAtPoint:
    """The error rates at one operating point of one feature.

    Parameters
    ----------
    feature : str
    condition : str
        As in ``results.csv``; empty at the threshold of an audit.
    threshold : float
        NaN where folds have thresholds of their own.
    rates : dict from ``"fpr"`` and ``"fnr"`` to RatesByGroup, as far as measured
    """

    feature: str
    condition: str
    threshold: float
    rates: dict[str, RatesByGroup]


@dataclass(frozen=True, eq=False)
class VariantResults:
    """All that a store holds of one feature, variant of a method and attribute."""

    store: ResultsFolder
    attribute: str
    feature: str
    variant: Variant

    def result(self, metric: str, group: str = GLOBAL, condition: str = "") -> Result:
        """Look up all that is known of a value."""
        key = ResultKey(self.feature, *self.variant, self.attribute, group, condition, metric)
        return self.store.results.get(key)

    def point(self, condition: str, *, whole_errors: bool = False) -> RatesAtPoint:
        """Return the error rates at an operating point; with `Result.whole_errors` if asked for."""
        results, rates = self.store.results, {}
        for metric in ("fnr",) if condition.startswith("global_fnr") else ("fpr", "fnr"):
            of = {
                group: self.result(metric, group, condition)
                for group in (GLOBAL, *results.groups[self.attribute])
            }
            if whole_errors:
                of = {group: rate.whole_errors() for group, rate in of.items()}
            least_ratio = self.result(f"{metric}_least_ratio", ALL, condition).value
            rates[metric] = RatesByGroup(metric, of.pop(GLOBAL), of, least_ratio)
        threshold = self.result("threshold", condition=condition)
        # Folds have thresholds of their own: their mean is no threshold that anybody used.
        one = math.isfinite(threshold.value) and math.isnan(results.spread(threshold.key))
        return RatesAtPoint(self.feature, condition, threshold.value if one else math.nan, rates)


def pair_counts(store: ResultsFolder, attribute: str, feature: str) -> dict[str, tuple[int, int]]:
    """Return genuine and imposter pairs of all and of each group; none where they are not kept.

    All methods are measured on the same.
    """
    for source in store.curves.sources:
        if (source.feature, source.attribute) == (feature, attribute):
            names = (GLOBAL, *store.curves.groups(source))
            counted = {group: store.curves.get(group, source=source) for group in names}
            return {group: (of.n_genuine, of.n_imposter) for group, of in counted.items()}
    return {}


def conditions(results: LabelledResults, attribute: str) -> list[str]:
    """Return all operating points: the given threshold (""), then those of global rates."""
    given = any(
        row.metric == "fpr" and not row.condition and row.attribute == attribute
        for row in results.rows
    )
    rates = [*results.rates["global_fpr"], *results.rates["global_fnr"]]
    return [""] * given + rates


def main_condition(results: LabelledResults, attribute: str) -> str | None:
    """Return the operating point to speak of: a given threshold, else the highest global FPR."""
    points = [c for c in conditions(results, attribute) if not c.startswith("global_fnr")]
    return "" if "" in points else max(points, key=lambda c: Condition.of(c).rate, default=None)


def caution(people: int | None) -> str | None:
    """Warn that a group's numbers rest on few people; None where they don't, or nobody knows."""
    if people is None or people >= CAUTION_PEOPLE:
        return None
    return (
        f"only {people} {'person' if people == 1 else 'people'} (fewer than {CAUTION_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
