"""All that is made of a folder of results: a page, tables, figures, an audit for machines.

What a page is about, pairs of faces or a classifier's rows, is a `Subject`: texts and functions.
Nothing else asks what kind of run it is.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import MissingExtraError
from faircal._base.files import write_text
from faircal._base.jobs import Progress, silent
from faircal._version import __version__
from faircal.metrics.results import AUDIT, REPORT, RESULTS, csv_text
from faircal.report.cells import TABLES, Table, write_tables
from faircal.report.classes.figures import class_figures
from faircal.report.classes.tables import class_differences, class_tables, further_class_tables
from faircal.report.classes.words import class_summary
from faircal.report.explorer import explorer
from faircal.report.figures import Drawing, FigureRecord, standard_figures
from faircal.report.figures.base import slug
from faircal.report.machine import write_audit_json
from faircal.report.paper import AGREEMENT, PAPER, Reproduction, reproduction, write_reproduction
from faircal.report.rendering import render, resource
from faircal.report.store import ResultsFolder
from faircal.report.tables import difference_tables, further_tables, main_tables
from faircal.report.wording import method_title
from faircal.report.words import Summary, summary

FIGURES, INDEX = "figures", "index.csv"
_INDEX_COLUMNS = ("key", "title", "caption", "words", "files")
_SCRIPTS = ("chart.js", "page.js")
_WIDE = 520  # points
_QUESTIONS = {
    "who": "Who is treated differently, and by how much?",
    "sure": "How sure are we?",
    "changes": "What do the methods change?",
    "limits": "What this cannot tell",
}


@dataclass(frozen=True)
class Subject:
    """Faces, or classifiers: texts, and functions from a store (and an attribute) to what is shown.

    Parameters
    ----------
    kinds : mapping
        From the kind of a run to what stands over the page's title.
    lead, simulated : str
        The sentence below the title; what is said of simulated data.
    everything : str
        What all of the data is called where there are no groups.
    more : str
        What is behind the fold of further tables.
    terms : mapping
        The glossary: from each term to what it means.
    facts : sequence of str
        Entries of ``run.json`` that say how it was computed, besides settings and versions.
    summary, main, differences, further, figures : callable
        From store and attribute to the summary, the tables that the terminal shows, too, those of
        differences between methods, those behind the fold, the figures.
    explorer : callable, optional
        From store to the data of the explorer; without it the page has none, and no script.
    """

    kinds: Mapping[str, str]
    lead: str
    simulated: str
    everything: str
    more: str
    terms: Mapping[str, str]
    facts: Sequence[str]
    summary: Callable[[ResultsFolder, str], Summary]
    main: Callable[[ResultsFolder, str], list[Table]]
    differences: Callable[[ResultsFolder, str], list[Table]]
    further: Callable[[ResultsFolder, str], list[Table]]
    figures: Callable[[ResultsFolder, str], list[FigureRecord]]
    explorer: Callable[[ResultsFolder], dict[str, Any]] | None = None


_TEXTS: dict[str, dict[str, Any]] = tomllib.loads(resource("subjects.toml"))
FACES = Subject(
    **_TEXTS["faces"],
    summary=summary,
    main=main_tables,
    differences=difference_tables,
    further=further_tables,
    figures=standard_figures,
    explorer=explorer,
)
CLASSES = Subject(
    **_TEXTS["classes"],
    summary=class_summary,
    main=class_tables,
    differences=class_differences,
    further=further_class_tables,
    figures=class_figures,
)
COMPARED_CLASSES = replace(CLASSES, **_TEXTS["compared_classes"])
#: What an audit measures: a table's probabilities, and those of a model.
_AUDITED = ("", "uncalibrated", "faircal")


def subject_of(store: ResultsFolder) -> Subject:
    """Return what a store's report is about; faces, unless its kind is one of classifiers.

    Of classifiers: an audit, or calibrations that are compared. A benchmark says by which
    calibrator it fitted; where that was not written, its methods tell.
    """
    if store.kind not in CLASSES.kinds:
        return FACES
    methods = {variant.method for variant in store.results.variants}
    settings = store.run.get("settings")
    fitted = isinstance(settings, dict) and bool(settings.get("calibrator"))
    compared = len(methods) > 1 and not methods <= set(_AUDITED)
    return COMPARED_CLASSES if fitted or compared else CLASSES


class PageFigure(NamedTuple):
    """A figure as the page shows it; `drawing` is an ``<svg>`` element that says it in words.

    It is `wide` where it needs the page's width.
    """

    title: str
    caption: str
    drawing: str
    wide: bool


class PageFigures(NamedTuple):
    """The figures by attribute, those of the paper under None; or why there are none.

    `files` has the rows of ``index.csv`` of those that were written as files, too.
    """

    of: dict[str | None, list[PageFigure]]
    files: list[tuple[str, ...]]
    missing: str = ""


class AttributeView(NamedTuple):
    """What is shown for one attribute."""

    title: str
    answers: list[tuple[str, list[str]]]
    tables: list[Table]
    further: list[Table]
    figures: list[PageFigure]


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
    store = ResultsFolder.read(folder)
    subject, home = subject_of(store), store.folder
    # One set of scores or probabilities was measured, and no methods were compared.
    is_audit = store.kind == "audit" or subject is CLASSES
    all_files = all_files or not is_audit
    paper = reproduction(store) if store.kind == "reproduce" else None
    pictures = draw(store, paper, home / FIGURES if all_files else None, progress)
    page = write_page(store, paper, pictures)
    _write_index(home / FIGURES, pictures.files)
    paths = {"results": home / RESULTS}
    if all_files:
        paths["tables"] = home / TABLES
    if pictures.files:
        paths["figures"] = home / FIGURES
    if paper is not None:
        write_reproduction(paper)
        paths["agreement"] = home / AGREEMENT
    else:
        attributes = store.results.attributes if all_files else []
        tables = [
            replace(
                table,
                key=slug(table.key, attribute if len(attributes) > 1 else ""),
                simulated=store.simulated,
            )
            for attribute in attributes
            for of in (subject.main, subject.differences, subject.further)
            for table in of(store, attribute)
        ]
        write_tables(dict(enumerate(tables, 1)), home)
    if store.kind == "audit":
        paths["audit"] = write_audit_json(store)
    else:
        (home / AUDIT).unlink(missing_ok=True)  # of an audit that was here before
    paths["report"] = page
    written = {name: str(path) for name, path in paths.items()}
    return WrittenReport(store, written, paper, pictures.missing)


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a folder of results, recomputing nothing; return its path."""
    store = ResultsFolder.read(folder)
    paper = reproduction(store) if store.kind == "reproduce" else None
    return write_page(store, paper, draw(store, paper))


