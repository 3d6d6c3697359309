"""Tables on disk read batch by batch, in memory that does not grow with their length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from faircal.data.csvfile import CsvFile
from faircal.data.tables import (
    check_alike,
    check_kind,
    check_shape,
    is_index,
    parts_of,
    read_table,
    unreadable,
)

#: Bytes, and rows, of a Parquet file read at a time: a row group may be as long as the file.
_BUFFER, _ROWS = 1 << 20, 1 << 18


class TableFile(ABC):
    """A table on disk.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
        Of the columns that hold data; types are those of the whole column.
    n_rows : int
    """

    path: Path
    schema: pa.Schema
    n_rows: int

    def read(self, columns: Sequence[str], start: int, size: int) -> Iterator[pa.Table]:
        """Yield the rows from `start` on in tables of `size` rows, the last one shorter.

        Raises `DataError` where the file is damaged.
        """
        with unreadable(self.path):
            yield from _recut(self._pieces(columns, start), size)

    @abstractmethod
    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        """Yield the rows from `start` on in tables of any length."""


class _Parquet(TableFile):
    """Row groups of any length; those before the first row wanted are not read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with pq.ParquetFile(path) as file:
            self.schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False) as file:
            lengths = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            first = 0
            while first < len(lengths) and lengths[first] <= start:
                start -= lengths[first]
                first += 1
            groups = range(first, len(lengths))
            for batch in file.iter_batches(_ROWS, row_groups=groups, columns=list(columns)):
                skipped = min(start, len(batch))
                start -= skipped
                yield pa.Table.from_batches([batch]).slice(skipped).select(columns)


class _Parts(TableFile):
    """Parquet files one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = [_Parquet(file) for file in parts_of(path)]
        self.schema = check_alike([(part.path, part.schema) for part in self._parts])
        self.n_rows = sum(part.n_rows for part in self._parts)

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        for part in self._parts:
            if start < part.n_rows:
                yield from part._pieces(columns, start)
            start = max(0, start - part.n_rows)


class _Csv(TableFile):
    """Scanned once for its types and its rows, then read by blocks of bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = CsvFile.scan(path)
        self.schema = self._file.schema
        self.n_rows = self._file.n_rows

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        return self._file.read(columns, start)


class _Whole(TableFile):
    """A table that can only be read at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table = read_table(path)
        self.schema = self._table.schema
        self.n_rows = self._table.num_rows

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        yield self._table.select(columns).slice(start)


def open_table(path: Path) -> TableFile:
    """Open a ``.csv``, ``.parquet`` or ``.npz`` table; what `read_table` refuses is refused."""
    check_kind(path)
    kinds = {".csv": _Csv, ".parquet": _Parquet, ".npz": _Whole}
    kind = _Parts if path.is_dir() else kinds[path.suffix]
    with unreadable(path):
        table: TableFile = kind(path)  # type: ignore[abstract]
    check_shape(table.schema.names, table.n_rows, path)
    table.schema = pa.schema([field for field in table.schema if not is_index(field.name)])
    return table


def _recut(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Join and cut tables to `size` rows each, the last one shorter."""
    held: list[pa.Table] = []
    length = 0
    for piece in pieces:
        while length + len(piece) >= size:
            cut = size - length
            yield pa.concat_tables([*held, piece.slice(0, cut)])
            held, length, piece = [], 0, piece.slice(cut)
        if len(piece):
            held.append(piece)
            length += len(piece)
    if held:
        yield pa.concat_tables(held)
