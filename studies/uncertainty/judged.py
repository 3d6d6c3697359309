"""Promises judged by many people: all of their pairs, and who is in those that score highest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircal.evaluation.thresholds import ImposterSet, guarantee
from studies.uncertainty.guarantee import LEAST, RISK, Line, lines
from studies.uncertainty.part import Kept
from studies.words import number, table

Mask = NDArray[np.bool_]
#: The share of all pairs whose scores are kept; true rates above it come out as this one.
_KEPT, _ROWS = 0.03, 1000
#: The lowest rate of whose intervals it is asked that they cover, as in the first section.
_ASKED = 0.001
#: A person's own rate is told where so many of his pairs would be errors, for nearly all people.
_ERRORS, _NEARLY_ALL = 10, 0.95
_HEADER = [
    *("people", "α", "draws", "given", "extrapolated", "broken of given", "at most", "of all"),
    *("× α then", "true / α", "covered", "by people", "above 5 %", "people above α", "bar"),
]


@dataclass(frozen=True, eq=False)
class Many:
    """Images of many people; pairs are of two people, of one group.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n_images, d)
        Of length 1.
    person : ndarray of int64, shape (n_images,)
        From 0; everybody has an image.
    group : ndarray of int64, shape (n_people,)
    """

    vectors: NDArray[np.float32]
    person: NDArray[np.int64]
    group: NDArray[np.int64]

    @property
    def nobody(self) -> Mask:
        """For truths of all people."""
        return np.zeros(len(self.group), np.bool_)

    def imposters(self, drawn: Mask | None = None) -> ImposterSet:
        """Return all pairs of those who are drawn."""
        rows = np.arange(len(self.person)) if drawn is None else np.flatnonzero(drawn[self.person])
        left, right = np.triu_indices(len(rows), 1)
        person = self.person[rows]
        two = self._pair(person[left], person[right])
        left, right = left[two], right[two]
        scores = (self.vectors[rows] @ self.vectors[rows].T)[left, right].astype(np.float64)
        return ImposterSet(np.clip(scores, -1, 1), person[left], person[right])

    def _pair(self, one: NDArray[np.int64], two: NDArray[np.int64]) -> Mask:
        return np.asarray((one != two) & (self.group[one] == self.group[two]))

    def trials(self, away: Mask) -> NDArray[np.int64]:
        """Return each person's pairs with others, where nobody of `away` is there."""
        images = np.where(away, 0, np.bincount(self.person, minlength=len(away)))
        of_group = np.bincount(self.group, images).astype(np.int64)
        return np.asarray(images * (of_group[self.group] - images))

    @cached_property
    def highest(self) -> tuple[NDArray[np.floating], NDArray[np.integer], NDArray[np.integer]]:
        """The pairs that score highest, falling: scores, and the two people of each."""
        one, two = np.random.default_rng(0).integers(len(self.person), size=(2, 1_000_000))
        asked = self._pair(self.person[one], self.person[two])
        one, two = one[asked], two[asked]
        least = np.quantile(np.einsum("ij,ij->i", self.vectors[one], self.vectors[two]), 1 - _KEPT)
        found = []
        for start in range(0, len(self.person), _ROWS):
            block = self.vectors[start : start + _ROWS] @ self.vectors[start:].T
            one, two = np.nonzero(block >= least)
            score, one, two = block[one, two], one + start, two + start
            left, right = self.person[one], self.person[two]
            rows = (one < two) & self._pair(left, right)
            found.append((score[rows], left[rows].astype(np.int32), right[rows].astype(np.int32)))
        score, left, right = (np.concatenate(each) for each in zip(*found, strict=True))
        falling = np.argsort(-score, kind="stable")
        return score[falling], left[falling], right[falling]

    def threshold(self, rate: float) -> float:
        """Return the threshold at which the FPR of all people is `rate`."""
        return float(self.highest[0][math.ceil(rate * self.trials(self.nobody).sum() / 2) - 1])

    def _errors(self, threshold: float, away: Mask) -> NDArray[np.integer]:
        """Return the two people of each error, where nobody of `away` is there."""
        score, *people = self.highest
        n = len(score) - int(np.searchsorted(score[::-1], threshold))
        there = ~(away[people[0][:n]] | away[people[1][:n]])
        return np.stack([side[:n][there] for side in people])

    def fpr(self, threshold: float, away: Mask) -> float:
        """Return the FPR without those of `away`; NaN where there is no threshold."""
        if math.isnan(threshold):
            return math.nan
        return float(self._errors(threshold, away).size / self.trials(away).sum())

    def told(self, rate: float, away: Mask) -> Mask:
        """Return who has pairs enough for a rate of his own; nobody unless nearly all have."""
        enough = self.trials(away) >= _ERRORS / rate
        return np.asarray(enough & (enough.sum() >= _NEARLY_ALL * (~away).sum()))

    def above(self, threshold: float, rate: float, away: Mask) -> float:
        """Return the share of people with an FPR of their own above `rate`; NaN if not told."""
        told = self.told(rate, away)
        if math.isnan(threshold) or not told.any():
            return math.nan
        errors = np.bincount(self._errors(threshold, away).ravel(), minlength=len(away))
        return float((errors[told] / self.trials(away)[told] > rate).mean())


