"""Running a benchmark: folds → fit → score → measure → results, cell by cell."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from faircal._base.errors import FairCalError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.data import Dataset, Groups, crossing_identities
from faircal.data.summary import WrongPairs
from faircal.data.types import unknown_note
from faircal.evaluation.benchmark.cell import (
    CELL_CURVES,
    Fits,
    Parts,
    replicates_over_folds,
    run_cell,
)
from faircal.evaluation.benchmark.populations import Moving
from faircal.evaluation.benchmark.settings import (
    BenchmarkSettings,
    Cell,
    Plan,
    make_plan,
    plugin_hashes,
)
from faircal.evaluation.benchmark.transfer import MOVING, MovedRow, collect_moved, run_moved
from faircal.evaluation.compare import REFERENCE, write_differences
from faircal.evaluation.curves import CURVES, SCHEMA
from faircal.methods import METHODS
from faircal.metrics.intervals import BY_PEOPLE, PAIR_WISE, PeopleBehind, least_ratios, summarise
from faircal.metrics.intervals.dyadic import IdentifiedPairs
from faircal.metrics.intervals.sufficient_data import ERROR_RATES, PeopleByGroup
from faircal.metrics.proportions import gap_by_chance
from faircal.metrics.results import (
    ALL,
    CLUSTERS,
    GLOBAL,
    MEAN,
    MEMBERS,
    REPLICATES,
    STD,
    ClusterRow,
    Member,
    Result,
    read_parquet,
    write_parquet,
    write_replicates,
    write_results,
    write_rows,
    write_run,
)
from faircal.model import versions

#: Seconds between two looks at what the workers have finished.
_REFRESH = 0.5

#: Notes of fits that differ in these only are one.
_NUMBER = re.compile(r"\d[\d.,]*")
_WARNING = "warning: "

#: What the progress of all cells together is called.
_ALL_CELLS = "benchmark"


def ignore_note(_: str) -> None:
    """Say nothing."""


class _StoppedError(Exception):
    """Ends a worker whose run was interrupted."""


def run_benchmark(
    data: Dataset,
    out: str | Path,
    settings: BenchmarkSettings | None = None,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    note: Callable[[str], None] = ignore_note,
    more: Mapping[str, Any] | None = None,
    moving: Moving | None = None,
) -> list[Result]:
    """Run a leave-one-fold-out benchmark and write ``results.csv`` and ``run.json`` to `out`.

    Each cell is written as it ends, and the state of a training every now and then, so an
    interrupted run goes on with ``resume=True``. The results depend on data, settings and seed
    alone, not on `jobs`; those of trained methods also on the device.

    Parameters
    ----------
    data : Dataset
    out : path
    settings : BenchmarkSettings, optional
    jobs : int, optional
        Cells worked on at a time; as many as there are cores by default.
    resume : bool
        Keep the cells that an earlier run with the same settings finished.
    progress : callable
        Called as cells end, and as networks are trained: with (what, done, in all, some words). A
        total of 0 says that there is nothing more to come of it.
    note : callable
        Called with what its user should know before the work begins.
    more : mapping, optional
        What ``run.json`` is to say besides, or in place of what it would say.
    moving : Moving, optional
        Fit on its data in place of the other folds, and write to ``moving.csv`` what labelled
        pairs of `data` gain; `faircal.evaluation.benchmark.move` makes it.

    Returns
    -------
    list of Result
        What ``results.csv`` holds.
    """
    started = time.perf_counter()
    settings = settings or BenchmarkSettings()
    jobs = os.cpu_count() or 1 if jobs is None else jobs
    if jobs < 1:
        raise ParameterError(f"jobs: expected 1 or more, found {jobs}")
    plan = make_plan(data, settings, moving)
    record = make_record(data, plan, jobs, moving)
    parts = Parts.open(Path(out), plan, resume)
    todo = [cell for cell in plan.cells if not parts.has(cell)]
    names = [name for name in METHODS if name in {cell.method for cell in todo}]
    trained = ", ".join(name for name in names if METHODS[name].needs.training)
    if trained:
        note(f"note: networks are trained for {trained}: minutes to hours without a GPU")
    try:
        _work(data, plan, todo, parts, jobs, progress, moving)
    except FairCalError:
        parts.leave_no_trace()
        raise
    results = _collect(data, plan, parts, record)
    home = Path(out)
    write_results(home, results.rows)
    main = [parts.path(cell, CELL_CURVES) for cell in plan.cells if cell.main]
    write_parquet(home / CURVES, pa.concat_tables([read_parquet(path, SCHEMA) for path in main]))
    write_rows(home / CLUSTERS, ClusterRow, results.clusters)
    write_rows(home / MEMBERS, Member, results.members)
    write_replicates(home / REPLICATES, replicates_over_folds(plan, parts))
    write_differences(home, record, results.rows)
    moved = collect_moved(plan, parts) if moving is not None else ()
    write_rows(home / MOVING, MovedRow, moved)  # without rows there is no file
    record["notes"] += _notes_of(results.fits)
    wall = round(time.perf_counter() - started, 3)
    write_run(home, {**record, **(more or {}), "wall_time_s": wall, "fits": results.fits})
    parts.discard_others()
    return results.rows


def _work(
    data: Dataset,
    plan: Plan,
    todo: Sequence[Cell],
    parts: Parts,
    jobs: int,
    progress: Progress,
    moving: Moving | None,
) -> None:
    """Run the cells `todo`, `jobs` batches at a time."""
    batches = _batches(todo, folds_apart=moving is None)
    done = len(plan.cells) - len(todo)
    progress(_ALL_CELLS, done, len(plan.cells), "start")
    for feature in {cell.feature for cell in plan.cells}:
        data.similarity[feature]()  # once, before the folds take their share
        if moving is not None:
            moving.source.similarity[feature]()
    finished: list[Cell] = []  # filled by the workers; append is atomic
    stop = threading.Event()

    def report(what: str, so_far: int, total: int, label: str) -> None:
        if stop.is_set():
            raise _StoppedError
        progress(what, so_far, total, label)

    # One BLAS thread each: the same sums whatever the number of jobs, and no fight over cores.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(_run_batch, data, plan, batch, parts, finished, report, moving)
            for batch in batches
        }
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=_REFRESH, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                if finished:
                    progress(_ALL_CELLS, done + len(finished), len(plan.cells), finished[-1].label)
        except BaseException:
            stop.set()  # a training notices at its next epoch
            for future in waiting:
                future.cancel()
            raise


def _batches(cells: Iterable[Cell], folds_apart: bool = True) -> list[list[Cell]]:
    """Put cells together that share calibration pairs and clustering; a training is alone."""
    batches: dict[tuple[bool, int, str, str, str], list[Cell]] = {}
    for cell in cells:
        trains = METHODS[cell.method].needs.training
        fold = str(cell.fold) if folds_apart else ""
        # What takes longest starts first: trainings, then many clusters.
        first = not trains, -(cell.clusters or 0)
        key = *first, cell.feature, fold, cell.method if trains else ""
        batches.setdefault(key, []).append(cell)
    return [batches[key] for key in sorted(batches)]


def _run_batch(
    data: Dataset,
    plan: Plan,
    batch: list[Cell],
    parts: Parts,
    finished: list[Cell],
    progress: Progress,
    moving: Moving | None,
) -> None:
    target = data.select(batch[0].feature)
    if moving is not None:
        run_moved(moving.source, target, plan, batch, parts, finished, progress)
        return
    calibration, test = plan.split(target, batch[0].fold)
    for cell in batch:
        fits = Fits(calibration, cell, plan.settings, parts, progress)
        parts.write(cell, *run_cell(test, fits, plan))
        finished.append(cell)
        progress(cell.label, 0, 0, "")


class _RunResults(NamedTuple):
    """What the cells have found, in the order of the plan whatever the order they ended in."""

    rows: list[Result]
    fits: list[dict[str, Any]]
    clusters: list[ClusterRow]
    members: list[Member]


def _collect(data: Dataset, plan: Plan, parts: Parts, record: Mapping[str, Any]) -> _RunResults:
    """Join the cells."""
    rows: list[Result] = []
    results = _RunResults(rows, [], [], [])
    for cell in plan.cells:
        part = parts.read(cell)
        clusters = "" if cell.clusters is None else str(cell.clusters)
        front = cell.feature, cell.method, cell.calibrator, clusters
        rows += (each._replace(dataset=data.name) for each in part["results"])
        results.clusters.extend(ClusterRow(*front, str(cell.fold), *of) for of in part["clusters"])
        results.members.extend(Member(*front, str(cell.fold), *of) for of in part["members"])
        results.fits.append(
            {
                "feature": cell.feature,
                "method": cell.method,
                "calibrator": cell.calibrator,
                "clusters": cell.clusters,
                "fold": cell.fold,
                **{key: part[key] for key in ("seconds", "figures", "notes")},
                "choices": part.get("choices", []),  # cells of earlier versions have none
            }
        )
    summed = summarise(rows, lambda attribute: _people_behind(record, attribute))
    means = [row for row in summed if row.fold == MEAN]
    return results._replace(rows=[*summed, *least_ratios(means), *_chance_gaps(summed)])


def _notes_of(fits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each note of the fits once, with the methods and in how many fits it was made.

    Notes that differ only in numbers, as from fold to fold, are one: the first.
    """
    first: dict[str, str] = {}
    methods: dict[str, dict[int, str]] = {}  # that of each fit which made the note
    for number, fit in enumerate(fits):
        for note in fit["notes"]:
            kind = _NUMBER.sub("0", note)
            first.setdefault(kind, note)
            methods.setdefault(kind, {})[number] = fit["method"]
    notes = []
    for kind, by_fit in methods.items():
        names = dict.fromkeys(by_fit.values())
        of = sum(fit["method"] in names for fit in fits)
        text = first[kind].removeprefix(_WARNING)
        titles = ", ".join(METHODS[name].title for name in names)
        mark = _WARNING if text != first[kind] else ""
        notes.append(f"{mark}{titles}, in {len(by_fit)} of {of} fits: {text}")
    return notes


