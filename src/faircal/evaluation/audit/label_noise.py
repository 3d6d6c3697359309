"""How far groups' figures move when some labels of groups are wrong.

Forwards labels are drawn wrong and all is measured again; backwards wrong labels are a mixing of
groups, which is solved for the error rates of the true ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import check_integer
from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.evaluation.audit.pairs import ScoredPairs, check_points
from faircal.metrics import Ranking, counted_threshold, deviations, gap
from faircal.metrics.measures import RATES, condition
from faircal.metrics.results import ALL

Float64 = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Values = dict[tuple[str, str], Float64]  # by condition and metric: one value a group

#: In the output folder: every value as labelled, with wrong labels, and with them taken back.
LABEL_NOISE = "label_noise.csv"
#: What tables show of the deviations over groups.
_SHOWN = ("gap", "aad")
#: Half a range of draws: 2.5 % on each side.
_TAIL = 0.025
#: Where the mixing amplifies errors more than this, what is taken back is not to be relied on.
MOST_AMPLIFIED = 3.0
#: Beyond this condition number labels hardly depend on the true groups: nothing can be solved for.
_SINGULAR = 1e6


class LabelNoiseRow(NamedTuple):
    """One value: as labelled, with more labels wrong, and with the wrong ones taken back.

    `median`, `low` and `high` are over the draws. `corrected` and `corrected_never` are NaN where
    they can't be determined; they differ where nobody knows how often strangers of two groups
    match, as there are no such pairs: as often as those of one group, or never. `reliable` is 1
    where both may be relied on.
    """

    feature: str
    attribute: str
    group: str
    condition: str
    metric: str
    noise: float
    value: float = float("nan")
    median: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    corrected: float = float("nan")
    corrected_never: float = float("nan")
    reliable: float = 0.0

    @property
    def name(self) -> str:
        """What a deviation over groups is called, ``FPR gap`` or ``KS AAD``."""
        metric, _, over = self.metric.partition("_")
        return f"{metric.upper()} {over if over == 'gap' else over.upper()}"

    @property
    def of_rate(self) -> bool:
        """Whether it is of an error rate, which has a threshold; calibration has none."""
        return self.metric.startswith(("fpr", "fnr"))

    def taken_back(self, printed: Callable[[float], str]) -> str:
        """Return what the true groups would show, `printed`: a range where it can't be known."""
        ends = sorted((self.corrected, self.corrected_never))
        return " to ".join(dict.fromkeys(map(printed, ends)))


def over_groups(rows: Iterable[LabelNoiseRow]) -> list[LabelNoiseRow]:
    """Return what tables show: deviations over groups that are defined."""
    return [
        row
        for row in rows
        if row.group == ALL and row.metric.rpartition("_")[2] in _SHOWN and row.value == row.value
    ]


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """What wrong labels do to the figures of groups; `label_noise` makes it.

    Attributes
    ----------
    rate : float
        The share of labels that are wrong.
    rows : list of LabelNoiseRow
    notes : list of str
        How to read it.
    """

    rate: float
    rows: list[LabelNoiseRow]
    notes: list[str]

    def row(self, metric: str, *, group: str = ALL, condition: str = "") -> LabelNoiseRow:
        """Return one row, e.g. ``row("fpr_gap", condition="global_fpr=0.01")``."""
        for row in self.rows:
            if (row.metric, row.group, row.condition) == (metric, group, condition):
                return row
        raise ParameterError(
            f"label noise: there is no {metric!r} of group {group!r} under {condition!r}; "
            "look at rows"
        )


