"""Turning table columns into validated arrays, once, at the door.

Every function takes a column and `where` (a file's name, for messages) and raises `DataError`
with the file, the column, the row (counted from 1, the header not included) and the remedy. Where
the column is a part of a longer one, `span` says which, so that rows are counted in the file.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import short

UNKNOWN = -1
#: Whole numbers are looked up in a table where it is at most this many times as long as they are.
_ROOM = 8

_TRUE, _FALSE = ("1", "true", "1.0"), ("0", "false", "0.0")


@dataclass(frozen=True)
class Span:
    """Which rows of a file a column holds: `start` and after; all of them where `stop` is None.

    Where rows are in no order that their owner knows (on a cluster), they are not `numbered`.
    """

    start: int = 0
    stop: int | None = None
    numbered: bool = True

    def row(self, bad: NDArray[np.bool_]) -> str:
        """Name the first of the `bad` rows."""
        return f"row {self.start + first_true(bad) + 1}" if self.numbered else "in one of its rows"

    def such(self, count: int) -> str:
        """Say how many such rows there are; of a part, up to where the file was read."""
        if not self.numbered:
            return f"{count} such rows in a part of them"
        return f"{count} such rows" + (f" up to row {self.stop}" if self.stop is not None else "")


ALL_ROWS = Span()
SOMEWHERE = Span(numbered=False)


@dataclass(frozen=True)
class Column:
    """A categorical column: `names[codes[i]]` is the value of row i, code −1 is *unknown*."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the codes of `rows`."""
        return self.codes[rows]

    @property
    def apart(self) -> NDArray[np.int64]:
        """A number for each row, the same where values are; an unknown one is like no other.

        Examples
        --------
        >>> Column.of(["b", "", "b", None]).apart
        array([0, 1, 0, 2])
        """
        numbers = self.codes.astype(np.int64)
        unknown = numbers == UNKNOWN
        numbers[unknown] = len(self.names) + np.arange(int(unknown.sum()))
        return numbers

    @classmethod
    def of(cls, values: Any, where: str = "column") -> Column:
        """Encode any column (text, integer, boolean); empty, null and NaN are unknown.

        Examples
        --------
        >>> Column.of(["b", "a", "", None, "b"])
        Column(codes=array([ 1,  0, -1, -1,  1], dtype=int32), names=('a', 'b'))
        """
        array = as_arrow(values, where)
        if pa.types.is_floating(array.type):
            array = _integers_from_floats(array)
        text = pc.utf8_trim_whitespace(as_text(array, where))
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
        encoded = text.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        raw = np.asarray(encoded.indices.fill_null(UNKNOWN), dtype=np.int32)
        names = encoded.dictionary.to_pylist()
        # Sorted names make codes, and so every result, independent of the order of rows.
        order = sorted(range(len(names)), key=names.__getitem__)
        renumber = np.full(len(names) + 1, UNKNOWN, dtype=np.int32)
        renumber[order] = np.arange(len(names), dtype=np.int32)
        return cls(renumber[raw], tuple(names[i] for i in order))


def as_arrow(values: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """Return a column as Arrow; one stored as codes and names (categorical) is spelt out."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = [None if is_missing(value) else str(value) for value in values]
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: cannot be read ({short(error)}); give one value per row"
        ) from error
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def is_missing(value: Any) -> bool:
    """Whether an object stands for nothing: None, NaN, or pandas' NA (which is like no number)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def as_text(array: pa.Array | pa.ChunkedArray, where: str) -> pa.Array | pa.ChunkedArray:
    """Return a column as text; a list, a structure or bytes that are no text are an error."""
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"{where}: expected text or numbers, found {array.type}; convert or remove the column"
        ) from None


