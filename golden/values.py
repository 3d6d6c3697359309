"""What is recorded: a flat dictionary from a key to numbers (float64) or a short text.

Results are flattened by what identifies them (``group=Asian F``, ``metric=fpr``), never by where
they stand in a file, so that rows and fields may move. Prose, paths, hashes, versions and times
are left out.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Numbers = npt.NDArray[np.float64]
Values = dict[str, Numbers | str]

#: Fields that say which row of a table, or element of a list, this is.
IDENTIFYING = (
    *("feature", "method", "calibrator", "clusters", "seed", "fold", "attribute", "group"),
    *("condition", "metric", "quantity", "cluster", "region", "of", "reference", "strategy"),
    *("table", "label", "block", "column", "name", "test", "kind", "part", "labels", "repeat"),
    *("left_group", "right_group", "population", "class", "a", "b"),
)
#: Names of fields that differ from run to run, or from version to version, by right.
LEFT_OUT = re.compile(
    r"sha256|version|wall_time|seconds|elapsed|fingerprint|created|^jobs$|^bytes$"
)
#: What a folder of results holds for machines.
MACHINE_FILES = ("*.csv", "*.parquet", "*.json")
#: Dates, hashes and version numbers.
NO_CATEGORY = re.compile(r"\d{4}-\d\d-\d\d|[0-9a-f]{12}|\d+\.\d+\.\d+$")
PAGE_DATA = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


def _is_category(text: str) -> bool:
    """Whether a text is a result (a verdict, a group) and not prose, a path, a hash or a date."""
    prose = len(text) > 40 or len(text.split()) > 4 or text.endswith(".")
    return not (prose or "/" in text or NO_CATEGORY.match(text))


def flatten(key: str, thing: Any) -> Values:
    """Numbers and categories in JSON-like data, by path."""
    if isinstance(thing, Mapping):
        parts = [(str(k), v) for k, v in thing.items() if not LEFT_OUT.search(str(k))]
        parts = [(Path(k).name if k.startswith("/") else k, v) for k, v in parts]
        return _joined(flatten(f"{key}/{k}", v) for k, v in parts)
    if isinstance(thing, str):
        return {key: thing} if _is_category(thing) else {}
    if isinstance(thing, Sequence) and not isinstance(thing, np.ndarray):
        return _flatten_list(key, thing)
    numbers = np.nan if thing is None else thing
    return {key: np.atleast_1d(np.asarray(numbers, dtype=np.float64)).ravel()}


def _flatten_list(key: str, things: Sequence[Any]) -> Values:
    if all(isinstance(x, Mapping) for x in things):
        return rows(key, things)
    if all(isinstance(x, str) for x in things):
        return {key: "|".join(things)} if all(map(_is_category, things)) else {}
    if any(isinstance(x, str | Mapping | Sequence) for x in things):
        return _joined(flatten(f"{key}/{i}", x) for i, x in enumerate(things))
    return flatten(key, np.array([np.nan if x is None else x for x in things], dtype=np.float64))


#: What results have behind their value, and where that stood when intervals had a table apart.
_WITH_INTERVAL = {
    **{name: name for name in ("value", "low", "high", "trials", "effective", "level")},
    "errors": "counted",
}
_OF_RATES = ("errors", "trials", "effective")


def _as_before(table: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Results as they were written before: values, and the intervals of what is not one fold's."""
    columns = [*_WITH_INTERVAL, "people", "withheld"]
    values = [{c: v for c, v in row.items() if c not in columns[1:]} for row in table]
    intervals = []
    for row in table:
        level = row["level"]
        if level is not None and level == level and row.get("fold", "") in ("", "mean"):
            where = {c: v for c, v in row.items() if c not in (*columns, "dataset", "seed", "fold")}
            numbers = {new: row[old] for old, new in _WITH_INTERVAL.items()}
            if row["metric"] not in ("fpr", "fnr", "tpr", "accuracy"):
                numbers |= dict.fromkeys((_WITH_INTERVAL[c] for c in _OF_RATES), float("nan"))
            intervals.append({**where, **numbers})
    return {"results.csv": values, "intervals.csv": intervals}