def label_noise(
    pairs: ScoredPairs,
    rate: float,
    *,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    draws: int = 200,
    seed: int = 0,
    feature: str = "",
    attribute: str = "",
) -> LabelNoise:
    """Say how far groups' error rates, KS and deviations move when labels of groups are wrong.

    Forwards: labels are made wrong by chance, `draws` times, and all is measured again. With
    probability `rate` a person gets the label of another group, drawn in proportion to the number
    of people in each; all images of a person move together. Where people are unknown, each pair
    has its own: one label if it is genuine or within a group, else two. Unknown labels stay
    unknown, and a pair whose two people come to be of two groups counts in none.

    Backwards: error rates of the true groups, if the labels given are already so often wrong. KS
    does not mix linearly and is not taken back.

    Rates are those of an audit: counted at the thresholds of all pairs, which do not depend on
    labels.

    Parameters
    ----------
    pairs : ScoredPairs
        With `groups`.
    rate : float
        The share of labels that are wrong, between 0 and 1.
    threshold, rates
        As for `faircal.audit`.
    draws : int, default 200
    seed : int, default 0
    feature, attribute : str
        For the table.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["A", "B"], 2000)
    >>> score = rng.normal(np.where(group == "A", 0.0, 0.3), 0.2)
    >>> pairs = ScoredPairs.of(np.zeros(4000), score, groups=group)
    >>> result = label_noise(pairs, 0.1, threshold=0.3, draws=50).row("fpr_gap")
    >>> round(result.value, 2), round(result.median, 2), round(result.corrected, 2)
    (0.43, 0.34, 0.53)
    """
    groups = pairs.groups
    labels = () if groups is None else np.union1d(groups.left, groups.right)
    if groups is None or np.count_nonzero(labels != UNKNOWN) < 2:
        raise DataError(
            "label noise: expected two or more groups with people in them to mix up; found fewer; "
            "name another attribute, or leave label noise out"
        )
    if not 0 < rate < 1:
        raise ParameterError(
            f"label noise: expected a share between 0 and 1, found {rate:g}; write 5 % as 0.05"
        )
    check_integer("draws", draws, 1)
    points = _points(pairs, *check_points(threshold, rates))
    people = LabelledPeople.of(pairs, groups)
    counted = RelabelledCounts(pairs, groups, points)
    given = counted.values(people.pair)
    moved: dict[tuple[str, str], list[Float64]] = {key: [] for key in given}
    random = np.random.default_rng(seed)
    for _ in range(draws):
        for key, values in counted.values(people.mislabelled(rate, random)).items():
            moved[key].append(values)
    mixing = LabelMixing.of(people.sizes, rate)
    taken_back = _taken_back(counted, mixing, given, alone=pairs.people is None)
    rows: list[LabelNoiseRow] = []
    for (under, metric), values in given.items():
        of = LabelNoiseRow(feature, attribute, "", under, metric, rate)
        drawn, back = np.array(moved[under, metric]), taken_back.get((under, metric))
        rows += _rows(of, groups.names, values, drawn, back)
    by = "pairs" if pairs.people is None else "people"
    how = (
        f"wrong labels: in each of {draws} draws every one of the {by} gets another group's label "
        f"with probability {rate:g}, more likely that of a large group"
    )
    notes = [how]
    if pairs.people is None:
        notes.append("wrong labels: people are unknown, so each pair has a label of its own")
    elif not groups.cross.any():
        notes.append(
            "wrong labels: there are no pairs of two groups, so a wrong label can only take an "
            "imposter pair out of its group; false-positive rates would move more with such pairs"
        )
    return LabelNoise(rate, rows, notes)


def _rows(
    of: LabelNoiseRow,
    names: Sequence[str],
    values: Float64,
    drawn: Float64,
    back: tuple[CorrectedRates, CorrectedRates] | None,
) -> Iterator[LabelNoiseRow]:
    """Yield the rows of each group, and of each deviation over groups."""
    true = np.full((2, len(names)), np.nan)
    if back is not None:
        true = np.array([each.rates for each in back])
        of = of._replace(reliable=float(all(each.reliable for each in back)))
    for g, name in enumerate(names):
        yield _row(of._replace(group=name), values[g], drawn[:, g], true[:, g])
    over = [{**deviations(each), "gap": float(gap(each))} for each in (values, *true, *drawn)]
    for name in over[0]:
        moved = np.array([each[name] for each in over])
        named = of._replace(group=ALL, metric=f"{of.metric}_{name}")
        yield _row(named, moved[0], moved[3:], moved[1:3])


def _row(of: LabelNoiseRow, value: float, drawn: Float64, true: Float64) -> LabelNoiseRow:
    defined = drawn[~np.isnan(drawn)]
    low, median, high = (
        np.quantile(defined, (_TAIL, 0.5, 1 - _TAIL)).tolist()
        if len(defined)
        else [float("nan")] * 3
    )
    return of._replace(
        value=float(value),
        median=median,
        low=low,
        high=high,
        corrected=float(true[0]),
        corrected_never=float(true[1]),
        reliable=0.0 if np.isnan(true).any() else of.reliable,
    )


def _points(
    pairs: ScoredPairs, threshold: float | None, rates: Sequence[float]
) -> dict[str, float]:
    """Return the thresholds of the operating points, by condition."""
    if pairs.ranked is None:
        return {}
    ranking = Ranking.of(pairs.ranked, pairs.genuine)
    thresholds: dict[str, float] = {} if threshold is None else {"": threshold}
    kinds: tuple[Literal["fpr"], Literal["fnr"]] = "fpr", "fnr"
    for kind in kinds:
        at = counted_threshold(ranking, kind, rates)
        under = (condition(f"global_{kind}", rate) for rate in rates)
        thresholds |= zip(under, at.tolist(), strict=True)
    return {under: at for under, at in thresholds.items() if at == at}


