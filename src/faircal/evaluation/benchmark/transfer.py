"""Moving to another population: what labelled pairs of it gain, and how many are needed.

Methods are fitted on all pairs of one population and tested on each fold of another, whose other
folds can be labelled. Of n labelled pairs use is made in two ways: the fitted model is recalibrated
by one map on top of its probabilities, or the method is fitted on those pairs alone. `LabelCurve`
says from how many on calibration is as good as it gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress
from faircal.calibrators import BetaCalibrator
from faircal.data import Dataset
from faircal.evaluation.benchmark.cell import Fits, Parts, rankings_of, run_cell
from faircal.evaluation.benchmark.populations import Rows, count_people, draw_labelled
from faircal.evaluation.benchmark.settings import Cell, Plan
from faircal.methods import METHODS, Method, Output
from faircal.metrics.measures import Rankings, measure
from faircal.metrics.results import ALL, GLOBAL, Result, read_rows

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


class _LabelledPairs(NamedTuple):
    """So many labelled pairs: which of the pool, as a dataset, and of how many people."""

    rows: Rows
    data: Dataset
    people: int | None


#: What was found of one step: attribute, strategy, labelled pairs, their people, measures.
_LabellingStep = tuple[str, str, int, int | None, list[Result]]


def run_moved(
    source: Dataset,
    target: Dataset,
    plan: Plan,
    batch: Iterable[Cell],
    parts: Parts,
    finished: list[Cell],
    progress: Progress,
) -> None:
    """Run cells of one feature: fitted on `source` once, tested on each fold of `target`.

    `target` has the feature in use; cells are added to `finished` as they end.
    """
    source = source.select(target.feature)  # one object for all cells, which share a clustering
    models: dict[Cell, dict[str, Method]] = {}
    names = target.fold_names
    by_fold = sorted(batch, key=lambda cell: names.index(cell.fold))
    for fold, cells in groupby(by_fold, key=lambda cell: cell.fold):
        pool, test = target.split(fold)
        # Each fold has people of its own to ask; folds that share some are less independent.
        drawn = draw_labelled(pool, plan.labels, plan.settings.seed + names.index(fold))
        labelled = [
            _LabelledPairs(rows, pool.subset(rows), count_people(pool, rows)) for rows in drawn
        ]
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
            finished.append(cell)
            progress(cell.label, 0, 0, "")


def _recalibrated(
    fits: Fits, pool: Dataset, test: Dataset, labelled: Iterable[_LabelledPairs], plan: Plan
) -> Iterator[_LabellingStep]:
    """Put one map on top of the model's probabilities, fitted on the labelled pairs."""
    for attribute in plan.attributes:
        method = fits.fit(attribute=attribute)
        of_pool, of_test = method.apply(pool), fits.apply(method, test)
        for step in labelled:
            again = recalibration(of_pool.probability[step.rows], step.data.genuine)
            moved = Output(of_test.score, again(of_test.probability))
            source = None
            if _sets_thresholds(plan):
                at = Output(of_pool.score[step.rows], of_pool.probability[step.rows])
                source = rankings_of(at, step.data, None)
            share = float(step.data.genuine.mean())
            measured = _measured(moved, test, attribute, plan, source, share)
            yield attribute or "", RECALIBRATED, len(step.rows), step.people, measured


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
    >>> stated, genuine = np.repeat([0.5, 0.9], 1000), np.tile([True, False, False, False], 500)
    >>> recalibration(stated, genuine)(np.array([0.5, 0.9])).round(2)
    array([0.25, 0.25])
    """

    def within(values: Float64) -> Float64:
        return np.clip(values, _SUREST, 1 - _SUREST)

    # Log-odds of the probability, scaled on both sides and shifted: it can undo overconfidence.
    fitted = BetaCalibrator(score_range=(0.0, 1.0)).fit(within(probability), genuine)
    return lambda values: fitted.predict(within(values))


def _fresh(
    fits: Fits, test: Dataset, labelled: Iterable[_LabelledPairs], plan: Plan, notes: list[str]
) -> Iterator[_LabellingStep]:
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
            output, share = alone.apply(method, test), method.calibrated_at
            measured = _measured(output, test, attribute, plan, source, share)
            yield attribute or "", FRESH, len(step.rows), step.people, measured


def _fit_alone(fits: Fits, attribute: str | None) -> Method:
    clusters, images = fits.cell.clusters or 0, len(fits.calibration.used_images())
    if clusters > images:
        raise DataError(f"{images} images for {clusters} clusters")
    return fits.fit(attribute=attribute)


def _sets_thresholds(plan: Plan) -> bool:
    """Whether the labelled pairs set thresholds, as calibration pairs do."""
    return plan.settings.threshold_on == "calibration"


def _measured(
    output: Output,
    test: Dataset,
    attribute: str | None,
    plan: Plan,
    source: Rankings | None,
    share: float | None,
) -> list[Result]:
    """Measure the test pairs, at thresholds of `source` or their own."""
    rankings, rates = rankings_of(output, test, attribute), plan.settings.rates
    return measure(rankings, rates=rates, threshold_from=source, calibrated_at=share)


def collect_moved(plan: Plan, parts: Parts) -> Iterator[MovedRow]:
    """Join what the cells have found, in the order of the plan."""
    for cell in plan.cells:
        part = parts.read(cell)
        front = cell.feature, cell.method, cell.calibrator, str(cell.clusters or "")
        by = groupby(part["results"], key=lambda row: row.attribute)
        as_is = [(attribute, AS_IS, 0, 0, list(measures)) for attribute, measures in by]
        for attribute, strategy, labels, people, measures in (*as_is, *part["moving"]):
            where = strategy, str(labels), "" if people is None else str(people), str(cell.fold)
            for each in map(Result._make, measures):
                yield MovedRow(*front, attribute, *where, *each.what, each.value)


def read_moved(folder: str | Path) -> list[MovedRow]:
    """Read ``moving.csv`` of a benchmark on two populations; none where there is no such file."""
    return read_rows(Path(folder) / MOVING, MovedRow)


#: Feature, method, calibrator, clusters, attribute, strategy.
_Key = tuple[str, str, str, str, str, str]
#: Differences of fewer standard errors over folds than this can't be distinguished from chance.
ERRORS = 2.0


class LabellingPoint(NamedTuple):
    """A metric with so many labelled pairs: of how many people (NaN: unknown), and by fold."""

    people: float
    by_fold: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Over the folds where it is known; NaN where it is in none."""
        values = [value for value in self.by_fold.values() if not math.isnan(value)]
        return float(np.mean(values)) if values else math.nan

    @property
    def error(self) -> float:
        """The standard error of `mean` over folds; NaN with fewer than two."""
        return _error([value for value in self.by_fold.values() if not math.isnan(value)])


