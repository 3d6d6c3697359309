"""Reliability diagrams of a classifier: of its confidence by group, of every class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from faircal.metrics import Histogram
from faircal.metrics.results import GLOBAL
from faircal.report.figures.reliability import LEAST, ReliabilityDiagram
from faircal.report.figures.wording import left_out, percent
from faircal.report.numbers import listing


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
    >>> from faircal.evaluation.curves import ScoreHistogram, Curves, Source
    >>> from faircal.metrics import Ranking, probability_edges
    >>> sure, right = [0.6] * 10 + [0.9] * 10, [1] * 5 + [0] * 5 + [1] * 10
    >>> histogram = Histogram.of(Ranking.of(sure, right), probability_edges())
    >>> TopLabelDiagram(Curves([Curve(Source(), GLOBAL, "probability", histogram)])).words
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
        said = (f"{names[group]} {percent(gap)}" for group, gap in self.gaps.items())
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
