"""Sorted rows in runs that have one value in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa


def runs(
    batches: Iterable[pa.RecordBatch], name: str, most: int | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Put together the rows that follow each other with the same number in column `name`.

    Yields the number and the rows, less that column. A run of more than `most` rows comes in
    several tables of about as many.

    Examples
    --------
    >>> batches = [pa.record_batch({"tile": [1, 1], "left": [7, 8]})] * 2
    >>> batches += [pa.record_batch({"tile": [1, 3], "left": [9, 7]})]
    >>> [(tile, table["left"].to_pylist()) for tile, table in runs(batches, "tile")]
    [(1, [7, 8, 7, 8, 9]), (3, [7])]
    """
    held: list[pa.RecordBatch] = []
    count = last = 0
    for batch in batches:
        for value, piece in _pieces(batch, name):
            if held and (value != last or (most is not None and count >= most)):
                yield last, pa.Table.from_batches(held)
                held, count = [], 0
            held.append(piece)
            last, count = value, count + piece.num_rows
    if held:
        yield last, pa.Table.from_batches(held)


def _pieces(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    values = np.asarray(batch.column(name))
    rest = batch.drop_columns([name])
    cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield int(values[start]), rest.slice(start, stop - start)
