"""One cell of a benchmark: fit, apply, measure, and count what figures are drawn from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from faircal.benchmark.parts import Parts
from faircal.benchmark.settings import Cell, Plan, Settings, build_method
from faircal.curves import Curve, Source, as_table, make_curves
from faircal.data import Dataset
from faircal.jobs import Progress
from faircal.measures import Measure, Rankings, condition, measure
from faircal.methods import METHODS, ClusterMethod, Method, Output
from faircal.results import ALL

#: What is said of a cluster: attribute, cluster, group, quantity, value (see `ClusterRow`).
Fact = tuple[str, str, str, str, float]


def run_cell(
    calibration: Dataset, test: Dataset, cell: Cell, plan: Plan, parts: Parts, progress: Progress
) -> tuple[dict[str, Any], pa.Table | None]:
    """Run a cell; return its measures by attribute with how the fit went, and its curves."""
    started = time.perf_counter()
    settings, main = plan.settings, plan.is_main(cell)
    fits = _Fits(calibration, cell, settings, parts, progress)
    curves: list[Curve] = []
    measures: list[tuple[str, list[Measure]]] = []
    clusters = str(cell.clusters or "")
    source = Source(cell.feature, cell.method, cell.calibrator, clusters, str(cell.fold))
    for attribute in plan.attributes:
        method = fits.fit(attribute=attribute)
        rankings = _rankings(fits.apply(method, test), test, attribute)
        found = _measured(method, rankings, calibration, attribute, settings)
        if settings.retune and METHODS[cell.method].fitted_to_rate:
            for rate in settings.rates:
                tuned = fits.fit(attribute=attribute, target_fpr=rate)
                at_rate = _rankings(tuned.apply(test), test, attribute)
                other = _measured(tuned, at_rate, calibration, attribute, settings)
                found = _replace(found, other, rate)
        measures.append((attribute or "", found))
        if main:
            of = source._replace(attribute=attribute or "")
            curves += make_curves(rankings, of, test.score_range)
    facts: list[Fact] = []
    members: list[tuple[str, str, float]] = []
    if main:
        first = fits.fit(attribute=plan.attributes[0])
        for attribute in settings.also_by:
            rankings = _rankings(fits.apply(first, test), test, attribute)
            curves += make_curves(rankings, source._replace(attribute=attribute), test.score_range)
        if isinstance(first, ClusterMethod):
            facts, members = _clusters(first, calibration, test, plan)
    part = {
        "measures": measures,
        "clusters": facts,
        "members": members,
        "figures": fits.figures,
        "notes": fits.notes,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return part, as_table(curves) if main else None


class _Fits:
    """The fits of a cell: one for each set of parameters, with what they had to say."""

    def __init__(
        self,
        calibration: Dataset,
        cell: Cell,
        settings: Settings,
        parts: Parts,
        progress: Progress,
    ) -> None:
        self.calibration, self.cell, self.settings = calibration, cell, settings
        self.parts, self.progress = parts, progress
        self.figures: dict[str, float] = {}
        self.notes: list[str] = []
        self._fitted: dict[str, Method] = {}  # by what the fit depends on
        self._applied: dict[int, Output] = {}  # by method; fitted ones live as long as this
        self._stages: dict[str, tuple[int, int]] = {}  # epochs done and in all

    def fit(self, **more: Any) -> Method:
        """Return the method, fitted with `more` parameters as far as it takes them."""
        method: Method = build_method(self.cell, self.settings, **more)
        key = repr(sorted(method.get_params().items()))
        if key not in self._fitted:
            checkpoint = self.parts.checkpoint(self.cell, key)
            self._fitted[key] = method.fit(
                self.calibration, progress=self._tell, checkpoint=checkpoint, resume=None
            )
            self.figures.update(method.diagnostics_.figures)
            self.notes.extend(method.diagnostics_.notes)
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


def _rankings(output: Output, part: Dataset, attribute: str | None) -> Rankings:
    groups = None if attribute is None else part.groups(attribute)
    return Rankings.of(output.score, output.probability, part.genuine, groups, part.score_range[1])


def _measured(
    method: Method,
    test: Rankings,
    calibration: Dataset,
    attribute: str | None,
    settings: Settings,
) -> list[Measure]:
    source = None
    if settings.threshold_on == "calibration":
        source = _rankings(method.apply(calibration), calibration, attribute)
    return measure(test, rates=settings.rates, threshold_from=source)


def _replace(found: list[Measure], other: list[Measure], rate: float) -> list[Measure]:
    """Take from `other` what is reported at the false-positive rate `rate`."""
    conditions = {condition("fpr", rate), condition("global_fpr", rate)}
    return [
        new if old.condition in conditions else old for old, new in zip(found, other, strict=True)
    ]


def _clusters(
    method: ClusterMethod, calibration: Dataset, test: Dataset, plan: Plan
) -> tuple[list[Fact], list[tuple[str, str, float]]]:
    """Say how large each cluster is, how it is shifted, who is in it, and name some images."""
    found = [method.image_clusters(part) for part in (calibration, test)]
    images, clusters, distance = (np.concatenate(values) for values in zip(*found, strict=True))
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


def _per_cluster(attribute: str, group: str, quantity: str, values: Any) -> Iterator[Fact]:
    for cluster, value in enumerate(values):
        yield attribute, str(cluster), group, quantity, float(value)