def _people_behind(record: Mapping[str, Any], attribute: str) -> PeopleBehind:
    """Return the effective people behind the values of a group, of all folds together."""
    effective = PeopleByGroup.of(record, attribute).effective
    return lambda group, metric: effective[ERROR_RATES.get(metric, "fpr")].get(group)


def _chance_gaps(rows: Sequence[Result]) -> Iterator[Result]:
    """Give the largest deviation of a group's FPR that groups of equal rates would show by chance.

    Of the method that others are compared with, at each global FPR: the mean over folds.
    """
    rates = [row for row in rows if row.method == REFERENCE and row.condition.startswith("global_")]
    trials: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for row in rates:
        of_fold = row.metric == "fpr" and row.fold not in (MEAN, STD)
        if of_fold and row.group not in (GLOBAL, ALL):
            folds = trials.setdefault((*row[:6], row.attribute, row.condition), {})
            folds.setdefault(row.fold, []).append(int(row.trials))
    for mean in rates:
        if (mean.metric, mean.fold) == ("fpr_mean", MEAN) and not math.isnan(mean.value):
            # Pairs of two groups match less often, so the groups' own rate is above the global one.
            folds = trials[(*mean[:6], mean.attribute, mean.condition)]
            gaps = [gap_by_chance(counts, mean.value) for counts in folds.values()]
            row = Result(*mean[:11], float(np.nanmean(gaps)))
            yield row._replace(metric="fpr_mad_by_chance")


