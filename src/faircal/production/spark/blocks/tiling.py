"""Which block an image is in, and so which tile a pair: worked out by Spark from ids alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


#: The two types that ids are kept in.
NUMBERS, TEXT = "int64", "string"
#: The column with the number of a pair's tile: first block × number of blocks + second block.
TILE = "__tile"

#: Of a tile with more images than that for each pair, only those in pairs are read.
FEW = 4
#: Shares of a partition, at least, where tiles are dealt out together: it is even on average only.
SHARES = 4
#: Partitions of a shuffle where the session leaves their number to a service.
_USUAL = 200
_WHOLE = ("byte", "short", "integer", "long")
_LETTERS = ("string", "varchar", "char")


def id_kind(frame: DataFrame, name: str, where: str) -> str:
    """Return in which type the ids of a column are kept."""
    kind = frame.schema[name].dataType
    _check(kind, name, where)
    return NUMBERS if kind.typeName() in _WHOLE else TEXT


def as_id(frame: DataFrame, name: str, ids: str, where: str) -> Column:
    """Return a column of ids as the type that the images' are kept in.

    Two ids are the same where they are written the same, whatever their types: what `Index` finds
    must have the same hash. What can be no id among `ids` becomes null.
    """
    kind, column = frame.schema[name].dataType, frame[name]
    _check(kind, name, where)
    if ids == TEXT:
        return column.cast("string")
    if kind.typeName() in _WHOLE:
        return column.cast("bigint")
    from pyspark.sql import functions as F  # noqa: N812

    number = column.try_cast("bigint")
    # "007" is not 7.
    return F.when(number.cast("string") == column.cast("string"), number)


def _check(kind: Any, name: str, where: str) -> None:
    found = kind.typeName()
    if found in _WHOLE or found in _LETTERS or (found == "decimal" and kind.scale == 0):
        return
    raise DataError(
        f"{where}, column '{name}': expected ids that are whole numbers or text, found "
        f"{kind.simpleString()}; cast the column"
    )


def block_of(ids: Column, n_blocks: int) -> Column:
    """Return the block of each image: a hash deals them out evenly, in whatever order they are."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.pmod(F.xxhash64(ids), F.lit(n_blocks))


def with_tiles(frame: DataFrame, ids: str, n_blocks: int, where: str) -> DataFrame:
    """Return pairs with the number of their tile, column `TILE`."""
    from pyspark.sql import functions as F  # noqa: N812

    left, right = (block_of(as_id(frame, of, ids, where), n_blocks) for of in ("left", "right"))
    number = F.least(left, right) * F.lit(n_blocks) + F.greatest(left, right)
    return frame.withColumn(TILE, number)


def arranged(frame: DataFrame, ids: str, n_blocks: int, where: str) -> DataFrame:
    """Return pairs with the number of their tile, those of a tile one after the other.

    Spark deals tiles out to as many partitions as the session has (adaptive execution may put
    small ones together). Where there are fewer tiles, a hash of the two ids cuts each into several
    shares, so that no worker is left waiting; it is no random number: a task that is repeated finds
    the same pairs. Where there are many more, tiles with the same first block stay together, so
    that it is read once for several.
    """
    from pyspark.sql import functions as F  # noqa: N812

    partitions, n_tiles = _partitions(frame), n_blocks * (n_blocks + 1) // 2
    tiled = with_tiles(frame, ids, n_blocks, where)
    tile = F.col(TILE)
    if n_tiles < partitions:
        share = F.pmod(F.xxhash64("left", "right"), F.lit(-(-partitions // n_tiles)))
        dealt = tiled.repartition(tile, share)
    else:
        together = max(1, n_tiles // (SHARES * partitions))
        first, second = F.floor(tile / n_blocks), F.pmod(tile, F.lit(n_blocks))
        dealt = tiled.repartition(first, F.floor(second / together))
    return dealt.sortWithinPartitions(TILE)


def _partitions(frame: DataFrame) -> int:
    """Return how many partitions a shuffle of the session has."""
    told = str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return int(told) if told.isdecimal() and int(told) else _USUAL


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
