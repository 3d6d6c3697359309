"""Wrong labels as mixing of groups: how they come about, and taking them back from error rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.evaluation.audit.pairs import ScoredPairs

Float64 = NDArray[np.float64]

#: Where the mixing amplifies errors more than this, what is taken back is not to be relied on.
MOST_AMPLIFIED = 3.0
#: Beyond this condition number labels hardly depend on the true groups: nothing can be solved for.
_SINGULAR = 1e6


def confusion(sizes: Float64, rate: float) -> Float64:
    """Return P(labelled h | truly g), shape (n_groups, n_groups), rows g.

    With probability `rate` a label is that of another group, drawn in proportion to the sizes of
    the others. Were all others as likely, the errors of large groups would flood the small ones.

    Examples
    --------
    >>> confusion(np.array([50.0, 30.0, 20.0]), 0.1).round(3)
    array([[0.9  , 0.06 , 0.04 ],
           [0.071, 0.9  , 0.029],
           [0.062, 0.038, 0.9  ]])
    """
    others = np.tile(np.asarray(sizes, dtype=np.float64), (len(sizes), 1))
    np.fill_diagonal(others, 0.0)
    labelled = rate * others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)
    np.fill_diagonal(labelled, 1 - rate)
    return np.asarray(labelled)


@dataclass(frozen=True, eq=False)
class CorrectedRates:
    """Error rates of true groups, NaN where there is nothing to tell by; and whether to rely."""

    rates: Float64
    reliable: bool


@dataclass(frozen=True, eq=False)
class LabelMixing:
    """Who is truly in the groups as labelled.

    Attributes
    ----------
    truly : ndarray of float64, shape (n_groups, n_groups)
        P(truly g | labelled h), rows h.
    possible : bool
        Whether labels that are so often wrong could have given groups of these sizes.
    """

    truly: Float64
    possible: bool

    @classmethod
    def of(cls, sizes: Float64, rate: float) -> LabelMixing:
        """Work it out from the sizes of the groups as labelled, some of them maybe 0.

        Examples
        --------
        >>> LabelMixing.of(np.array([80.0, 20.0]), 0.1).truly.round(3)
        array([[0.984, 0.016],
               [0.438, 0.562]])
        """
        labelled = confusion(sizes, rate)
        if np.linalg.cond(labelled) > _SINGULAR:
            return cls(np.eye(len(sizes)), possible=False)
        # Sizes as labelled are n_h = Σ_g n_g C_gh with C the confusion; solved for the true n_g,
        # and turned around by Bayes' rule.
        true_sizes = np.linalg.solve(labelled.T, sizes)
        joint = np.maximum(true_sizes, 0.0)[:, None] * labelled
        total = joint.sum(axis=0)
        # A group of nobody is no mixture; it has no rate either.
        truly = np.where(total > 0, joint / np.where(total > 0, total, 1.0), np.eye(len(sizes))).T
        return cls(truly, bool((true_sizes >= 0).all()))

    def one_label(self, rates: Float64) -> CorrectedRates:
        """Return rates of pairs with one label, such as genuine pairs, of the true groups.

        A labelled group's rate is the mean of true ones, weighted by who is in it:
        r_h = Σ_g T_hg r_g, with T = `truly`.
        """
        return self._solve(self.truly, rates)

    def two_labels(self, rates: Float64, never: bool = False) -> CorrectedRates:
        """Return rates of imposter pairs, each of two people, within the true groups.

        A pair within a labelled group may truly be one of two groups. How often such pairs match
        is taken from the pairs of those two groups as labelled. Where there are none it can't be
        known: as often as the mean of pairs within the two, or `never`, between which it lies as
        strangers of two groups rarely look as alike as those of one.

        Parameters
        ----------
        rates : ndarray of float64, shape (n_groups, n_groups)
            By the labels of the two people; NaN where there are no such pairs.
        never : bool
        """
        # r_hh = Σ_ab T_ha T_hb r_ab: what a ≠ b add is subtracted, the rest is solved for r_gg.
        unmeasured = np.isnan(rates) & ~np.eye(len(rates), dtype=bool)
        across = np.where(np.isnan(rates), 0.0, rates)
        np.fill_diagonal(across, 0.0)
        from_across = np.einsum("ha,ab,hb->h", self.truly, across, self.truly)
        weights = self.truly**2
        if not never:
            weights = weights + self.truly * (self.truly @ unmeasured)
        return self._solve(weights, np.diag(rates) - from_across)

    def _solve(self, weights: Float64, rates: Float64) -> CorrectedRates:
        known = ~np.isnan(rates)
        corrected = np.full(len(rates), np.nan)
        if not known.any():
            return CorrectedRates(corrected, reliable=False)
        part = weights[np.ix_(known, known)]
        if np.linalg.cond(part) > _SINGULAR:
            return CorrectedRates(corrected, reliable=False)
        solved = np.linalg.solve(part, rates[known])
        inside = bool(((solved >= 0) & (solved <= 1)).all())
        corrected[known] = np.clip(solved, 0, 1)
        amplified = float(np.abs(np.linalg.inv(part)).sum(axis=1).max())
        return CorrectedRates(corrected, self.possible and inside and amplified <= MOST_AMPLIFIED)


Codes = NDArray[np.integer[Any]]
Values = dict[tuple[str, str], Float64]  # by condition and metric: one value a group


class LabelledPeople:
    """Who is in each pair, and of which group; draws wrong labels."""

    def __init__(self, left: Codes, right: Codes, groups: Groups) -> None:
        self._left, self._right, self._groups = left, right, groups
        self._known = ~groups.unknown
        self._own = np.full(int(max(left.max(), right.max())) + 1, UNKNOWN, np.int32)
        for who, group in ((left, groups.left), (right, groups.right)):
            labelled = group != UNKNOWN
            self._own[who[labelled]] = group[labelled]
        self._labelled = np.flatnonzero(self._own != UNKNOWN)
        sizes = np.bincount(self._own[self._labelled], minlength=len(groups.names))
        self.sizes = sizes.astype(np.float64)

    @classmethod
    def of(cls, pairs: ScoredPairs, groups: Groups) -> LabelledPeople:
        """Number the people; an unknown one is somebody else, but for both sides of a match."""
        rows = np.arange(len(groups))
        if pairs.people is None:
            one = pairs.genuine | (groups.left == groups.right)
            return cls(rows, np.where(one, rows, rows + len(rows)), groups)
        left, right = pairs.people.left.astype(np.int64), pairs.people.right.astype(np.int64)
        n = len(pairs.people.names)
        other_person = np.where(pairs.genuine & (right != UNKNOWN), right, n + rows)
        left = np.where(left == UNKNOWN, other_person, left)
        new_person = np.where(pairs.genuine, left, n + len(rows) + rows)
        return cls(left, np.where(right == UNKNOWN, new_person, right), groups)

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
        values: Values = {}
        if self._points:
            counts = self._tally(group, self._n)
            for under, at in self._points.items():
                # At a global FNR an audit compares the groups' FNR only.
                for metric in ("fnr",) if under.startswith("global_fnr") else ("fpr", "fnr"):
                    values[under, metric] = self._rate(counts, at, metric)
        if self._gaps is not None:
            values["", "ks"] = self._gaps.ks(group, self._n)
        return values

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
        by_group_ks = np.full(n, np.nan)
        for g in range(n):
            rows = by_group[ends[g] : ends[g + 1]]
            if len(rows):
                gaps = np.cumsum(self._gap[rows])
                if self._block is not None:  # the end of each block of equal probabilities
                    gaps = gaps[np.append(np.diff(self._block[rows]) > 0, True)]
                by_group_ks[g] = np.abs(gaps).max() / len(rows)
        return by_group_ks
