"""The figures of a classifier's report, and its reliability diagrams."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from faircal.evaluation.curves import ScoreSource
from faircal.metrics import Histogram
from faircal.metrics.results import GLOBAL
from faircal.report.classes.dots import ChangeDots, GroupDots
from faircal.report.classes.results import ClassResults, MetricColumn
from faircal.report.classes.tables import COMPARED, COMPARED_OVER
from faircal.report.figures.base import Anything, Figure, Panels, panels, slug, tell_apart
from faircal.report.figures.reliability import LEAST, ReliabilityDiagram
from faircal.report.store import ResultsFolder
from faircal.report.wording import left_out, listing, rounded


@dataclass(frozen=True, eq=False)
class TopLabelDiagram(ReliabilityDiagram):
    """The share of right predictions among those of about the same confidence, by group.

    Parameters
    ----------
    curves, source, n_bins
        As of `ReliabilityDiagram`; counted is the probability of the most probable class, as
        genuine where that is the true one.
    only : sequence of str
        The groups that are drawn, where they are too many; all unless told.

    Examples
    --------
    >>> from faircal.evaluation.curves import ScoreHistogram, Curves, ScoreSource
    >>> from faircal.metrics import Ranking, probability_edges
    >>> sure, right = [0.6] * 10 + [0.9] * 10, [1] * 5 + [0] * 5 + [1] * 10
    >>> histogram = Histogram.of(Ranking.of(sure, right), probability_edges())
    >>> counted = ScoreHistogram(ScoreSource(), GLOBAL, "probability", histogram)
    >>> TopLabelDiagram(Curves([counted])).words
    'Confidence and accuracy by group. Largest distance from the diagonal: all rows 10 %.'
    """

    only: Sequence[str] = field(default=(), kw_only=True)

    _key, _about = "reliability", "Confidence and accuracy by group"
    _what: ClassVar[str] = "groups"
    _columns: ClassVar[tuple[str, str, str]] = ("rows", "confidence", "right")
    _axes: ClassVar[tuple[str, str]] = ("mean confidence (%)", "right (%)")

    def _title(self) -> str:
        return self._about

    @cached_property
    def _there(self) -> list[str]:
        """Those that could be drawn."""
        there = self.curves.groups(self.source)
        return [name for name in there if name not in self.without]

    @cached_property
    def groups(self) -> list[str]:
        """Those that are drawn; all rows as one where there are none."""
        return [name for name in self._there if not self.only or name in self.only] or [GLOBAL]

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            f"Rows are put into {self.n_bins} bins by the probability of their most probable class "
            "(the confidence). Across: the mean confidence in a bin; up: the share that is right. "
            "On the diagonal confidence means what it says; below it the classifier is too sure, "
            f"above it not sure enough. {self._least()}"
        )

    def _least(self) -> str:
        said = [f"Bins with fewer than {LEAST} rows are not drawn."]
        lost = [group for group in self.groups if group not in self.lines]
        for names, why in ((lost, "for want of rows"), (self.without, "not enough data")):
            said += [left_out([listing(names)], why)] if names else []
        if len(self.groups) < len(self._there):
            said.append(
                f" Drawn are the {len(self.groups)} of {len(self._there)} {self._what} with the "
                "highest KS."
            )
        return "".join(said)

    def _numbers(self) -> str:
        names = {group: "all rows" if group == GLOBAL else group for group in self.gaps}
        said = (f"{names[group]} {rounded(gap)}" for group, gap in self.gaps.items())
        return f"Largest distance from the diagonal: {', '.join(said)}."


@dataclass(frozen=True, eq=False)
class ClassDiagram(TopLabelDiagram):
    """How often each class is the true one among rows of about the same probability of it.

    Parameters
    ----------
    curves, source, n_bins
        As of `ReliabilityDiagram`; its groups are the classes.
    only : sequence of str
        The classes that are drawn, where they are too many; all unless told.
    """

    _what: ClassVar[str] = "classes"
    _key, _about = "reliability-classes", "Probability and frequency by class"
    _columns: ClassVar[tuple[str, str, str]] = ("rows", "probability", "share")
    _axes: ClassVar[tuple[str, str]] = ("mean probability (%)", "of the class (%)")

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            f"For each class, rows are put into {self.n_bins} bins by its probability. Across: the "
            "mean probability in a bin; up: the share of rows that are of the class. On the "
            "diagonal probabilities mean what they say; below it they are too high, above it too "
            f"low. {self._least()}"
        )


def gap_of(histogram: Histogram) -> float:
    """Return the KS of what was counted, to the width of a bin: which classes are worth drawing.

    Examples
    --------
    >>> from faircal.metrics import Ranking, probability_edges
    >>> gap_of(Histogram.of(Ranking.of([0.25, 0.25], [0, 0]), probability_edges()))
    0.25
    """
    rows = histogram.n_genuine + histogram.n_imposter
    off = np.cumsum(histogram.genuine - histogram.total)
    return float(np.abs(off).max() / rows) if rows else 0.0


#: So many groups or classes are drawn as lines: more lines can't be told apart.
_MOST = 8
_SHOWN = ("top_ks", "class_ks", "accuracy", "nll")


def class_figures(store: ResultsFolder, attribute: str) -> list[Figure | Panels]:
    """Return the figures of a report by one attribute, as far as the data carries them.

    How methods differ from one map for everyone, calibration errors, accuracy and NLL by group,
    reliability diagrams of the confidence by group and of every class, with a panel per method.

    Parameters
    ----------
    store : ResultsFolder
        Of kind ``classify``.
    attribute : str
        One of ``store.results.attributes``.
    """
    return tell_apart(_ClassFigures(ClassResults(store, attribute)).figures())


@dataclass(frozen=True, eq=False)
class _ClassFigures:
    results: ClassResults

    def figures(self) -> Iterator[Anything]:
        """Give all figures, also ones that show nothing."""
        yield from self._changes()
        for metric in _SHOWN:
            yield GroupDots(self.results, metric, key=self._key("groups", metric))
        sources = self.results.sources
        small = tuple(self.results.small)
        worst = self._worst(sources, without=small)
        yield from self._per_method(TopLabelDiagram, sources, without=small, only=worst)
        sources = self.results.class_sources
        yield from self._per_method(ClassDiagram, sources, only=self._worst(sources))

    def _key(self, *words: str) -> str:
        several = len(self.results.store.results.attributes) > 1
        return slug(*words, self.results.attribute if several else "")

    def _changes(self) -> Iterator[Anything]:
        """Give the differences to the last reference: the strongest of those that were run."""
        for reference in self.results.references[-1:]:
            metrics = [*COMPARED, *(COMPARED_OVER if self.results.groups else ())]
            shares = [each for each in metrics if MetricColumn.of(each[0]).share]
            costs = [each for each in metrics if each not in shares]
            yield from panels(
                [ChangeDots(self.results, reference, some) for some in (shares, costs)],
                ["accuracy and calibration errors", "proper scores"],
                key=self._key("differences"),
                title=f"Difference to {reference.title}",
                columns=2,
            )

    def _per_method(
        self, kind: type[TopLabelDiagram], sources: dict[str, ScoreSource], **more: Any
    ) -> Iterator[Anything]:
        methods = [method for method in self.results.methods if method.name in sources]
        curves = self.results.store.curves
        yield from panels(
            [kind(curves, sources[method.name], **more) for method in methods],
            [method.title for method in methods],
            key=self._key(kind._key),
            title=kind._about,
            share_x=True,
            share_y=True,
        )

    def _worst(
        self, sources: dict[str, ScoreSource], without: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return what to draw where there is much: groups or classes with the highest KS."""
        source = sources.get(self.results.spoken_of.name)
        if source is None:
            return ()
        curves = self.results.store.curves
        gaps = {
            name: gap_of(curves.get(name, "probability", source))
            for name in curves.groups(source)
            if name not in without
        }
        return tuple(sorted(gaps, key=gaps.__getitem__, reverse=True)[:_MOST])
