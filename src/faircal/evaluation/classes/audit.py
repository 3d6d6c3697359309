"""Auditing any classifier: its class probabilities measured, by group, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import output_folder, staged
from faircal._base.registry import did_you_mean
from faircal.evaluation.classes.measuring import (
    CLASS,
    OVERCONFIDENCE,
    UNDEFINED,
    Ends,
    MethodMeasures,
)
from faircal.evaluation.classes.rows import ClassRows
from faircal.evaluation.curves import CURVES, Curves
from faircal.evaluation.curves import as_table as curves_table
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.dyadic import FEWEST, Float64
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH
from faircal.metrics.intervals.unit_noise import UnitNoise, estimates_apart
from faircal.metrics.results import (
    ALL,
    GLOBAL,
    Result,
    as_table,
    find_result,
    read_rows,
    without_nan,
    write_parquet,
    write_results,
    write_rows,
    write_run,
)
from faircal.model import versions

DIFFERENCES = "differences.csv"
KIND = "classify"
#: How intervals are made, said wherever they are shown.
BY_UNITS = "by unit (what other units would have given; rows of one unit are not independent)"
BY_ROWS = (
    "by row (which rows belong together is not known, so they are taken as independent: too narrow "
    "where several come from one person, patient or machine)"
)


class ClassDifference(NamedTuple):
    """The value of a method less that of another, the reference, on the same rows.

    `low` and `high` are NaN where there are too few units, or the metric has no interval;
    `withheld` is why it must not be shown, or empty.
    """

    method: str
    reference: str
    attribute: str
    group: str
    condition: str
    metric: str
    difference: float
    low: float
    high: float
    level: float
    withheld: str = ""

    def turned(self) -> ClassDifference:
        """Return the reference's value less that of the method."""
        ends = 0.0 - self.difference, 0.0 - self.high, 0.0 - self.low  # no −0 of 0
        names = self.reference, self.method
        return ClassDifference(*names, *self[2:6], *ends, self.level, self.withheld)


