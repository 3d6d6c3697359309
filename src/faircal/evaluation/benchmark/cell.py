"""One cell of a benchmark: fit, apply, measure, and count what figures are drawn from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from faircal._base.jobs import Progress
from faircal.data import Dataset
from faircal.evaluation.benchmark.parts import Parts
from faircal.evaluation.benchmark.settings import BenchmarkSettings, Cell, Plan, build_method
from faircal.evaluation.curves import ScoreHistogram, ScoreSource, as_table, make_curves
from faircal.methods import METHODS, ClusterMethod, Method, Output
from faircal.metrics.intervals import (
    Uncertainty,
    replicated_values,
    with_intervals,
    with_reasons,
)
from faircal.metrics.measures import Rankings, condition, measure
from faircal.metrics.results import ALL, Replicated, Result

#: What is said of a cluster: attribute, cluster, group, quantity, value (see `ClusterRow`).
ClusterFact = tuple[str, str, str, str, float]


class CellResult(NamedTuple):
    """What came of a cell: numbers, and of one that figures show, its curves and replicates."""

    part: dict[str, Any]
    curves: pa.Table | None
    replicates: list[Replicated]


def run_cell(test: Dataset, fits: Fits, plan: Plan) -> CellResult:
    """Run a cell: its results with how the fit went, and how sure they are."""
    started = time.perf_counter()
    cell, settings, calibration = fits.cell, plan.settings, fits.calibration
    main = plan.is_main(cell)
    curves: list[ScoreHistogram] = []
    results: list[Result] = []
    replicates: list[Replicated] = []
    clusters = str(cell.clusters or "")
    source = ScoreSource(cell.feature, cell.method, cell.calibrator, clusters, str(cell.fold))
    for attribute in plan.attributes:
        method = fits.fit(attribute=attribute)
        rankings = rankings_of(fits.apply(method, test), test, attribute)
        measured = _measured(method, rankings, calibration, settings)
        if settings.retune and METHODS[cell.method].fitted_to_rate:
            for rate in settings.rates:
                tuned = fits.fit(attribute=attribute, target_fpr=rate)
                at_rate = rankings_of(tuned.apply(test), test, attribute)
                other = _measured(tuned, at_rate, calibration, settings)
                measured = _replace(measured, other, rate)
        of = source._replace(attribute=attribute or "")
        measured = [each._replace(seed=str(settings.seed), **of._asdict()) for each in measured]
        if main:
            curves += make_curves(rankings, of, test.score_range)
            given = settings.threshold_on == "calibration"
            uncertainty = _uncertainty(measured, fits.apply(method, test), test, attribute, given)
            measured = with_intervals(measured, uncertainty)
            replicates += replicated_values(uncertainty, measured, of)
        # How many people are behind a value is known of all folds together.
        results += with_reasons(measured, lambda *_: None)
    facts: list[ClusterFact] = []
    members: list[tuple[str, str, float]] = []
    if main:
        first = fits.fit(attribute=plan.attributes[0])
        for attribute in settings.also_by:
            rankings = rankings_of(fits.apply(first, test), test, attribute)
            curves += make_curves(rankings, source._replace(attribute=attribute), test.score_range)
        if isinstance(first, ClusterMethod):
            facts, members = _clusters(first, calibration, test, plan)
    part = {
        "results": results,
        "clusters": facts,
        "members": members,
        "figures": fits.figures,
        "notes": fits.notes,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return CellResult(part, as_table(curves) if main else None, replicates)


class Fits:
    """The fits of a cell: one for each set of parameters, with what they had to say.

    `fitted` are methods of cells with the same calibration pairs, by what a fit depends on. A
    training keeps its state with `parts`, where there are some.
    """

    def __init__(
        self,
        calibration: Dataset,
        cell: Cell,
        settings: BenchmarkSettings,
        parts: Parts | None,
        progress: Progress,
        fitted: dict[str, Method] | None = None,
    ) -> None:
        self.calibration, self.cell, self.settings = calibration, cell, settings
        self.parts, self.progress = parts, progress
        self.figures: dict[str, float] = {}
        self.notes: list[str] = []
        self._fitted = {} if fitted is None else fitted
        self._told: set[str] = set()
        self._applied: dict[int, Output] = {}  # by method; fitted ones live as long as this
        self._stages: dict[str, tuple[int, int]] = {}  # epochs done and in all

    def fit(self, **more: Any) -> Method:
        """Return the method, fitted with `more` parameters as far as it takes them."""
        method: Method = build_method(self.cell, self.settings, **more)
        key = repr(sorted(method.get_params().items()))
        if key not in self._fitted:
            checkpoint = None if self.parts is None else self.parts.checkpoint(self.cell, key)
            self._fitted[key] = method.fit(
                self.calibration, progress=self._tell, checkpoint=checkpoint, resume=None
            )
        if key not in self._told:
            self._told.add(key)
            self.figures.update(self._fitted[key].diagnostics_.figures)
            self.notes.extend(self._fitted[key].diagnostics_.notes)
        return self._fitted[key]

    def apply(self, method: Method, test: Dataset) -> Output:
        """Return what a fitted method says of the test pairs; asked once, however they are cut."""
        if id(method) not in self._applied:
            output = self._applied[id(method)] = method.apply(test)
            self.notes.extend(method.remarks(test, output))
        return self._applied[id(method)]

    def _tell(self, stage: str, done: int, total: int, label: str) -> None:
        self._stages[stage] = done, total
        so_far, in_all = map(sum, zip(*self._stages.values(), strict=True))
        self.progress(self.cell.label, so_far, in_all, f"{stage}: {label}")


def rankings_of(output: Output, part: Dataset, attribute: str | None) -> Rankings:
    """Sort what a method says of the pairs of `part`: of all, and of each group."""
    groups = None if attribute is None else part.groups(attribute)
    return Rankings.of(output.score, output.probability, part.genuine, groups, part.score_range[1])


def _measured(
    method: Method,
    test: Rankings,
    calibration: Dataset,
    settings: BenchmarkSettings,
) -> list[Result]:
    source = None
    if settings.threshold_on == "calibration":
        source = rankings_of(method.apply(calibration), calibration, None)  # thresholds are global
    return measure(test, rates=settings.rates, threshold_from=source)


def _uncertainty(
    measured: list[Result], output: Output, test: Dataset, attribute: str | None, given: bool
) -> Uncertainty:
    """Return how sure values are; those that `--retune` takes from another fit, nearly so."""
    return Uncertainty(
        measured,
        genuine=test.genuine,
        people=test.people,
        score=output.score,
        probability=output.probability,
        groups=None if attribute is None else test.groups(attribute),
        threshold_given=given,
    )


def _replace(measured: list[Result], other: list[Result], rate: float) -> list[Result]:
    """Take from `other` what is reported at the false-positive rate `rate`."""
    conditions = {condition("fpr", rate), condition("global_fpr", rate)}
    return [
        new if old.condition in conditions else old
        for old, new in zip(measured, other, strict=True)
    ]


def _clusters(
    method: ClusterMethod, calibration: Dataset, test: Dataset, plan: Plan
) -> tuple[list[ClusterFact], list[tuple[str, str, float]]]:
    """Say how large each cluster is, how it is shifted, who is in it, and name some images."""
    # Those of another population are other images, numbered alike.
    parts = (calibration, test) if calibration.images is test.images else (test,)
    of_images = [method.image_clusters(part) for part in parts]
    images, clusters, distance = (np.concatenate(values) for values in zip(*of_images, strict=True))
    images, first = np.unique(images, return_index=True)
    clusters, distance = clusters[first], distance[first]
    k = len(method.cluster_sizes_)
    facts = [*_per_cluster("", ALL, "pairs", method.cluster_sizes_)]
    facts += _per_cluster("", ALL, "shift", method.cluster_shifts_)
    facts += _per_cluster("", ALL, "images", np.bincount(clusters, minlength=k))
    for attribute in plan.attributes:
        if attribute is not None:
            column = test.image_groups(attribute)
            codes = column.codes[images]
            for code, group in enumerate(column.names):
                counts = np.bincount(clusters[codes == code], minlength=k)
                facts += _per_cluster(attribute, group, "images", counts)
    order = np.lexsort((distance, clusters))
    members = [
        (str(cluster), str(test.images.ids[int(images[row])]), float(distance[row]))
        for cluster in range(k)
        for row in order[clusters[order] == cluster][: plan.settings.members]
    ]
    return facts, members


def _per_cluster(attribute: str, group: str, quantity: str, values: Any) -> Iterator[ClusterFact]:
    for cluster, value in enumerate(values):
        yield attribute, str(cluster), group, quantity, float(value)
