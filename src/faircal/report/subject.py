"""What a report is about: the words of its page and what it shows, one object a subject.

Pages, files and the terminal ask it; none of them asks what kind of run it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from faircal.report.figures import Figure, Panels
from faircal.report.outline import Section
from faircal.report.store import Store
from faircal.report.tables import Table
from faircal.report.words import Summary


class IntervalLine(NamedTuple):
    """A rate of a group with its interval, as the page shows it."""

    group: str
    value: str
    interval: str
    pairs: str


def _no_sections(_: Store, __: str) -> list[Section]:
    return []


def _no_blocks(_: Store) -> list[tuple[str, list[IntervalLine]]]:
    return []


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
    outline : callable
        From store and attribute to the sections of a test report.
    blocks : callable
        From store to all rates with their intervals.
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
    summary: Callable[[Store, str], Summary]
    main: Callable[[Store, str], list[Table]]
    differences: Callable[[Store, str], list[Table]]
    further: Callable[[Store, str], list[Table]]
    figures: Callable[[Store, str], list[Figure | Panels]]
    outline: Callable[[Store, str], list[Section]] = _no_sections
    blocks: Callable[[Store], list[tuple[str, list[IntervalLine]]]] = _no_blocks
    explorer: Callable[[Store], dict[str, Any]] | None = None

    def tables(self, store: Store, attribute: str) -> list[Table]:
        """Return the tables that a page shows first."""
        return [*self.main(store, attribute), *self.differences(store, attribute)]

    def every_table(self, store: Store, attribute: str) -> list[Table]:
        """Return all tables, as files have them."""
        return [
            *self.tables(store, attribute),
            *self.further(store, attribute),
            *(table for section in self.outline(store, attribute) for table in section.tables),
        ]
