"""What calibration pairs a benchmark makes of those of the other folds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.data import Dataset
from faircal.data.pairing import draw_cohort, redraw_imposters

CalibrationImposters = Literal["given", "random", "matched"]


class PreparedFolds(NamedTuple):
    """The calibration pairs of all folds, what was done to them, and what is missing for it.

    `lost_groups` have genuine and imposter pairs no more, in some fold, for their people are in the
    cohort.
    """

    parts: list[Dataset]
    notes: tuple[str, ...] = ()
    lost_groups: tuple[str, ...] = ()


class Protocol(NamedTuple):
    """How calibration pairs differ from those given; test pairs stay.

    At most `cohort` people of each group of `attribute` are taken out, then the imposters of all
    others are drawn anew.
    """

    imposters: CalibrationImposters = "given"
    cohort: int | None = None
    attribute: str | None = None
    seed: int = 0

    @property
    def changes_pairs(self) -> bool:
        """Whether calibration pairs are others than those given."""
        return self.cohort is not None or self.imposters != "given"

    def __call__(self, given: Dataset) -> Dataset:
        """Return the calibration pairs that methods are fitted on."""
        return self._redrawn(given, self._without_cohort(given)) if self.changes_pairs else given

    def prepare(self, given: list[Dataset], attributes: Iterable[str]) -> PreparedFolds:
        """Return the calibration pairs of all folds, and what is to be known of them."""
        if not self.changes_pairs:
            return PreparedFolds(given)
        left = [self._without_cohort(part) for part in given]
        parts = [self._redrawn(*of) for of in zip(given, left, strict=True)]
        lost = [
            _lost_groups(*of, name) for of in zip(given, left, strict=True) for name in attributes
        ]
        notes = (*self._cohort_notes(given, parts), *self._imposter_notes(given, parts))
        return PreparedFolds(parts, notes, tuple(sorted(set().union(*lost))))

    def _without_cohort(self, given: Dataset) -> Dataset:
        if self.cohort is None:
            return given
        return draw_cohort(given, self.cohort, self.attribute, self.seed)

    def _redrawn(self, given: Dataset, left: Dataset) -> Dataset:
        # A cohort takes more imposters with it than genuine pairs: their share is to stay.
        number = round(_odds(given) * int(left.genuine.sum()))
        return redraw_imposters(left, self.imposters, self.seed, number=number)

    def _cohort_notes(self, given: Sequence[Dataset], parts: Sequence[Dataset]) -> Iterator[str]:
        cohorts = [part.cohort for part in parts if part.cohort is not None]
        if self.cohort is None or not cohorts:
            return
        note = (
            f"cohort: at most {self.cohort} people of each group of {cohorts[0].attribute} are "
            f"drawn from the calibration people of each fold ({_ranged(map(len, cohorts))} images) "
            "and are in no calibration pair"
        )
        counts = [cohort.counts() for cohort in cohorts]
        by_group = {
            group: [of[group][0] if group in of else 0 for of in counts]
            for group in sorted(set().union(*counts))
        }
        fewer = [
            f"{group} ({_ranged(people)})"
            for group, people in by_group.items()
            if min(people) < self.cohort
        ]
        yield f"{note}; fewer, which are all there are, of {', '.join(fewer)}" if fewer else note
        yield from dict.fromkeys(text for cohort in cohorts for text in cohort.notes)
        if self.imposters == "given":
            shares = [
                _ranged(round(100 * of.genuine.mean()) for of in each) for each in (given, parts)
            ]
            yield "without them {} % of calibration pairs are genuine, {} % with them".format(
                *shares[::-1]
            )

    def _imposter_notes(self, given: Sequence[Dataset], parts: Sequence[Dataset]) -> Iterator[str]:
        if self.imposters == "given":
            return
        yield (
            f"calibration imposters are drawn anew ({self.imposters}), as many for each genuine "
            "pair as before; test pairs stay"
        )
        fewer = sum(_odds(part) < 0.999 * _odds(of) for of, part in zip(given, parts, strict=True))
        if fewer:
            yield f"warning: in {fewer} folds there are not as many imposter pairs to be drawn"


def _odds(data: Dataset) -> float:
    """Return how many imposter pairs there are for each genuine one."""
    genuine = int(data.genuine.sum())
    return (len(data) - genuine) / max(genuine, 1)


def _lost_groups(given: Dataset, left: Dataset, attribute: str) -> set[str]:
    """Return the groups that have pairs of both classes, but not among those that are left."""
    before, after = _both_classes(given, attribute), _both_classes(left, attribute)
    names = given.groups(attribute).names
    return {names[code] for code in np.flatnonzero(before & ~after)}


def _both_classes(data: Dataset, attribute: str) -> NDArray[np.bool_]:
    groups = data.groups(attribute)
    known, n = groups.pair >= 0, len(groups.names)
    genuine, imposter = (
        np.bincount(groups.pair[known & rows], minlength=n) > 0
        for rows in (data.genuine, ~data.genuine)
    )
    return np.asarray(genuine & imposter)


def _ranged(numbers: Iterable[int]) -> str:
    values = list(numbers)
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
