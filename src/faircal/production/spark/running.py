"""What the workers of Spark do with each part of a frame, and how what comes of it is added up."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.container import arrays_of, pack, prefixed, unprefixed
from faircal.compute.threads import single
from faircal.data import Dataset
from faircal.production.spark.parts import PartReader
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

    from faircal.production.spark.pairs import SparkPairs


#: States that the driver adds up, at most: those of tasks are added up on the workers first.
_FEW = 32
_STATE = "state binary"

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Tally(Protocol):
    """Something that counts parts, and can be added up; whole numbers only, so in any order."""

    def add(self, part: Dataset) -> None:
        """Count a part."""

    def merge(self, other: Self) -> None:
        """Add what another one has counted."""

    def state(self) -> State:
        """Return all as JSON and arrays."""

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""


T = TypeVar("T", bound=Tally)
PartWork = Callable[[Iterator[Dataset]], Iterator[pa.Table]]


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
    pairs: SparkPairs,
    make: Callable[[], PartWork],
    schema: Any,
    columns: Collection[str] | None = None,
) -> DataFrame:
    """Return a frame with what comes of the parts of `pairs`.

    Parameters
    ----------
    pairs : SparkPairs
    make : callable
        Called once in each worker process; gives what makes tables of parts.
    schema : str or StructType
        Of those tables.
    columns : collection of str, optional
        What is needed of the pairs (`SparkPairs.needed`).
    """
    return _mapped(pairs, make, schema, columns)[0]


def _mapped(
    pairs: SparkPairs, make: Callable[[], PartWork], schema: Any, columns: Collection[str] | None
) -> tuple[DataFrame, Broadcast[_Task]]:
    """Return the frame, and the broadcast that must be there for as long as it is used."""
    task: Broadcast[_Task] = pairs.spark.sparkContext.broadcast(_Task(pairs.reader, make))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task.value(batches)

    return pairs.needed(columns).mapInArrow(run, schema), task


def reduce_parts(
    pairs: SparkPairs, start: Callable[[], T], columns: Collection[str] | None = None
) -> T:
    """Count all parts of `pairs`, and return what they come to together.

    Each task counts its parts in a tally of its own, and gives its state as one row.

    Parameters
    ----------
    pairs : SparkPairs
    start : callable
        Gives a tally of nothing yet; called on the workers and here.
    columns : collection of str, optional
        What is needed of the pairs.
    """
    counting = partial(partial, _counted, start)
    states, task = _mapped(pairs, counting, _STATE, columns)

    def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = start()
        for batch in batches:
            for blob in batch.column(0):
                total.merge(_restored(start, blob.as_py()))
        yield pa.record_batch({"state": pa.array([_packed(total)], pa.binary())})

    tasks = min(_FEW, pairs.spark.sparkContext.defaultParallelism)
    try:
        with errors_in_one_line():
            rows = states.repartition(tasks).mapInArrow(merged, _STATE).toArrow()
    finally:
        task.destroy()
    total = start()
    for blob in rows["state"]:
        total.merge(_restored(start, blob.as_py()))
    return total


def _counted(start: Callable[[], Tally], parts: Iterator[Dataset]) -> Iterator[pa.Table]:
    tally = start()
    for part in parts:
        tally.add(part)
        del part  # its images are let go before there are others
    yield pa.table({"state": pa.array([_packed(tally)], pa.binary())})


def _packed(tally: Tally) -> bytes:
    """Return the state as the bytes of a container; its JSON, which may be long, as an array."""
    header, arrays = tally.state()
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return pack({}, {"header": text, **prefixed("of", arrays)})


def _restored(start: Callable[[], T], blob: bytes) -> T:
    arrays = arrays_of(blob)
    tally = start()
    tally.restore(json.loads(bytes(arrays["header"]).decode()), unprefixed("of", arrays))
    return tally
