"""Running a benchmark: folds → fit → score → measure → results, cell by cell."""

from __future__ import annotations

import os
import threading
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
from faircal.jobs import Progress, silent
from faircal.measures import Measure, Rankings, condition, measure
from faircal.methods import METHODS, Method
from faircal.results import Row, summarise, write_results, write_run

#: Seconds between two looks at what the workers have finished.
_REFRESH = 0.5

#: What the progress of all cells together is called.
_WHOLE = "benchmark"


def unsaid(_: str) -> None:
    """Say nothing."""


class _StoppedError(Exception):
    """Ends a worker whose run was interrupted."""


def run_benchmark(
    data: Dataset,
    out: str | Path,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    note: Callable[[str], None] = unsaid,
) -> list[Row]:
    """Run a leave-one-fold-out benchmark and write ``results.csv`` and ``run.json`` to `out`.

    Each cell is written as it ends, and the state of a training every now and then, so an
    interrupted run goes on with ``resume=True``. The results depend on data, settings and seed
    alone, not on `jobs`; those of trained methods also on the device.

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
        Called as cells end, and as networks are trained: with (what, done, in all, some words). A
        total of 0 says that there is nothing more to come of it.
    note : callable
        Called with what its user should know before the work begins.

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
    trained = {cell.method for cell in plan.cells if _trains(cell) and not parts.has(cell)}
    if trained:
        names = ", ".join(name for name in METHODS if name in trained)
        note(f"note: networks are trained for {names}: minutes to hours without a GPU")
    try:
        _work(data, plan, parts, jobs, progress)
    except FairCalError:
        parts.leave_no_trace()
        raise
    rows, fits = _collect(data, plan, parts)
    write_results(Path(out), rows)
    wall = round(time.perf_counter() - started, 3)
    write_run(Path(out), {**record, "wall_time_s": wall, "fits": fits})
    parts.discard_others()
    return rows


def _work(data: Dataset, plan: Plan, parts: Parts, jobs: int, progress: Progress) -> None:
    """Run the cells that are not done, `jobs` batches at a time."""
    batches = _batches([cell for cell in plan.cells if not parts.has(cell)])
    done = len(plan.cells) - sum(map(len, batches))
    progress(_WHOLE, done, len(plan.cells), "start")
    for feature in {cell.feature for cell in plan.cells}:
        data.features.scores(feature)  # once, before the folds take their share
    finished: list[Cell] = []  # filled by the workers; append is atomic
    stop = threading.Event()

    def tell(what: str, so_far: int, total: int, label: str) -> None:
        if stop.is_set():
            raise _StoppedError
        progress(what, so_far, total, label)

    # One BLAS thread each: the same sums whatever the number of jobs, and no fight over cores.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(_run_batch, data, plan, batch, parts, finished, tell) for batch in batches
        }
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=_REFRESH, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                if finished:
                    progress(_WHOLE, done + len(finished), len(plan.cells), finished[-1].label)
        except BaseException:
            stop.set()  # a training notices at its next epoch
            _cancel(waiting)
            raise


def _trains(cell: Cell) -> bool:
    return METHODS[cell.method].needs.training


def _cancel(waiting: Iterable[Future[None]]) -> None:
    for future in waiting:
        future.cancel()


def _batches(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Put cells together that share calibration pairs and clustering; a training is alone."""

    def shared(cell: Cell) -> tuple[str, str, str, str]:
        alone = cell.method if _trains(cell) else ""
        return cell.feature, str(cell.fold), str(cell.clusters), alone

    def cost(batch: list[Cell]) -> tuple[bool, int]:
        return _trains(batch[0]), batch[0].clusters or 0

    batches = [list(batch) for _, batch in groupby(sorted(cells, key=shared), key=shared)]
    return sorted(batches, key=cost, reverse=True)  # what takes longest starts first


def _run_batch(
    data: Dataset,
    plan: Plan,
    batch: list[Cell],
    parts: Parts,
    finished: list[Cell],
    progress: Progress,
) -> None:
    calibration, test = data.select(batch[0].feature).split(batch[0].fold)
    for cell in batch:
        parts.write(cell, run_cell(calibration, test, cell, plan, parts, progress))
        finished.append(cell)
        progress(cell.label, 0, 0, "")


def run_cell(
    calibration: Dataset, test: Dataset, cell: Cell, plan: Plan, parts: Parts, progress: Progress
) -> dict[str, Any]:
    """Fit, apply and measure one cell; return its measures by attribute, and how the fit went."""
    started = time.perf_counter()
    measures: list[tuple[str, list[Measure]]] = []
    figures: dict[str, float] = {}
    notes: list[str] = []
    fitted: dict[Any, Method] = {}  # by what the fit depends on

    stages: dict[str, tuple[int, int]] = {}  # epochs done and in all

    def tell(stage: str, done: int, total: int, label: str) -> None:
        stages[stage] = done, total
        so_far, in_all = map(sum, zip(*stages.values(), strict=True))
        progress(cell.label, so_far, in_all, f"{stage}: {label}")

    def fit(**more: Any) -> Method:
        method = build_method(cell, plan.settings, **more)
        key = repr(sorted(method.get_params().items()))
        if key not in fitted:
            checkpoint = parts.checkpoint(cell, key)
            fitted[key] = method.fit(calibration, progress=tell, checkpoint=checkpoint, resume=None)
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
    loaded = [(cell, parts.read(cell)) for cell in plan.cells]
    rows = [row for cell, part in loaded for row in _rows(data, plan, cell, part["measures"])]
    fits = [
        {
            "feature": cell.feature,
            "method": cell.method,
            "calibrator": cell.calibrator,
            "clusters": cell.clusters,
            "fold": cell.fold,
            **{key: part[key] for key in ("seconds", "figures", "notes")},
        }
        for cell, part in loaded
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
