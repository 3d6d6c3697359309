"""The results store: one long table, one value a row, and a record of the run beside it.

``DIR/results.csv`` holds fractions, never percent; ``DIR/run.json`` says how they were made. Both
are written whole or not at all. The report reads these files and nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path, existing, write_text
from faircal._base.registry import did_you_mean

RESULTS, RUN, REPORT = "results.csv", "run.json", "report.html"
CLUSTERS, MEMBERS, AUDIT = "clusters.csv", "members.csv", "audit.json"
REPLICATES = "replicates.parquet"
GLOBAL, ALL = "global", "all"
AGAIN = "run the benchmark or audit again"
MEAN, STD = "mean", "std"


class ResultKey(NamedTuple):
    """Which number of a run: all that names it in ``results.csv`` but data, seed and fold."""

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str
    group: str
    condition: str
    metric: str


class Result(NamedTuple):
    """One measured value: what it is of, how sure it is, what was counted, whether to show it.

    The first eleven fields name it; those that don't apply are empty. The rest are its numbers;
    those that don't apply are NaN.

    Attributes
    ----------
    value : float
        The estimate, a fraction. It is kept whether or not it may be shown.
    low, high, level : float
        The ends of its interval, and what that is meant to cover. With a level and no ends there
        are too few people for an interval.
    errors, trials : float
        The pairs or rows that it counts; of a rate also the errors (a fraction where the rate is
        interpolated between scores; of TPR and accuracy those that are right).
    people : float
        Effective people behind these: how many, each in equally many pairs, would tell as much.
    effective : float
        How many independent pairs would make a rate as uncertain as it is.
    withheld : str
        Why it must not be shown; empty where it may. `faircal.metrics.intervals.sufficient_data`
        decides, once, where a value is measured.
    """

    dataset: str = ""
    feature: str = ""
    method: str = ""
    calibrator: str = ""
    clusters: str = ""
    seed: str = ""
    fold: str = ""
    attribute: str = ""
    group: str = ""
    condition: str = ""
    metric: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = math.nan
    errors: float = math.nan
    trials: float = math.nan
    people: float = math.nan
    effective: float = math.nan
    withheld: str = ""

    @property
    def key(self) -> ResultKey:
        """What it is of, wherever it was measured."""
        where = self.feature, self.method, self.calibrator, self.clusters, self.attribute
        return ResultKey(*where, *self.what)

    @property
    def what(self) -> tuple[str, str, str]:
        """Group, condition and metric."""
        return self.group, self.condition, self.metric

    @property
    def reportable(self) -> bool:
        """Whether there is a value, and it may be shown."""
        return not self.withheld and not math.isnan(self.value)

    def whole_errors(self) -> Result:
        """Return a rate as sentences give it: less than one error counts as none.

        Rates at a global rate are interpolated between scores, so there can be a part of an error.
        """
        return self._replace(value=0.0, low=0.0) if self.errors < 1 - 1e-6 else self


class Results:
    """Measured values, looked up by what they are of.

    Values by fold are among `rows`; looked up are means over folds, and what has no folds.

    Attributes
    ----------
    rows : list of Result
    by_key : dict from ResultKey to Result
        Every value that can be looked up, be it undefined.
    dataset : str
    features, attributes, conditions : list of str
        In order of appearance.
    groups : dict from attribute to list of str
        The groups of each attribute.
    rates : dict from kind to list of str
        The conditions of each kind, of ``fpr`` such as ``["fpr=0.001", "fpr=0.01"]``.

    Examples
    --------
    >>> rows = [Result(fold=fold, group="F", metric="ks", value=v)
    ...         for fold, v in (("1", 0.1), ("2", 0.3), ("mean", 0.2), ("std", 0.1))]
    >>> results = Results(rows)
    >>> results.get(rows[0].key).value, results.spread(rows[0].key), results.groups[""]
    (0.2, 0.1, ['F'])
    """

    def __init__(self, rows: Iterable[Result]) -> None:
        self.rows = list(rows)
        self.by_key: dict[ResultKey, Result] = {}
        self._spreads: dict[ResultKey, float] = {}
        # Looked through once: a sweep has hundreds of thousands of rows.
        features: dict[str, None] = {}
        conditions: dict[str, None] = {}
        groups: dict[str, dict[str, None]] = {}  # by attribute
        for row in self.rows:
            if row.fold in (MEAN, ""):
                self.by_key[row.key] = row
            elif row.fold == STD:
                self._spreads[row.key] = row.value
            features[row.feature] = conditions[row.condition] = None
            groups.setdefault(row.attribute, {})[row.group] = None
        self.dataset = self.rows[0].dataset if self.rows else ""
        self.features, self.attributes = list(features), list(groups)
        self.conditions = list(conditions)
        # Attributes and kinds that are not there have none.
        self.groups: defaultdict[str, list[str]] = defaultdict(list)
        self.rates: defaultdict[str, list[str]] = defaultdict(list)
        for attribute, names in groups.items():
            self.groups[attribute] += [name for name in names if name not in (GLOBAL, ALL)]
        for under in conditions:
            self.rates[under.partition("=")[0]].append(under)

    def get(self, key: ResultKey) -> Result:
        """Look a value up; what was not measured is NaN."""
        return self.by_key.get(key) or Result(**key._asdict(), withheld="not measured")

    def spread(self, key: ResultKey) -> float:
        """Return the standard deviation over folds; NaN without folds."""
        return self._spreads.get(key, math.nan)


T = TypeVar("T", bound=tuple[Any, ...])


def find_result(rows: Sequence[Result], metric: str, group: str, condition: str) -> Result:
    """Return the value of an audit that is named, or say what the audit has instead."""
    metrics: dict[str, None] = {}
    groups: dict[str, None] = {}
    conditions: dict[str, None] = {}
    for row in rows:
        if row.what == (group, condition, metric):
            return row
        metrics[row.metric] = None
        if row.metric == metric:
            groups[row.group] = conditions[row.condition] = None
    if not groups:
        raise ParameterError(f"the audit has no metric {metric!r}; {did_you_mean(metric, metrics)}")
    if group not in groups:
        hint = did_you_mean(group, groups)
        raise ParameterError(f"the audit has no {metric} of group {group!r}; {hint}")
    listing = ", ".join(map(repr, conditions))
    raise ParameterError(
        f"the audit has no {metric} under condition {condition!r}; it has {listing}"
    )


class Condition(NamedTuple):
    """What a value was measured under, as ``global_fpr=0.01`` in a row, taken apart.

    `metric` is the rate that is fixed, of all pairs or of the ROC.

    Examples
    --------
    >>> under = Condition.of("global_fpr=0.01")
    >>> under, under.wanted("fpr"), under.wanted("fnr")
    (Condition(kind='global_fpr', rate=0.01, metric='fpr'), 0.01, None)
    """

    kind: str
    rate: float
    metric: str

    @classmethod
    def of(cls, text: str) -> Condition:
        """Take a condition apart; the empty one, of a given threshold, has no rate (NaN)."""
        kind, _, rate = text.partition("=")
        return cls(kind, float(rate) if rate else math.nan, kind.removeprefix("global_"))

    def wanted(self, metric: str) -> float | None:
        """Return the rate that is set for `metric` of all pairs; None where it is not set."""
        return self.rate if self.kind == f"global_{metric}" else None


class ClusterRow(NamedTuple):
    """One value of a fitted clustering: of which cluster, of which group of images, which quantity.

    Quantities are ``pairs`` (calibration pairs with an image in the cluster), ``images`` (those of
    calibration and test pairs; `group` ``all``, or of one group) and ``shift`` (by how much the
    cluster's decision threshold on the score lies above that of all pairs).
    """

    feature: str
    method: str
    calibrator: str
    clusters: str
    fold: str
    attribute: str
    cluster: str
    group: str
    quantity: str
    value: float


class Member(NamedTuple):
    """An image of a cluster, nearest to the centre first; for montages."""

    feature: str
    method: str
    calibrator: str
    clusters: str
    fold: str
    cluster: str
    image_id: str
    distance: float


def as_table(rows: Iterable[Result]) -> pa.Table:
    """Return rows as an Arrow table with the columns of ``results.csv``; null: does not apply."""
    listed, kinds = list(rows), {str: pa.string(), float: pa.float64()}
    columns = {
        name: pa.array([row[i] for row in listed], kinds[kind], from_pandas=i > 11)
        for i, (name, kind) in enumerate(get_type_hints(Result).items())
    }  # behind the value, column 11, NaN is null
    return pa.table(columns)


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV text; floats are printed so that they read back exactly."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([repr(float(v)) if isinstance(v, float) else v for v in row] for row in rows)
    return buffer.getvalue()


def write_results(folder: Path, rows: Iterable[Result]) -> None:
    """Write ``results.csv``; what does not apply is empty behind the value."""
    lines = ([*row[:12], *("" if x != x else x for x in row[12:])] for row in rows)
    write_text(folder / RESULTS, csv_text(Result._fields, lines))


def write_run(folder: Path, run: dict[str, Any]) -> None:
    """Write ``run.json``."""
    write_text(folder / RUN, json.dumps(run, indent=2, default=str) + "\n")


def without_nan(value: Any) -> Any:
    """Put null in place of NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Replicated(NamedTuple):
    """A value and replicates of it, less the value: what other people would have changed.

    Replicates of the same number, in whichever run, are of the same other people; see
    `faircal.metrics.intervals.dyadic`.
    """

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str
    group: str
    condition: str
    metric: str
    value: float
    noise: NDArray[np.float32]


_REPLICATES_SCHEMA = pa.schema(
    [(name, pa.string()) for name in Replicated._fields[:-2]]
    + [("value", pa.float64()), ("noise", pa.list_(pa.float32()))]
)


def write_replicates(path: Path, rows: Iterable[Replicated]) -> None:
    """Write replicates, ``replicates.parquet`` of a folder; without rows it is removed."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        path.unlink(missing_ok=True)
        return
    fields = zip(columns, _REPLICATES_SCHEMA, strict=True)
    arrays = [pa.array(list(values), field.type) for values, field in fields]
    write_parquet(path, pa.table(arrays, schema=_REPLICATES_SCHEMA))


def read_replicates(path: Path) -> list[Replicated]:
    """Read replicates; none where there is no such file."""
    if not path.exists():
        return []
    *columns, noise = read_parquet(path, _REPLICATES_SCHEMA).columns
    fields = [column.to_pylist() for column in columns]
    each_noise = [np.asarray(values.values) for values in noise]
    return [Replicated(*row) for row in zip(*fields, each_noise, strict=True)]


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table of curves or replicates, whole or not at all."""
    with atomic_path(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a table that has the columns of `schema`."""
    try:
        table = pq.read_table(path)
        if table.schema.names == schema.names:
            return table.cast(schema)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read ({error}); {AGAIN}") from error
    raise DataError(f"{path}: expected columns {', '.join(schema.names)}; {AGAIN}")


def read_results(folder: str | Path) -> list[Result]:
    """Read ``results.csv`` of a benchmark or an audit."""
    path = existing(folder) / RESULTS
    if not path.exists():
        raise DataError(
            f"{path}: not found; give the folder that 'faircal benchmark' or 'audit' wrote"
        )
    return read_rows(path, Result)


def write_rows(path: Path, kind: type[T], rows: Iterable[T]) -> None:
    """Write a table of named tuples; where it has no rows, remove what an earlier run left."""
    listed = list(rows)
    if listed:
        write_text(path, csv_text(get_type_hints(kind), listed))
    else:
        path.unlink(missing_ok=True)


def read_rows(path: Path, kind: type[T]) -> list[T]:
    """Read a table of named tuples; none where there is no such file."""
    if not path.exists():
        return []
    hints = get_type_hints(kind)
    numeric = [of is float for of in hints.values()]
    rows: list[T] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            columns = next(lines, [])
            for line in lines if columns == list(hints) else ():
                pairs = zip(line, numeric, strict=True)  # an error where there are more or fewer
                values: list[Any] = [float(x or "nan") if number else x for x, number in pairs]
                rows.append(kind(*values))
    except (ValueError, OSError, csv.Error) as error:
        where = f"{path}, line {len(rows) + 2}"
        raise DataError(
            f"{where}: cannot be read as {len(hints)} values ({error}); {AGAIN}"
        ) from error
    if columns != list(hints):
        raise DataError(f"{path}: expected columns {', '.join(hints)}; {AGAIN}")
    return rows


#: What a record may hold under these keys, where it has them.
_SHAPES: dict[str, type] = {
    "settings": dict,
    "versions": dict,
    "left_out": dict,
    "notes": list,
    "fits": list,
}


def read_run(folder: str | Path) -> dict[str, Any]:
    """Read ``run.json``; an empty record where there is none."""
    path = Path(folder) / RUN
    if not path.exists():
        return {}
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); {AGAIN}") from error
    if not isinstance(run, dict):
        raise DataError(f"{path}: expected an object; {AGAIN}")
    for key, kind in _SHAPES.items():
        if not isinstance(run.get(key, kind()), kind):
            raise DataError(f"{path}: '{key}' is not a {kind.__name__}; {AGAIN}")
    if not all(isinstance(fit, dict) for fit in run.get("fits", ())):
        raise DataError(f"{path}: 'fits' is not a list of objects; {AGAIN}")
    return run