def draw(
    store: ResultsFolder,
    paper: Reproduction | None,
    home: Path | None = None,
    progress: Progress = silent,
) -> PageFigures:
    """Draw all figures for the page, and as files into the folder `home` where one is given."""
    try:
        figures: dict[str | None, list[Any]] = {
            name: subject_of(store).figures(store, name) for name in store.results.attributes
        }
        figures[None] = paper.figures if paper else []
        drawn: dict[str | None, list[PageFigure]] = {name: [] for name in figures}
        files: list[tuple[str, ...]] = []
        total = sum(map(len, figures.values()))
        for name, each in figures.items():
            for figure in each:
                progress("drawing", sum(map(len, drawn.values())), total, figure.title)
                drawing = Drawing(figure, "simulated data" if store.simulated else "")
                if home is not None:
                    names = " ".join(path.name for path in drawing.save(home))
                    row = (figure.key, figure.title, figure.caption, figure.words, names)
                    files.append(row)
                svg = drawing.svg()
                width = re.search(r'width="([\d.]+)"', svg)
                wide = width is not None and float(width[1]) > _WIDE
                drawn[name].append(PageFigure(figure.title, figure.caption, svg, wide))
        return PageFigures(drawn, files)
    except MissingExtraError as error:
        return PageFigures({}, [], str(error))
    finally:
        progress("drawing", 0, 0, "")


