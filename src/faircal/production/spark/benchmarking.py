"""A benchmark on Spark: cells that share a clustering are one task.

The driver plans, keeps the finished cells and puts the results together as it does without Spark;
only the fitting and measuring is done elsewhere. So a run can be resumed, and what it finds is,
byte for byte, what one machine finds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.compute.threads import single
from faircal.data import Dataset, load
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.benchmark.cell import CellResult
from faircal.evaluation.benchmark.run import Runner, ignore_note, run_batch
from faircal.evaluation.benchmark.settings import Cell, Plan
from faircal.metrics.results import ResultRow, replicates_of, replicates_table
from faircal.production.spark.opening import MOST_SENT
from faircal.production.spark.session import engine_record, errors_in_one_line, require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHARE = "use storage that all machines share, or send the data (--embeddings send)"
#: What Spark's users set for the jobs of a thread: where they queue, and how they are cancelled.
_OF_THREADS = (
    "spark.scheduler.pool",
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
    "spark.job.tags",
)
#: What comes back of a cell.
_COLUMNS = ("part", "curves", "replicates")
_SCHEMA = "part string, curves binary, replicates binary"


def benchmark(
    spark: SparkSession,
    data: Dataset | str | Path,
    out: str | Path,
    settings: BenchmarkSettings | None = None,
    *,
    embeddings: str = "auto",
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    note: Callable[[str], None] = ignore_note,
    **how: Any,
) -> list[ResultRow]:
    """Run a leave-one-fold-out benchmark on the workers of a Spark session.

    All files are those of `faircal.evaluation.benchmark.run_benchmark`; all but ``run.json`` have
    the same bytes. A cell is written when the cells of its task are done; a training starts anew
    where it is interrupted.

    Parameters
    ----------
    spark : SparkSession
    data : Dataset or path
    out : path
        A folder that the driver sees.
    settings : Settings, optional
    embeddings : {"auto", "map", "send"}
        How workers get at the data. ``map``: they read the path, which all of them must see.
        ``send``: they get it over the network. ``auto``: they read the path in local mode, and
        where there is more than 1 GB of embeddings.
    jobs : int, optional
        Tasks at a time; as many as Spark has cores, unless told.
    resume, progress, note
        As for `run_benchmark`.
    **how
        As for `faircal.load`, where `data` is a path.

    Returns
    -------
    list of Row
        What ``results.csv`` holds.
    """
    require()
    settings = settings or BenchmarkSettings()
    files = (
        None if isinstance(data, Dataset) else DatasetFiles(data, {"seed": settings.seed, **how})
    )
    held = data if isinstance(data, Dataset) else load(data, seed=settings.seed, **how)
    with workers(spark, held, files, embeddings) as runner:
        return run_benchmark(
            held,
            out,
            settings,
            jobs=slots(spark) if jobs is None else jobs,
            resume=resume,
            progress=progress,
            note=note,
            more=engine_record(spark),
            runner=runner,
        )


def slots(spark: SparkSession) -> int:
    """Return how many tasks run at a time."""
    return int(spark.sparkContext.defaultParallelism)


@dataclass(frozen=True)
class DatasetFiles:
    """Where a dataset is, and how it is read: what `faircal.load` takes."""

    path: str | Path
    how: Mapping[str, Any]


@contextmanager
def workers(
    spark: SparkSession, data: Dataset, files: DatasetFiles | None = None, embeddings: str = "auto"
) -> Iterator[Runner]:
    """Give a runner of cells for `run_benchmark`; the data is let go of after the block.

    Parameters
    ----------
    spark : SparkSession
    data : Dataset
    files : DatasetFiles, optional
        Where `data` was read; without them it is sent.
    embeddings : {"auto", "map", "send"}
        As for `benchmark`.
    """
    if files is None or _sends(spark, data, embeddings):
        found = _Data(data)
    else:
        found = _Data(DatasetFiles(Path(files.path).resolve(), files.how))
    context = spark.sparkContext
    # Jobs are started from other threads, with what this one has set for its own.
    own = {name: context.getLocalProperty(name) for name in _OF_THREADS}
    sent = context.broadcast(found)
    try:
        yield partial(_run, spark, sent, own)
    finally:
        sent.destroy()


def _sends(spark: SparkSession, data: Dataset, embeddings: str) -> bool:
    """Whether data is sent that could be read."""
    if embeddings not in ("auto", "map", "send"):
        raise ParameterError(
            f"embeddings of a benchmark: expected auto, map or send, found {embeddings}; its "
            "workers hold all vectors"
        )
    if embeddings != "auto":
        return embeddings == "send"
    found = (feature.embeddings for feature in data.features.values())
    size = sum(0 if each is None else each.vectors.nbytes for each in found)
    return not spark.sparkContext.master.startswith("local") and size <= MOST_SENT


@dataclass(frozen=True, eq=False)
class _Data:
    """The data, or where a worker reads it; kept as long as the worker's process lives."""

    source: Dataset | DatasetFiles

    def same(self, plan: Plan) -> Dataset:
        """Return the data that `plan` is for."""
        data, sha = self._known
        if sha != plan.data_hash:
            raise DataError(
                f"{data.where}: a worker finds other data there than the driver does; {_SHARE}"
            )
        return data

    @cached_property
    def _known(self) -> tuple[Dataset, str]:
        source = self.source
        if isinstance(source, DatasetFiles):
            if not Path(source.path).exists():
                raise DataError(f"{source.path}: a worker does not see it; {_SHARE}")
            source = load(source.path, **source.how)
        return source, source.hash()


def _run(
    spark: SparkSession,
    sent: Any,
    own: Mapping[str, str | None],
    plan: Plan,
    batch: Sequence[Cell],
) -> list[CellResult]:
    """Run cells as one task, and wait for it."""
    for name, value in own.items():
        spark.sparkContext.setLocalProperty(name, value)
    few = replace(plan, cells=tuple(batch))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # a process that leaves some is not used again, and its data is lost
            pass
        with single():
            data = sent.value.same(few)
            data.features.scores(batch[0].feature)()  # once, before the folds take their share
            for ran in run_batch(data, few, batch):
                yield _packed(ran)

    with errors_in_one_line():
        found = spark.range(1, numPartitions=1).mapInArrow(work, _SCHEMA).toArrow()
    return [_unpacked(*(row[name] for name in _COLUMNS)) for row in found.to_pylist()]


def _packed(ran: CellResult) -> pa.RecordBatch:
    found = (ran.curves, replicates_table(ran.replicates))
    tables = [pa.array([_bytes(table)], pa.binary()) for table in found]
    return pa.record_batch([pa.array([json.dumps(ran.part)]), *tables], names=_COLUMNS)


def _unpacked(part: str, curves: bytes | None, replicates: bytes | None) -> CellResult:
    table = _table(replicates)
    found = [] if table is None else replicates_of(table)
    return CellResult(json.loads(part), _table(curves), found)


def _bytes(table: pa.Table | None) -> bytes | None:
    if table is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _table(blob: bytes | None) -> pa.Table | None:
    return None if blob is None else pa.ipc.open_stream(blob).read_all()