def _taken_back(
    counted: RelabelledCounts, mixing: LabelMixing, given: Values, alone: bool
) -> dict[tuple[str, str], tuple[CorrectedRates, CorrectedRates]]:
    """Return the error rates of true groups; `alone`: a pair within a group has one label."""
    corrected = {}
    for (under, metric), values in given.items():
        if metric == "fnr" or (metric == "fpr" and alone):
            corrected[under, metric] = (mixing.one_label(values),) * 2
        elif metric == "fpr":
            rates = counted.by_both(under)
            corrected[under, metric] = (
                mixing.two_labels(rates),
                mixing.two_labels(rates, never=True),
            )
    return corrected


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
        measured = ~np.isnan(rates)
        corrected = np.full(len(rates), np.nan)
        if not measured.any():
            return CorrectedRates(corrected, reliable=False)
        part = weights[np.ix_(measured, measured)]
        if np.linalg.cond(part) > _SINGULAR:
            return CorrectedRates(corrected, reliable=False)
        solved = np.linalg.solve(part, rates[measured])
        inside = bool(((solved >= 0) & (solved <= 1)).all())
        corrected[measured] = np.clip(solved, 0, 1)
        # The ∞-norm of the inverse: by how much errors in the rates can grow in solving.
        amplified = float(np.abs(np.linalg.inv(part)).sum(axis=1).max())
        return CorrectedRates(corrected, self.possible and inside and amplified <= MOST_AMPLIFIED)


class LabelledPeople:
    """Who is in each pair, and of which group; draws wrong labels."""

    def __init__(self, left: Codes, right: Codes, groups: Groups) -> None:
        self._left, self._right, self._groups = left, right, groups
        self._in_groups = ~groups.unknown
        self._group_of = np.full(int(max(left.max(), right.max())) + 1, UNKNOWN, np.int32)
        for who, group in ((left, groups.left), (right, groups.right)):
            labelled = group != UNKNOWN
            self._group_of[who[labelled]] = group[labelled]
        self._labelled = np.flatnonzero(self._group_of != UNKNOWN)
        sizes = np.bincount(self._group_of[self._labelled], minlength=len(groups.names))
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
        # Inverse transform: with a rate of 1 a row of the confusion is the chance of each other
        # group.
        reach = np.cumsum(confusion(self.sizes, 1.0), axis=1)
        at = random.random(len(wrong))
        label = np.full(len(self._group_of), UNKNOWN, np.int32)
        last = len(self.sizes) - 1
        label[wrong] = np.minimum((at[:, None] >= reach[self._group_of[wrong]]).sum(axis=1), last)
        left, right = label[self._left], label[self._right]
        left = np.where(left == UNKNOWN, self._groups.left, left)
        right = np.where(right == UNKNOWN, self._groups.right, right)
        return np.where((left == right) & self._in_groups, left, np.int32(UNKNOWN))


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
        self._order: NDArray[np.intp] | None = None
        if pairs.probability is not None:
            # For KS: probability less label of each pair, in the order of probabilities.
            self._order = np.argsort(pairs.probability, kind="stable")
            ranked = pairs.probability[self._order]
            self._gap = ranked - pairs.genuine[self._order]
            block = np.cumsum(np.diff(ranked, prepend=ranked[:1]) > 0)
            self._block = None if block[-1] == len(block) - 1 else block

    def values(self, group: Codes) -> Values:
        """Return each group's value of each metric, where `group` is the group of each pair."""
        values: Values = {}
        if self._points:
            counts = self._tally(group, self._n)
            for under, at in self._points.items():
                # At a global FNR an audit compares the groups' FNR only.
                for metric in ("fnr",) if under.startswith("global_fnr") else ("fpr", "fnr"):
                    values[under, metric] = self._rate(counts, at, metric)
        if self._order is not None:
            values["", "ks"] = self._ks(group[self._order], self._n)
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

    def _ks(self, ranked: Codes, n: int) -> Float64:
        """Return the KS of each group, given those of the pairs in order; NaN without pairs."""
        # Sorting few distinct whole numbers is quick, where they are short.
        code = (ranked + 1).astype(np.min_scalar_type(n + 1))
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
