"""The figures of a classifier's report: a metric of each group, differences, reliability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import GLOBAL
from faircal.report.classes.tables import (
    BEYOND,
    CLASS,
    COMPARED,
    COMPARED_OVER,
    ClassResults,
)
from faircal.report.figures.base import FigureRecord, panels, slug, tell_apart
from faircal.report.figures.distributions import LEAST, ReliabilityDiagram
from faircal.report.figures.groups import DifferencePlot, Dot, GroupRateDots
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import (
    better_way,
    is_share,
    left_out,
    listing,
    metric_title,
    rounded,
)

#: So many groups are drawn as rows of dots, and so many groups or classes as lines: more can't be
#: told apart.
_MOST_DOTS, _MOST_LINES = 24, 8
_SHOWN = ("top_ks", "class_ks", "accuracy", "nll")


def class_figures(store: ResultsFolder, attribute: str) -> list[FigureRecord]:
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
    return tell_apart(_figures(ClassResults(store, attribute)))


def _figures(results: ClassResults) -> Iterator[FigureRecord]:
    """Give all figures, also ones that show nothing."""
    several = len(results.store.results.attributes) > 1
    of = results.attribute if several else ""
    for reference in results.references[-1:]:  # the strongest of those that were run
        metrics = [*COMPARED, *(COMPARED_OVER if results.groups else ())]
        shares = [each for each in metrics if is_share(each[0])]
        costs = [each for each in metrics if each not in shares]
        yield from panels(
            [ChangeDots(results, reference, changes) for changes in (shares, costs)],
            ["shares", "NLL"],
            key=slug("differences", of),
            title=f"Difference to {results.store.results.label(reference)}",
            columns=2,
        )
    feature = results.store.results.features[0]
    for metric in _SHOWN:
        where = results.store.results, feature, results.attribute, metric
        drawn = results.worst(metric, _MOST_DOTS)
        only = tuple(group for group in results.reportable if group in drawn)
        yield GroupDots(*where, only=only, key=slug("groups", metric, of))
    yield from _diagrams(TopLabelDiagram, results, of)
    yield from _diagrams(ClassDiagram, results, of, CLASS)


def _diagrams(
    kind: type[TopLabelDiagram], results: ClassResults, of: str, attribute: str = ""
) -> Iterator[FigureRecord]:
    """Give a panel for each method, with the groups or classes of the highest KS where many."""
    # Whose confidence was counted, by method; of the classes every class's probability.
    counted = results.store.curves.sources
    by = attribute or results.attribute
    sources = {source.method: source for source in counted if source.attribute == by}
    methods = {title: v.method for title, v in results.methods.items() if v.method in sources}
    metric, names = ("class_ks", results.classes) if attribute else ("top_ks", results.groups)
    drawn = results.worst(metric, _MOST_LINES, by_class=bool(attribute))
    without = [name for name in names if name not in drawn]
    yield from panels(
        [kind(results.store.curves, sources[m], without=without) for m in methods.values()],
        list(methods),
        key=slug(kind._key, of),
        title=kind._about,
        share_x=True,
        share_y=True,
    )


@dataclass(eq=False, repr=False)
class GroupDots(GroupRateDots):
    """A metric of each group, a mark per method, with intervals.

    Parameters
    ----------
    results, feature, attribute, metric
        As of `GroupRateDots`.
    only : sequence of str
        The groups that are drawn: those with enough data, of many the ones that fare worst.
    """

    def __post_init__(self) -> None:
        self.key = self.key or "groups"
        super().__post_init__()
        self.mark = math.nan
        several = ", a mark per method." if len(self.methods) > 1 else "."
        better = "left" if better_way(self.metric) == "lower" else "right"
        self.caption = (
            f"{metric_title(self.metric)} of each group{several} Bars are {rounded(LEVEL)} "
            "intervals. Marks below each other mean that groups fare alike; further "
            f"{better} is better."
        )
        groups = self.results.groups[self.attribute]
        few = {row.group for row in self.results.rows if row.withheld}
        small = [group for group in groups if group in few]
        self.caption += left_out([listing(small)], "not enough data") if small else ""
        if len(self.rows) + len(small) < len(groups):
            self.caption += (
                f" Drawn are the {len(self.rows)} of {len(groups) - len(small):,} groups that fare "
                "worst."
            )


@dataclass(eq=False, repr=False)
class ChangeDots(DifferencePlot):
    """By how much methods differ from one of them, in a few numbers, with intervals.

    Parameters
    ----------
    results : ClassResults
    reference : Variant
        The one that others are compared with.
    metrics : sequence of (str, str)
        Metrics and groups, as in ``differences.csv``; all shares, or all costs.
    """

    results: ClassResults
    reference: Variant
    metrics: Sequence[tuple[str, str]]

    def __post_init__(self) -> None:
        dots = [
            Dot(title, metric_title(metric), of.difference, of.low, of.high, change.verdict)
            for metric, group in self.metrics
            for title, variant in self.results.methods.items()
            if (change := self.results.change(metric, variant, self.reference, group))
            and (of := change.difference)
        ]
        # The reference has its place, so that others keep their look.
        self._compare(dots, list(self.results.methods), is_share(self.metrics[0][0]))
        reference = self.results.store.results.label(self.reference)
        self.title = self.title or f"Difference to {reference}"
        self.caption = (
            f"Each method's value less that of {reference}, "
            f"on the same rows; bars are {rounded(LEVEL)} intervals of the difference. Filled: the "
            "interval leaves out 0. Accuracy is better to the right, everything else to the left. "
            f"{BEYOND}"
        )


@dataclass(eq=False, repr=False)
class TopLabelDiagram(ReliabilityDiagram):
    """The share of right predictions among those of about the same confidence, by group.

    Parameters
    ----------
    curves, source, without, n_bins
        As of `ReliabilityDiagram`; counted is the probability of the most probable class, as
        genuine where that is the true one.

    Examples
    --------
    >>> from faircal.evaluation.curves import ScoreHistogram, Curves, ScoreSource
    >>> from faircal.metrics import Histogram, Ranking, probability_edges
    >>> sure, right = [0.6] * 10 + [0.9] * 10, [1] * 5 + [0] * 5 + [1] * 10
    >>> histogram = Histogram.of(Ranking.of(sure, right), probability_edges())
    >>> counted = ScoreHistogram(ScoreSource(), GLOBAL, "probability", histogram)
    >>> TopLabelDiagram(Curves([counted])).words
    'Confidence and accuracy by group. Largest distance from the diagonal: all rows 10 %.'
    """

    _key, _about = "reliability", "Confidence and accuracy by group"
    _columns: ClassVar[tuple[str, str, str]] = ("rows", "confidence", "right")
    _axes: ClassVar[tuple[str, str]] = ("mean confidence (%)", "right (%)")
    #: How to read it; what bins are made of, and what stands across and up.
    _reading: ClassVar[str] = (
        "Rows are put into {} bins by the probability of their most probable class (the "
        "confidence). Across: the mean confidence in a bin; up: the share that is right. On the "
        "diagonal confidence means what it says; below it the classifier is too sure, above it not "
        "sure enough."
    )

    def __post_init__(self) -> None:
        self.title = self.title or self._about
        super().__post_init__()
        lost = [group for group in self.groups if group not in self.lines]
        self.caption = (
            f"{self._reading.format(self.n_bins)} Bins with fewer than {LEAST} rows are not drawn."
        )
        for names, why in (
            (lost, "for want of rows"),
            (self.without, "not enough data or a lower KS"),
        ):
            self.caption += left_out([listing(names)], why) if names else ""
        distances = (
            f"{'all rows' if group == GLOBAL else group} {rounded(gap)}"
            for group, gap in self.gaps.items()
        )
        self.numbers = f"Largest distance from the diagonal: {', '.join(distances)}."


@dataclass(eq=False, repr=False)
class ClassDiagram(TopLabelDiagram):
    """How often each class is the true one among rows of about the same probability of it."""

    _key, _about = "reliability-classes", "Probability and frequency by class"
    _columns: ClassVar[tuple[str, str, str]] = ("rows", "probability", "share")
    _axes: ClassVar[tuple[str, str]] = ("mean probability (%)", "of the class (%)")
    _reading: ClassVar[str] = (
        "For each class, rows are put into {} bins by its probability. Across: the mean "
        "probability in a bin; up: the share of rows that are of the class. On the diagonal "
        "probabilities mean what they say; below it they are too high, above it too low."
    )
