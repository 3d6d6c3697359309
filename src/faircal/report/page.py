"""``report.html``: one page of all that a folder of results holds."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from faircal._base.errors import MissingExtraError
from faircal._base.files import write_text
from faircal._base.jobs import Progress, silent
from faircal._version import __version__
from faircal.metrics.results import REPORT
from faircal.report.cells import Table, TableValue
from faircal.report.figures import Drawing, Figure, Panels
from faircal.report.paper import PAPER, Reproduction
from faircal.report.rendering import render, resource
from faircal.report.store import ResultsFolder
from faircal.report.subject import Subject, subject_of

_SCRIPTS = ("chart.js", "page.js")
_WIDE = 520  # points
_QUESTIONS = {
    "who": "Who is treated differently, and by how much?",
    "sure": "How sure are we?",
    "changes": "What do the methods change?",
    "limits": "What this cannot tell",
}


@dataclass(frozen=True)
class PageFigure:
    """A figure as the page shows it; `drawing` is an ``<svg>`` element that says it in words."""

    title: str
    caption: str
    drawing: str

    @property
    def wide(self) -> bool:
        """Whether it needs the page's width."""
        width = re.search(r'width="([\d.]+)"', self.drawing)
        return width is not None and float(width[1]) > _WIDE


@dataclass(frozen=True)
class AttributeView:
    """What is shown for one attribute."""

    title: str
    answers: list[tuple[str, list[str]]]
    tables: list[Table]
    further: list[Table]
    figures: list[PageFigure]


@dataclass(frozen=True)
class PageFigures:
    """The figures by attribute and those of the paper; or why there are none."""

    of: dict[str, list[PageFigure]]
    paper: list[PageFigure]
    missing: str = ""


def write_page(store: ResultsFolder, paper: Reproduction | None, pictures: PageFigures) -> Path:
    """Write ``report.html``; return its path."""
    subject, names = subject_of(store), store.results.attributes
    explored = subject.explorer(store) if subject.explorer else None
    script = "" if explored is None else "\n".join(map(resource, _SCRIPTS))
    text = render(
        "page.html",
        {"published": _published, "ends": _ends},
        dataset=store.results.dataset,
        kind=subject.kinds.get(store.kind, store.kind),
        subject=subject,
        simulated=store.simulated,
        parts=[_part(subject, store, name, paper, pictures) for name in names],
        explorer=explored,
        explorer_json=_json(explored),
        pooled=len(store.curves.folds) > 1,
        moved_from=store.moved_from,
        pictures=pictures,
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


def _part(
    subject: Subject,
    store: ResultsFolder,
    attribute: str,
    paper: Reproduction | None,
    pictures: PageFigures,
) -> AttributeView:
    """Gather what is shown for an attribute; in a reproduction the paper's tables stand apart."""
    said = subject.summary(store, attribute)
    return AttributeView(
        f"Groups by {attribute.replace('+', ' and ')}" if attribute else subject.everything,
        [(title, getattr(said, name)) for name, title in _QUESTIONS.items()],
        [] if paper else subject.tables(store, attribute),
        [] if paper else subject.further(store, attribute),
        pictures.of.get(attribute, []),
    )


def draw(
    store: ResultsFolder,
    paper: Reproduction | None,
    keep: Callable[[Drawing], object] = lambda _: None,
    progress: Progress = silent,
) -> PageFigures:
    """Draw all figures for the page; `keep` is given each, to write it elsewhere, too."""
    try:
        figures_of = subject_of(store).figures
        by = {name: figures_of(store, name) for name in store.results.attributes}
        papers = paper.figures if paper else []
        total, done = sum(map(len, by.values())) + len(papers), 0

        def picture(figure: Figure | Panels) -> PageFigure:
            nonlocal done
            progress("drawing", done, total, figure.title)
            drawing = Drawing(figure, "simulated data" if store.simulated else "")
            keep(drawing)
            done += 1
            return PageFigure(figure.title, figure.caption, drawing.svg())

        return PageFigures(
            {name: [picture(figure) for figure in figures] for name, figures in by.items()},
            [picture(figure) for figure in papers],
        )
    except MissingExtraError as error:
        return PageFigures({}, [], str(error))
    finally:
        progress("drawing", 0, 0, "")


def _json(data: Any) -> str:
    """Return JSON that nothing in it can end: every ``<`` is written as a number."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _ends(value: TableValue) -> str:
    """Return an interval; below 0 a dash between its ends would be read as a sign."""
    if "-" not in value.interval:
        return value.interval
    return value.interval.replace("–", " to ").replace("-", "−")


def _published(value: TableValue) -> str:
    """Say what the paper has in a value's place, and how far off that is; nothing without."""
    if math.isnan(value.published):
        return ""
    said = f"paper {100 * value.published:.2f}"
    if math.isnan(value.difference):
        return said
    return f"{said} ({value.difference:+.1f} σ)".replace("-", "−")


def _notes(run: dict[str, Any]) -> list[str]:
    notes = [str(note) for note in run.get("notes", [])]
    notes += [f"{method} was left out: {why}." for method, why in run.get("left_out", {}).items()]
    fits = run.get("fits", [])
    notes += sorted({f"{fit['method']}: {note}" for fit in fits for note in fit.get("notes", [])})
    return notes


def _facts(run: dict[str, Any], plain: Sequence[str]) -> list[tuple[str, str]]:
    """Return how it was computed, as (name, value) pairs; of the record's entries the `plain`."""
    facts = [(key.replace("_", " "), _plain(run[key])) for key in plain if run.get(key) is not None]
    facts += [(f"setting: {key}", _plain(value)) for key, value in run.get("settings", {}).items()]
    facts += [(f"version: {key}", _plain(value)) for key, value in run.get("versions", {}).items()]
    facts += [(f"K-means objective, {name}", text) for name, text in _objectives(run).items()]
    return facts


def _objectives(run: dict[str, Any]) -> dict[str, str]:
    objectives: dict[str, list[str]] = {}
    for fit in run.get("fits", []):
        if "inertia" in fit.get("figures", {}):
            name = f"{fit['feature']}, K = {fit['clusters']}"
            text = f"{fit['figures']['inertia']:.6g}"
            if text not in objectives.setdefault(name, []):
                objectives[name].append(text)
    return {name: ", ".join(values) for name, values in objectives.items()}


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_plain(item)}" for key, item in value.items()) or "default"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "default"
    return "not given" if value is None else str(value)