@dataclass(frozen=True)
class LabellingCurve:
    """How a metric falls as pairs of the new population are labelled, one strategy of a method.

    Parameters
    ----------
    feature, method, calibrator, clusters, attribute, strategy : str
        As in ``moving.csv``.
    points : mapping from number of labelled pairs to Point
        Ascending; the model as it is has 0.

    Examples
    --------
    >>> by_fold = {0: {"1": 0.2, "2": 0.21}, 100: {"1": 0.03, "2": 0.01}}
    >>> by_fold |= {1000: {"1": 0.01, "2": 0.02}}
    >>> points = {labels: LabellingPoint(labels / 10, by_fold[labels]) for labels in by_fold}
    >>> curve = LabellingCurve("f", "m", "", "", "", "recalibrated", points)
    >>> curve.labels_needed, curve.gains
    (100, True)
    """

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str
    strategy: str
    points: Mapping[int, LabellingPoint]

    @cached_property
    def most(self) -> int:
        """The largest number of labelled pairs."""
        return max(self.points)

    @property
    def labels_needed(self) -> int:
        """As `as_good`; 0 where labelled pairs gain nothing over the model as it is."""
        return 0 if 0 in self.points and not self.gains else self.as_good

    @cached_property
    def as_good(self) -> int:
        """The fewest labelled pairs with which, and with more, it is as good as with the most.

        As good is: no worse than the folds can show, `ERRORS` standard errors of the
        difference. So few folds tell little, and rather too few pairs are named than too many.
        """
        fewest = self.most
        for labels in sorted(self.points, reverse=True):
            if self.worse(labels, self.most):
                break
            fewest = labels
        return fewest

    @property
    def gains(self) -> bool:
        """Whether the most labelled pairs are better than none, beyond chance."""
        return self.worse(0, self.most) if 0 in self.points else False

    def worse(self, one: int, other: int) -> bool:
        """Whether `one` number of labelled pairs is worse than another, fold by fold."""
        first, second = self.points[one].by_fold, self.points[other].by_fold
        differences = [first[fold] - second[fold] for fold in first if fold in second]
        finite = [value for value in differences if not math.isnan(value)]
        error = _error(finite)
        return bool(finite) and float(np.mean(finite)) > (
            0.0 if math.isnan(error) else ERRORS * error
        )

    @property
    def words(self) -> str:
        """How many labelled pairs it takes, and what is left then.

        Examples
        --------
        >>> points = {0: LabellingPoint(0, {"1": 0.2, "2": 0.21})}
        >>> points[100] = LabellingPoint(9, {"1": 0.01, "2": 0.02})
        >>> LabellingCurve("f", "m", "", "", "", "recalibrated", points).words
        'still better with all 100 labelled pairs (9 people): 20.5 % as it is, 1.5 % with 100.'
        """
        first, most, needed = min(self.points), self.most, self.labels_needed
        start, last = (f"{100 * self.points[labels].mean:.3g} %" for labels in (first, most))
        change = f"{start} {f'with {first}' if first else 'as it is'}, {last} with {most}."
        if first == 0 and not self.gains:
            text = f"labelled pairs gain nothing that can be told: {change}"
            least = self.as_good
            return text + (f" If any are used, use about {least} or more." if least else "")
        people = self.points[needed].people
        whose = "" if math.isnan(people) else f" ({people:.0f} people)"
        how = "still better with all" if needed == most > first else "restored with about"
        return f"{how} {needed} labelled pairs{whose}: {change}"

    def record(self, metric: str) -> dict[str, Any]:
        """Return everything by name, for machines; `metric` is that of the points."""
        names = ("feature", "method", "calibrator", "clusters", "attribute", "strategy")
        return {
            **{name: getattr(self, name) for name in names},
            "metric": metric,
            "points": [
                {"labels": labels, "people": at.people, "value": at.mean, "error": at.error}
                for labels, at in self.points.items()
            ],
            "enough": self.labels_needed,
            "gains": self.gains,
        }


