"""Moving to another population: what labelled pairs of it gain, and how many are needed.

Methods are fitted on all pairs of one population and tested on each fold of another, whose other
folds can be labelled. Of n labelled pairs use is made in two ways: the fitted model is recalibrated
by one map on top of its probabilities, or the method is fitted on those pairs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress
from faircal.calibrators import BetaCalibrator
from faircal.data import Dataset
from faircal.evaluation.benchmark.cell import Fits, rankings_of, run_cell
from faircal.evaluation.benchmark.labels import Rows, count_people, draw_labelled
from faircal.evaluation.benchmark.parts import Parts
from faircal.evaluation.benchmark.settings import Cell, Plan
from faircal.methods import METHODS, Method, Output
from faircal.metrics.measures import Measure, Rankings, measure
from faircal.metrics.results import read_rows, write_rows

MOVING = "moving.csv"
#: What is made of the labelled pairs: nothing, one map on top of the model, or a new model.
AS_IS, RECALIBRATED, FRESH = "as-is", "recalibrated", "fresh"

#: A model that is surer, of either class, is taken to be this sure.
_SUREST = 1e-6

Float64 = NDArray[np.float64]


class MovedRow(NamedTuple):
    """One value of ``moving.csv``: what was made of how many labelled pairs, of how many people.

    `people` is empty where nobody knows who is who.
    """

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str
    strategy: str
    labels: str
    people: str
    fold: str
    group: str
    condition: str
    metric: str
    value: float


class _Labelled(NamedTuple):
    """So many labelled pairs: which of the pool, as a dataset, and of how many people."""

    rows: Rows
    data: Dataset
    people: int | None


#: What was found of one step: attribute, strategy, labelled pairs, their people, measures.
_Step = tuple[str, str, int, int | None, list[Measure]]


def run_moved(
    source: Dataset,
    target: Dataset,
    plan: Plan,
    batch: Iterable[Cell],
    parts: Parts,
    progress: Progress,
    tell: Callable[[Cell], None],
) -> None:
    """Run cells of one feature: fitted on `source` once, tested on each fold of `target`.

    `target` has the feature in use; `tell` is called as a cell ends.
    """
    source = source.select(target.feature)  # one object for all cells, which share a clustering
    models: dict[Cell, dict[str, Method]] = {}
    names = target.fold_names
    by_fold = sorted(batch, key=lambda cell: names.index(cell.fold))
    for fold, cells in groupby(by_fold, key=lambda cell: cell.fold):
        pool, test = target.split(fold)
        # Each fold has people of its own to ask; folds that share some are less independent.
        drawn = draw_labelled(pool, plan.labels, plan.settings.seed + names.index(fold))
        labelled = [_Labelled(rows, pool.subset(rows), count_people(pool, rows)) for rows in drawn]
        for cell in cells:
            fitted = models.setdefault(cell._replace(fold=None), {})
            fits = Fits(source, cell, plan.settings, parts, progress, fitted)
            part, curves, replicates = run_cell(test, fits, plan)
            notes: list[str] = []
            part["moving"] = [
                *_recalibrated(fits, pool, test, labelled, plan),
                *_fresh(fits, test, labelled, plan, notes),
            ]
            part["notes"] = part["notes"] + notes
            parts.write(cell, part, curves, replicates)
            tell(cell)


def _recalibrated(
    fits: Fits, pool: Dataset, test: Dataset, labelled: Iterable[_Labelled], plan: Plan
) -> Iterator[_Step]:
    """Put one map on top of the model's probabilities, fitted on the labelled pairs."""
    for attribute in plan.attributes:
        method = fits.fit(attribute=attribute)
        here, there = method.apply(pool), fits.apply(method, test)
        for step in labelled:
            again = recalibration(here.probability[step.rows], step.data.genuine)
            moved = Output(there.score, again(there.probability))
            source = None
            if _sets_thresholds(plan):
                at = Output(here.score[step.rows], here.probability[step.rows])
                source = rankings_of(at, step.data, None)
            found = _measured(moved, test, attribute, plan, source)
            yield attribute or "", RECALIBRATED, len(step.rows), step.people, found


