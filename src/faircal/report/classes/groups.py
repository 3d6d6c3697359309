"""Who is treated differently by a classifier, in plain sentences, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from faircal.metrics import Histogram
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.proportions import joint_level
from faircal.metrics.results import ALL
from faircal.report.cells import TableValue
from faircal.report.classes.results import ClassResults, MetricColumn, ReportedMethod
from faircal.report.wording import listing, percent, percentage_points, ranged

#: What is told of groups: what it is in words, and how its ends are called.
_TOLD = {
    "accuracy": ("The predicted class is right", "least often", "most often"),
    "top_ks": ("The confidence in the predicted class is off", "most", "least"),
    "class_ks": ("The probabilities of all classes are off", "most", "least"),
}
_MEANING = {
    "top_ks": (
        " (top-label KS: the largest share by which stated confidence is too high or too low on "
        "the whole; with few rows some of it is chance)"
    ),
    "class_ks": " (class-wise KS: the same for the probability of each class, mean over classes)",
}
#: Up to so many groups without enough data are told of one by one.
_SINGLY = 3
#: Below this the lower end of a deviation is 0, but for the last digits of a float.
_ZERO = 1e-9


@dataclass(frozen=True)
class Contrast:
    """A metric of the groups that can be told: the worst, the best, and whether they differ.

    `over` are its largest (MAD) and average (AAD) deviations over just these groups, as far as they
    are known.
    """

    metric: MetricColumn
    values: dict[str, TableValue]
    over: dict[str, TableValue]

    @property
    def worst(self) -> str:
        """The group that fares worst."""
        return self._end(worst=True)

    @property
    def best(self) -> str:
        """The group that fares best."""
        return self._end(worst=False)

    def _end(self, worst: bool) -> str:
        highest = (self.metric.better == "lower") == worst
        return (max if highest else min)(self.values, key=lambda group: self.values[group].mean)

    @property
    def apart(self) -> float:
        """How far the worst and the best are apart."""
        return abs(self.values[self.worst].mean - self.values[self.best].mean)

    @property
    def known(self) -> bool:
        """Whether the two have intervals."""
        return not any(math.isnan(self.values[group].low) for group in (self.worst, self.best))

    @property
    def overlap(self) -> bool:
        """Whether the intervals of the two overlap; so do those that are not known."""
        return not _apart(self.values[self.worst], self.values[self.best])

    @property
    def told_apart(self) -> bool:
        """Whether they part when widened to hold for all groups at once."""
        many = len(self.values)
        ends = (_widened(self.values[group], many) for group in (self.worst, self.best))
        return _apart(*ends)

    @property
    def deviation(self) -> tuple[str, TableValue] | None:
        """A deviation over groups whose interval leaves out 0, and its name; None without."""
        return next(((name, v) for name, v in self.over.items() if v.low > _ZERO), None)


def _apart(one: TableValue, other: TableValue) -> bool:
    return one.low > other.high or other.low > one.high


def _widened(value: TableValue, many: int) -> TableValue:
    """Return a value with the interval that holds for so many groups at once, about.

    Each side is widened as that of a normal distribution would be.
    """
    normal = NormalDist()
    quantiles = [normal.inv_cdf((1 + level) / 2) for level in (joint_level(many, LEVEL), LEVEL)]
    wider = quantiles[0] / quantiles[1]
    low, high = (value.mean + wider * (end - value.mean) for end in (value.low, value.high))
    return TableValue(value.mean, low=low, high=high)


def contrast(results: ClassResults, name: str, method: ReportedMethod) -> Contrast:
    """Return what is known of the groups by one metric."""
    values = {group: results.value(name, method, group) for group in results.groups}
    reportable = {group: value for group, value in values.items() if not math.isnan(value.mean)}
    over = {
        title: results.value(f"{name}_{suffix}", method, ALL)
        for suffix, title in (("mad", "MAD"), ("aad", "AAD"))
        if len(reportable) == len(results.groups)  # else they are of other groups, too
    }
    return Contrast(MetricColumn.of(name), reportable, over)


def who(results: ClassResults) -> Iterator[str]:
    """Say how groups fare, and whether that is more than chance."""
    method = results.spoken_of
    if len(results.methods) > 1:
        raw = ", the probabilities as they come" if method.name == "uncalibrated" else ""
        yield f"These are the numbers of {method.title}{raw}."
    overall = [
        f"{title} {ranged(value)}"
        for name, title in (("accuracy", "accuracy"), ("top_ks", "top-label KS"))
        if not math.isnan((value := results.value(name, method)).mean)
    ]
    if overall:
        yield f"Over all rows: {listing(overall)}."
    if not results.groups:
        yield "The data names no groups: who is treated differently cannot be told."
        return
    for name in _TOLD:
        groups = contrast(results, name, method)
        yield from _contrasted(results, groups, name)
        if name == "top_ks" and groups.values:
            yield from opposed(results, groups.worst, alone=_differ(groups))
    yield from _small(results)


def _small(results: ClassResults) -> Iterator[str]:
    """Say which groups have not enough data; of many, how many there are."""
    if len(results.small) > _SINGLY:
        yield (
            f"{len(results.small):,} of {len(results.groups):,} groups have not enough data: "
            f"{listing(results.small)}."
        )
    else:
        for group in results.small:
            yield f"{group}: {results.insufficient_data.get(group, NOT_ENOUGH)}."
    if not results.reportable:
        yield "No group has enough: who is treated differently cannot be told."


def _contrasted(results: ClassResults, groups: Contrast, name: str) -> Iterator[str]:
    """Say how the worst group and the best one compare, as far as they can be told apart."""
    what, most, least = _TOLD[name]
    by = "" if name == "accuracy" else "by "
    of = " of rows" if name == "accuracy" else ""
    if not groups.values:
        return
    if len(groups.values) == 1:
        ((only, value),) = groups.values.items()
        qualifier = " with enough data" if len(results.groups) > 1 else ""
        yield (
            f"{what}: {by}{ranged(value)}{of} for {only}, the only group{qualifier}; there is no "
            "other to compare it with."
        )
        return
    worst, best = groups.values[groups.worst], groups.values[groups.best]
    if worst.mean == best.mean:
        yield f"{what}: {by}{ranged(worst)}{of} in each group; no difference was found."
        return
    yield (
        f"{what} {most} for {groups.worst}, {by}{ranged(worst)}{of}, and {least} for "
        f"{groups.best}, {by}{ranged(best)}{_MEANING.get(name, '')}; {_verdict(groups)}."
    )


def _differ(groups: Contrast) -> bool:
    """Whether groups differ by more than chance."""
    return len(groups.values) > 1 and (groups.told_apart or groups.deviation is not None)


def _verdict(groups: Contrast) -> str:
    """Say whether groups differ; that they do not is more than data can tell."""
    if groups.known and groups.told_apart:
        return f"that is {percentage_points(groups.apart)} apart"
    if groups.deviation is not None:
        return _deviating(groups, *groups.deviation)
    if not groups.known:
        return "there are no intervals to say how sure that is"
    if groups.overlap:
        return "their intervals overlap, so this could be chance"
    return f"among {len(groups.values)} groups chance alone can part two so far"


def _deviating(groups: Contrast, name: str, value: TableValue) -> str:
    """Say that groups differ though the ends by themselves might not."""
    which = "largest" if name == "MAD" else "average"
    size = ranged(value, percentage_points)
    said = f"the {which} deviation of a group from their mean ({name}) is {size}"
    if len(groups.values) == 2:
        return f"that is {percentage_points(groups.apart)} apart, more than chance explains: {said}"
    return (
        f"groups differ by more than chance explains ({said}), though it is less sure that it is "
        "these two"
    )


class ConfidenceGap(NamedTuple):
    """The mean confidence of a group's rows, the share that is right, and the noise of the gap."""

    stated: float
    right: float
    noise: float

    @classmethod
    def of(cls, histogram: Histogram, effective: float = math.nan) -> ConfidenceGap | None:
        """Return what was counted of a group; None where there are no rows.

        Parameters
        ----------
        histogram : Histogram
            Confidence, as genuine where the predicted class is the true one.
        effective : float
            How many independent rows would tell as much; all of them unless known.

        Examples
        --------
        >>> from faircal.metrics import Ranking, probability_edges
        >>> sure, right = [0.9] * 100, [1] * 50 + [0] * 50
        >>> side = ConfidenceGap.of(Histogram.of(Ranking.of(sure, right), probability_edges()))
        >>> round(side.gap, 2), round(side.noise, 2), side.clear(many=2)
        (0.4, 0.05, True)
        """
        counts = histogram.genuine + histogram.imposter
        rows = int(counts.sum())
        if not rows:
            return None
        mean = histogram.total / np.maximum(counts, 1)
        squares = histogram.genuine * (1 - mean) ** 2 + histogram.imposter * mean**2
        stated, right = float(histogram.total.sum()) / rows, histogram.n_genuine / rows
        variance = float(squares.sum()) / rows - (stated - right) ** 2
        trials = effective if effective > 0 else rows
        return cls(stated, right, math.sqrt(max(variance, 0.0) / trials))

    @property
    def gap(self) -> float:
        """By how much confidence is too high."""
        return self.stated - self.right

    def clear(self, many: int) -> bool:
        """Whether the gap is more than chance, were so many groups looked at."""
        limit = NormalDist().inv_cdf((1 + joint_level(many, LEVEL)) / 2)
        return abs(self.gap) > limit * self.noise

    @property
    def said(self) -> str:
        """In words."""
        return (
            f"it states a confidence of {percent(self.stated)} and is right {percent(self.right)} "
            "of the time"
        )


