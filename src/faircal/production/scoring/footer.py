"""Joining Parquet files by their bytes: one behind the other, with one footer for all.

A Parquet file ends with a footer that says where each row group is. Files that were written one
behind the other into the same file become one whose footer tells of all row groups, with their
places moved by what stands before them; nothing else is read or written again. The footer is a
structure in Thrift's compact protocol, of which no more is known here than the numbers of the few
fields that matter (parquet.thrift of the Parquet format).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PAR1"

# Types of the compact protocol: whole numbers of 16, 32 and 64 bits share one form.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_WHOLE = (4, 5, 6)

# Fields of FileMetaData, RowGroup and ColumnChunk.
_N_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSETS, _META_DATA = (2,), 3
#: Page indexes of a column: the places inside them would be wrong, and readers do without.
_PAGE_INDEXES = (4, 5, 6, 7)
#: Where the pages, the dictionary and the Bloom filter of a column are (ColumnMetaData).
_PAGE_OFFSETS = (9, 10, 11, 14)


@dataclass
class _Struct:
    """Fields by number: type and value."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def move(self, numbers: Sequence[int], by: int) -> None:
        """Add to places in the file; 0 stands for none."""
        for number in numbers:
            kind, value = self.fields.get(number, (0, 0))
            if value:
                self.fields[number] = kind, value + by

    def get(self, number: int) -> Any:
        return self.fields[number][1]

    def set(self, number: int, value: Any) -> None:
        self.fields[number] = self.fields[number][0], value


@dataclass
class _List:
    """Elements of one type."""

    kind: int
    items: list[Any]


def join_footers(path: Path, ends: Sequence[int]) -> bytes:
    """Return the footer for a file in which whole Parquet files stand one behind the other.

    `ends` says where each of them ends. Appended to the file, it makes one table of them, whose
    rows are theirs in order.
    """
    joined: _Struct | None = None
    start = 0
    for end in ends:
        footer = _read_footer(path, end)
        for group in footer.get(_ROW_GROUPS).items:
            _move(group, start)
        start = end
        if joined is None:
            joined = footer
        else:
            joined.get(_ROW_GROUPS).items.extend(footer.get(_ROW_GROUPS).items)
            joined.set(_N_ROWS, joined.get(_N_ROWS) + footer.get(_N_ROWS))
    if joined is None:
        raise ValueError("expected at least one file to join, found none")
    for number, group in enumerate(joined.get(_ROW_GROUPS).items):
        if _ORDINAL in group.fields:
            group.set(_ORDINAL, number)
        if number > 0x7FFF:
            group.fields.pop(_ORDINAL, None)  # optional, and of 16 bits only
    out = BytesIO()
    _write_struct(out, joined)
    data = out.getvalue()
    return data + len(data).to_bytes(4, "little") + MAGIC


def _read_footer(path: Path, end: int) -> _Struct:
    with path.open("rb") as file:
        file.seek(end - 8)
        length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
        if magic != MAGIC:
            raise ValueError(f"{path}: no Parquet file ends at byte {end}")
        file.seek(end - 8 - length)
        return _read_struct(BytesIO(file.read(length)))


def _move(group: _Struct, by: int) -> None:
    group.move([_GROUP_OFFSET], by)
    for chunk in group.get(_COLUMNS).items:
        chunk.move(_CHUNK_OFFSETS, by)
        for number in _PAGE_INDEXES:
            chunk.fields.pop(number, None)
        chunk.get(_META_DATA).move(_PAGE_OFFSETS, by)


# ------------------------------------------------------------------ compact protocol


def _read_number(file: BinaryIO) -> int:
    """Read a number of seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = file.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value


def _write_number(file: BinaryIO, value: int) -> None:
    while value >= 0x80:
        file.write(bytes([value & 0x7F | 0x80]))
        value >>= 7
    file.write(bytes([value]))


def _read_signed(file: BinaryIO) -> int:
    value = _read_number(file)
    return (value >> 1) ^ -(value & 1)


def _write_signed(file: BinaryIO, value: int) -> None:
    _write_number(file, value << 1 if value >= 0 else (-value << 1) - 1)


def _read_struct(file: BinaryIO) -> _Struct:
    found = _Struct()
    number = 0
    while head := file.read(1)[0]:
        number = number + (head >> 4) if head >> 4 else _read_signed(file)
        found.fields[number] = head & 15, _read_value(file, head & 15)
    return found


def _write_struct(file: BinaryIO, struct: _Struct) -> None:
    before = 0
    for number, (kind, value) in struct.fields.items():
        step = number - before
        if 0 < step < 16:
            file.write(bytes([step << 4 | kind]))
        else:
            file.write(bytes([kind]))
            _write_signed(file, number)
        _write_value(file, kind, value)
        before = number
    file.write(b"\0")


def _read_value(file: BinaryIO, kind: int, listed: bool = False) -> Any:
    if kind in _WHOLE:
        return _read_signed(file)
    if kind in (_TRUE, _FALSE):  # in a list a byte, in a struct the type itself
        return file.read(1) if listed else None
    if kind == _BINARY:
        return file.read(_read_number(file))
    if kind == _STRUCT:
        return _read_struct(file)
    if kind in (_BYTE, _DOUBLE):
        return file.read(1 if kind == _BYTE else 8)
    if kind in (_LIST, _SET):
        head = file.read(1)[0]
        size = head >> 4 if head >> 4 < 15 else _read_number(file)
        return _List(head & 15, [_read_value(file, head & 15, listed=True) for _ in range(size)])
    raise ValueError(f"type {kind} in the footer of a Parquet file, which is not known")


def _write_value(file: BinaryIO, kind: int, value: Any) -> None:
    if kind in _WHOLE:
        _write_signed(file, value)
    elif kind == _BINARY:
        _write_number(file, len(value))
        file.write(value)
    elif kind == _STRUCT:
        _write_struct(file, value)
    elif isinstance(value, _List):
        size = len(value.items)
        file.write(bytes([min(size, 15) << 4 | value.kind]))
        if size >= 15:
            _write_number(file, size)
        for item in value.items:
            _write_value(file, value.kind, item)
    elif value is not None:
        file.write(value)