def recalibration(probability: Float64, genuine: NDArray[np.bool_]) -> Callable[[Float64], Float64]:
    """Return the map that beta calibration of the model's probabilities gives: three numbers.

    Platt's, with its smoothed targets, was twice as far off on 100 pairs of real faces.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        What a model says of labelled pairs.
    genuine : ndarray of shape (n,), bool

    Examples
    --------
    >>> said, genuine = np.repeat([0.5, 0.9], 1000), np.tile([True, False, False, False], 500)
    >>> recalibration(said, genuine)(np.array([0.5, 0.9])).round(2)
    array([0.25, 0.25])
    """

    def within(values: Float64) -> Float64:
        return np.clip(values, _SUREST, 1 - _SUREST)

    fitted = BetaCalibrator(score_range=(0.0, 1.0)).fit(within(probability), genuine)
    return lambda values: fitted.predict(within(values))


def _fresh(
    fits: Fits, test: Dataset, labelled: Iterable[_Labelled], plan: Plan, notes: list[str]
) -> Iterator[_Step]:
    """Fit the method on the labelled pairs alone; say in `notes` where that can't be done."""
    if METHODS[fits.cell.method].needs.training:
        notes.append("not trained on labelled pairs alone: a network for each number and fold")
        return
    for step in labelled:
        alone = Fits(step.data, fits.cell, plan.settings, fits.parts, fits.progress)
        for attribute in plan.attributes:
            try:
                method = _fit_alone(alone, attribute)
            except DataError as error:
                notes.append(f"not fitted on {len(step.rows)} labelled pairs alone: {error}")
                break
            source = None
            if _sets_thresholds(plan):
                source = rankings_of(method.apply(step.data), step.data, None)
            found = _measured(alone.apply(method, test), test, attribute, plan, source)
            yield attribute or "", FRESH, len(step.rows), step.people, found


def _fit_alone(fits: Fits, attribute: str | None) -> Method:
    clusters, images = fits.cell.clusters or 0, len(fits.calibration.used_images())
    if clusters > images:
        raise DataError(f"{images} images for {clusters} clusters")
    return fits.fit(attribute=attribute)


def _sets_thresholds(plan: Plan) -> bool:
    """Whether the labelled pairs set thresholds, as calibration pairs do."""
    return plan.settings.threshold_on == "calibration"


def _measured(
    output: Output, test: Dataset, attribute: str | None, plan: Plan, source: Rankings | None
) -> list[Measure]:
    """Measure the test pairs, at thresholds of `source` or their own."""
    rankings = rankings_of(output, test, attribute)
    return measure(rankings, rates=plan.settings.rates, threshold_from=source)


def collect_moved(plan: Plan, parts: Parts) -> Iterator[MovedRow]:
    """Join what the cells have found, in the order of the plan."""
    for cell in plan.cells:
        part = parts.read(cell)
        front = cell.feature, cell.method, cell.calibrator, str(cell.clusters or "")
        as_is = [(attribute, AS_IS, 0, 0, found) for attribute, found in part["measures"]]
        for attribute, strategy, labels, people, found in (*as_is, *part["moving"]):
            where = strategy, str(labels), "" if people is None else str(people), str(cell.fold)
            yield from (MovedRow(*front, attribute, *where, *measured) for measured in found)


def write_moved(folder: Path, rows: Iterable[MovedRow]) -> None:
    """Write ``moving.csv``; without rows it is removed."""
    write_rows(folder / MOVING, MovedRow, rows)


def read_moved(folder: str | Path) -> list[MovedRow]:
    """Read ``moving.csv`` of a benchmark on two populations; none where there is no such file."""
    return read_rows(Path(folder) / MOVING, MovedRow)
