"""Finding images by their ids, for any number of pairs with one index."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal.data.columns import WHOLE, Span, as_arrow, as_text, require_filled

#: Whole numbers are looked up in a table where it is at most this many times as long as they are.
_ROOM = 8
#: Odd, and without a pattern in its bits: its products spread over all numbers of 64 bits.
_ODD = np.uint64(0x9E3779B97F4A7C15)


def parse_ids(column: pa.ChunkedArray, name: str, where: str, span: Span = WHOLE) -> pa.Array:
    """Return a column of ids: int64 where each is a whole number as usually written, else text."""
    array = _whole_ids(column, name, where, span)
    if pa.types.is_integer(array.type):
        return array
    numbers = _numbers(array)
    return array if numbers is None else numbers


def _whole_ids(column: pa.ChunkedArray, name: str, where: str, span: Span) -> pa.Array:
    """Return a column of ids, integers or text, none of them empty."""
    place = f"{where}, column '{name}'"
    array = as_arrow(column, place)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    require_filled(array, place, "give every row an id", span)
    if pa.types.is_integer(array.type):
        with suppress(pa.ArrowInvalid):  # beyond 64 bits with a sign: as text
            return array.cast(pa.int64())
    return as_text(array, place)


def _numbers(text: pa.Array) -> pa.Array | None:
    """Return text as int64 where each is a whole number as usually written."""
    try:
        numbers = text.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    same = pc.all(pc.equal(numbers.cast(pa.string()), text)).as_py()
    return numbers if same is not False else None


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
        self._ids = ids

    def find(
        self, column: pa.ChunkedArray, name: str, where: str, span: Span = WHOLE
    ) -> NDArray[np.intp]:
        """Return the position of each id of `column`, −1 where there is no such id."""
        asked = _whole_ids(column, name, where, span)
        if pa.types.is_integer(self._ids.type):
            numbers = asked if pa.types.is_integer(asked.type) else _numbers(asked)
            if numbers is not None:
                return self._numbers.find(np.asarray(numbers))
        return self._texts.find(asked.cast(pa.string()))

    @cached_property
    def _numbers(self) -> _Dense | _Sparse:
        ids = np.asarray(self._ids)
        low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, 0)
        if high - low < _ROOM * len(ids) + 1024:
            return _Dense(ids, low, high)
        return _Sparse(ids)

    @cached_property
    def _texts(self) -> _Texts:
        return _Texts(self._ids.cast(pa.string()))


class _Dense:
    """Whole numbers without large gaps: a table from number to position."""

    def __init__(self, ids: NDArray[np.int64], low: int, high: int) -> None:
        self._low, self._high = low, high
        # Row numbers, which ids often are, need no table.
        self._table: NDArray[np.int32] | None = None
        if low or high >= len(ids) or not np.array_equal(ids, np.arange(len(ids))):
            self._table = np.full(high - low + 1, -1, dtype=np.int32)
            self._table[ids - low] = np.arange(len(ids), dtype=np.int32)

    def find(self, asked: NDArray[np.int64]) -> NDArray[np.intp]:
        inside = (asked >= self._low) & (asked <= self._high)
        if not inside.all():
            return np.where(inside, self.find(np.where(inside, asked, self._low)), -1)
        if self._table is None:
            return asked.astype(np.intp)  # a copy: what Arrow holds cannot be written to
        return self._table[asked - self._low].astype(np.intp)


class _Buckets:
    """Numbers of 64 bits, all different, sorted; a table says where each beginning is."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        bits = max(1, len(keys).bit_length())
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((self._sorted >> self._shift).astype(np.intp), minlength=1 << bits)
        self._start = np.concatenate([[0], np.cumsum(counts)])
        self._most = int(counts.max()) if len(keys) else 0

    @property
    def repeated(self) -> bool:
        return bool((self._sorted[1:] == self._sorted[:-1]).any())

    def find(self, asked: NDArray[np.uint64]) -> NDArray[np.intp]:
        bucket = (asked >> self._shift).astype(np.intp)
        at, end = self._start[bucket], self._start[bucket + 1]
        positions = np.full(len(asked), -1, dtype=np.intp)
        open_ = np.flatnonzero(at < end)
        for _ in range(self._most):
            here = at[open_]
            hit = self._sorted[here] == asked[open_]
            positions[open_[hit]] = self._order[here[hit]]
            open_ = open_[~hit]
            at[open_] += 1
            open_ = open_[at[open_] < end[open_]]
        return positions


class _Sparse:
    """Whole numbers with gaps."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._buckets = _Buckets(ids.view(np.uint64) * _ODD)

    def find(self, asked: NDArray[np.int64]) -> NDArray[np.intp]:
        return self._buckets.find(asked.view(np.uint64) * _ODD)


class _Texts:
    """Text, by a hash of 64 bits; what is found is then compared letter by letter."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        self._buckets = _Buckets(text_hashes(ids))

    def find(self, asked: pa.Array) -> NDArray[np.intp]:
        if self._buckets.repeated:  # two ids with one hash, which is next to impossible
            positions = pc.index_in(asked, value_set=self._ids).fill_null(-1)
            return np.asarray(positions, dtype=np.intp)
        rows = self._buckets.find(text_hashes(asked))
        candidates = self._ids.take(pa.array(np.maximum(rows, 0)))
        return np.where(np.asarray(pc.equal(candidates, asked)), rows, -1)


def text_hashes(text: pa.Array) -> NDArray[np.uint64]:
    """Return a hash of each text, shape (len(text),); the same on any machine.

    Eight letters at a time are taken as a number, for all texts at once.
    """
    _, offsets, letters = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    start, length = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    # Seven letters more, so that a number can be read where the last text ends.
    padded = np.zeros((0 if letters is None else letters.size) + 8, dtype=np.uint8)
    if letters is not None:
        padded[:-8] = np.frombuffer(letters, dtype=np.uint8)
    words: NDArray[np.uint64] = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    hashes = length.astype(np.uint64) * _ODD
    for begin in range(0, int(length.max(initial=0)), 8):
        longer = length > begin
        rows = slice(None) if longer.all() else np.flatnonzero(longer)
        word = words[start[rows] + begin]
        short = np.clip(8 - (length[rows] - begin), 0, 7).astype(np.uint64) * np.uint64(8)
        word = word << short  # what follows the text falls off
        mixed = (hashes[rows] ^ word) * _ODD
        hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    return hashes * _ODD