def count(
    tally: dict[str, float], imposters: ImposterSet, rate: float, truth: Many, away: Mask
) -> None:
    """Promise a rate from some people's pairs, and add up what the truth says of it."""
    made = guarantee(imposters, fpr=rate, confidence=1 - RISK)
    at, true = truth.threshold(rate), truth.fpr(made.threshold, away) / rate
    asked, above = bool(truth.told(rate, away).any()), math.nan
    if asked:
        by_people = guarantee(imposters, fpr=rate, confidence=1 - RISK, rule="people")
        above = truth.above(by_people.threshold, rate, away)
    low, high = imposters.dependence.interval(imposters.errors(at) / len(imposters.scores), 0.95)
    given, told = math.isfinite(true), math.isfinite(above)
    for name, value in {
        "draws": 1,
        "given": given,
        "extrapolated": given and len(made.extrapolated),
        "broken": true > 1,
        "times": true if true > 1 else 0,
        "of_rate": true if given else 0,
        "covered": low <= truth.fpr(at, away) <= high,
        "asked": asked,
        "by_people": told,
        "people_broken": above > RISK,
        "people_above": above if told else 0,
    }.items():
        tally[name] = round(tally.get(name, 0) + float(value), 6)


def judged(kept: Sequence[Kept], what: str) -> str:
    """Return how many settings fail, and a table in which these come first."""
    every = sorted(lines(kept), key=lambda line: not line.verdicts)
    given, broken, by_people, people_broken = (
        int(sum(line.of[name] for line in every))
        for name in ("given", "broken", "by_people", "people_broken")
    )
    low = sum("covers too little" in line.verdicts for line in every)
    often = sum("broken too often" in line.verdicts for line in every)
    covered = [100 * line.share("covered") for line in every if line.rate >= _ASKED]
    below = sum(share < LEAST for share in covered)
    summary = (
        f"Something fails in {sum(bool(line.verdicts) for line in every)} of {len(every)} "
        "settings. "
        f"Of {given:,} promises given {broken:,} were broken; in {often} settings that is too "
        f"often. Intervals cover less than {LEAST:g} % in {below} settings, in {low} of them "
        f"beyond chance; the lowest covers {number(min(covered), 1)} %. "
        f"Read as of everybody, which they are not, {people_broken:,} of {by_people:,} promises "
        "by people would be broken."
    )
    return f"{summary}\n\n{table([what, *_HEADER], map(_row, every))}"


def _row(line: Line) -> list[str]:
    def share(name: str, whole: str = "draws", digits: int = 1, times: float = 100) -> str:
        return number(times * line.share(name, whole), digits)

    return [
        line.crowd,
        f"{line.people}",
        f"{100 * line.rate:g} %",
        f"{line.of['draws']:,.0f}",
        *map(share, ("given", "extrapolated")),
        share("broken", "given"),
        number(100 * line.most, 1),
        share("broken"),
        share("times", "broken", times=1),
        share("of_rate", "given", 2, 1),
        share("covered") if line.rate >= _ASKED else "–",
        share("by_people", "asked"),
        share("people_broken", "by_people"),
        share("people_above", "by_people", 2),
        ", ".join(line.verdicts) or "ok",
    ]