def rows(key: str, table: Sequence[Mapping[str, Any]]) -> Values:
    """Rows of a table, by the columns that identify them."""
    if table and "withheld" in table[0] and "metric" in table[0] and "effective" in table[0]:
        before = _as_before(table)
        if not key.endswith("results.csv"):  # what a command printed: intervals
            return rows(key, before["intervals.csv"])
        front = key.removesuffix("results.csv")
        return _joined(rows(front + name, part) for name, part in before.items())
    values: Values = {}
    times: dict[str, int] = {}
    for row in table:
        which = {c: row[c] for c in IDENTIFYING if _identifies(row.get(c, 0.0))}
        name = f"{key}[{','.join(f'{c}={v}' for c, v in which.items() if v not in ('', None))}]"
        times[name] = times.get(name, 0) + 1
        if times[name] > 1:
            name += f"#{times[name]}"
        values |= flatten(name, {c: v for c, v in row.items() if c not in which})
    return values


def _identifies(value: Any) -> bool:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))


def columns(key: str, table: pa.Table) -> Values:
    """Columns of a table of pairs, or of rows in a fixed order; pairs by left and right."""
    by = [c for c in ("left", "right", "score", "image_id") if c in table.column_names]
    if "left" in by or "image_id" in by:
        table = table.sort_by([(c, "ascending") for c in by])
    values: Values = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        try:
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
            values[f"{key}/{name}"] = np.asarray(numbers, dtype=np.float64)
        except pa.ArrowInvalid:
            values[f"{key}/{name}"] = text_hash(column.to_pylist())
    return values


def text_hash(texts: Iterable[Any]) -> str:
    """A short hash that stands for many texts."""
    return "hash:" + hashlib.sha256("\n".join(map(str, texts)).encode()).hexdigest()[:20]


def table_file(key: str, path: Path) -> Values:
    """A CSV or Parquet file: columns of pairs, else rows with what identifies them."""
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            found = [{k: _parsed(k, v) for k, v in row.items()} for row in csv.DictReader(file)]
        if found and (set(found[0]) & {"left", "image_id"}):
            return columns(key, pa.Table.from_pylist(found))
        return rows(key, found)
    table = pq.read_table(path)
    if set(table.column_names) & {"metric", "group", "quantity"}:
        return rows(key, table.to_pylist())
    return columns(key, table)


def _parsed(column: str, text: str) -> Any:
    if column in IDENTIFYING:
        return text
    try:
        return float(text or "nan")
    except ValueError:
        return text


def folder(key: str, path: Path) -> Values:
    """All that a folder of results holds for machines, and the data inside its page."""
    values: Values = {}
    for file in sorted(f for pattern in MACHINE_FILES for f in path.glob(pattern)):
        if file.suffix == ".json":
            values |= flatten(f"{key}/{file.name}", json.loads(file.read_text("utf-8")))
        else:
            values |= table_file(f"{key}/{file.name}", file)
    page = path / "report.html"
    for i, data in enumerate(PAGE_DATA.findall(page.read_text("utf-8")) if page.exists() else ()):
        values |= flatten(f"{key}/page-{i}", json.loads(data))
    return values


def _joined(parts: Iterable[Values]) -> Values:
    return {key: value for part in parts for key, value in part.items()}


def write(path: Path, values: Values) -> None:
    """Keep the values of a case in a Parquet file."""
    keys = sorted(values)
    texts = [v if isinstance(v := values[k], str) else None for k in keys]
    numbers = [None if isinstance(v := values[k], str) else v for k in keys]
    types = {"key": pa.string(), "numbers": pa.list_(pa.float64()), "text": pa.string()}
    table = pa.table(
        [pa.array(x, t) for x, t in zip((keys, numbers, texts), types.values(), strict=True)],
        names=list(types),
    )
    pq.write_table(table, path, compression="zstd")


def read(path: Path) -> Values:
    """Read what `write` has written."""
    table = pq.read_table(path)
    parts = zip(table["key"].to_pylist(), table["numbers"], table["text"].to_pylist(), strict=True)
    return {k: t if t is not None else n.values.to_numpy(zero_copy_only=False) for k, n, t in parts}
