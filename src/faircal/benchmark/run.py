"""Running a benchmark: folds → fit → score → measure → results, cell by cell."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import groupby
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from faircal.benchmark.parts import Parts
from faircal.benchmark.record import make_record
from faircal.benchmark.settings import Cell, Plan, Settings, build_method, make_plan
from faircal.data import Dataset
from faircal.errors import FairCalError, ParameterError
from faircal.measures import Measure, Rankings, condition, measure
from faircal.methods import METHODS, Method
from faircal.results import Row, summarise, write_results, write_run

#: Seconds between two looks at what the workers have finished.
_REFRESH = 0.5

#: Called with (cells done, cells in all, what was done last).
Progress = Callable[[int, int, str], None]


def run_benchmark(
    data: Dataset,
    out: str | Path,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> list[Row]:
    """Run a leave-one-fold-out benchmark and write ``results.csv`` and ``run.json`` to `out`.

    Each cell is written as it ends, so an interrupted run goes on with ``resume=True``. The
    results depend on data, settings and seed alone, not on `jobs`.

    Parameters
    ----------
    data : Dataset
    out : path
    settings : Settings, optional
    jobs : int, optional
        Cells worked on at a time; as many as there are cores, unless told.
    resume : bool
        Keep the cells that an earlier run with the same settings finished.
    progress : callable
        Called as cells end.

    Returns
    -------
    list of Row
        What ``results.csv`` holds.
    """
    started = time.perf_counter()
    settings = settings or Settings()
    jobs = os.cpu_count() or 1 if jobs is None else jobs
    if jobs < 1:
        raise ParameterError(f"jobs: expected 1 or more, found {jobs}")
    plan = make_plan(data, settings)
    record = make_record(data, plan, jobs)
    parts = Parts.open(Path(out), plan, resume)
    try:
        _work(data, plan, parts, jobs, progress or _silent)
    except FairCalError:
        parts.leave_no_trace()
        raise
    rows, fits = _collect(data, plan, parts)
    write_results(Path(out), rows)
    wall = round(time.perf_counter() - started, 3)
    write_run(Path(out), {**record, "wall_time_s": wall, "fits": fits})
    parts.discard_others()
    return rows


def _silent(*_: Any) -> None:
    """Show no progress."""


def _work(data: Dataset, plan: Plan, parts: Parts, jobs: int, progress: Progress) -> None:
    """Run the cells that are not done, `jobs` batches at a time."""
    batches = _batches([cell for cell in plan.cells if not parts.has(cell)])
    done = len(plan.cells) - sum(map(len, batches))
    progress(done, len(plan.cells), "start")
    for feature in {cell.feature for cell in plan.cells}:
        data.features.scores(feature)  # once, before the folds take their share
    finished: list[Cell] = []  # filled by the workers; append is atomic
    # One BLAS thread each: the same sums whatever the number of jobs, and no fight over cores.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(_run_batch, data, plan, batch, parts, finished) for batch in batches}
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=_REFRESH, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                if finished:
                    label = (
                        f"{finished[-1].method}, {finished[-1].feature}, fold {finished[-1].fold}"
                    )
                    progress(done + len(finished), len(plan.cells), label)
        except BaseException:
            _cancel(waiting)
            raise


def _cancel(waiting: Iterable[Future[None]]) -> None:
    for future in waiting:
        future.cancel()


def _batches(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Put cells together that share calibration pairs and clustering."""

    def shared(cell: Cell) -> tuple[str, str, str]:
        return cell.feature, str(cell.fold), str(cell.clusters)

    batches = [list(batch) for _, batch in groupby(sorted(cells, key=shared), key=shared)]
    # Clusterings take longest: start them first.
    return sorted(batches, key=lambda batch: -(batch[0].clusters or 0))


def _run_batch(
    data: Dataset, plan: Plan, batch: list[Cell], parts: Parts, finished: list[Cell]
) -> None:
    calibration, test = data.select(batch[0].feature).split(batch[0].fold)
    for cell in batch:
        parts.write(cell, run_cell(calibration, test, cell, plan))
        finished.append(cell)


def run_cell(calibration: Dataset, test: Dataset, cell: Cell, plan: Plan) -> dict[str, Any]:
    """Fit, apply and measure one cell; return its measures by attribute, and how the fit went."""
    started = time.perf_counter()
    measures: list[tuple[str, list[Measure]]] = []
    figures: dict[str, float] = {}
    notes: list[str] = []
    fitted: dict[Any, Method] = {}  # by what the fit depends on

    def fit(**more: Any) -> Method:
        method = build_method(cell, plan.settings, **more)
        key = str(method)
        if key not in fitted:
            fitted[key] = method.fit(calibration)
            figures.update(fitted[key].diagnostics_.figures)
            notes.extend(fitted[key].diagnostics_.notes)
        return fitted[key]

    for attribute in plan.attributes:
        found = _measured(fit(attribute=attribute), calibration, test, attribute, plan.settings)
        if plan.settings.retune and METHODS[cell.method].fitted_to_rate:
            for rate in plan.settings.rates:
                tuned = fit(attribute=attribute, target_fpr=rate)
                other = _measured(tuned, calibration, test, attribute, plan.settings)
                found = _replace(found, other, rate)
        measures.append((attribute or "", found))
    return {
        "measures": measures,
        "figures": figures,
        "notes": notes,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _measured(
    method: Method, calibration: Dataset, test: Dataset, attribute: str | None, settings: Settings
) -> list[Measure]:
    def rankings(part: Dataset) -> Rankings:
        output = method.apply(part)
        groups = None if attribute is None else part.groups(attribute)
        return Rankings.of(
            output.score, output.probability, part.genuine, groups, part.score_range[1]
        )

    source = rankings(calibration) if settings.threshold_on == "calibration" else None
    return measure(rankings(test), rates=settings.rates, threshold_from=source)


def _replace(found: list[Measure], other: list[Measure], rate: float) -> list[Measure]:
    """Take from `other` what is reported at the false-positive rate `rate`."""
    conditions = {condition("fpr", rate), condition("global_fpr", rate)}
    return [
        new if old.condition in conditions else old for old, new in zip(found, other, strict=True)
    ]


def _collect(data: Dataset, plan: Plan, parts: Parts) -> tuple[list[Row], list[dict[str, Any]]]:
    """Join the cells, in the order of the plan whatever the order in which they ended."""
    loaded = {cell: parts.read(cell) for cell in plan.cells}
    rows = [row for cell in plan.cells for row in _rows(data, plan, cell, loaded[cell]["measures"])]
    fits = [
        {
            "feature": cell.feature,
            "method": cell.method,
            "calibrator": cell.calibrator,
            "clusters": cell.clusters,
            "fold": cell.fold,
            **{key: loaded[cell][key] for key in ("seconds", "figures", "notes")},
        }
        for cell in plan.cells
    ]
    return summarise(rows), fits


def _rows(data: Dataset, plan: Plan, cell: Cell, measures: Any) -> Iterator[Row]:
    clusters = "" if cell.clusters is None else str(cell.clusters)
    for attribute, found in measures:
        for group, under, metric, value in found:
            yield Row(
                data.name,
                cell.feature,
                cell.method,
                cell.calibrator,
                clusters,
                str(plan.settings.seed),
                str(cell.fold),
                attribute,
                group,
                under,
                metric,
                value,
            )
