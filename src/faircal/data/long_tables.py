"""Tables on disk read batch by batch, in memory that does not grow with their length.

Arrow finds the types of a CSV file that it reads at once from all of its rows. The same types are
found here from blocks of rows, so that a column reads the same whether the file fits into memory
or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from faircal.data.tables import (
    ID_COLUMNS,
    check_alike,
    checked_files,
    csv_options,
    data_columns,
    table_files,
    unreadable,
)

#: Bytes of a CSV file that are read at a time.
BLOCK = 1 << 24
#: Bytes, and rows, of a Parquet file read at a time: a row group may be as long as the file.
_BUFFER, _ROWS = 1 << 20, 1 << 18
#: The types that Arrow tries after whole numbers, in its order. Text takes everything.
_LOOSER = (
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.float64(),
)


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
        held: list[pa.Table] = []
        length = 0
        with unreadable(self.path):
            for piece in self._pieces(columns, start):
                while length + len(piece) >= size:
                    cut = size - length
                    yield pa.concat_tables([*held, piece.slice(0, cut)])
                    held, length, piece = [], 0, piece.slice(cut)
                if len(piece):
                    held.append(piece)
                    length += len(piece)
            if held:
                yield pa.concat_tables(held)

    @abstractmethod
    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        """Yield the rows from `start` on in tables of any length."""


def open_table(path: Path) -> TableFile:
    """Open a ``.csv`` or ``.parquet`` table; what `read_table` refuses is refused."""
    checked_files(path)
    # Spark calls folders *.csv, too.
    kind = _Csv if path.suffix == ".csv" and not path.is_dir() else _Parquet
    with unreadable(path):
        table: TableFile = kind(path)
    names = data_columns(table.schema, table.n_rows, path)
    table.schema = pa.schema([table.schema.field(name) for name in names])
    return table


class _Parquet(TableFile):
    """One file or several, one after the other; row groups before the first row are not read."""

    def __init__(self, path: Path) -> None:
        self.path, self._files, schemas = path, table_files(path), []
        self._lengths: list[list[int]] = []  # of the row groups of each file
        for part in self._files:
            with pq.ParquetFile(part) as file:
                schemas.append((part, file.schema_arrow))
                groups = range(file.num_row_groups)
                self._lengths.append([file.metadata.row_group(i).num_rows for i in groups])
        self.schema = check_alike(schemas)
        self.n_rows = sum(map(sum, self._lengths))

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        for path, lengths in zip(self._files, self._lengths, strict=True):
            first = 0
            while first < len(lengths) and lengths[first] <= start:
                start -= lengths[first]
                first += 1
            if first == len(lengths):
                continue
            groups = range(first, len(lengths))
            with pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
                for batch in file.iter_batches(_ROWS, row_groups=groups, columns=list(columns)):
                    skipped = min(start, len(batch))
                    start -= skipped
                    yield pa.Table.from_batches([batch]).slice(skipped).select(columns)


@dataclass(frozen=True)
class _CsvBlock:
    """Whole lines of a file, `size` bytes from `offset` on, with rows from number `start` on."""

    offset: int
    size: int
    start: int
    n_rows: int


class _Csv(TableFile):
    """Scanned once for its types and its rows, then read by blocks of bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: list[str] = []
        kinds: dict[str, set[pa.DataType]] = {}
        self._blocks: list[_CsvBlock] = []
        offset = start = 0
        for data in _lines(path):
            table = _parse(path, data, self._names, dict.fromkeys(ID_COLUMNS, pa.string()))
            self._names = self._names or table.column_names
            for field in table.schema:
                kinds.setdefault(field.name, set()).add(field.type)
            self._blocks.append(_CsvBlock(offset, len(data), start, len(table)))
            offset, start = offset + len(data), start + len(table)
        if not self._names:
            raise ValueError("Empty CSV file")
        self.schema = pa.schema([(name, self._settle(name, kinds[name])) for name in self._names])
        self.n_rows = start

    def _pieces(self, columns: Sequence[str], start: int) -> Iterator[pa.Table]:
        types = {name: self.schema.field(name).type for name in columns}
        for block in self._blocks:
            if block.start + block.n_rows > start:
                yield self._read_block(block, types).slice(max(0, start - block.start))

    def _read_block(self, block: _CsvBlock, types: Mapping[str, pa.DataType]) -> pa.Table:
        with self.path.open("rb") as file:
            file.seek(block.offset)
            data = file.read(block.size)
        names = [] if block is self._blocks[0] else self._names
        return _parse(self.path, data, names, types, only=True)

    def _settle(self, column: str, kinds: set[pa.DataType]) -> pa.DataType:
        """Return the type of a whole column from those of its blocks."""
        kinds = kinds - {pa.null()}
        for kind in (pa.binary(), pa.string()):  # nothing narrower took one of the blocks
            if kind in kinds:
                return kind
        if len(kinds) < 2:
            return next(iter(kinds), pa.null())
        if kinds == {pa.int64(), pa.float64()}:
            return pa.float64()
        # A mixture, such as 5 in one block and true in another: tried out.
        return next((kind for kind in _LOOSER if self._takes(kind, column)), pa.string())

    def _takes(self, kind: pa.DataType, column: str) -> bool:
        try:
            for block in self._blocks:
                self._read_block(block, {column: kind})
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
    names: list[str],
    types: Mapping[str, pa.DataType],
    only: bool = False,
) -> pa.Table:
    """Return the rows of a block; `only` the columns that `types` names, unless it is False.

    `names` is empty for the block that begins with them.
    """
    options = csv_options(())
    options.column_types = dict(types)
    if only:
        options.include_columns = list(types)
    reading = pacsv.ReadOptions(column_names=names or None)
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
