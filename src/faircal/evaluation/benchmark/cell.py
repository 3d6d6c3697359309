"""One cell of a benchmark: fit, apply, measure, count what figures are drawn from; kept on disk.

What is kept of finished cells makes a benchmark resumable, and is what results are joined from.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import output_folder, write_text
from faircal._base.jobs import Progress
from faircal.data import Dataset
from faircal.data.summary import WrongPairs
from faircal.evaluation.benchmark.settings import BenchmarkSettings, Cell, Plan, build_method
from faircal.evaluation.curves import (
    ScoreHistogram,
    ScoreSource,
    as_table,
    make_curves,
)
from faircal.methods import METHODS, ClusterMethod, Method, Output
from faircal.metrics.intervals import (
    Uncertainty,
    as_reported,
    identified_sets,
    replicated_values,
)
from faircal.metrics.measures import Rankings, condition, measure
from faircal.metrics.results import (
    ALL,
    Replicated,
    Result,
    read_replicates,
    write_parquet,
    write_replicates,
)

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
    curves: list[ScoreHistogram] = []
    results: list[Result] = []
    replicates: list[Replicated] = []
    clusters = str(cell.clusters or "")
    source = ScoreSource(cell.feature, cell.method, cell.calibrator, clusters, str(cell.fold))
    for attribute in plan.attributes:
        method = fits.fit(attribute=attribute)
        output = fits.apply(method, test)
        rankings = rankings_of(output, test, attribute)
        measured = _measured(method, rankings, calibration, settings)
        if settings.retune and METHODS[cell.method].fitted_to_rate:
            for rate in settings.rates:
                tuned = fits.fit(attribute=attribute, target_fpr=rate)
                at_rate = rankings_of(tuned.apply(test), test, attribute)
                other = _measured(tuned, at_rate, calibration, settings)
                measured = _replace(measured, other, rate)
        of = source._replace(attribute=attribute or "")
        measured = [each._replace(seed=str(settings.seed), **of._asdict()) for each in measured]
        uncertainty = None
        if cell.main:
            curves += make_curves(rankings, of, test.score_range)
            groups = None if attribute is None else test.groups(attribute)
            # Of values that `--retune` takes from another fit it is nearly so.
            uncertainty = Uncertainty(
                measured,
                genuine=test.genuine,
                people=test.people,
                score=output.score,
                probability=output.probability,
                groups=groups,
                sets=test.memo(
                    ("identified", attribute),
                    partial(identified_sets, test.genuine, test.people, groups),
                ),
                threshold_given=settings.threshold_on == "calibration",
                calibrated_at=method.calibrated_at,
            )
            replicates += replicated_values(uncertainty, measured, of)
        # How many people are behind a value is known of all folds together.
        results += as_reported(measured, uncertainty)
    facts: list[ClusterFact] = []
    members: list[tuple[str, str, float]] = []
    if cell.main:
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
        "choices": fits.choices,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return CellResult(part, as_table(curves) if cell.main else None, replicates)


@dataclass(eq=False)
class Fits:
    """The fits of a cell: one for each set of parameters, with what they had to say.

    `fitted` are methods of cells with the same calibration pairs, by what a fit depends on. A
    training keeps its state with `parts`.
    """

    calibration: Dataset
    cell: Cell
    settings: BenchmarkSettings
    parts: Parts
    progress: Progress
    fitted: dict[str, Method] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    #: Notes that say what was chosen, and call nothing into question.
    choices: list[str] = field(default_factory=list, init=False)
    #: Fits whose figures and notes are taken down.
    _noted: set[str] = field(default_factory=set, init=False)
    #: By method; fitted ones live as long as this.
    _applied: dict[int, Output] = field(default_factory=dict, init=False)
    #: Epochs done and in all.
    _stages: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)

    def fit(self, **more: Any) -> Method:
        """Return the method, fitted with `more` parameters as far as it takes them."""
        method: Method = build_method(self.cell, self.settings, **more)
        key = repr(sorted(method.get_params().items()))
        if key not in self.fitted:
            name = f"-{hashlib.sha256(key.encode()).hexdigest()[:16]}{_CHECKPOINT}"
            checkpoint = self.parts.path(self.cell, name)
            self.fitted[key] = method.fit(
                self.calibration, progress=self._report, checkpoint=checkpoint, resume=None
            )
        if key not in self._noted:
            self._noted.add(key)
            diagnostics = self.fitted[key].diagnostics_
            self.figures.update(diagnostics.figures)
            self.choices.extend(diagnostics.choices)
            of_all_pairs = WrongPairs.of(self.calibration).notes(self.calibration.where)
            elsewhere = {*diagnostics.choices, *of_all_pairs}
            self.notes.extend(note for note in diagnostics.notes if note not in elsewhere)
        return self.fitted[key]

    def apply(self, method: Method, test: Dataset) -> Output:
        """Return what a fitted method says of the test pairs; asked once, however they are cut."""
        if id(method) not in self._applied:
            output = self._applied[id(method)] = method.apply(test)
            self.notes.extend(method.remarks(test, output))
        return self._applied[id(method)]

    def _report(self, stage: str, done: int, total: int, label: str) -> None:
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
    at = method.calibrated_at
    return measure(test, rates=settings.rates, threshold_from=source, calibrated_at=at)


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
    rows: list[tuple[str, str, str, NDArray[Any]]] = [
        ("", ALL, "pairs", method.cluster_sizes_),
        ("", ALL, "shift", method.cluster_shifts_),
        ("", ALL, "images", np.bincount(clusters, minlength=k)),
    ]
    for attribute in plan.attributes:
        if attribute is not None:
            column = test.image_groups(attribute)
            codes = column.codes[images]
            for code, group in enumerate(column.names):
                counts = np.bincount(clusters[codes == code], minlength=k)
                rows.append((attribute, group, "images", counts))
    facts = [
        (attribute, str(cluster), group, quantity, float(value))
        for attribute, group, quantity, values in rows
        for cluster, value in enumerate(values)
    ]
    order = np.lexsort((distance, clusters))
    members = [
        (str(cluster), str(test.images.ids[int(images[row])]), float(distance[row]))
        for cluster in range(k)
        for row in order[clusters[order] == cluster][: plan.settings.members]
    ]
    return facts, members


PARTS = "parts"
#: How the names of a cell's files end: its numbers, curves, replicates, states of trainings.
_NUMBERS, CELL_CURVES, _REPLICATES = ".json", ".parquet", ".replicates.parquet"
_CHECKPOINT = ".checkpoint"


@dataclass(frozen=True)
class Parts:
    """The finished cells of one run, a file each, in ``DIR/parts/<fingerprint>``.

    A run with other data or settings has another fingerprint and so another folder: it can't mix
    with this one, and what an earlier run left stays until the new one has succeeded.
    """

    home: Path
    created: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path, plan: Plan, resume: bool) -> Parts:
        """Make the folder of the run's cells; empty, unless `resume`."""
        # By fingerprint: cells of other data or settings can't be taken for these.
        home = folder / PARTS / plan.fingerprint[:16]
        created = tuple(path for path in (home, *home.parents) if not path.exists())
        if not resume and home.is_dir():
            shutil.rmtree(home)
        others = (path.is_dir() for path in home.parent.glob("*"))
        if resume and not home.exists() and any(others):
            raise ParameterError(
                f"{folder}: data, settings or plugins differ from those of the run to resume; "
                "run without --resume or choose another folder"
            )
        output_folder(folder)
        return cls(output_folder(home), created)

    def path(self, cell: Cell, end: str) -> Path:
        """Return a file of a cell by how its name ends."""
        return self.home / f"{cell.key}{end}"

    def has(self, cell: Cell) -> bool:
        """Whether the cell is finished; one that figures show has curves, too."""
        ends = (_NUMBERS, CELL_CURVES) if cell.main else (_NUMBERS,)
        return all(self.path(cell, end).exists() for end in ends)

    def write(
        self,
        cell: Cell,
        part: dict[str, Any],
        curves: pa.Table | None,
        replicates: Sequence[Replicated],
    ) -> None:
        """Keep what came out of a cell; its trainings need no checkpoint any more."""
        if replicates:
            write_replicates(self.path(cell, _REPLICATES), replicates)
        if curves is not None:
            write_parquet(self.path(cell, CELL_CURVES), curves)
        write_text(self.path(cell, _NUMBERS), json.dumps(part))
        for path in self.home.glob(f"{cell.key}-*{_CHECKPOINT}"):
            path.unlink()

    def read(self, cell: Cell) -> dict[str, Any]:
        """Return what came out of a cell."""
        path = self.path(cell, _NUMBERS)
        try:
            part: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"{path}: not valid JSON ({error}); run without --resume") from error
        part["results"] = list(map(Result._make, part["results"]))
        return part

    def discard_others(self) -> None:
        """Remove what the present run does not need: cells and checkpoints of other ones."""
        for path in self.home.glob(f"*{_CHECKPOINT}"):
            path.unlink()
        for other in self.home.parent.iterdir():
            if other.is_dir() and other != self.home:
                shutil.rmtree(other)

    def leave_no_trace(self) -> None:
        """Undo `open` where no cell was finished: the input turned out to be bad."""
        if not any(self.home.iterdir()):
            for path in self.created:
                path.rmdir()


def replicates_over_folds(plan: Plan, parts: Parts) -> Iterator[Replicated]:
    """Give replicates of means over folds, of the cells that figures show."""
    folds: dict[tuple[str, ...], list[Replicated]] = {}
    for cell in plan.cells:
        if not cell.main:
            continue
        for row in read_replicates(parts.path(cell, _REPLICATES)):
            if not np.isnan(row.value):
                folds.setdefault(row[:8], []).append(row)
    for rows in folds.values():
        value = float(np.mean([row.value for row in rows]))
        noise = np.mean([row.noise for row in rows], axis=0)  # folds share no people
        yield rows[0]._replace(value=value, noise=noise.astype(np.float32))
