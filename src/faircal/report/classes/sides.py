"""Of whom a classifier is too sure, and of whom not sure enough: KS has no sign."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from faircal.metrics import Histogram
from faircal.metrics.intervals import LEVEL
from faircal.metrics.proportions import joint_level
from faircal.report.classes.found import Found
from faircal.report.numbers import listing, percent


class Side(NamedTuple):
    """The mean confidence of a group's rows, the share that is right, and the noise of the gap."""

    stated: float
    right: float
    noise: float

    @classmethod
    def of(cls, histogram: Histogram, effective: float = math.nan) -> Side | None:
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
        >>> side = Side.of(Histogram.of(Ranking.of(sure, right), probability_edges()))
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
        enough = effective if effective > 0 else rows
        return cls(stated, right, math.sqrt(max(variance, 0.0) / enough))

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


def sides(found: Found) -> dict[str, Side]:
    """Return the groups whose confidence is clearly too high or too low, furthest off first."""
    every = {}
    for group in found.told:
        histogram = found.counted(group)
        if histogram is not None:
            every[group] = Side.of(histogram, found.effective(group))
    clear = {group: side for group, side in every.items() if side and side.clear(len(every))}
    return dict(sorted(clear.items(), key=lambda item: -abs(item[1].gap)))


def opposed(found: Found, worst: str, *, alone: bool) -> Iterator[str]:
    """Say where one group is treated too surely and another not surely enough.

    Where all are off to one side, it is said of the `worst` one alone, if that is wanted.
    """
    clear = sides(found)
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


def _named(some: dict[str, Side]) -> str:
    """Name groups, with the numbers of the first."""
    first = next(iter(some))
    return f"{listing(some)} ({'' if len(some) == 1 else f'{first}: '}{some[first].said})"
