"""The report of a folder of results, written again from the numbers in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from faircal._base.jobs import Progress, silent
from faircal.metrics.results import RESULTS
from faircal.report import ResultsFolder, write_all
from faircal.report.paper import Reproduction


@dataclass(frozen=True)
class WrittenReport:
    """The numbers of a folder, and what was made of them.

    Attributes
    ----------
    store : ResultsFolder
    paths : dict of str by str
        Files by name: results, tables, figures, report, …
    paper : Reproduction, optional
        How a reproduction agrees with the paper.
    missing : str
        What to install where there are no figures for want of it.
    """

    store: ResultsFolder
    paths: dict[str, str]
    paper: Reproduction | None
    missing: str


def make_report(
    folder: str | Path, *, all_files: bool = False, progress: Progress = silent
) -> WrittenReport:
    """Write the report of the results in `folder`; nothing is measured anew.

    Parameters
    ----------
    folder : path
        As `audit_folder`, `run_benchmark` or `benchmark_classes` wrote it.
    all_files : bool
        Whether an audit's tables and figures are written as files, too.
    progress : callable
        Called as figures are drawn.

    Examples
    --------
    >>> import faircal
    >>> faircal.make_report("results/").paths["report"]  # doctest: +SKIP
    'results/report.html'
    """
    store = ResultsFolder.read(Path(folder))
    report = write_all(store, all_files=all_files, progress=progress)
    paths = {name: str(path) for name, path in report.paths.items()}
    results = {"results": str(store.folder / RESULTS)}
    return WrittenReport(store, {**results, **paths}, report.paper, report.missing)