@dataclass(frozen=True, eq=False)
class ClassAudit:
    """What is measured of a classifier: values with intervals, and differences between methods.

    Build it with `audit_classes`.

    Attributes
    ----------
    rows : list of Result
        Every value with its interval, the rows it counts, and why it must not be shown.
    differences : list of ClassDifference
        How each method differs from each that came before it, but for single classes.
    curves : Curves
        Confidence counted by group, and probabilities by class: what figures are drawn from.
    data : ClassRows
        What was measured.

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

    rows: list[Result]
    differences: list[ClassDifference]
    curves: Curves
    data: ClassRows
    dataset: str = ""
    attribute: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they came."""
        return tuple(self.data.methods)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups."""
        return self.data.group_names

    @property
    def interval_kind(self) -> str:
        """How the intervals are made."""
        return BY_ROWS if self.data.identity is None else BY_UNITS

    @property
    def table(self) -> pa.Table:
        """The values as a long Arrow table with the columns of ``results.csv``."""
        return as_table(self.rows)

    def value(self, metric: str, **where: Any) -> float:
        """Return one value, e.g. ``value("top_ks", group="F")``; NaN where undefined.

        `where` is that of `result`.
        """
        return self.result(metric, **where).value

    def interval(self, metric: str, **where: Any) -> Ends:
        """Return (low, high) of a value; NaN where there are too few units or no interval."""
        row = self.result(metric, **where)
        return row.low, row.high

    def result(
        self, metric: str, *, method: str | None = None, group: str = GLOBAL, condition: str = ""
    ) -> Result:
        """Return all that is known of one value: interval, counts, whether it may be shown.

        `method` may be left out where there is only one. A value over groups (``top_ks_mean``) has
        `group` ``all``, which need not be said; one of a class the condition ``class=NAME``.
        """
        name = self._method(method)
        rows = [row for row in self.rows if row.method == name]
        if group == GLOBAL and any(row.what == (ALL, condition, metric) for row in rows):
            group = ALL
        return find_result(rows, metric, group, condition)

    def difference(
        self,
        metric: str,
        method: str,
        reference: str,
        *,
        group: str = GLOBAL,
        condition: str = "",
    ) -> tuple[float, float, float]:
        """Return (difference, low, high): a method's value less the reference's, on the same rows.

        Means over rows (accuracy, NLL, Brier) and their means over groups: Student's t of what rows
        differ by, summed over units. Calibration errors and deviations over groups: both intervals
        put together, with the correlation of replicates of the same other units. These are
        approximate, and wide near 0: noise is taken as normal, bins as they are, and where one of
        the two may be 0 the worst correlation is taken. Values of single classes and the parts of
        the Brier score have no interval (NaN).
        """
        one, other = (
            self.result(metric, method=name, group=group, condition=condition)
            for name in (method, reference)
        )
        for each in self.differences:
            for row in (each, each.turned()):
                if (row.method, row.reference, *row[3:6]) == (method, reference, *one.what):
                    return row.difference, row.low, row.high
        return one.value - other.value, *UNDEFINED

    def _method(self, method: str | None) -> str:
        if method is None and len(self.methods) == 1:
            return self.methods[0]
        if method is None:
            names = ", ".join(self.methods)
            raise ParameterError(f"method: expected one of {names}, found none; name it")
        if method not in self.methods:
            hint = did_you_mean(method, self.methods)
            raise ParameterError(f"no method {method!r} in the audit; {hint}")
        return method


def audit_classes(
    probabilities: Any,
    labels: Any,
    *,
    groups: Any = None,
    identity: Any = None,
    classes: Sequence[Any] | None = None,
    dataset: str = "",
    attribute: str = "",
    made: Mapping[str, Mapping[str, str]] | None = None,
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
        The classes' names, in the order of the columns; 0, 1, … by default.
    dataset, attribute : str
        For the table: whose rows they are, and what makes the groups.
    made : mapping from method to mapping, optional
        For the table: by which ``calibrator``, with how many ``clusters`` and which ``seed``.

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
    noise = UnitNoise.of(rows.units)
    measured = {method: MethodMeasures(rows, method, noise, attribute) for method in rows.methods}
    results: list[Result] = []
    for method, of in measured.items():
        front = Result(dataset=dataset, method=method, attribute=attribute)
        results += _results(
            rows, of, front._replace(**dict[str, Any]((made or {}).get(method, {})))
        )
    differences = [
        row._replace(method=method, reference=reference, attribute=attribute)
        for i, method in enumerate(rows.methods)
        for reference in list(rows.methods)[:i]
        for row in _apart(rows, measured[method], measured[reference])
    ]
    curves = Curves([curve for of in measured.values() for curve in of.curves])
    return ClassAudit(results, differences, curves, rows, dataset, attribute)


def _results(rows: ClassRows, measured: MethodMeasures, front: Result) -> list[Result]:
    """Return the values of one method with all that is known of them; `front` names it."""
    results = []
    for key in measured.keys:
        group, condition, metric = key
        low, high = measured.ends.get(key, UNDEFINED)
        row = front._replace(
            group=group,
            condition=condition,
            metric=metric,
            value=measured.values[key],
            low=low,
            high=high,
            level=measured.level(metric),
            withheld=rows.withheld[group],
        )
        if group != ALL:
            n = float(rows.count(group))
            row = row._replace(trials=n, people=rows.effective_units(group))
            if metric == "accuracy" and n:
                effective = measured.effective.get(group, math.nan)
                row = row._replace(errors=float(round(row.value * n)), effective=effective)
        results.append(row)
    return results


def _apart(
    rows: ClassRows, one: MethodMeasures, other: MethodMeasures
) -> Iterator[ClassDifference]:
    """Give the differences of two methods, but of single classes."""
    apart = {metric: loss - other.losses[metric] for metric, loss in one.losses.items()}
    for key in one.keys:
        group, condition, metric = key
        if condition or metric == OVERCONFIDENCE or math.isnan(one.level(metric)):
            continue
        base = metric.removesuffix("_mean")
        if base in apart and (metric == base or group == ALL):
            ends = _mean_apart(rows, group, apart[base])
        else:
            estimates = one.estimate(key), other.estimate(key)
            ends = one.values[key] - other.values[key], *estimates_apart(*estimates)
        withheld = rows.withheld[group]
        if group == ALL and len(rows.reportable) < len(rows.group_names):
            withheld = NOT_ENOUGH  # noise would decide
        yield ClassDifference("", "", "", *key, *ends, LEVEL, withheld)


def _mean_apart(rows: ClassRows, group: str, apart: Float64) -> tuple[float, float, float]:
    """Return the difference of two means over rows with its interval, by unit, Student's t.

    Over groups each group counts the same; a unit in several of them moves all of these.

    Parameters
    ----------
    rows : ClassRows
    group : str
        A set of rows, or ``all`` for the unweighted mean over groups.
    apart : ndarray of float64, shape (n_rows,)
        What the two methods' rows differ by.
    """
    names = [name for name in rows.group_names if rows.count(name)] if group == ALL else [group]
    means, moved = [], np.zeros(len(apart))
    for name in names:
        part = apart[rows.sets[name]]
        means.append(float(part.mean()) if len(part) else math.nan)
        moved[rows.sets[name]] = (part - means[-1]) / (len(part) * len(names))
    mean = float(np.mean(means)) if means else math.nan
    few = any(len(rows.identified[name].people) < FEWEST for name in names)
    if few or (group == ALL and len(names) < 2):
        return mean, *UNDEFINED
    # Rows of no group move nothing; those of one group are its units alone.
    which = GLOBAL if group == ALL else group
    spread = rows.identified[which].spread(moved[rows.sets[which]])
    return mean, *spread.interval(mean, LEVEL)


# -------------------------------------------------------------------- the folder


def write_class_audit(folder: Path, audit: ClassAudit, run: Mapping[str, Any]) -> None:
    """Write ``results.csv``, ``differences.csv``, curves and ``run.json``.

    All of them take their places together, when all are written.

    Parameters
    ----------
    folder : Path
        Made where it is not there; files of an earlier run are replaced.
    audit : ClassAudit
    run : mapping
        What ``run.json`` says besides what the audit knows: ``settings``, ``methods``, wall time.
        Its ``notes`` come before those of the audit; for any other key it has the last word.

    Examples
    --------
    >>> import tempfile
    >>> from faircal.evaluation.classes import audit_classes
    >>> result = audit_classes({"a": [[0.9, 0.1]] * 9, "b": [[0.8, 0.2]] * 9}, [0] * 9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_class_audit(Path(folder), result, {"settings": {"seed": 0}})
    ...     row = read_class_differences(folder)[0]
    >>> row.method, row.reference, row.metric, row.difference
    ('b', 'a', 'accuracy', 0.0)
    """
    record = _record(audit)
    record |= {**run, "notes": [*run.get("notes", ()), *record["notes"]]}
    target = output_folder(folder)
    with staged(target) as draft:
        write_results(draft, audit.rows)
        write_rows(draft / DIFFERENCES, ClassDifference, audit.differences)
        write_parquet(draft / CURVES, curves_table(audit.curves.rows))
        write_run(draft, without_nan(record))
    if not audit.differences:  # of an earlier run with several methods
        (target / DIFFERENCES).unlink(missing_ok=True)


def read_class_differences(folder: str | Path) -> list[ClassDifference]:
    """Read ``differences.csv``; none where there is no such file, as of one method alone."""
    return read_rows(Path(folder) / DIFFERENCES, ClassDifference)


def _record(audit: ClassAudit) -> dict[str, Any]:
    """Return what ``run.json`` says of the rows."""
    data, identified = audit.data, audit.data.identified
    unknown = data.count() - sum(data.count(name) for name in data.group_names)
    units = None
    if data.identity is not None:
        units = {name: len(of.people) for name, of in identified.items()}
    notes = []
    if audit.groups and unknown:
        notes.append(
            f"{unknown} of {data.count()} rows ({100 * unknown / data.count():.1f} %) have an "
            f"unknown {audit.attribute or 'group'}: they count globally and in no group"
        )
    return {
        "kind": KIND,
        "dataset": audit.dataset,
        "classes": list(data.classes),
        "rows": data.count(),
        "attributes": [audit.attribute] if audit.attribute else [],
        "units": units and units.pop(GLOBAL),
        "group_units": units,
        "interval_kind": audit.interval_kind,
        "level": LEVEL,
        "settings": {},
        "notes": notes,
        "versions": versions(),
    }
