"""What the workers of Spark do with the parts of a frame, and how what comes of it is added up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from faircal._base.container import arrays_of, pack, prefixed, unprefixed
from faircal.compute.threads import single
from faircal.data.columns import SOMEWHERE
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

    from faircal.data import Dataset
    from faircal.data.pair_sources import FolderParts, TableParts
    from faircal.data.parts import T, Tally


Range = tuple[float, float]

#: Pairs of a part, about: Spark's own batches (10,000 rows unless told) are too short to be quick.
PART = 1 << 18
#: Tallies that the driver adds up, at most: those of tasks are added up on the workers first.
_FEW = 32
_STATE = "state binary"

PartWork = Callable[[Iterator["Dataset"]], Iterator[pa.Table]]


@dataclass(frozen=True, eq=False)
class PartReader:
    """Makes datasets of the Arrow batches of a frame.

    Travels to the workers, where it stays for as long as their processes do.

    Parameters
    ----------
    source : FolderParts or TableParts
    score_range : (float, float)
        Of the scores; as `Dataset.score_range`.
    feature : str
        The one in use.
    text_folds : bool
        Whether folds are text.
    """

    source: FolderParts | TableParts
    score_range: Range
    feature: str
    text_folds: bool

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of `batches`, some 2¹⁸ at a time."""
        return map(self.dataset, gathered(batches))

    def dataset(self, table: pa.Table) -> Dataset:
        """Make one dataset of pairs; those of known images share images and embeddings."""
        part = self.source.build(table, SOMEWHERE, self.text_folds, self.score_range)
        return part if part.feature == self.feature else part.select(self.feature)


def gathered(batches: Iterable[pa.RecordBatch], rows: int = PART) -> Iterator[pa.Table]:
    """Put batches together until there are `rows` rows; nothing comes of none.

    Examples
    --------
    >>> batches = [pa.record_batch({"left": [1, 2]}), pa.record_batch({"left": [3]})] * 2
    >>> [table.num_rows for table in gathered(batches, rows=3)]
    [3, 3]
    """
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def as_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `batches`, a part in one cell, to be read by the driver part by part."""
    for table in gathered(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield pa.record_batch({"part": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


@dataclass(frozen=True, eq=False)
class _Task:
    """What a worker does with its share of a frame; it is unpickled once a process, and kept."""

    reader: PartReader
    make: Callable[[], PartWork]

    def __reduce__(self) -> tuple[Any, ...]:
        from pyspark import cloudpickle

        # A broadcast is pickled as data is; functions take what Spark ships functions with.
        return _unpacked, (self.reader, cloudpickle.dumps(self.make))

    @cached_property
    def work(self) -> PartWork:
        return self.make()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with single():
            for table in self.work(self.reader.parts(batches)):
                yield from table.to_batches()


def _unpacked(reader: PartReader, make: bytes) -> _Task:
    from pyspark import cloudpickle

    return _Task(reader, cloudpickle.loads(make))


def map_parts(
    frame: DataFrame, reader: PartReader, make: Callable[[], PartWork], schema: Any
) -> tuple[DataFrame, Broadcast[_Task]]:
    """Return a frame with what comes of the parts, and what must be there while it is used.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The pairs.
    reader : PartReader
    make : callable
        Called once in each worker process; gives what makes tables of parts.
    schema : str or StructType
        Of those tables.
    """
    task: Broadcast[_Task] = frame.sparkSession.sparkContext.broadcast(_Task(reader, make))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task.value(batches)

    return frame.mapInArrow(run, schema), task


def reduce_parts(frame: DataFrame, reader: PartReader, start: Callable[[], T]) -> T:
    """Count all parts, each task in a tally of its own, and return what they come to together."""

    def counting() -> PartWork:
        return lambda parts: _counted(start(), parts)

    states, task = map_parts(frame, reader, counting, _STATE)

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _packed(_sum(start, (blob for batch in batches for blob in batch.column(0))))

    tasks = min(_FEW, frame.sparkSession.sparkContext.defaultParallelism)
    try:
        with errors_in_one_line():
            rows = states.repartition(tasks).mapInArrow(merged, _STATE).toArrow()
    finally:
        task.destroy()
    return _sum(start, rows["state"])


def _counted(tally: T, parts: Iterator[Dataset]) -> Iterator[pa.Table]:
    for part in parts:
        tally.add(part)
        del part  # it is let go before there is another one
    yield pa.Table.from_batches([_packed(tally)])


def _sum(start: Callable[[], T], blobs: Iterable[Any]) -> T:
    """Add up tallies that have travelled."""
    total = start()
    for blob in blobs:
        arrays, tally = arrays_of(blob.as_py()), start()
        tally.restore(json.loads(bytes(arrays["header"]).decode()), unprefixed("of", arrays))
        total.merge(tally)
    return total


def _packed(tally: Tally) -> pa.RecordBatch:
    """Return the state as the bytes of a container; its JSON, which may be long, as an array."""
    header, arrays = tally.state()
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    state = pack({}, {"header": text, **prefixed("of", arrays)})
    return pa.record_batch({"state": pa.array([state], pa.binary())})
