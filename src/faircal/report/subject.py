"""What a report is about: the words of its page (``subjects.toml``) and what it shows.

Pages, files and the terminal ask it; none of them asks what kind of run it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from faircal.report.cells import Table
from faircal.report.changes import difference_tables
from faircal.report.classes.figures import class_figures
from faircal.report.classes.tables import class_differences, class_tables, further_class_tables
from faircal.report.classes.words import class_summary
from faircal.report.explorer import explorer
from faircal.report.figures import Figure, Panels, standard_figures
from faircal.report.rendering import resource
from faircal.report.store import ResultsFolder
from faircal.report.tables import audit_tables, further_tables, main_tables
from faircal.report.words import Summary, summary


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
    figures: Callable[[ResultsFolder, str], list[Figure | Panels]]
    explorer: Callable[[ResultsFolder], dict[str, Any]] | None = None

    def tables(self, store: ResultsFolder, attribute: str) -> list[Table]:
        """Return the tables that a page shows first."""
        return [*self.main(store, attribute), *self.differences(store, attribute)]

    def every_table(self, store: ResultsFolder, attribute: str) -> list[Table]:
        """Return all tables, as files have them."""
        return [*self.tables(store, attribute), *self.further(store, attribute)]


def _face_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    return main_tables(store.reportable, attribute)


def _further_face_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    results = store.reportable
    audited = audit_tables(store, results, attribute) if store.kind == "audit" else []
    return [*audited, *further_tables(results, attribute)]


_TEXTS: dict[str, dict[str, Any]] = tomllib.loads(resource("subjects.toml"))
FACES = Subject(
    **_TEXTS["faces"],
    summary=summary,
    main=_face_tables,
    differences=difference_tables,
    further=_further_face_tables,
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


def class_subject(store: ResultsFolder) -> Subject:
    """Return what a classifier's report is about: an audit, or calibrations that are compared.

    A benchmark says by which calibrator it fitted; where that was not written, its methods tell.
    """
    methods = {variant.method for variant in store.results.variants}
    settings = store.run.get("settings")
    fitted = isinstance(settings, dict) and bool(settings.get("calibrator"))
    compared = len(methods) > 1 and not methods <= set(_AUDITED)
    return COMPARED_CLASSES if fitted or compared else CLASSES


def subject_of(store: ResultsFolder) -> Subject:
    """Return what a store's report is about; faces, unless its kind is one of classifiers."""
    return class_subject(store) if store.kind in CLASSES.kinds else FACES


def is_audit(store: ResultsFolder) -> bool:
    """Whether one set of scores or probabilities was measured, and no methods were compared."""
    return store.kind == "audit" or subject_of(store) is CLASSES
