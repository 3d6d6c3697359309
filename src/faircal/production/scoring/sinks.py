"""Tables appended to an open file, as Parquet or as CSV."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

#: Rows of a row group.
ROW_GROUP = 1 << 20


class Sink:
    """Writes tables of one schema to the end of `file`; `close` makes them a whole.

    In `file` a Parquet sink leaves a whole Parquet file, a CSV sink lines, with a header where the
    file was empty.
    """

    def __init__(self, file: BinaryIO, suffix: str, schema: pa.Schema) -> None:
        # The position that Arrow counts from is 0, wherever the file ends.
        self._stream = pa.PythonFile(file, mode="w")
        if suffix == ".parquet":
            self._writer: Any = pq.ParquetWriter(self._stream, schema, **parquet_options(schema))
            self._options = {"row_group_size": ROW_GROUP}
        else:
            header = pacsv.WriteOptions(include_header=not file.tell())
            self._writer = pacsv.CSVWriter(self._stream, schema, write_options=header)
            self._options = {}

    def write(self, table: pa.Table) -> None:
        """Append a table."""
        self._writer.write_table(table, **self._options)

    def close(self) -> None:
        """Write what is still held back."""
        self._writer.close()
        self._stream.flush()

    def abandon(self) -> None:
        """Leave what is written as it is; nobody will read it."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()


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
