"""Long CSV files: which types their columns have as a whole, and reading from any row.

Arrow finds the types of a CSV file that it reads at once from all of its rows. The same types are
found here from blocks of rows, so that a column reads the same whether the file fits into memory
or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from faircal.data.tables import (
    ID_COLUMNS,
    check_alike,
    check_kind,
    check_shape,
    csv_options,
    is_index,
    parts_of,
    read_table,
    unreadable,
)

#: Bytes that are read at a time.
BLOCK = 1 << 24

#: The types that Arrow tries after whole numbers, in its order. Text takes everything.
_LOOSER = (
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.float64(),
)


@dataclass(frozen=True)
class _CsvBlock:
    """Whole lines of a file, `size` bytes from `offset` on, with rows from number `start` on."""

    offset: int
    size: int
    start: int
    n_rows: int


@dataclass(frozen=True)
class CsvFile:
    """A CSV file that was gone through once.

    Attributes
    ----------
    path : Path
    schema : pyarrow.Schema
        As Arrow finds it when it reads the whole file.
    n_rows : int
    """

    path: Path
    schema: pa.Schema
    n_rows: int
    _blocks: tuple[_CsvBlock, ...]

    @classmethod
    def scan(cls, path: Path) -> CsvFile:
        """Go through a file; raises what Arrow raises where it is no table."""
        names: list[str] | None = None
        seen: dict[str, set[pa.DataType]] = {}
        blocks: list[_CsvBlock] = []
        offset = start = 0
        for data in _lines(path):
            table = _parse(path, data, names, dict.fromkeys(ID_COLUMNS, pa.string()))
            names = names or table.column_names
            for field in table.schema:
                seen.setdefault(field.name, set()).add(field.type)
            blocks.append(_CsvBlock(offset, len(data), start, len(table)))
            offset, start = offset + len(data), start + len(table)
        if names is None:
            raise ValueError("Empty CSV file")
        found = cls(path, pa.schema([]), start, tuple(blocks))
        fields = [(name, found._settle(name, names, seen[name])) for name in names]
        for name, kind in fields:
            if pa.types.is_binary(kind):
                raise ValueError(f"column '{name}' is not UTF-8 text")
        return cls(path, pa.schema(fields), start, tuple(blocks))

    def read(self, columns: Sequence[str], start: int = 0) -> Iterator[pa.Table]:
        """Yield the rows from `start` on, a table for each block."""
        types = {name: self.schema.field(name).type for name in columns}
        for block in self._blocks:
            if block.start + block.n_rows > start:
                table = self._read_block(block, self.schema.names, types)
                yield table.slice(max(0, start - block.start))

    def _read_block(
        self, block: _CsvBlock, names: list[str], types: Mapping[str, pa.DataType]
    ) -> pa.Table:
        with self.path.open("rb") as file:
            file.seek(block.offset)
            data = file.read(block.size)
        header = block is self._blocks[0]
        return _parse(self.path, data, None if header else names, types, only=True)

    def _settle(self, column: str, names: list[str], seen: set[pa.DataType]) -> pa.DataType:
        """Return the type of a whole column from those of its blocks."""
        kinds = seen - {pa.null()}
        for kind in (pa.binary(), pa.string()):  # nothing narrower took one of the blocks
            if kind in kinds:
                return kind
        if len(kinds) < 2:
            return next(iter(kinds), pa.null())
        if kinds == {pa.int64(), pa.float64()}:
            return pa.float64()
        # A strange mixture, such as 5 in one block and true in another: tried out.
        return next((kind for kind in _LOOSER if self._takes(kind, column, names)), pa.string())

    def _takes(self, kind: pa.DataType, column: str, names: list[str]) -> bool:
        try:
            for block in self._blocks:
                self._read_block(block, names, {column: kind})
        except pa.ArrowInvalid:
            return False
        return True


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks that end where a line does."""
    with path.open("rb") as file:
        rest = b""
        while read := file.read(BLOCK):
            data = rest + read
            # A line's end may stand in quotes: no cut where none is needed.
            at_end = len(read) < BLOCK
            end = len(data) if at_end else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            if end:
                yield data[:end]
            rest = data[end:]
        if rest:
            yield rest


def _parse(
    path: Path,
    data: bytes,
    names: list[str] | None,
    types: Mapping[str, pa.DataType],
    only: bool = False,
) -> pa.Table:
    """Return the rows of a block; `only` the columns that `types` names, unless it is False.

    `names` is None for the block that begins with them.
    """
    options = csv_options(())
    options.column_types = dict(types)
    if only:
        options.include_columns = list(types)
    reading = pacsv.ReadOptions(column_names=names)
    try:
        return pacsv.read_csv(pa.BufferReader(data), reading, convert_options=options)
    except pa.ArrowInvalid:
        if not only:
            _find_fault(path)
        raise


def _find_fault(path: Path) -> None:
    """Read a file with one thread: Arrow then knows, and says, in which row of it a fault is."""
    one = pacsv.ReadOptions(use_threads=False)
    options = csv_options(ID_COLUMNS)
    with pacsv.open_csv(path, one, convert_options=options) as reader:
        names = reader.schema.names
    # As text, for which any block will do: a conversion that fails is not the fault looked for.
    with pacsv.open_csv(path, one, convert_options=csv_options(names)) as reader:
        for _ in reader:
            pass


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
