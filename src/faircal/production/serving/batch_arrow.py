"""Batches in Arrow's streaming format: read without copying, and without trust."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data import Groups
from faircal.production.serving.batch_json import BatchSide
from faircal.production.serving.fields import share, template_id
from faircal.production.serving.model_in_use import pair_groups
from faircal.production.serving.problems import Refused, too_many, unprocessable
from faircal.production.serving.verification import BatchVerification

#: Record batches of one stream.
MOST_PARTS = 1_000
#: Dictionaries of one stream: each that adds to an earlier one is a copy of all of it.
MOST_DICTIONARIES = 8
#: Columns that a batch may have.
COLUMNS = ("left", "right", "left_group", "right_group")

#: Letters of a number in a stream's metadata.
_LONGEST_NUMBER = 40
_FLOATS = (pa.float16(), pa.float32(), pa.float64())


def read_table(body: bytes | bytearray, max_pairs: int) -> pa.Table:
    """Return the table in a body; all of it is checked before anything is read of it.

    Raises
    ------
    Refused
        Where it is no Arrow stream, is compressed, or has other columns or too many rows.
    """
    buffer = pa.py_buffer(body)
    try:
        _refuse_bombs(buffer)
        with pa.ipc.open_stream(buffer) as stream:
            _check_columns(stream.schema)
            table = pa.Table.from_batches(list(_parts(stream, max_pairs)), stream.schema)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error, MemoryError, OverflowError):
        raise Refused(
            400, "arrow", "the body is not an Arrow IPC stream, or is damaged; write it anew"
        ) from None
    if not len(table):
        raise unprocessable("expected at least one pair, found none")
    return table


def _parts(stream: Any, max_pairs: int) -> Iterator[pa.RecordBatch]:
    rows = 0
    for number, part in enumerate(stream):
        rows += len(part)
        if rows > max_pairs:
            raise too_many(max_pairs)
        if number >= MOST_PARTS:
            raise unprocessable(f"expected at most {MOST_PARTS} record batches; join some")
        yield part


def _check_columns(schema: pa.Schema) -> None:
    names = list(schema.names)
    if len(set(names)) < len(names) or not {"left", "right"} <= set(names) <= set(COLUMNS):
        raise unprocessable(
            f"expected the columns left and right, and no others than {', '.join(COLUMNS)}",
            code="columns",
        )
    for name in names:
        kind = schema.field(name).type
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (_is_text(inner) or (_is_vectors(inner) and name in ("left", "right"))):
            raise unprocessable(
                "expected fixed_size_list of float16, float32 or float64, lists of them, or text; "
                "or dictionaries of these",
                name,
                "columns",
            )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_vectors(kind: pa.DataType) -> bool:
    lists = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return any(test(kind) for test in lists) and kind.value_type in _FLOATS


def side_of(table: pa.Table, name: str) -> BatchSide:
    """Return one side of the pairs: vectors or ids of templates, and which of them each row is."""
    column = table.column(name)
    if column.null_count:
        raise unprocessable(
            "expected no nulls; leave such pairs out", f"{name}[{_first(column.is_null())}]"
        )
    if not pa.types.is_dictionary(column.type):
        return _values(column.chunks, name, np.arange(len(column)), by_row=True)
    # Parts mostly share one dictionary; it is taken once, however many they are.
    dictionaries_by_key: dict[tuple[int, ...], tuple[int, pa.Array]] = {}
    rows, total = [], 0
    for part in column.chunks:
        words = part.dictionary
        where = tuple(0 if buffer is None else buffer.address for buffer in words.buffers())
        key = (*where, words.offset, len(words))
        if key not in dictionaries_by_key:
            dictionaries_by_key[key] = total, words
            total += len(words)
        rows.append(
            part.indices.to_numpy(zero_copy_only=False).astype(np.intp)
            + dictionaries_by_key[key][0]
        )
    dictionaries = [words for _, words in dictionaries_by_key.values()]
    if any(words.null_count for words in dictionaries):
        raise unprocessable("expected no nulls in the dictionary; leave such pairs out", name)
    return _values(dictionaries, name, np.concatenate(rows), by_row=False)


def _values(parts: list[pa.Array], name: str, rows: NDArray[np.intp], *, by_row: bool) -> BatchSide:
    """Return a side; `by_row` says whether the values of `parts` are rows of the table."""
    if _is_text(parts[0].type):
        # A dictionary may have millions of words that no row has.
        used, rows = np.unique(rows, return_inverse=True)
        words = pa.concat_arrays(parts).take(pa.array(used)).to_pylist()
        return BatchSide(name, rows, ids=[template_id(word, name) for word in words])
    matrices, before = [], 0
    for part in parts:
        matrices.append(_matrix(part, _Where(name, before if by_row else None)))
        before += len(part)
    if len({each.shape[1] for each in matrices}) > 1:
        raise unprocessable("expected vectors of one length; use one network", name, "dimension")
    return BatchSide(
        name, rows, vectors=matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    )


class _Where(NamedTuple):
    """A column, and the row that a part of it begins with; None: its values are no rows."""

    name: str
    before: int | None

    def row(self, number: int) -> str:
        """Say where a value is."""
        return self.name if self.before is None else f"{self.name}[{self.before + number}]"


def _matrix(part: pa.Array, where: _Where) -> NDArray[Any]:
    """Return lists of equal lengths as a matrix that shares their memory."""
    flat = part.flatten()
    if pa.types.is_fixed_size_list(part.type):
        wide = part.type.list_size
    else:
        lengths = part.value_lengths().to_numpy(zero_copy_only=False)
        wide = int(lengths[0]) if len(lengths) else 0
        if (lengths != wide).any():
            row = int(np.argmax(lengths != wide))
            raise unprocessable(
                "expected vectors of one length; use one network", where.row(row), "dimension"
            )
    if wide < 1:
        raise unprocessable("expected vectors, found empty ones", where.name, "dimension")
    if flat.null_count:
        raise unprocessable("expected no nulls", where.row(_first(flat.is_null()) // wide))
    values: NDArray[Any] = flat.to_numpy(zero_copy_only=True)
    return values.reshape(-1, wide)


def _first(flags: Any) -> int:
    return int(np.argmax(flags.to_numpy(zero_copy_only=False)))


def groups_in(table: pa.Table) -> Groups | None:
    """Return the groups of the pairs, None where there are none; of one side they are no use."""
    names = ("left_group", "right_group")
    missing = [name for name in names if name not in table.column_names]
    if len(missing) == 1:
        raise unprocessable("expected groups of both sides, or of none", missing[0])
    return None if missing else pair_groups(*(table.column(name).to_pylist() for name in names))


def prior_in(table: pa.Table) -> float | None:
    """Return the wanted share of genuine pairs in the metadata of the schema, None where none is.

    Examples
    --------
    >>> prior_in(pa.table({}).replace_schema_metadata({"faircal.prior": "0.001"}))
    0.001
    """
    text = (table.schema.metadata or {}).get(b"faircal.prior")
    if text is None:
        return None
    try:
        value = float(text) if len(text) <= _LONGEST_NUMBER else np.nan
    except ValueError:
        value = np.nan  # which is refused
    return share({"faircal.prior": value}, "faircal.prior")


def write_batch(batch: BatchVerification) -> bytes:
    """Return the answer to a batch as an Arrow stream; its metadata tells of all pairs."""
    columns = batch.columns()
    arrays = {
        name: pa.nulls(len(batch), pa.bool_() if name.endswith("outside") else pa.int32())
        if values is None
        else pa.array(values)
        for name, values in columns.items()
    }
    about = {"id": batch.id, "model": batch.model, "prior": repr(batch.prior)}
    about["threshold"], about["on"] = repr(batch.point.threshold), batch.point.on
    record = pa.RecordBatch.from_pydict(arrays)
    record = record.replace_schema_metadata({f"faircal.{key}": text for key, text in about.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, record.schema) as writer:
        writer.write_batch(record)
    written: bytes = sink.getvalue().to_pybytes()
    return written


# ---------------------------------------------------- what the header of a message says


def _refuse_bombs(buffer: pa.Buffer) -> None:
    """Raise where a message is compressed, or adds to others: it could outgrow the memory."""
    reader, dictionaries = pa.ipc.MessageReader.open_stream(buffer), 0
    for _ in range(MOST_PARTS + MOST_DICTIONARIES + 1):
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        dictionaries += message.type == "dictionary"
        if dictionaries > MOST_DICTIONARIES:
            raise unprocessable(f"expected at most {MOST_DICTIONARIES} dictionaries; unify them")
        if _is_compressed(message.type, memoryview(message.metadata)):
            raise unprocessable("expected no compression in the stream; write it without", None)
    raise unprocessable(f"expected at most {MOST_PARTS} record batches; join some")


def _is_compressed(kind: str, metadata: memoryview) -> bool:
    """Look a message's compression up in its flatbuffer (format/Message.fbs of Arrow)."""
    if kind not in ("record batch", "dictionary"):
        return False
    (root,) = struct.unpack_from("<I", metadata, 0)
    table = _field(metadata, root, 2)  # Message.header
    if kind == "dictionary" and table is not None:
        table = _field(metadata, table, 1)  # DictionaryBatch.data
    if table is None:
        raise DataError("the header of a message is damaged")
    return _field(metadata, table, 3) is not None  # RecordBatch.compression


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Return where the table lies that a field of a flatbuffer's table points to."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", data, table - back + place)
    if not offset:
        return None
    (ahead,) = struct.unpack_from("<I", data, table + offset)
    return int(table + offset + ahead)
