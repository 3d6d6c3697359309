"""Which groups there are in a score table: one pass over its attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.data.build import MOST_GROUPS
from faircal.data.origins import combinations
from faircal.data.scored import Layout
from faircal.production.spark.readers import gathered
from faircal.production.spark.session import told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Names = tuple[str, ...]


def crossable(frame: DataFrame, layout: Layout, where: str) -> Names:
    """Return the attributes of a score table that make groups when none is named."""
    keys = layout.grouping
    found = groups_in(frame, layout, [[key] for key in keys], where, MOST_GROUPS)
    return tuple(k for k, names in zip(keys, found, strict=True) if 0 < len(names) <= MOST_GROUPS)


def groups_in(
    frame: DataFrame,
    layout: Layout,
    crossed: Sequence[Sequence[str]],
    where: str,
    most: int | None = None,
) -> list[list[Names]]:
    """Return the groups that occur, sorted, of each list of attributes that are crossed.

    Workers tell them by the very code that makes groups of a part.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    layout : Layout
    crossed : sequence of sequences of str
        Attributes.
    where : str
        For messages.
    most : int, optional
        Nobody needs to know more groups than one more than this.

    Returns
    -------
    list of list of tuple of str
        A value of each attribute.
    """
    keys = list(dict.fromkeys(key for each in crossed for key in each))
    if not keys:
        return [[] for _ in crossed]
    names = [name for name in layout.columns(keys) if name not in layout.scores]

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: list[set[Names]] = [set() for _ in crossed]
        for table in gathered(batches):
            columns = {key: layout.attribute(table, key, where) for key in keys}
            for seen, each in zip(found, crossed, strict=True):
                if most is None or len(seen) <= most:
                    seen |= combinations([columns[key] for key in each])
        rows = [(i, list(names)) for i, seen in enumerate(found) for names in seen]
        kind = pa.schema([("crossed", pa.int32()), ("names", pa.list_(pa.string()))])
        sides = list(zip(*rows, strict=True)) or [(), ()]
        yield pa.record_batch([pa.array(s, f.type) for s, f in zip(sides, kind, strict=True)], kind)

    with told():
        told_of = frame.select(names).mapInArrow(look, "crossed int, names array<string>")
        rows = told_of.distinct().toArrow()
    groups: list[list[Names]] = [[] for _ in crossed]
    for i, each in zip(rows["crossed"].to_pylist(), rows["names"].to_pylist(), strict=True):
        groups[i].append(tuple(each))
    return [sorted(found) for found in groups]