def make_record(
    data: Dataset, plan: Plan, jobs: int, moving: Moving | None = None
) -> dict[str, Any]:
    """Return what ``run.json`` says besides the fits and the time."""
    groups = {attribute: data.groups(attribute) for attribute in plan.attributes if attribute}
    shares = {attribute: codes.shares() for attribute, codes in groups.items()}
    source = {} if moving is None else moving.record(plan.labels, plan.source_hash)
    return {
        "kind": "benchmark",
        "dataset": data.name,
        "simulated": bool(data.provenance.get("simulated", False) or source.get("simulated")),
        "provenance": dict(data.provenance),
        "pairs": len(data),
        "images": len(data.images) if data.has_images else None,
        "folds": data.fold_names,
        "settings": asdict(plan.settings),
        "attributes": list(plan.attributes),
        "groups": shares,
        **_people(data, groups),
        "left_out": dict(plan.left_out),
        "notes": [
            *data.notes,
            *(() if data.cohort is None else data.cohort.notes),
            *plan.notes,
            *(() if moving is None else moving.notes_on(data)),
            *_doubts(data, moving),
            *(
                note
                for name, of in shares.items()
                for note in unknown_note(name, of["unknown_pairs"], of["pairs"])
            ),
        ],
        "data_sha256": plan.data_hash,
        "plugins_sha256": plugin_hashes(),
        "fingerprint": plan.fingerprint,
        "jobs": jobs,
        "versions": versions(),
        **({"moving": source} if source else {}),
        **({} if data.cohort is None else {"cohort": data.cohort.record()}),
    }


def _doubts(data: Dataset, moving: Moving | None) -> list[str]:
    """Say what is wrong with the pairs, which is not so much that they are refused."""
    fitted = [] if moving is None else [moving.source]
    return [
        *(note for each in (data, *fitted) for note in WrongPairs.of(each).check(each.where)),
        *(f"warning: {fault}" for fault in crossing_identities(data)),
    ]


def _people(data: Dataset, groups: Mapping[str, Groups]) -> dict[str, Any]:
    """Count the people of all pairs and of each group, and how many they come to.

    By attribute; besides, as audits have it, those of the first one.
    """
    people = data.people
    if people is None:
        return {"people": None, "effective_people": None, "interval_kind": PAIR_WISE}
    everyone, named = IdentifiedPairs.of(data.genuine, people), len(people.names)
    # Two attributes may have groups of the same name, such as yes and no.
    by: dict[str, dict[str, dict[str, float]]] = {}
    crossings: Mapping[str, Groups | None] = groups or {"": None}
    for attribute, codes in crossings.items():
        identified = {GLOBAL: everyone}
        if codes is not None:
            for code, name in enumerate(codes.names):
                identified[name] = everyone.part(np.flatnonzero(codes.pair == code))
        by[attribute] = {
            "people": {
                name: int(np.searchsorted(each.people, named)) for name, each in identified.items()
            },
            "effective_people": {
                name: round(each.trials["fpr"].effective_people, 1)
                for name, each in identified.items()
            },
            "effective_people_genuine": {
                name: round(each.trials["fnr"].effective_people, 1)
                for name, each in identified.items()
            },
        }
    first = next(iter(by.values()))
    return {**first, "people_by": by if groups else {}, "interval_kind": BY_PEOPLE}
