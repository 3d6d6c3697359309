"""The results store: one long table, one value a row, and a record of the run beside it.

``DIR/results.csv`` holds fractions, never percent; ``DIR/run.json`` says how they were made. Both
are written whole or not at all. The report reads these files and nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import atomic_path, existing, write_text
from faircal._version import __version__

RESULTS, RUN, REPORT, INTERVALS = "results.csv", "run.json", "report.html", "intervals.csv"
CLUSTERS, MEMBERS, AUDIT = "clusters.csv", "members.csv", "audit.json"
REPLICATES = "replicates.parquet"
GLOBAL, ALL = "global", "all"
AGAIN = "run the benchmark or audit again"
MEAN, STD = "mean", "std"


class ResultRow(NamedTuple):
    """One value with everything that says what it is; fields that don't apply are empty."""

    dataset: str
    feature: str
    method: str
    calibrator: str
    clusters: str
    seed: str
    fold: str
    attribute: str
    group: str
    condition: str
    metric: str
    value: float


COLUMNS = ResultRow._fields
T = TypeVar("T", bound=tuple[Any, ...])


class Condition(NamedTuple):
    """What a value was measured under, as ``global_fpr=0.01`` in a row, taken apart.

    Examples
    --------
    >>> under = Condition.of("global_fpr=0.01")
    >>> under, under.metric, under.wanted("fpr"), under.wanted("fnr")
    (Condition(kind='global_fpr', rate=0.01), 'fpr', 0.01, None)
    """

    kind: str
    rate: float

    @classmethod
    def of(cls, text: str) -> Condition:
        """Take a condition apart; the empty one, of a given threshold, has no rate (NaN)."""
        kind, _, rate = text.partition("=")
        return cls(kind, float(rate) if rate else math.nan)

    @property
    def metric(self) -> str:
        """The rate that is fixed, of all pairs or of the ROC."""
        return self.kind.removeprefix("global_")

    def wanted(self, metric: str) -> float | None:
        """Return the rate that is set for `metric` of all pairs; None where it is not set."""
        return self.rate if self.kind == f"global_{metric}" else None


class Interval(NamedTuple):
    """A value and its interval; of a rate also the pairs it counts (a fraction if interpolated).

    `effective` is how many independent pairs would make the rate as uncertain as it is.
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
    low: float
    high: float
    counted: float
    trials: float
    effective: float
    level: float

    @classmethod
    def of(cls, known: Mapping[str, Any], **more: Any) -> Interval:
        """Make one of named fields; what is not named does not apply and is empty."""
        empty = {"calibrator": "", "clusters": ""}
        return cls(**{**empty, **known, **more})


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


def summarise(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return `rows` with, behind each value's folds, their mean and standard deviation (ddof 0).

    A fold where a value is undefined (NaN) is left out of both; where one is infinite (a ratio to a
    group without an error) the mean is, and there is no standard deviation.
    """
    values: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        values.setdefault((*row[:6], *row[7:11]), []).append(row)
    summed: list[ResultRow] = []
    for folds in values.values():
        known = np.array([row.value for row in folds if not np.isnan(row.value)])
        mean = float(known.mean()) if len(known) else np.nan
        std = float(known.std()) if np.isfinite(mean) else np.nan
        summed += [*folds, folds[0]._replace(fold=MEAN, value=mean)]
        summed.append(folds[0]._replace(fold=STD, value=std))
    return summed


def as_table(rows: Iterable[ResultRow]) -> pa.Table:
    """Return rows as an Arrow table with the columns of ``results.csv``."""
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    types = [pa.string()] * (len(COLUMNS) - 1) + [pa.float64()]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV text; floats are printed so that they read back exactly."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([repr(float(v)) if isinstance(v, float) else v for v in row] for row in rows)
    return buffer.getvalue()