def _integers_from_floats(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Print 1.0 as 1: a column of integers with gaps arrives as floating point."""
    array = _without_nan(array)
    whole_numbers = pc.all(pc.equal(pc.round(array), array)).as_py()
    return array.cast(pa.int64()) if whole_numbers is not False else array


def _without_nan(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def as_numbers(values: Any) -> NDArray[np.float64] | None:
    """Return an array as float64, or None where it does not hold numbers.

    Text is refused although "0.5" could be read: it is a column of the wrong kind.

    Examples
    --------
    >>> as_numbers([1, True]), as_numbers(["0.5"])
    (array([1., 1.]), None)
    """
    try:
        array = np.asarray(values)
        return None if array.dtype.kind not in "biufO" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        return None


def require_filled(
    array: pa.Array | pa.ChunkedArray, where: str, remedy: str, span: Span = ALL_ROWS
) -> None:
    """Raise where a column, which `where` names, has a missing value."""
    if array.null_count:
        row = span.row(np.asarray(array.is_null()))
        raise DataError(f"{where}, {row}: empty ({span.such(array.null_count)}); {remedy}")


def first_true(mask: NDArray[np.bool_]) -> int:
    """Return the index of the first true element (there must be one)."""
    return int(np.flatnonzero(mask)[0])


def parse_genuine(
    values: Any, where: str, name: str = "genuine", span: Span = ALL_ROWS
) -> NDArray[np.bool_]:
    """Read a column of 0/1/true/false as booleans.

    Examples
    --------
    >>> parse_genuine([1, 0, 1], "pairs")
    array([ True, False,  True])
    """
    column = f"{where}, column '{name}'"
    array = as_arrow(values, column)
    if pa.types.is_boolean(array.type) and array.null_count == 0:
        return np.asarray(array, dtype=bool)
    if (
        pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    ) and not array.null_count:
        numbers = np.asarray(array)
        if np.isin(numbers, (0, 1)).all():
            return np.asarray(numbers == 1, dtype=bool)
    text = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(array, column)))
    true, false = (
        np.asarray(pc.is_in(text, value_set=pa.array(words))) for words in (_TRUE, _FALSE)
    )
    bad = ~(true | false)
    if bad.any():
        value = array[first_true(bad)].as_py()
        raise DataError(
            f"{column}, {span.row(bad)}: expected 0, 1, true or false, "
            f"found {value!r} ({span.such(int(bad.sum()))}); correct or remove them"
        )
    return true


def parse_fold(values: Any, where: str, span: Span = ALL_ROWS, text: bool = False) -> NDArray[Any]:
    """Read fold names: an integer array where all are whole numbers, else text.

    `text` where they are text in any case, as other parts of the column are.
    """
    column = f"{where}, column 'fold'"
    array = as_arrow(values, column)
    if pa.types.is_floating(array.type):
        array = _without_nan(array) if text else _integers_from_floats(array)
    remedy = "give every row a fold, or drop the column to have folds drawn"
    require_filled(array, column, remedy, span)
    if not text:
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return np.asarray(array.cast(pa.int64()))
    # There are few folds, so that few are spelt out.
    names = as_text(array, column)
    coded = (names if isinstance(names, pa.Array) else names.combine_chunks()).dictionary_encode()
    spelt: NDArray[Any] = np.asarray(coded.dictionary.to_pylist(), dtype=np.str_)
    return np.take(spelt, np.asarray(coded.indices))


def as_floats(values: Any, where: str, remedy: str) -> NDArray[np.float64]:
    """Return a column of numbers as float64, NaN where there is none; `where` names it."""
    array = as_arrow(values, where)
    try:
        return np.asarray(pc.cast(array, pa.float64()).fill_null(np.nan), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(f"{where}: expected numbers, found {array.type}; {remedy}") from None


def parse_scores(
    values: Any,
    name: str,
    where: str,
    limits: tuple[float, float] | None,
    span: Span = ALL_ROWS,
) -> NDArray[np.float64]:
    """Read a score column; finite, and inside `limits`, where there are any, but for rounding."""
    remedy = "correct the column or name another one as score"
    scores = as_floats(values, f"{where}, column '{name}'", remedy)
    bad = ~np.isfinite(scores)
    if bad.any():
        raise DataError(
            f"{where}, column '{name}', {span.row(bad)}: expected a finite score, "
            f"found {scores[first_true(bad)]} ({span.such(int(bad.sum()))}); "
            "correct or remove them"
        )
    if limits is None:
        return scores
    low, high = limits
    slack = 1e-3 * (high - low)
    bad = (scores < low - slack) | (scores > high + slack)
    if bad.any():
        raise DataError(
            f"{where}, column '{name}', {span.row(bad)}: expected a score in [{low:g}, {high:g}], "
            f"found {scores[first_true(bad)]:g} ({span.such(int(bad.sum()))}); "
            "give the range your system uses (score_range, --score-range LOW,HIGH)"
        )
    return np.clip(scores, low, high)


def parse_ids(column: pa.ChunkedArray, name: str, where: str, span: Span = ALL_ROWS) -> pa.Array:
    """Return a column of ids: int64 where each is a whole number as usually written, else text."""
    place = f"{where}, column '{name}'"
    array = as_arrow(column, place)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    require_filled(array, place, "give every row an id", span)
    if pa.types.is_integer(array.type):
        with suppress(pa.ArrowInvalid):  # beyond 64 bits with a sign: as text
            return array.cast(pa.int64())
    text = as_text(array, place)
    try:
        numbers = text.cast(pa.int64())
    except pa.ArrowInvalid:
        return text
    same = pc.all(pc.equal(numbers.cast(pa.string()), text)).as_py()
    return numbers if same is not False else text


class Index:
    """Where each of many different ids is: made once, asked for any number of columns.

    Parameters
    ----------
    ids : pyarrow.Array of int64 or text, without repetitions

    Examples
    --------
    >>> index = Index(pa.array(["b", "a", "007"]))
    >>> index.find(pa.chunked_array([["a", "7", "b"]]), "left", "pairs")
    array([ 1, -1,  0])
    """

    def __init__(self, ids: pa.Array) -> None:
        self._ids, self._texts = ids, None
        # The row of each number from the lowest on: faster than a search, without large gaps.
        self._low, self._rows = 0, np.empty(0, dtype=np.int32)
        if pa.types.is_integer(ids.type) and len(ids):
            numbers = np.asarray(ids)
            low, high = int(numbers.min()), int(numbers.max())
            if high - low < _ROOM * len(ids) + 1024:
                self._low, self._rows = low, np.full(high - low + 1, -1, dtype=np.int32)
                self._rows[numbers - low] = np.arange(len(ids), dtype=np.int32)

    def find(
        self, column: pa.ChunkedArray, name: str, where: str, span: Span = ALL_ROWS
    ) -> NDArray[np.intp]:
        """Return the position of each id of `column`, −1 where there is no such id."""
        parsed, ids = parse_ids(column, name, where, span), self._ids
        if pa.types.is_integer(parsed.type) and len(self._rows):
            numbers = np.asarray(parsed)
            inside = (numbers >= self._low) & (numbers < self._low + len(self._rows))
            rows = self._rows[np.where(inside, numbers, self._low) - self._low]
            return np.where(inside, rows, -1).astype(np.intp)
        if parsed.type != ids.type:
            if self._texts is None:
                self._texts = self._ids.cast(pa.string())
            parsed, ids = parsed.cast(pa.string()), self._texts
        return np.array(pc.index_in(parsed, value_set=ids).fill_null(-1), dtype=np.intp)
