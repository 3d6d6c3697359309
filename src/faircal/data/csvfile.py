"""Long CSV files: which types their columns have as a whole, and reading from any row.

Arrow finds the types of a CSV file that it reads at once from all of its rows. The same types are
found here from blocks of rows, so that a column reads the same whether the file fits into memory
or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from faircal.data.tables import ID_COLUMNS, csv_options

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
class _Block:
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
    _blocks: tuple[_Block, ...]

    @classmethod
    def scan(cls, path: Path) -> CsvFile:
        """Go through a file; raises what Arrow raises where it is no table."""
        names: list[str] | None = None
        seen: dict[str, set[pa.DataType]] = {}
        blocks: list[_Block] = []
        offset = start = 0
        for data in _lines(path):
            table = _parse(path, data, names, dict.fromkeys(ID_COLUMNS, pa.string()))
            names = names or table.column_names
            for field in table.schema:
                seen.setdefault(field.name, set()).add(field.type)
            blocks.append(_Block(offset, len(data), start, len(table)))
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
        self, block: _Block, names: list[str], types: Mapping[str, pa.DataType]
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