def _write_index(home: Path, listed: list[tuple[str, ...]]) -> None:
    """Write ``index.csv`` of figures, and remove those that the one before lists and this not."""
    index, before = home / INDEX, set()
    with suppress(OSError, KeyError, csv.Error), index.open(encoding="utf-8", newline="") as file:
        before = {name for row in csv.DictReader(file) for name in row["files"].split()}
    for name in before - {name for *_, names in listed for name in names.split()}:
        (home / Path(name).name).unlink(missing_ok=True)
    if listed:
        write_text(index, csv_text(_INDEX_COLUMNS, listed))
    else:
        index.unlink(missing_ok=True)
    if home.is_dir() and not any(home.iterdir()):
        home.rmdir()


def write_page(store: ResultsFolder, paper: Reproduction | None, pictures: PageFigures) -> Path:
    """Write ``report.html``; return its path. In a reproduction the paper's tables stand apart."""
    subject, views = subject_of(store), []
    for attribute in store.results.attributes:
        answers = subject.summary(store, attribute)
        main = [subject.main, subject.differences] if paper is None else []
        further = [] if paper else subject.further(store, attribute)
        view = AttributeView(
            f"Groups by {attribute.replace('+', ' and ')}" if attribute else subject.everything,
            [(title, getattr(answers, name)) for name, title in _QUESTIONS.items()],
            [table for of in main for table in of(store, attribute)],
            further,
            pictures.of.get(attribute, []),
        )
        views.append(view)
    explored = subject.explorer(store) if subject.explorer else None
    script = "" if explored is None else "\n".join(map(resource, _SCRIPTS))
    text = render(
        "page.html",
        dataset=store.results.dataset,
        kind=subject.kinds.get(store.kind, store.kind),
        subject=subject,
        simulated=store.simulated,
        parts=views,
        explorer=explored,
        # JSON that nothing in it can end: every < is written as a number.
        explorer_json=json.dumps(explored, separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        ),
        pooled=len(store.curves.folds) > 1,
        moved_from=store.moved_from,
        missing=pictures.missing,
        paper_figures=pictures.of.get(None, []),
        paper=paper,
        reference=PAPER,
        notes=_notes(store.run) + (paper.notes if paper else []),
        facts=_facts(store.run, subject.facts),
        style=resource("page.css"),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        version=__version__,
    )
    path = store.folder / REPORT
    write_text(path, text)
    return path


def _notes(run: dict[str, Any]) -> list[str]:
    notes = [str(note) for note in run.get("notes", [])]
    notes += [f"{method} was left out: {why}." for method, why in run.get("left_out", {}).items()]
    fits = run.get("fits", [])
    chosen = ((fit["method"], note) for fit in fits for note in fit.get("choices", []))
    notes += sorted({f"{method_title(method)}: {note}" for method, note in chosen})
    return notes


def _facts(run: dict[str, Any], plain: Sequence[str]) -> list[tuple[str, str]]:
    """Return how it was computed, as (name, value) pairs; of the record's entries the `plain`."""
    objectives: dict[str, dict[str, None]] = {}
    for fit in run.get("fits", []):
        if "inertia" in fit.get("figures", {}):
            of = objectives.setdefault(f"{fit['feature']}, K = {fit['clusters']}", {})
            of[f"{fit['figures']['inertia']:.6g}"] = None
    facts = [(key.replace("_", " "), run[key]) for key in plain if run.get(key) is not None]
    facts += [(f"setting: {key}", value) for key, value in run.get("settings", {}).items()]
    facts += [(f"version: {key}", value) for key, value in run.get("versions", {}).items()]
    facts += [(f"K-means objective, {name}", list(values)) for name, values in objectives.items()]
    return [(name, _plain(value)) for name, value in facts]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_plain(item)}" for key, item in value.items()) or "default"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "default"
    return "not given" if value is None else str(value)
