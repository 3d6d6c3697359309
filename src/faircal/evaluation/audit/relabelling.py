"""Pairs under labels of groups that change: sorted once, measured again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.evaluation.audit.label_mixing import confusion
from faircal.evaluation.audit.pairs import ScoredPairs

Float64 = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Values = dict[tuple[str, str], Float64]  # by condition and metric: one value a group


class Relabelled:
    """Who is in each pair, and of which group; draws wrong labels."""

    def __init__(self, left: Codes, right: Codes, groups: Groups) -> None:
        self._left, self._right, self._groups = left, right, groups
        self._known = ~groups.unknown
        self._own = np.full(int(max(left.max(), right.max())) + 1, UNKNOWN, np.int32)
        for who, group in ((left, groups.left), (right, groups.right)):
            told = group != UNKNOWN
            self._own[who[told]] = group[told]
        self._labelled = np.flatnonzero(self._own != UNKNOWN)
        sizes = np.bincount(self._own[self._labelled], minlength=len(groups.names))
        self.sizes = sizes.astype(np.float64)

    @classmethod
    def of(cls, pairs: ScoredPairs, groups: Groups) -> Relabelled:
        """Number the people; an unknown one is somebody else, but for both sides of a match."""
        rows = np.arange(len(groups))
        if pairs.people is None:
            one = pairs.genuine | (groups.left == groups.right)
            return cls(rows, np.where(one, rows, rows + len(rows)), groups)
        left, right = pairs.people.left.astype(np.int64), pairs.people.right.astype(np.int64)
        n = len(pairs.people.names)
        somebody = np.where(pairs.genuine & (right != UNKNOWN), right, n + rows)
        left = np.where(left == UNKNOWN, somebody, left)
        stranger = np.where(pairs.genuine, left, n + len(rows) + rows)
        return cls(left, np.where(right == UNKNOWN, stranger, right), groups)

    @property
    def pair(self) -> Codes:
        """The group of each pair as labelled, or −1."""
        return self._groups.pair

    def mislabelled(self, rate: float, random: np.random.Generator) -> Codes:
        """Return the group of each pair, or −1, where some people have wrong labels."""
        wrong = self._labelled[random.random(len(self._labelled)) < rate]
        reach = np.cumsum(confusion(self.sizes, 1.0), axis=1)
        at = random.random(len(wrong))
        label = np.full(len(self._own), UNKNOWN, np.int32)
        last = len(self.sizes) - 1
        label[wrong] = np.minimum((at[:, None] >= reach[self._own[wrong]]).sum(axis=1), last)
        left, right = label[self._left], label[self._right]
        left = np.where(left == UNKNOWN, self._groups.left, left)
        right = np.where(right == UNKNOWN, self._groups.right, right)
        return np.where((left == right) & self._known, left, np.int32(UNKNOWN))


class RelabelledCounts:
    """Pairs sorted once, to be measured under any labels."""

    def __init__(self, pairs: ScoredPairs, groups: Groups, points: Mapping[str, float]) -> None:
        self._n, self._points, self._groups = len(groups.names), points, groups
        self._at = np.sort(np.array(list(points.values()), dtype=np.float64))
        # How many thresholds a pair reaches, and its label: all that rates depend on.
        reached = np.zeros(len(pairs.genuine), np.int64)
        if pairs.ranked is not None and points:
            reached = np.searchsorted(self._at, pairs.ranked, side="right")
        self._cell = (2 * reached + pairs.genuine).astype(np.int64)
        self._gaps: _Gaps | None = None
        if pairs.probability is not None:
            self._gaps = _Gaps(pairs.probability, pairs.genuine)

    def values(self, group: Codes) -> Values:
        """Return each group's value of each metric, where `group` is the group of each pair."""
        found: Values = {}
        if self._points:
            counts = self._tally(group, self._n)
            for under, at in self._points.items():
                # At a global FNR an audit compares the groups' FNR only.
                for metric in ("fnr",) if under.startswith("global_fnr") else ("fpr", "fnr"):
                    found[under, metric] = self._rate(counts, at, metric)
        if self._gaps is not None:
            found["", "ks"] = self._gaps.ks(group, self._n)
        return found

    def by_both(self, under: str) -> Float64:
        """Return the FPR at a point by the labels of both people, symmetric; NaN: no pairs."""
        left, right = self._groups.left, self._groups.right
        low, high = np.minimum(left, right), np.maximum(left, right)
        code = np.where(self._groups.unknown, UNKNOWN, low * self._n + high)
        fpr = self._rate(self._tally(code, self._n**2), self._points[under], "fpr")
        fpr = fpr.reshape(self._n, self._n)
        return np.where(np.isnan(fpr), fpr.T, fpr)

    def _tally(self, group: Codes, n: int) -> NDArray[np.int64]:
        """Return how many pairs of each group and label reach how many thresholds."""
        cells = 2 * (len(self._at) + 1)
        key = (group.astype(np.int64) + 1) * cells + self._cell
        counts = np.bincount(key, minlength=(n + 1) * cells)[cells:].reshape(n, -1, 2)
        return np.asarray(counts, dtype=np.int64)

    def _rate(self, counts: NDArray[np.int64], at: float, metric: str) -> Float64:
        """Return the error rate of each group of the decision ``score >= at``."""
        of = counts[:, :, int(metric == "fnr")]
        total = of.sum(axis=1)
        accepted = of[:, int(np.searchsorted(self._at, at, side="left")) + 1 :].sum(axis=1)
        errors = accepted if metric == "fpr" else total - accepted
        return np.where(total > 0, errors / np.maximum(total, 1), np.nan)


class _Gaps:
    """Probability less label of each pair, in the order of probabilities: for KS of any groups."""

    def __init__(self, probability: Float64, genuine: NDArray[np.bool_]) -> None:
        self._order = np.argsort(probability, kind="stable")
        ranked = probability[self._order]
        self._gap = ranked - genuine[self._order]
        block = np.cumsum(np.diff(ranked, prepend=ranked[:1]) > 0)
        self._block = None if block[-1] == len(block) - 1 else block

    def ks(self, group: Codes, n: int) -> Float64:
        """Return the KS of each group; NaN where it has no pairs."""
        # Sorting few distinct whole numbers is quick, where they are short.
        code = (group[self._order] + 1).astype(np.min_scalar_type(n + 1))
        by_group = np.argsort(code, kind="stable")
        ends = np.cumsum(np.bincount(code, minlength=n + 1))
        found = np.full(n, np.nan)
        for g in range(n):
            rows = by_group[ends[g] : ends[g + 1]]
            if len(rows):
                gaps = np.cumsum(self._gap[rows])
                if self._block is not None:  # the end of each block of equal probabilities
                    gaps = gaps[np.append(np.diff(self._block[rows]) > 0, True)]
                found[g] = np.abs(gaps).max() / len(rows)
        return found