def sides(results: ClassResults) -> dict[str, ConfidenceGap]:
    """Return the groups whose confidence is clearly too high or too low, furthest off first."""
    every = {}
    for group in results.reportable:
        histogram = results.counted(group)
        if histogram is not None:
            every[group] = ConfidenceGap.of(histogram, results.effective(group))
    clear = {group: side for group, side in every.items() if side and side.clear(len(every))}
    return dict(sorted(clear.items(), key=lambda item: -abs(item[1].gap)))


def opposed(results: ClassResults, worst: str, *, alone: bool) -> Iterator[str]:
    """Say where one group is treated too surely and another not surely enough.

    Where all are off to one side, it is said of the `worst` one alone, if that is wanted.
    """
    clear = sides(results)
    over, under = (
        {group: side for group, side in clear.items() if (side.gap > 0) is too_sure}
        for too_sure in (True, False)
    )
    if over and under:
        yield (
            "KS does not say which way, and it is not the same for all: the classifier is too sure "
            f"for {_named(over)}, and not sure enough for {_named(under)}."
        )
    elif alone and worst in clear:
        way = "too sure" if clear[worst].gap > 0 else "not sure enough"
        yield f"For {worst} it is {way} on the whole: {clear[worst].said}."


def _named(some: dict[str, ConfidenceGap]) -> str:
    """Name groups, with the numbers of the first."""
    first = next(iter(some))
    return f"{listing(some)} ({'' if len(some) == 1 else f'{first}: '}{some[first].said})"
