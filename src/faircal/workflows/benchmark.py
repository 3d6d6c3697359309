"""Comparing methods by leave-one-fold-out, into a folder with its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faircal._base.files import check_output
from faircal._base.jobs import Progress, silent, step
from faircal.data import Cohort, Dataset, PairFiles
from faircal.data.cohort_overlap import join_cohort
from faircal.data.dataset_folder import as_cohort
from faircal.data.simulation import simulate
from faircal.evaluation.benchmark import BenchmarkSettings, move, run_benchmark
from faircal.evaluation.benchmark.run import ignore_note
from faircal.methods import METHODS
from faircal.report.writing import WrittenReport, make_report

#: Large enough to resolve a false-positive rate of 0.1 %, of 1 % in each of its eight groups; a
#: ninth of the preset's pairs, so that all methods take well under a minute.
DEMO, DEMO_SIZE = "bfw-like", {"people": 400, "images": 6_000, "pairs": 100_000}
#: With methods that train networks: small enough to do that in minutes without a GPU.
DEMO_OF_ALL = "small"
#: People a group that a demonstration takes out of the calibration people as the cohort.
_DRAWN = 10


def benchmark(
    data: Dataset | PairFiles | str | Path,
    out: str | Path,
    *,
    calibrate_on: PairFiles | str | Path | None = None,
    labels: Sequence[int] = (),
    people_apart: bool = False,
    cohort: Cohort | str | Path | None = None,
    cohort_attribute: str | None = None,
    features: Sequence[str] = (),
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    note: Callable[[str], None] = ignore_note,
    **settings: Any,
) -> WrittenReport:
    """Compare methods by leave-one-fold-out and write results, tables, figures and the page.

    Parameters
    ----------
    data : Dataset, PairFiles or path
        Labelled pairs in folds.
    out : path
        Folder to write to.
    calibrate_on : PairFiles or path, optional
        Another population, that methods are fitted on in place of the other folds of `data`.
    labels : sequence of int
        Numbers of labelled pairs of `data` to try, where methods move to it.
    people_apart : bool
        People of one name in both populations are different people.
    cohort : Cohort or path, optional
        People of known groups, for methods that compare with them.
    cohort_attribute : str, optional
        What makes the groups of a cohort in a folder, or of one that is drawn.
    features : sequence of str
        Networks or score columns to use; all unless given.
    seed : int
    jobs : int, optional
        Cells worked on at a time.
    resume : bool
        Go on where an interrupted run stopped.
    progress : callable
    note : callable
        Called with what its user should know before the work begins.
    **settings
        Fields of `faircal.evaluation.benchmark.BenchmarkSettings`, such as `methods`.

    Examples
    --------
    >>> import faircal
    >>> report = faircal.benchmark("faces/", "results/", methods=["faircal"])  # doctest: +SKIP
    >>> report.paths["report"]  # doctest: +SKIP
    'results/report.html'
    """
    check_output(Path(out), folder=True)
    how: dict[str, Any] = {"seed": seed, "progress": progress}
    loaded = data if isinstance(data, Dataset) else PairFiles.of(data).load(features, **how)
    if settings.get("draw_cohort") is not None and cohort is None:
        settings["cohort_attribute"] = cohort_attribute
    elif (others := as_cohort(cohort, cohort_attribute)) is not None:
        loaded = join_cohort(loaded, others)
    moving = None
    if calibrate_on is not None:
        source = PairFiles.of(calibrate_on).load(features, **how)
        if loaded.cohort is not None:
            source = join_cohort(source, loaded.cohort)
            loaded = loaded.with_cohort(source.cohort)
        loaded, moving = move(source, loaded, labels, people_apart=people_apart)
    for text in () if loaded.cohort is None else loaded.cohort.notes:
        note(f"note: {text}")
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }
    with written_stays("the benchmark"):
        run_benchmark(
            loaded,
            out,
            BenchmarkSettings(seed=seed, **fields),
            jobs=jobs,
            resume=resume,
            progress=progress,
            note=note,
            moving=moving,
        )
        return make_report(out, progress=progress)


def demo(
    out: str | Path,
    *,
    everything: bool = False,
    seed: int = 0,
    progress: Progress = silent,
    note: Callable[[str], None] = ignore_note,
) -> WrittenReport:
    """Compare on simulated faces the methods that need no extra, or `everything` installed."""
    check_output(Path(out), folder=True)
    needs = {name: method.needs for name, method in METHODS.items()}
    names = tuple(
        name
        for name, need in needs.items()
        if need.extra is None or (everything and need.uninstalled() is None)
    )
    if everything:
        for name in (name for name in needs if name not in names):
            note(f"note: {name} is left out: it needs {needs[name].uninstalled()}")
    preset = DEMO_OF_ALL if everything else DEMO
    with step(progress, f"simulating {preset}"):
        data = simulate(preset, seed=seed, **({} if everything else DEMO_SIZE))
    note(f"{data.name}: {len(data)} pairs; simulated, no real people")
    settings = BenchmarkSettings(methods=names, seed=seed, draw_cohort=_DRAWN)
    run_benchmark(data, out, settings, progress=progress, note=note)
    return make_report(out, progress=progress)


@contextmanager
def written_stays(work: str) -> Iterator[None]:
    """Say how to go on where the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"what is written stays, and {work} goes on with --resume"
        ) from error
