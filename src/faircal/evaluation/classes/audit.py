"""Auditing any classifier: its class probabilities measured, by group, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.evaluation.classes.intervals import (
    BY_ROWS,
    BY_UNITS,
    ClassDifference,
    ClassIntervals,
    DifferenceInterval,
    Ends,
    UnitNoise,
    has_interval,
    of_estimates,
    of_rows,
)
from faircal.evaluation.classes.rows import CLASS, ROW_MEANS, ClassRows, measure_method
from faircal.evaluation.curves import Curves, ScoreHistogram
from faircal.metrics.intervals import LEVEL, Key
from faircal.metrics.intervals.dyadic import Float64
from faircal.metrics.intervals.sufficient_data import insufficient_data_reason
from faircal.metrics.results import ALL, GLOBAL, Result, as_table


class Made(NamedTuple):
    """How a method's probabilities were made, as ``results.csv`` says it; empty: does not apply."""

    calibrator: str = ""
    clusters: str = ""
    seed: str = ""


@dataclass(frozen=True, eq=False)
class ClassAudit:
    """What an audit of a classifier found: values, intervals, differences, and a long table.

    Build it with `audit_classes`. Intervals are worked out when they are asked for, and kept.

    Attributes
    ----------
    measures : dict from method to list of Result
    curves : Curves
        Confidence counted by group, and probabilities by class: what figures are drawn from.
    data : ClassRows
        What was measured.
    made : mapping from method to Made
        How what was measured was made, where that is known.

    Examples
    --------
    >>> result = audit_classes(
    ...     [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], [0, 1, 1, 1], groups=list("AABB")
    ... )
    >>> result.value("accuracy"), result.value("accuracy", group="A")
    (0.75, 0.5)
    >>> round(result.value("class_ks", condition="class=1"), 3)
    0.25
    """

    measures: dict[str, list[Result]]
    curves: Curves
    data: ClassRows
    dataset: str = ""
    attribute: str = ""
    made: Mapping[str, Made] = field(default_factory=dict)
    _kept: dict[tuple[str, float], ClassIntervals] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they came."""
        return tuple(self.measures)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the columns."""
        return self.data.classes

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups."""
        return self.data.group_names

    @property
    def interval_kind(self) -> str:
        """How the intervals are made."""
        return BY_ROWS if self.data.independent else BY_UNITS

    def value(
        self, metric: str, *, method: str | None = None, group: str = GLOBAL, condition: str = ""
    ) -> float:
        """Return one value, e.g. ``value("top_ks", group="F")``; NaN where undefined.

        `method` may be left out where there is only one. A value over groups (``top_ks_mean``) has
        `group` ``all``, which need not be said; one of a class the condition ``class=NAME``.
        """
        chosen = self._method(method)
        return self._values[chosen][self._key(chosen, metric, group, condition)]

    def interval(
        self,
        metric: str,
        *,
        method: str | None = None,
        group: str = GLOBAL,
        condition: str = "",
        level: float = LEVEL,
    ) -> Ends:
        """Return (low, high) of a value; NaN where there are too few units or no interval."""
        chosen = self._method(method)
        return self._intervals_of(chosen, level).interval(
            self._key(chosen, metric, group, condition)
        )

    def difference(
        self,
        metric: str,
        method: str,
        reference: str,
        *,
        group: str = GLOBAL,
        condition: str = "",
        level: float = LEVEL,
    ) -> DifferenceInterval:
        """Return (difference, low, high): a method's value less the reference's, on the same rows.

        Means over rows (accuracy, NLL, Brier) and their means over groups: Student's t of what rows
        differ by, summed over units. Calibration errors and deviations over groups: both intervals
        put together, with the correlation of replicates of the same other units. These are
        approximate, and wide near 0: noise is taken as normal, bins as they are, and where one of
        the two cannot be told from 0 the worst correlation is taken. Values of single classes and
        the parts of the Brier score have no interval (NaN).
        """
        key = self._key(self._method(method), metric, group, condition)
        self._key(self._method(reference), metric, group, condition)
        base = metric.removesuffix("_mean")
        if base in ROW_MEANS and (metric == base or key[0] == ALL):
            apart = self._losses[method][base] - self._losses[reference][base]
            return of_rows(self.data, key[0], apart, _checked(level))
        one, other = (self._intervals_of(name, level).estimate(key) for name in (method, reference))
        _, low, high = of_estimates(one, other)
        return self._values[method][key] - self._values[reference][key], low, high

    def insufficient_data_reason(self, group: str = GLOBAL) -> str | None:
        """Say what there is too little of for a group to be told of, or None.

        The rule of `faircal.metrics.intervals.sufficient_data`: so many rows and, where units are
        known, so many of them, each as much as its rows let it count.
        """
        if group not in self.data.identified:
            hint = did_you_mean(group, self.data.identified)
            raise ParameterError(f"the audit has no group {group!r}; {hint}")
        units = self.effective_units(group)
        of, who = "rows", ("unit", "units")
        return insufficient_data_reason("", self.count(group), units, of=of, who=who)

    def count(self, group: str = GLOBAL) -> int:
        """Return the number of rows."""
        return len(self.data.identified[group].genuine)

    def units(self, group: str = GLOBAL) -> int:
        """Return the number of units: of rows, where units are not known."""
        return self.data.identified[group].people

    def effective_units(self, group: str = GLOBAL) -> float:
        """Return how many units, each with equally many rows, would tell as much."""
        identified = self.data.identified[group]
        alone = identified.people == len(identified.genuine)
        return float(identified.people) if alone else identified.genuine_dyads.effective_people

    @cached_property
    def rows(self) -> list[Result]:
        """Every value with its interval, and why it must not be shown; of the accuracy, counts."""
        withheld = {g: self.insufficient_data_reason(g) or "" for g in (GLOBAL, *self.groups)}
        rows = []
        for method, measures in self.measures.items():
            intervals = self._intervals_of(method, LEVEL)
            made = self.made.get(method, Made())
            where: dict[str, Any] = {"dataset": self.dataset, "method": method}
            where |= {"attribute": self.attribute, **made._asdict()}
            for each in measures:
                row = each._replace(withheld=withheld.get(each.group, ""), **where)
                if each.group != ALL:
                    n, units = self.count(each.group), self.effective_units(each.group)
                    row = row._replace(trials=float(n), people=units)
                if has_interval(each.metric):
                    low, high = intervals.interval(each.what)
                    row = row._replace(low=low, high=high, level=LEVEL)
                if each.metric == "accuracy" and each.group != ALL and row.trials:
                    row = row._replace(
                        errors=float(round(each.value * row.trials)),
                        effective=intervals.effective.get(each.group, math.nan),
                    )
                rows.append(row)
        return rows

    def differences(self, level: float = LEVEL) -> list[ClassDifference]:
        """Return how each method differs from each that came before it, but for single classes."""
        rows = []
        for i, method in enumerate(self.methods):
            for reference in self.methods[:i]:
                for group, condition, metric in (each.what for each in self.measures[method]):
                    if condition or not has_interval(metric):
                        continue
                    ends = self.difference(metric, method, reference, group=group, level=level)
                    what = self.attribute, group, condition, metric
                    rows.append(ClassDifference(method, reference, *what, *ends, level))
        return rows

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)

    @cached_property
    def _values(self) -> dict[str, dict[Key, float]]:
        return {
            method: {each.what: each.value for each in measures}
            for method, measures in self.measures.items()
        }

    @cached_property
    def _noise(self) -> UnitNoise:
        return UnitNoise.of(self.data.units)

    @cached_property
    def _losses(self) -> dict[str, dict[str, Float64]]:
        return {method: self.data.losses(method) for method in self.methods}

    def _intervals_of(self, method: str, level: float) -> ClassIntervals:
        key = method, _checked(level)
        if key not in self._kept:
            values = self._values[method]
            self._kept[key] = ClassIntervals(self.data, method, values, self._noise, level)
        return self._kept[key]

    def _method(self, method: str | None) -> str:
        if method is None and len(self.methods) == 1:
            return self.methods[0]
        if method is None:
            names = ", ".join(self.methods)
            raise ParameterError(f"method: expected one of {names}, found none; name it")
        if method not in self.measures:
            hint = did_you_mean(method, self.methods)
            raise ParameterError(f"no method {method!r} in the audit; {hint}")
        return method

    def _key(self, method: str, metric: str, group: str, condition: str) -> Key:
        """Return the key of a value, or say what there is no value of."""
        values = self._values[method]
        if group == GLOBAL and (ALL, condition, metric) in values:
            group = ALL
        key = group, condition, metric
        if key in values:
            return key
        metrics = dict.fromkeys(of for _, _, of in values)
        if metric not in metrics:
            raise ParameterError(
                f"no metric {metric!r} in the audit; {did_you_mean(metric, metrics)}"
            )
        groups = dict.fromkeys(name for name, _, of in values if of == metric)
        if group not in groups:
            hint = did_you_mean(group, groups)
            raise ParameterError(f"no {metric} of group {group!r} in the audit; {hint}")
        conditions = [under for name, under, of in values if (name, of) == (group, metric)]
        listing = ", ".join(map(repr, conditions))
        raise ParameterError(f"no {metric} under condition {condition!r}; the audit has {listing}")


def audit_classes(
    probabilities: Any,
    labels: Any,
    *,
    groups: Any = None,
    identity: Any = None,
    classes: Sequence[Any] | None = None,
    dataset: str = "",
    attribute: str = "",
    made: Mapping[str, Made] | None = None,
) -> ClassAudit:
    """Measure class probabilities, overall, by group and by class.

    Parameters
    ----------
    probabilities : array of shape (n_rows, n_classes), or dict from method to such an array
        Rows sum to 1. Several methods are measured, and compared, on the same rows.
    labels : array of shape (n_rows,)
        The true classes: names out of `classes`, or codes from 0 in the order of the columns. Whole
        numbers are codes wherever `classes` are text.
    groups : array of shape (n_rows,) or Column, optional
        Each row's group; empty or None is unknown: such a row counts globally and in no group.
    identity : array of shape (n_rows,) or Column, optional
        The person, patient or unit that a row comes from: rows of one are not independent, and
        intervals are wider for it. One that is empty is nobody else's.
    classes : sequence, optional
        The classes' names, in the order of the columns; 0, 1, … unless told.
    dataset, attribute : str
        For the table: whose rows they are, and what makes the groups.
    made : mapping from method to Made, optional
        For the table: by which calibrator, with how many clusters and which seed.

    Returns
    -------
    ClassAudit

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=600)
    >>> y = (rng.random(600)[:, None] > p.cumsum(axis=1)).sum(axis=1)  # calibrated
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> a = audit_classes({"calibrated": p, "sharp": sharp}, y, groups=["F", "M"] * 300)
    >>> a.interval("top_ks", method="calibrated")[0], a.interval("top_ks", method="sharp")[0] > 0.05
    (0.0, True)
    >>> difference, low, high = a.difference("nll", "sharp", "calibrated")
    >>> low > 0
    True
    """
    if attribute == CLASS:
        raise DataError(
            f"attribute: {CLASS!r} is a name that results keep for the classes; rename the column"
        )
    rows = ClassRows.of(probabilities, labels, groups=groups, identity=identity, classes=classes)
    measures: dict[str, list[Result]] = {}
    curves: list[ScoreHistogram] = []
    for method in rows.methods:
        measures[method], drawn = measure_method(rows, method, attribute)
        curves += drawn
    return ClassAudit(measures, Curves(curves), rows, dataset, attribute, made or {})


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
    return level
