"""Pairs in a Spark frame: datasets made by its workers, and what is done with each."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from faircal._base.container import arrays_of, pack, prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal.compute.threads import single
from faircal.data import Dataset, Memo
from faircal.data.columns import SOMEWHERE
from faircal.data.pair_sources import FolderParts, TableParts
from faircal.data.parts import KeptTally, PartProgress, StoredPairs, T
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import Column, DataFrame, SparkSession

    from faircal.data import Dataset
    from faircal.data.pair_sources import FolderParts, TableParts
    from faircal.data.parts import T, Tally


#: Pairs that are looked at before any work is done.
_HEAD = 16


@dataclass(frozen=True, eq=False)
class SparkPairs(StoredPairs):
    """Pairs of any number in a Spark frame: what a `PairStream` is on one machine.

    `open_pairs` makes one of files, `pairs_of` of your own frame. It works in the
    session that its frame is of, and changes none of its settings.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        What `reader` makes parts of.
    reader : PartReader
    mark : str
        Tells whether this is the same data as another time.
    all_folds : pyspark.sql.DataFrame or None
        The pairs of all folds, where one was picked.
    """

    frame: DataFrame
    reader: PartReader
    mark: str
    all_folds: DataFrame | None = None
    _memo: Memo = field(default_factory=lambda: Memo({}), repr=False)

    def __len__(self) -> int:
        return self._counted

    @cached_property
    def _counted(self) -> int:
        with errors_in_one_line():
            return int(self.frame.count())

    def __repr__(self) -> str:
        return f"<SparkPairs {self.name!r}: features {', '.join(self.features)}>"

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.frame.sparkSession

    @property
    def source(self) -> FolderParts | TableParts:  # type: ignore[override]
        """What makes parts of rows."""
        return self.reader.source

    @property
    def feature(self) -> str:  # type: ignore[override]
        """The feature in use."""
        return self.reader.feature

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores."""
        return self.reader.score_range

    @property
    def has_folds(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return "fold" in self.frame.columns

    @cached_property
    def fold_names(self) -> tuple[str, ...]:
        """The folds that occur, as they are printed; a job tells."""
        if not self.has_folds:
            return ()
        with errors_in_one_line():
            folds = self.frame.select(self._fold.alias("fold")).distinct().toArrow()
        names = folds["fold"].to_pylist()
        if None in names:
            raise DataError(
                f"{self.where}, column 'fold': empty in some rows; give every row a fold"
            )
        return tuple(sorted(names))

    @property
    def _fold(self) -> Column:
        """The fold of each pair as it is printed: 1.0 as 1, as integers with gaps arrive."""
        from pyspark.sql import functions as F  # noqa: N812

        fold = self.frame["fold"]
        if self.frame.schema["fold"].dataType.typeName() not in ("float", "double"):
            return fold.cast("string")
        integer = fold.try_cast("long")
        return F.when(fold == integer, integer.cast("string")).when(
            ~F.isnan(fold), fold.cast("string")
        )

    def fingerprint(self) -> str:
        """Return what tells whether this is the same data as another time."""
        return self.mark if self.cohort is None else f"{self.mark} {self.cohort.fingerprint()}"

    def _with_feature(self, feature: str) -> SparkPairs:
        return replace(self, reader=replace(self.reader, feature=feature))

    def _with_source(self, source: FolderParts | TableParts) -> SparkPairs:
        return replace(self, reader=replace(self.reader, source=source))

    def _all_folds(self, source: FolderParts | TableParts) -> SparkPairs:
        frame = self.frame if self.all_folds is None else self.all_folds
        return replace(self._with_source(source), frame=frame)

    def _with_fold(self, fold: str, keep: bool) -> SparkPairs:
        in_fold = self._fold == fold
        mark = f"{self.mark} {'only' if keep else 'without'} {fold}"
        picked = self.frame.where(in_fold if keep else ~in_fold)
        all_folds = self.frame if self.all_folds is None else self.all_folds
        return replace(self, frame=picked, mark=mark, all_folds=all_folds)

    # ------------------------------------------------------------------ work

    def needed(self, columns: Collection[str] | None = None) -> DataFrame:
        """Return the frame with what is needed of the pairs.

        Parameters
        ----------
        columns : collection of str, optional
            Of ``genuine``, ``fold``, ``probability``, ``identity``, attributes of a score table,
            and ``row``, the number of its rows; everything but the last by default. Scores are
            always read.
        """
        return self.frame.select(self.source.columns(columns, self.frame.columns))

    def _reader(self, columns: Collection[str] | None) -> PartReader:
        """Return what makes parts of what is `needed`."""
        names = self.source.columns(columns, self.frame.columns)
        return replace(self.reader, source=self.source_of(names))

    def head(self) -> Dataset:
        """Return a few pairs, here, to check a model against."""
        with errors_in_one_line():
            rows = self.frame.take(_HEAD)  # looks at one partition, where a limit looks at all
        return self._local(self.spark.createDataFrame(rows, self.frame.schema))

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return about `most` pairs, here: all where there are no more, else some at random."""
        from pyspark.sql import functions as F  # noqa: N812

        share = most / max(len(self), 1)
        if share >= 1:
            return self._local(self.frame)
        # By a hash of what is in a row: so the same are drawn however a cluster divides them.
        drawn = F.pmod(F.xxhash64(*self.frame.columns, F.lit(seed)), F.lit(1 << 52))
        return self._local(self.frame.where(drawn < int(share * (1 << 52))))

    def _local(self, frame: DataFrame) -> Dataset:
        with errors_in_one_line():
            table: pa.Table = replace(self, frame=frame).needed().toArrow()
        if not table.num_rows:
            raise DataError(f"{self.where}: expected at least one pair, found none")
        return self._reader(None).dataset(table)

    def parts(
        self, start: int = 0, columns: Collection[str] | None = None
    ) -> Generator[Dataset, None, None]:
        """Yield all pairs here, partition by partition: for data that one machine can go through.

        Their order is Spark's, so they can't be gone on with: `start` is 0.
        """
        if start:
            raise ParameterError(f"{self.where}: pairs on Spark have no numbers to go on from")
        reader = self._reader(columns)
        with errors_in_one_line():
            for row in self.needed(columns).mapInArrow(as_bytes, "part binary").toLocalIterator():
                yield reader.dataset(pa.ipc.open_stream(bytes(row.part)).read_all())

    def map(
        self, make: Callable[[], PartWork], schema: Any, columns: Collection[str] | None = None
    ) -> DataFrame:
        """Return a frame with what the workers make of the parts.

        Parameters
        ----------
        make : callable
            Called once in each worker process; gives what makes tables of parts.
        schema : str or StructType
            Of those tables.
        columns : collection of str, optional
            As for `needed`.
        """
        return self._mapped(make, schema, columns)[0]

    def _mapped(
        self, make: Callable[[], PartWork], schema: Any, columns: Collection[str] | None
    ) -> tuple[DataFrame, Broadcast[_Task]]:
        """Return the frame of `map`, and what must be there while it is used."""
        task = self.spark.sparkContext.broadcast(_Task(self._reader(columns), make))

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from task.value(batches)

        return self.needed(columns).mapInArrow(run, schema), task

    def reduce(
        self,
        start: Callable[[], T],
        columns: Collection[str] | None = None,
        *,
        progress: PartProgress | None = None,
        kept: KeptTally[T] | None = None,  # noqa: ARG002
    ) -> T:
        """Have the workers add parts to tallies, and add these up; see `StoredPairs.reduce`.

        Each task has a tally of its own. There is no checkpoint: what a lost worker had counted is
        counted again by another.
        """
        if progress is not None:
            progress(0, 1)

        def counting() -> PartWork:
            return lambda parts: _counted(start(), parts)

        states, task = self._mapped(counting, _STATE, columns)

        def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _packed(_sum(start, (blob for batch in batches for blob in batch.column(0))))

        tasks = min(_FEW, self.spark.sparkContext.defaultParallelism)
        try:
            with errors_in_one_line():
                rows = states.repartition(tasks).mapInArrow(merged, _STATE).toArrow()
        finally:
            task.destroy()
        return _sum(start, rows["state"])


Range = tuple[float, float]

#: Pairs of a part, about: Spark's own batches (10,000 rows by default) are too short to be quick.
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
