"""Auditing: per-group measurement of anybody's scores or probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.curves import Curves, Source, make_curves
from faircal.data import Groups
from faircal.data.columns import UNKNOWN, Column, parse_genuine
from faircal.errors import DataError, ParameterError
from faircal.measures import RATES, Measure, Rankings, measure
from faircal.metrics import rates_at_threshold, wilson
from faircal.metrics.intervals import enough
from faircal.registry import did_you_mean
from faircal.results import GLOBAL, Condition, Interval, Row, as_table

Float64 = NDArray[np.float64]

#: How intervals are made for now, said wherever they are shown.
INTERVAL_KIND = "pair-wise Wilson (pairs taken as independent: too narrow where pairs share people)"


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found: values, intervals, and a long table.

    Attributes
    ----------
    measures : list of Measure
    groups : tuple of str
    people : dict from group to number of people, or None where identities are unknown
    trials : dict from group to (genuine, imposter) counts
    curves : Curves
        The scores counted by group: what figures are drawn from.
    interval_kind : str
        How the intervals were made.

    Examples
    --------
    >>> found = audit(score=[0.9, 0.4, 0.3], genuine=[1, 0, 0], groups=list("AAB"), threshold=0.4)
    >>> found.value("fpr"), found.value("fpr", group="A"), found.value("fnr", group="B")
    (0.5, 1.0, nan)
    >>> found.table.num_rows == len(found.measures)
    True
    """

    measures: list[Measure]
    groups: tuple[str, ...]
    people: dict[str, int] | None
    trials: dict[str, tuple[int, int]]
    curves: Curves
    dataset: str = ""
    feature: str = ""
    attribute: str = ""
    method: str = ""
    interval_kind: str = INTERVAL_KIND

    def value(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> float:
        """Return one value, e.g. ``value("fpr", group="Asian F")``; NaN where undefined.

        `condition` is empty for values at the audit's own threshold and for those that need none
        (AUROC, KS), or such as ``"global_fpr=0.01"``.
        """
        for found in self.measures:
            if (found.metric, found.group, found.condition) == (metric, group, condition):
                return found.value
        raise ParameterError(self._unknown(metric, group, condition))

    def interval(
        self, metric: str, *, group: str = GLOBAL, condition: str = "", level: float = 0.95
    ) -> tuple[float, float]:
        """Return (low, high) for a rate (``fpr``, ``fnr``, ``tpr``); NaN for other metrics."""
        if not 0 < level < 1:
            raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
        value = self.value(metric, group=group, condition=condition)
        trials = self._trials(metric, group)
        if trials is None or np.isnan(value):
            return float("nan"), float("nan")
        low, high = wilson(np.clip(value, 0, 1) * trials, trials, level)
        return float(low), float(high)

    def enough(self, metric: str, *, group: str = GLOBAL, condition: str = "") -> bool:
        """Whether there are pairs enough for a rate to be told to people.

        `faircal.metrics.intervals.trials_needed` is the rule. It holds for ``fpr``, ``fnr`` and
        ``tpr``; other metrics have no trials, and the answer is yes.
        """
        self.value(metric, group=group, condition=condition)
        trials = self._trials(metric, group)
        return trials is None or enough(trials, Condition.of(condition).wanted(metric))

    def intervals(self, level: float = 0.95) -> list[Interval]:
        """Return every rate with its interval."""
        rows = []
        for group, condition, metric, value in self.measures:
            trials = self._trials(metric, group)
            if trials is not None:
                low, high = self.interval(metric, group=group, condition=condition, level=level)
                count = round(value * trials, 6)
                where = (self.feature, self.attribute, group, condition, metric)
                rows.append(Interval(*where, value, low, high, level, count, trials))
        return rows

    @property
    def rows(self) -> list[Row]:
        """The values as rows of ``results.csv``."""
        return [
            Row(
                self.dataset,
                self.feature,
                self.method,
                "",
                "",
                "",
                "",
                self.attribute,
                found.group,
                found.condition,
                found.metric,
                found.value,
            )
            for found in self.measures
        ]

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)

    def _trials(self, metric: str, group: str) -> int | None:
        if group not in self.trials or metric not in ("fpr", "fnr", "tpr"):
            return None
        genuine, imposter = self.trials[group]
        return imposter if metric == "fpr" else genuine

    def _unknown(self, metric: str, group: str, condition: str) -> str:
        metrics = dict.fromkeys(found.metric for found in self.measures)
        if metric not in metrics:
            return f"the audit has no metric {metric!r}; {did_you_mean(metric, metrics)}"
        groups = dict.fromkeys(f.group for f in self.measures if f.metric == metric)
        if group not in groups:
            return f"the audit has no {metric} of group {group!r}; {did_you_mean(group, groups)}"
        conditions = dict.fromkeys(f.condition for f in self.measures if f.metric == metric)
        listing = ", ".join(repr(known) for known in conditions)
        return f"the audit has no {metric} under condition {condition!r}; it has {listing}"