def curves_of(folder: Path) -> dict[str, list[LabellingCurve]]:
    """Return the curves of a benchmark on two populations: KS of all pairs, and over groups."""
    rows = read_moved(folder)
    return {
        "ks": labelling_curves(rows, "ks", GLOBAL),
        "ks_mean": labelling_curves(rows, "ks_mean", ALL),
    }


def labelling_curves(rows: Iterable[MovedRow], metric: str, group: str) -> list[LabellingCurve]:
    """Return the curves of a metric without condition; those of recalibrated models begin at 0.

    Parameters
    ----------
    rows : iterable of MovedRow
    metric, group : str
        Such as ``ks`` of ``global``, or ``ks_mean`` of ``all``.
    """
    curves: dict[_Key, dict[int, list[MovedRow]]] = {}
    for row in rows:
        if (row.metric, row.group, row.condition) == (metric, group, ""):
            # The model as it is, is the recalibrated one before a pair is labelled.
            strategy = RECALIBRATED if row.strategy == AS_IS else row.strategy
            steps = curves.setdefault((*row[:5], strategy), {})
            steps.setdefault(int(row.labels), []).append(row)
    return [
        LabellingCurve(*key, {labels: _point(steps[labels]) for labels in sorted(steps)})
        for key, steps in curves.items()
    ]


def _point(rows: list[MovedRow]) -> LabellingPoint:
    people = [float(row.people) if row.people else math.nan for row in rows]
    return LabellingPoint(float(np.mean(people)), {row.fold: row.value for row in rows})


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
