"""The figures of a classifier's report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from faircal.evaluation.curves import ScoreSource
from faircal.report.classes.diagrams import ClassDiagram, TopLabelDiagram, gap_of
from faircal.report.classes.dots import ChangeDots, GroupDots
from faircal.report.classes.found import Found, Metric
from faircal.report.classes.tables import COMPARED, COMPARED_OVER
from faircal.report.figures.base import Figure, Panels
from faircal.report.figures.choice import Anything, panels, slug, tell_apart
from faircal.report.store import Store

#: So many groups or classes are drawn as lines: more lines can't be told apart.
_MOST = 8
_SHOWN = ("top_ks", "class_ks", "accuracy", "nll")


def class_figures(store: Store, attribute: str) -> list[Figure | Panels]:
    """Return the figures of a report by one attribute, as far as the data carries them.

    How methods differ from one map for everyone, calibration errors, accuracy and NLL by group,
    reliability diagrams of the confidence by group and of every class, with a panel per method.

    Parameters
    ----------
    store : Store
        Of kind ``classify``.
    attribute : str
        One of ``store.results.attributes``.
    """
    return tell_apart(_Figures(Found(store, attribute)).figures())


@dataclass(frozen=True, eq=False)
class _Figures:
    found: Found

    def figures(self) -> Iterator[Anything]:
        """Give all figures, also ones that show nothing."""
        yield from self._changes()
        for metric in _SHOWN:
            yield GroupDots(self.found, metric, key=self._key("groups", metric))
        sources = self.found.sources
        small = tuple(self.found.small)
        worst = self._worst(sources, without=small)
        yield from self._per_method(TopLabelDiagram, sources, without=small, only=worst)
        sources = self.found.class_sources
        yield from self._per_method(ClassDiagram, sources, only=self._worst(sources))

    def _key(self, *words: str) -> str:
        several = len(self.found.store.results.attributes) > 1
        return slug(*words, self.found.attribute if several else "")

    def _changes(self) -> Iterator[Anything]:
        """Give the differences to the last reference: the strongest of those that were run."""
        for reference in self.found.references[-1:]:
            wanted = [*COMPARED, *(COMPARED_OVER if self.found.groups else ())]
            shares = [each for each in wanted if Metric.of(each[0]).share]
            costs = [each for each in wanted if each not in shares]
            yield from panels(
                [ChangeDots(self.found, reference, some) for some in (shares, costs)],
                ["accuracy and calibration errors", "proper scores"],
                key=self._key("differences"),
                title=f"Difference to {reference.title}",
                columns=2,
            )

    def _per_method(
        self, kind: type[TopLabelDiagram], sources: dict[str, ScoreSource], **more: Any
    ) -> Iterator[Anything]:
        methods = [method for method in self.found.methods if method.name in sources]
        curves = self.found.store.curves
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
        source = sources.get(self.found.spoken_of.name)
        if source is None:
            return ()
        curves = self.found.store.curves
        gaps = {
            name: gap_of(curves.get(name, "probability", source))
            for name in curves.groups(source)
            if name not in without
        }
        return tuple(sorted(gaps, key=gaps.__getitem__, reverse=True)[:_MOST])
