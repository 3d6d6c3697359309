"""All that is made of a folder of results: tables, figures, a page, an audit for machines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from faircal._base.files import write_text
from faircal._base.jobs import Progress, silent
from faircal.metrics.results import AUDIT, RESULTS, csv_text
from faircal.report.cells import TABLES, Table, remove_tables, write_tables
from faircal.report.figures import Drawing
from faircal.report.figures.base import slug
from faircal.report.machine import write_audit_json
from faircal.report.page import draw, write_page
from faircal.report.paper import AGREEMENT, Reproduction, reproduction, write_reproduction
from faircal.report.store import ResultsFolder
from faircal.report.subject import is_audit, subject_of

FIGURES, INDEX = "figures", "index.csv"


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a folder of results, recomputing nothing; return its path."""
    store = ResultsFolder.read(folder)
    paper = reproduction(store) if store.kind == "reproduce" else None
    return write_page(store, paper, draw(store, paper))


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

    An audit's tables and figures are on its page; a benchmark's are files as well.

    Parameters
    ----------
    folder : path
        As `audit_folder`, `run_benchmark` or `benchmark_classes` wrote it.
    all_files : bool
        Whether an audit's tables and figures are written as files, too. Where they are not, those
        of an earlier report are removed.
    progress : callable
        Called as figures are drawn.

    Examples
    --------
    >>> import faircal
    >>> faircal.make_report("results/").paths["report"]  # doctest: +SKIP
    'results/report.html'
    """
    store = ResultsFolder.read(Path(folder))
    all_files = all_files or not is_audit(store)
    paper = reproduction(store) if store.kind == "reproduce" else None
    home = store.folder
    figures = _FigureFolder(home / FIGURES)
    pictures = draw(store, paper, figures.keep if all_files else lambda _: None, progress)
    page = write_page(store, paper, pictures)
    figures.finish()
    paths = {"results": home / RESULTS}
    if all_files:
        paths["tables"] = home / TABLES
    if figures.listed:
        paths["figures"] = figures.home
    if paper is not None:
        write_reproduction(paper)
        paths["agreement"] = home / AGREEMENT
    elif all_files:
        write_tables(dict(enumerate(_tables(store), 1)), home)
    else:
        remove_tables(home)
    if store.kind == "audit":
        paths["audit"] = write_audit_json(store)
    else:
        (home / AUDIT).unlink(missing_ok=True)  # of an audit that was here before
    paths["report"] = page
    written = {name: str(path) for name, path in paths.items()}
    return WrittenReport(store, written, paper, pictures.missing)


def _tables(store: ResultsFolder) -> Iterator[Table]:
    """Give the tables of a run; keys name the attribute where there are several."""
    subject, attributes = subject_of(store), store.results.attributes
    for attribute in attributes:
        of = attribute if len(attributes) > 1 else ""
        for table in subject.every_table(store, attribute):
            yield replace(table, key=slug(table.key, of), simulated=store.simulated)


class _FigureFolder:
    """The folder of figures; ``index.csv`` lists them, so that those of an earlier run can go."""

    columns = ("key", "title", "caption", "words", "files")

    def __init__(self, home: Path) -> None:
        self.home = home
        self.listed: list[tuple[str, ...]] = []

    def keep(self, drawing: Drawing) -> None:
        """Write a figure."""
        figure = drawing.figure
        names = " ".join(path.name for path in drawing.save(self.home))
        self.listed.append((figure.key, figure.title, figure.caption, figure.words, names))

    def finish(self) -> None:
        """Write the index, and remove the figures that the one before lists and this one not."""
        index = self.home / INDEX
        now = {name for *_, names in self.listed for name in names.split()}
        for name in _files(index) - now:
            (self.home / Path(name).name).unlink(missing_ok=True)
        if self.listed:
            write_text(index, csv_text(self.columns, self.listed))
        else:
            index.unlink(missing_ok=True)
        if self.home.is_dir() and not any(self.home.iterdir()):
            self.home.rmdir()


def _files(index: Path) -> set[str]:
    """Return the files that an index lists; none where it can't be read."""
    with suppress(OSError, KeyError, csv.Error), index.open(encoding="utf-8", newline="") as file:
        return {name for row in csv.DictReader(file) for name in row["files"].split()}
    return set()
