"""Auditing pairs of any number: they come in parts, and only counts of them are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal.compute.counting import ScoreCounts, fine_edges, marks_of
from faircal.data import Dataset, Groups
from faircal.data.columns import UNKNOWN
from faircal.data.types import unknown_note
from faircal.evaluation.audit.pairs import ScoredPairs, check_rates, check_threshold
from faircal.evaluation.audit.result import Audit, audit_rankings
from faircal.metrics import probability_edges, score_edges
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.measures import RATES, Rankings, check_names
from faircal.metrics.results import GLOBAL

if TYPE_CHECKING:
    from faircal.methods.base import Output


#: Bits of a group's number in a key of person and group: a million groups, and 2⁴³ people.
_BITS = 20


class PeopleCounter:
    """Who was seen, and in which groups; memory grows with the people, not with the pairs.

    Examples
    --------
    >>> people = PeopleCounter()
    >>> pairs = Groups(("ann", "bea", "cleo"), np.array([0, 0, 1]), np.array([0, 1, 2]))
    >>> people.add(pairs, np.array([0, 0, UNKNOWN]))
    >>> people.count(["A", "B"])
    {'global': 3, 'A': 2, 'B': 0}
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._last: tuple[tuple[str, ...], NDArray[np.int64]] = (
            (),
            np.full(1, UNKNOWN, np.int64),
        )
        self._seen = np.zeros(0, np.bool_)
        # Most people are of one group: the first one they were seen in, and others as keys.
        self._home = np.zeros(0, np.int32)
        self._more = np.zeros(0, np.int64)

    def add(self, people: Groups, group: NDArray[Any] | None) -> None:
        """Count the two people of each pair, and `group`, that of the pair; −1 for none.

        Parameters
        ----------
        people : Groups
            Those of the left and of the right image, as codes into names.
        group : ndarray of int, shape (n_pairs,), optional
        """
        table = self._table(people.names)
        for side in (people.left, people.right):
            who = table[side]
            known = who != UNKNOWN
            self._seen[who[known]] = True
            if group is not None:
                known &= group != UNKNOWN
                self._place(who[known], group[known])

    def _table(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Return our numbers for the codes of `names`; −1, at the end, stays."""
        # Parts of a folder share their names, and those of a table have often the same ones.
        if self._last[0] is not names and self._last[0] != names:
            codes = self._codes
            own = [codes.setdefault(name, len(codes)) for name in names]
            self._last = names, np.array([*own, UNKNOWN], np.int64)
            more = len(codes) - len(self._seen)
            self._seen = np.append(self._seen, np.zeros(more, np.bool_))
            self._home = np.append(self._home, np.full(more, UNKNOWN, np.int32))
        return self._last[1]

    def _place(self, who: NDArray[np.int64], group: NDArray[Any]) -> None:
        new = self._home[who] == UNKNOWN
        self._home[who[new]] = group[new]
        other = self._home[who] != group
        if other.any():
            keys = (who[other] << _BITS) | group[other].astype(np.int64)
            self._more = np.union1d(self._more, keys)

    def merge(self, other: PeopleCounter, groups: NDArray[Any]) -> None:
        """Add what `other` has seen; `groups` are our numbers for its groups."""
        if not other._codes:
            return
        table = self._table(tuple(other._codes))
        self._seen[table[:-1][other._seen]] = True
        home = np.flatnonzero(other._home != UNKNOWN)
        self._place(table[home], groups[other._home[home]])
        self._place(table[other._more >> _BITS], groups[other._more & ((1 << _BITS) - 1)])

    def count(self, groups: Sequence[str]) -> dict[str, int]:
        """Return the number of people of all pairs and of each group."""
        counts = np.bincount(self._home[self._home != UNKNOWN], minlength=len(groups))
        counts += np.bincount(self._more & ((1 << _BITS) - 1), minlength=len(groups))
        return {GLOBAL: int(self._seen.sum())} | dict(zip(groups, counts.tolist(), strict=True))

    def state(self) -> tuple[list[str], dict[str, NDArray[Any]]]:
        """Return names and arrays, for a checkpoint; only of people who were seen."""
        names, present = list(self._codes), np.flatnonzero(self._seen)
        place = np.cumsum(self._seen) - 1
        more = (place[self._more >> _BITS] << _BITS) | (self._more & ((1 << _BITS) - 1))
        arrays = {"seen": self._seen[present], "home": self._home[present], "more": more}
        return [names[i] for i in present], arrays

    @classmethod
    def from_state(cls, names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> PeopleCounter:
        """Return what `state` was made of."""
        made = cls()
        made._codes = {name: code for code, name in enumerate(names)}
        made._seen, made._home, made._more = (arrays[key] for key in ("seen", "home", "more"))
        return made


#: Bins over the range of scores, half of it beyond each end included.
_BINS = 1 << 16
#: With more groups than this bins are fewer: 0.1 MB a group instead of 2.5.
_FINE_GROUPS = 100


class Auditor:
    """The audit of pairs that come in parts, in memory that does not grow with their number.

    Scores and probabilities are counted in bins, of all pairs and of each group. All counts are
    integers, so the parts and their order change no digit. Curves, and error rates at the
    threshold given, are those of `audit`; everything else is that of scores rounded to a bin.

    Parameters
    ----------
    attribute : str, optional
        The attribute that makes the groups.
    groups : sequence of str
        Names of groups that are known beforehand, in the order wanted. Others that turn up are
        put behind them, sorted.
    threshold, rates, score_range, **labels
        As for `faircal.audit`.
    sample : ndarray, optional
        Some of the scores: bins are laid so that each holds few of such ones.

    Examples
    --------
    >>> auditor = Auditor(threshold=0.5)
    >>> auditor.count(ScoredPairs.of([1, 0, 0], score=[0.9, 0.6, 0.1], groups=["A", "A", "B"]))
    >>> auditor.count(ScoredPairs.of([0], score=[0.2], groups=["C"]))
    >>> result = auditor.finish()
    >>> result.groups, result.result("fpr").trials, round(result.value("fpr"), 3)
    (('A', 'B', 'C'), 3.0, 0.333)
    """

    def __init__(
        self,
        *,
        attribute: str | None = None,
        groups: Sequence[str] = (),
        threshold: float | None = None,
        rates: Sequence[float] = RATES,
        score_range: tuple[float, float] = (-1.0, 1.0),
        sample: NDArray[np.float64] | None = None,
        **labels: str,
    ) -> None:
        self.attribute, self.score_range, self.labels = attribute, score_range, labels
        self._sample = np.empty(0) if sample is None else sample
        self.threshold, self.rates = check_threshold(threshold), check_rates(rates)
        check_names(groups)
        self.names, self._given = list(groups), len(groups)
        self.shares = dict.fromkeys(("pairs", "cross_group_pairs", "unknown_pairs"), 0)
        self._has: PairFields | None = None
        self._counts: dict[str, ScoreCounts] = {}
        self._people = PeopleCounter()

    def add(self, part: Dataset, output: Output | None = None) -> None:
        """Count the pairs of `part`, with their own scores or with what a model says of them."""
        self.count(ScoredPairs.of_data(part, output, self.attribute))

    def count(self, pairs: ScoredPairs) -> None:
        """Count pairs; all parts must have the same of scores, probabilities, groups, people."""
        has = PairFields.of(pairs)
        if self._has is None:
            self._start(has)
        elif has != self._has:
            raise DataError(f"expected pairs with {self._has}, as before; found pairs with {has}")
        codes: tuple[Any, ...] = (0,)
        group = None
        if pairs.groups is not None:
            groups = self._named(pairs.groups)
            group = groups.pair
            codes = 0, group + 1  # no group is 0, where the pair has been counted
            for share, count in groups.shares().items():
                self.shares[share] += count
        else:
            self.shares["pairs"] += len(pairs.genuine)
        for of, counts in self._counts.items():
            counts.add(getattr(pairs, of), pairs.genuine, *codes)
        if pairs.people is not None:
            self._people.add(pairs.people, group)

    def _start(self, has: PairFields) -> None:
        """Make room for counts, now that it is known of what."""
        self._has = has
        fine, n_sets = len(self.names) <= _FINE_GROUPS, 1 + len(self.names)
        if has.probability:
            edges = _probability_edges(fine, None if has.score else self.threshold)
            self._counts["probability"] = ScoreCounts.zeros(n_sets, edges)
        if has.score:
            marks = marks_of(self._sample, 8192 if fine else 1024)
            edges = _score_edges(fine, self.score_range, self.threshold, marks)
            self._counts["score"] = ScoreCounts.zeros(n_sets, edges)

    def _named(self, groups: Groups) -> Groups:
        """Return groups by our names, to which new ones are added."""
        new = [name for name in groups.names if name not in self.names]
        if new:
            check_names(new)
            old = range(1 + len(self.names))
            self.names += new
            sets = [*old, *[UNKNOWN] * len(new)]
            self._counts = {of: counts.take(sets) for of, counts in self._counts.items()}
        return groups.renamed(self.names)

    def merge(self, other: Auditor) -> None:
        """Add what another auditor, with the same settings, has counted."""
        if other._has is None:
            return
        if self._has is None:
            self._start(other._has)
        no_pairs = np.zeros(0, np.int32)
        self._named(Groups(tuple(other.names), no_pairs, no_pairs))
        sets = [0, *(1 + other.names.index(n) if n in other.names else -1 for n in self.names)]
        if other._has != self._has:
            raise DataError(f"expected counts of {self._has}; found counts of {other._has}")
        self._counts = {of: own + other._counts[of].take(sets) for of, own in self._counts.items()}
        for share, count in other.shares.items():
            self.shares[share] += count
        self._people.merge(other._people, np.array([self.names.index(n) for n in other.names]))

    def unknown_note(self) -> list[str]:
        """Say what share of the pairs is of unknown group; nothing where there is none."""
        return unknown_note(
            self.attribute or "", self.shares["unknown_pairs"], self.shares["pairs"]
        )

    def finish(self) -> Audit:
        """Measure what was counted so far."""
        if self._has is None:
            raise ParameterError("audit: expected pairs, found none; add some first")
        behind = sorted(self.names[self._given :])
        names = [*self.names[: self._given], *behind]
        sets = [0, *(1 + self.names.index(name) for name in names)]
        counts = {of: by_group.take(sets) for of, by_group in self._counts.items()}
        probabilities = counts.get("probability")
        upper = self.score_range[1] if self._has.ranks else 1.0
        people = None
        if self._has.people:
            by_group = self._people.count(self.names)
            people = {name: by_group[name] for name in (GLOBAL, *names)}
        return audit_rankings(
            Rankings.counted(names, counts.get("score", probabilities), probabilities, upper),
            people=people,
            threshold=self.threshold,
            rates=self.rates,
            score_range=self.score_range,
            pairs=None,
            attribute=self.attribute or "",
            **self.labels,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what was counted so far as JSON and arrays, for a checkpoint."""
        who, arrays = self._people.state()
        arrays = prefixed("people", arrays)
        for of, counts in self._counts.items():
            arrays |= prefixed(of, counts.state())
        header = {"names": self.names, "shares": self.shares, "people": who, "has": self._has}
        return header, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave, of an auditor with the same settings."""
        self.names, self.shares = list(header["names"]), dict(header["shares"])
        self._has = None if header["has"] is None else PairFields(*header["has"])
        self._counts = {
            of: ScoreCounts.from_state(unprefixed(of, arrays))
            for of in ("probability", "score")
            if f"{of}.edges" in arrays
        }
        self._people = PeopleCounter.from_state(header["people"], unprefixed("people", arrays))


class PairFields(NamedTuple):
    """What is known of the pairs; what is counted of them hangs on it."""

    score: bool  # apart from the probability
    probability: bool
    groups: bool
    people: bool
    ranks: bool  # a score was given, if only the probability itself

    @classmethod
    def of(cls, pairs: ScoredPairs) -> PairFields:
        """Look at what some pairs have."""
        apart = pairs.score is not None and pairs.score is not pairs.probability
        known = (pairs.probability, pairs.groups, pairs.people, pairs.score)
        return cls(apart, *(of is not None for of in known))

    def __str__(self) -> str:
        return " and ".join(name for name in self._fields[:4] if getattr(self, name))


def _score_edges(
    fine: bool,
    score_range: tuple[float, float],
    threshold: float | None,
    marks: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return edges for scores: those of curves, the threshold, even ones, and `marks`.

    They reach as far beyond the range as those of curves. Both ends of the range have bins of
    their own, since many scores may be exactly there.
    """
    curve = score_edges(*score_range)
    even = np.linspace(curve[0], curve[-1], _BINS + 1 if fine else 2)
    ends = [*score_range, *np.nextafter(score_range, np.inf)]
    if threshold is not None:  # with an edge below, for in the first bin is all that is lower
        ends += [float(np.nextafter(threshold, -np.inf)), threshold]
    return np.unique(np.concatenate([curve, even, ends, marks]))


def _probability_edges(fine: bool, threshold: float | None) -> NDArray[np.float64]:
    """Return edges for probabilities: those of curves, and finer ones towards 0 and 1."""
    also = [*probability_edges(), NLL_EPS, 1 - NLL_EPS]
    if threshold is not None:
        also.append(threshold)
    return fine_edges(0, 1, also) if fine else np.unique([*also, *np.nextafter([0.0, 1.0], 2)])
