"""Batches of pairs, as JSON and in Arrow's streaming format: read without trust, and answered.

In JSON a side is a list of embeddings or of templates' ids; or pairs come one by one. Arrow is read
without copying.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data import Embeddings, Groups
from faircal.production.serving import fields
from faircal.production.serving.bodies import Refused, only, too_many, unprocessable
from faircal.production.serving.fields import PAIR_OF_BATCH, check_length, share, template_id
from faircal.production.serving.verification import (
    ModelInUse,
    Rows,
    Vector,
    Verdicts,
    pair_groups,
    point_json,
)

#: Record batches of one stream.
MOST_PARTS = 1_000
#: Dictionaries of one stream: each that adds to an earlier one is a copy of all of it.
MOST_DICTIONARIES = 8

_GROUPS = ("left_group", "right_group")
#: Letters of a number in a stream's metadata.
_LONGEST_NUMBER = 40
_FLOATS = (pa.float16(), pa.float32(), pa.float64())
_LISTS = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)


@dataclass(eq=False)
class BatchSide:
    """The left or the right images of pairs.

    Attributes
    ----------
    name : str
        ``left`` or ``right``.
    rows : ndarray of shape (n_pairs,)
        Which of the vectors, or of the ids, each pair has.
    vectors : ndarray of shape (n, d), optional
    ids : list of str
        Of templates, in place of vectors or beside those that were looked up.
    """

    name: str
    rows: Rows
    vectors: NDArray[Any] | None = None
    ids: list[str] = field(default_factory=list)

    def enrolled(self, templates: Mapping[str, Vector]) -> BatchSide:
        """Return the side with the vectors of its templates."""
        if self.vectors is not None:
            return self
        for number, name in enumerate(self.ids):
            if name not in templates:
                row = int(np.argmax(self.rows == number))
                raise Refused(
                    404, "template", "no such template; enrol it first", f"{self.name}[{row}]"
                )
        names = list(dict.fromkeys(self.ids))
        place = {name: i for i, name in enumerate(names)}
        rows = np.array([place[name] for name in self.ids], dtype=np.intp)[self.rows]
        return BatchSide(self.name, rows, np.stack([templates[name] for name in names]), names)

    @property
    def templates(self) -> list[str] | None:
        """The template of each pair; None where vectors were sent."""
        return [self.ids[row] for row in self.rows] if self.ids else None


class PairBatch(NamedTuple):
    """The pairs of a request; `prior` is the share of genuine ones that it asks for."""

    left: BatchSide
    right: BatchSide
    groups: Groups | None
    prior: float | None

    def join(self, in_use: ModelInUse) -> tuple[Embeddings, Rows, Rows]:
        """Return the embeddings of both sides, one below the other, and the rows of the pairs.

        Raises
        ------
        Refused
            Where vectors are of another length, or one is NaN, infinite or zero; it names the
            pair.
        """
        one, other = self.left.vectors, self.right.vectors
        if one is None or other is None:
            raise ValueError("expected sides whose templates were looked up")
        check_length(one.shape[1], "left", in_use.dimension)
        check_length(other.shape[1], "right", in_use.dimension)
        if one.shape[1] != other.shape[1]:
            message = "expected left and right of one length; use one network for both"
            raise unprocessable(message, "right", "dimension")
        half = one.dtype == other.dtype == np.float16
        shape = (len(one) + len(other), one.shape[1])
        vectors = np.empty(shape, np.float16 if half else np.float32)
        with np.errstate(over="ignore"):  # becomes infinite, and is refused below
            vectors[: len(one)], vectors[len(one) :] = one, other
        embeddings = in_use.embeddings(vectors)
        rows = (self.left.rows, self.right.rows + len(one))
        bad = embeddings.unusable
        if bad.any():
            for name, each in zip(("left", "right"), rows, strict=True):
                if bad[each].any():
                    raise unprocessable(
                        "expected finite numbers of moderate size, not all 0; leave this pair out",
                        f"{name}[{int(np.argmax(bad[each]))}]",
                    )
        return embeddings, *rows


def from_json(body: dict[str, Any], max_pairs: int) -> PairBatch:
    """Return the pairs of a JSON object.

    Examples
    --------
    >>> from_json({"left": [[1, 2]], "right": [[2, 1]]}, 10).left.vectors
    array([[1., 2.]], dtype=float32)
    """
    if "pairs" in body:
        only(body, "pairs", "prior")
        columns = _columns(_list(body["pairs"], "pairs", max_pairs))
    else:
        only(body, *PAIR_OF_BATCH, "prior")
        columns = body
    left, right = (
        _side(_list(columns.get(name), name, max_pairs), name) for name in ("left", "right")
    )
    if len(left.rows) != len(right.rows):
        raise unprocessable(
            f"expected as many left as right, found {len(left.rows)} and {len(right.rows)}",
            "right",
        )
    groups = _groups(columns, len(left.rows))
    return PairBatch(left, right, groups, share(body.get("prior"), "prior"))


def _list(value: Any, where: str, most: int) -> list[Any]:
    if type(value) is not list or not value:
        raise unprocessable("expected a list with an entry for each pair", where)
    if len(value) > most:
        raise too_many(most)
    return value


def _columns(pairs: list[Any]) -> dict[str, Any]:
    for row, pair in enumerate(pairs):
        if type(pair) is not dict:
            raise unprocessable("expected an object with left and right", f"pairs[{row}]")
        only(pair, *PAIR_OF_BATCH)
    # Groups that no pair has are no column: a method that needs them must say so.
    given = [n for n in PAIR_OF_BATCH if n not in _GROUPS or any(n in pair for pair in pairs)]
    return {name: [pair.get(name) for pair in pairs] for name in given}


def _side(values: list[Any], name: str) -> BatchSide:
    """Return one side: all embeddings, or all templates."""
    kinds = {type(value) for value in values}
    rows = np.arange(len(values))
    if kinds <= {dict, str}:
        ids = [value.get("template") if type(value) is dict else value for value in values]
        return BatchSide(
            name, rows, ids=[fields.template_id(v, f"{name}[{i}]") for i, v in enumerate(ids)]
        )
    if kinds != {list}:
        raise unprocessable("expected embeddings, or ids of templates, in all rows of a side", name)
    wide = len(values[0])
    vectors = [fields.vector(value, f"{name}[{i}]") for i, value in enumerate(values)]
    for i, each in enumerate(vectors):
        check_length(len(each), f"{name}[{i}]", wide)
    return BatchSide(name, rows, vectors=np.stack(vectors))


def _groups(body: dict[str, Any], n: int) -> Groups | None:
    sides = []
    for name in _GROUPS:
        values = body.get(name)
        if type(values) is not list or len(values) != n:
            if body.get("left_group") is None and body.get("right_group") is None:
                return None
            raise unprocessable("expected a list with a group for each pair", name)
        sides.append([fields.text(value, name) for value in values])
    return pair_groups(*sides)


def from_arrow(body: bytes | bytearray, max_pairs: int) -> PairBatch:
    """Return the pairs of an Arrow stream."""
    table = read_table(body, max_pairs)
    missing = [name for name in _GROUPS if name not in table.column_names]
    if len(missing) == 1:
        raise unprocessable("expected groups of both sides, or of none", missing[0])
    groups = None if missing else pair_groups(*(table.column(n).to_pylist() for n in _GROUPS))
    return PairBatch(_column(table, "left"), _column(table, "right"), groups, prior_in(table))


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
            parts: list[pa.RecordBatch] = []
            for part in stream:
                parts.append(part)
                if sum(map(len, parts)) > max_pairs:
                    raise too_many(max_pairs)
            table = pa.Table.from_batches(parts, stream.schema)
        # Offsets and indices are a stranger's: unchecked they would read other memory of ours.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error, MemoryError, OverflowError):
        raise Refused(
            400, "arrow", "the body is not an Arrow IPC stream, or is damaged; write it anew"
        ) from None
    if not len(table):
        raise unprocessable("expected at least one pair, found none")
    return table


def _check_columns(schema: pa.Schema) -> None:
    names = list(schema.names)
    if len(set(names)) < len(names) or not {"left", "right"} <= set(names) <= set(PAIR_OF_BATCH):
        raise unprocessable(
            f"expected the columns left and right, and no others than {', '.join(PAIR_OF_BATCH)}",
            code="columns",
        )
    for name in names:
        kind = schema.field(name).type
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        vectors = any(test(inner) for test in _LISTS) and inner.value_type in _FLOATS
        if not (_is_text(inner) or (vectors and name in ("left", "right"))):
            raise unprocessable(
                "expected fixed_size_list of float16, float32 or float64, lists of them, or text; "
                "or dictionaries of these",
                name,
                "columns",
            )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _column(table: pa.Table, name: str) -> BatchSide:
    """Return one side of the pairs: vectors or ids of templates, and which of them each row is."""
    column = table.column(name)
    if column.null_count:
        raise unprocessable(
            "expected no nulls; leave such pairs out", f"{name}[{_first(column.is_null())}]"
        )
    if not pa.types.is_dictionary(column.type):
        return _values(_joined(column.chunks), name, np.arange(len(column)), by_row=True)
    # Parts mostly share one dictionary; it is taken once, however many they are.
    dictionaries: dict[tuple[int, ...], tuple[int, pa.Array]] = {}
    rows, total = [], 0
    for part in column.chunks:
        words = part.dictionary
        where = tuple(0 if buffer is None else buffer.address for buffer in words.buffers())
        start, _ = dictionaries.setdefault((*where, words.offset, len(words)), (total, words))
        total += len(words) if start == total else 0
        rows.append(part.indices.to_numpy(zero_copy_only=False).astype(np.intp) + start)
    values = _joined([words for _, words in dictionaries.values()])
    if values.null_count:
        raise unprocessable("expected no nulls in the dictionary; leave such pairs out", name)
    return _values(values, name, np.concatenate(rows), by_row=False)


def _joined(parts: list[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)  # one is not copied


def _values(values: pa.Array, name: str, rows: Rows, *, by_row: bool) -> BatchSide:
    """Return a side; `by_row` says whether the values are rows of the table.

    Vectors share the memory of `values`.
    """
    if _is_text(values.type):
        # A dictionary may have millions of words that no row has.
        used, rows = np.unique(rows, return_inverse=True)
        words = values.take(pa.array(used)).to_pylist()
        return BatchSide(name, rows, ids=[template_id(word, name) for word in words])

    def place(row: int) -> str:
        return f"{name}[{row}]" if by_row else name

    if pa.types.is_fixed_size_list(values.type):
        wide = values.type.list_size
    else:
        lengths = values.value_lengths().to_numpy(zero_copy_only=False)
        wide = int(lengths[0]) if len(lengths) else 0
        if (lengths != wide).any():
            message = "expected vectors of one length; use one network"
            raise unprocessable(message, place(int(np.argmax(lengths != wide))), "dimension")
    if wide < 1:
        raise unprocessable("expected vectors, found empty ones", name, "dimension")
    flat = values.flatten()
    if flat.null_count:
        raise unprocessable("expected no nulls", place(_first(flat.is_null()) // wide))
    return BatchSide(name, rows, flat.to_numpy(zero_copy_only=True).reshape(-1, wide))


def _first(flags: Any) -> int:
    return int(np.argmax(flags.to_numpy(zero_copy_only=False)))


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
    return share(value, "faircal.prior")


def to_json(batch: Verdicts) -> bytes:
    """Return the answer to a batch in JSON."""
    from pydantic_core import to_json as encoded

    columns = batch.columns().items()
    return encoded(
        {
            "id": batch.id,
            "pairs": len(batch),
            "model": batch.model,
            "prior": batch.prior,
            "operating_point": point_json(batch.point),
            **{name: None if values is None else values.tolist() for name, values in columns},
        }
    )


def to_arrow(batch: Verdicts) -> bytes:
    """Return the answer to a batch as an Arrow stream; its metadata tells of all pairs."""
    columns = batch.columns()
    arrays = {
        name: pa.nulls(
            len(batch), pa.bool_() if name.endswith(("outside", "at_bound")) else pa.int32()
        )
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


def _refuse_bombs(buffer: pa.Buffer) -> None:
    """Raise where a message is compressed, or adds to others: it could outgrow the memory."""
    reader, dictionaries = pa.ipc.MessageReader.open_stream(buffer), 0
    # Bounded, so that a stream of endless small messages ends; one more for the schema.
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