def audit(
    *,
    genuine: Any,
    score: Any = None,
    probability: Any = None,
    groups: Any = None,
    left_identity: Any = None,
    right_identity: Any = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    score_range: tuple[float, float] = (-1.0, 1.0),
    **labels: str,
) -> Audit:
    """Measure scores and probabilities, overall and by group.

    Parameters
    ----------
    genuine : array of shape (n_pairs,)
        Same person or not. One class only is accepted: what it leaves undefined is NaN.
    score, probability : array of shape (n_pairs,), at least one of them
        What decisions rank by, and P(genuine). Without `score`, `probability` ranks.
    groups : array of shape (n_pairs,) or (n_pairs, 2), or Groups, optional
        Each pair's group, or that of its two images; empty or None is unknown. Pairs of two groups
        count globally and in no group.
    left_identity, right_identity : array of shape (n_pairs,), optional
        The people in each pair.
    threshold : float, optional
        The decision threshold whose error rates are wanted: a match is ``score >= threshold``.
    rates : sequence of float
        Global error rates at which groups are compared besides.
    score_range : (float, float)
        The range of `score`.
    **labels
        ``dataset``, ``feature``, ``attribute``, ``method``: for the table.

    Examples
    --------
    >>> a = audit(
    ...     score=[0.9, 0.8, 0.3, 0.7, 0.6, 0.1], genuine=[1, 1, 0, 1, 0, 0],
    ...     groups=["A", "A", "A", "B", "B", "B"], threshold=0.5,
    ... )
    >>> a.value("fpr", group="A"), a.value("fpr", group="B")
    (0.0, 0.5)
    >>> [round(end, 2) for end in a.interval("fpr", group="B")]
    [0.09, 0.91]
    """
    if np.ndim(genuine) != 1:
        raise DataError(f"genuine: expected one value per pair, found shape {np.shape(genuine)}")
    labelled = parse_genuine(genuine, "genuine")
    if score is None and probability is None:
        raise ParameterError(
            "audit: expected score or probability, found neither; give one of them"
        )
    for rate in rates:
        if not 0 < rate < 1:
            raise ParameterError(
                f"rates: expected rates between 0 and 1, found {rate:g}; write 1 % as 0.01"
            )
    n = len(labelled)
    said = _numbers(probability, "probability", n) if probability is not None else None
    if said is not None and ((said < 0) | (said > 1)).any():
        row = int(np.flatnonzero((said < 0) | (said > 1))[0])
        raise DataError(
            f"probability, row {row + 1}: expected 0 to 1, found {said[row]:g}; correct it"
        )
    # The same array for both, where there is only one, is sorted only once.
    ranked = said if score is None else _numbers(score, "score", n)
    pair_groups = _groups(groups, n)
    people = _people(left_identity, right_identity, pair_groups, n)
    upper = score_range[1] if score is not None else 1.0
    rankings = Rankings.of(ranked, said, labelled, pair_groups, upper)
    found = measure(rankings, rates=rates)
    if threshold is not None:
        found += _at_threshold(rankings, threshold)
    trials = {g: (r.n_genuine, r.n_imposter) for g, r in rankings.scores.items()}
    names = pair_groups.names if pair_groups is not None else ()
    source = Source(**{key: text for key, text in labels.items() if key != "dataset"})
    curves = Curves(make_curves(rankings, source, score_range))
    return Audit(found, names, people, trials, curves, **labels)


def _at_threshold(rankings: Rankings, threshold: Any) -> Iterator[Measure]:
    """Counted error rates of a decision at `threshold`."""
    try:
        at = float(threshold)
    except (TypeError, ValueError):
        at = float("nan")
    if not np.isfinite(at):
        raise ParameterError(f"threshold: expected a finite number, found {threshold!r}")
    yield Measure(GLOBAL, "", "threshold", at)
    for group, ranking in rankings.scores.items():
        counts = rates_at_threshold(ranking, at)
        for metric in ("fpr", "fnr", "tpr"):
            yield Measure(group, "", metric, float(getattr(counts, metric)))


def _numbers(values: Any, name: str, n: int) -> Float64:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: expected numbers; convert the column first") from None
    if array.shape != (n,):
        raise DataError(f"{name}: expected {n} values, one per pair, found shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(
            f"{name}, row {row + 1}: expected a finite number, found {array[row]}; correct it"
        )
    return array


def _groups(groups: Any, n: int) -> Groups | None:
    if groups is None:
        return None
    if isinstance(groups, Groups):
        if len(groups) != n:
            raise DataError(f"groups: expected {n}, one per pair, found {len(groups)}")
        return groups
    array = np.asarray(groups, dtype=object)
    if array.shape not in ((n,), (n, 2)):
        raise DataError(
            f"groups: expected shape ({n},) or ({n}, 2), found {array.shape}; one per pair"
        )
    column = Column.of(array.ravel(order="F"))
    left, right = (column.codes, column.codes) if array.ndim == 1 else np.split(column.codes, 2)
    return Groups(column.names, left, right)


def _people(left: Any, right: Any, groups: Groups | None, n: int) -> dict[str, int] | None:
    """Count the people of all pairs and of each group."""
    if left is None or right is None:
        return None
    sides = [np.asarray(side) for side in (left, right)]
    for side in sides:
        if side.shape != (n,):
            raise DataError(
                f"identities: expected {n} values, one per pair, found shape {side.shape}"
            )
    codes = np.split(Column.of(np.concatenate(sides)).codes, 2)

    def count(where_left: Any, where_right: Any) -> int:
        who = np.concatenate([codes[0][where_left], codes[1][where_right]])
        return len(np.unique(who[who != UNKNOWN]))

    people = {GLOBAL: count(slice(None), slice(None))}
    for code, name in enumerate(groups.names if groups is not None else ()):
        inside = groups.pair == code  # type: ignore[union-attr]
        people[name] = count(inside, inside)
    return people
