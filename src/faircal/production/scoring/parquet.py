"""Scored pairs as Parquet parts, and the one file that is made of them in the end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

#: Rows of a row group.
ROW_GROUP = 1 << 20


class PartWriter:
    """Writes a Parquet file table by table; it appears at `path` when it is closed."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.tmp")
        # Python's own file: its errors say what is wrong, such as a disk that is full.
        self._file = self._temporary.open("wb")
        self._writer: Any = pq.ParquetWriter(self._file, schema, **parquet_options(schema))

    def write(self, table: pa.Table) -> None:
        """Append a table."""
        self._writer.write_table(table, row_group_size=ROW_GROUP)

    def close(self) -> None:
        """Finish the file, and put it in its place."""
        self._writer.close()
        self._file.close()
        self._temporary.replace(self._path)

    def abandon(self) -> None:
        """Remove what is written."""
        for each in (self._writer, self._file):
            with suppress(OSError, pa.ArrowException):
                each.close()
        self._temporary.unlink(missing_ok=True)


def rows_of(part: Path) -> int:
    """Return how many rows a Parquet file has."""
    count: int = pq.read_metadata(part).num_rows
    return count


def join_parts(parts: Sequence[Path], path: Path, suffix: str) -> None:
    """Write the rows of Parquet files, in order, to one file: Parquet or CSV, as `suffix` says.

    A row group at a time, so that no more than one is in memory. Row groups are encoded again:
    Arrow has no way to copy their bytes, and doing that by hand takes a Thrift parser.
    """
    schema = pq.read_schema(parts[0])
    with path.open("wb") as file, _writer_of(file, schema, suffix) as writer:
        for part in parts:
            with pq.ParquetFile(part) as source:
                for number in range(source.num_row_groups):
                    writer.write_table(source.read_row_group(number))


def _writer_of(file: BinaryIO, schema: pa.Schema, suffix: str) -> Any:
    if suffix == ".csv":
        return pacsv.CSVWriter(file, schema)
    return pq.ParquetWriter(file, schema, **parquet_options(schema))


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Return how scored pairs are written as Parquet.

    Measured on a million pairs: whole numbers packed by difference are as small as with Snappy in
    half the time, scores do not shrink, and a dictionary of ids costs more than it saves.
    """
    ids = {"left", "right"}
    whole = [c.name for c in schema if c.name in ids and pa.types.is_integer(c.type)]
    few = [c.name for c in schema if c.name not in ids and not pa.types.is_floating(c.type)]
    packed = [c.name for c in schema if pa.types.is_floating(c.type)] + whole
    return {
        "compression": {c.name: "none" if c.name in packed else "snappy" for c in schema},
        "use_dictionary": few or False,
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED") or None,
    }