def write_results(folder: Path, rows: Iterable[ResultRow]) -> None:
    """Write ``results.csv``."""
    write_text(folder / RESULTS, csv_text(COLUMNS, rows))


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    packages = ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "matplotlib")
    found = {"faircal": __version__, "python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):  # an extra
            found[name] = version(name)
    return found


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


def write_audit(folder: Path, record: dict[str, Any]) -> Path:
    """Write ``audit.json``, strict JSON; a number that is not finite is an error."""
    path = folder / AUDIT
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    write_text(path, text + "\n")
    return path


def write_intervals(folder: Path, intervals: Iterable[Interval]) -> None:
    """Write ``intervals.csv``; without rows it is removed."""
    write_rows(folder / INTERVALS, Interval, intervals)


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


def replicates_table(rows: Iterable[Replicated]) -> pa.Table | None:
    """Return replicates as a table; None where there are none."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return None
    arrays = [
        pa.array(list(of), field.type)
        for of, field in zip(columns, _REPLICATES_SCHEMA, strict=True)
    ]
    return pa.table(arrays, schema=_REPLICATES_SCHEMA)


def replicates_of(table: pa.Table) -> list[Replicated]:
    """Undo `replicates_table`."""
    texts = [table.column(name).to_pylist() for name in _REPLICATES_SCHEMA.names[:-1]]
    noise = [np.asarray(each.values) for each in table.column("noise")]
    return [Replicated(*row) for row in zip(*texts, noise, strict=True)]


def write_replicates(path: Path, rows: Iterable[Replicated]) -> None:
    """Write replicates, ``replicates.parquet`` of a folder; without rows it is removed."""
    table = replicates_table(rows)
    if table is None:
        path.unlink(missing_ok=True)
        return
    with atomic_path(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def read_replicates(path: Path) -> list[Replicated]:
    """Read replicates; none where there is no such file."""
    if not path.exists():
        return []
    try:
        table = pq.read_table(path).select(_REPLICATES_SCHEMA.names).cast(_REPLICATES_SCHEMA)
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error}); {AGAIN}") from error
    return replicates_of(table)


def read_results(folder: str | Path) -> list[ResultRow]:
    """Read ``results.csv`` of a benchmark or an audit."""
    path = existing(folder) / RESULTS
    if not path.exists():
        raise DataError(
            f"{path}: not found; give the folder that 'faircal benchmark' or 'audit' wrote"
        )
    return [ResultRow._make(values) for values in _read_csv(path, ResultRow)]


def read_intervals(folder: str | Path) -> list[Interval]:
    """Read ``intervals.csv``; none where there is no such file, or an earlier version's.

    Those have other columns; what they say was not made as intervals are now.
    """
    try:
        return read_rows(Path(folder) / INTERVALS, Interval)
    except _OtherColumnsError:
        return []


def write_clusters(
    folder: Path, clusters: Iterable[ClusterRow], members: Iterable[Member] = ()
) -> None:
    """Write ``clusters.csv`` and ``members.csv``; one without rows is removed."""
    write_rows(folder / CLUSTERS, ClusterRow, clusters)
    write_rows(folder / MEMBERS, Member, members)


def write_rows(path: Path, kind: type[T], rows: Iterable[T]) -> None:
    """Write a table of named tuples; where it has no rows, remove what an earlier run left."""
    listed = list(rows)
    if listed:
        write_text(path, csv_text(get_type_hints(kind), listed))
    else:
        path.unlink(missing_ok=True)


def read_clusters(folder: str | Path) -> list[ClusterRow]:
    """Read ``clusters.csv`` of a benchmark; none where there is no such file."""
    return read_rows(Path(folder) / CLUSTERS, ClusterRow)


def read_members(folder: str | Path) -> list[Member]:
    """Read ``members.csv`` of a benchmark; none where there is no such file."""
    return read_rows(Path(folder) / MEMBERS, Member)


def read_rows(path: Path, kind: type[T]) -> list[T]:
    """Read a table of named tuples; none where there is no such file."""
    return [kind(*values) for values in _read_csv(path, kind)] if path.exists() else []


class _OtherColumnsError(DataError):
    """A table has other columns than expected."""


def _converted(line: list[str], numbers: list[bool]) -> list[Any]:
    if len(line) != len(numbers):
        raise ValueError(f"expected {len(numbers)} values, found {len(line)}")
    pairs = zip(line, numbers, strict=True)
    return [float(text) if number else text for text, number in pairs]


def _read_csv(path: Path, kind: Any) -> list[list[Any]]:
    """Read a table of the fields of `kind`; those that are numbers are converted."""
    numbers = [of is float for of in get_type_hints(kind).values()]
    rows: list[list[Any]] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            if tuple(next(reader, ())) != kind._fields:
                raise _OtherColumnsError(
                    f"{path}: expected columns {', '.join(kind._fields)}; {AGAIN}"
                )
            rows.extend(_converted(line, numbers) for line in reader)
    except (ValueError, OSError, csv.Error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path}, line {len(rows) + 2}: cannot be read ({error}); {AGAIN}"
        ) from error
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
