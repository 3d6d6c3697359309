"""How large a job becomes: blocks, bytes moved, memory, processor hours, cost. Needs no Spark.

How close these numbers are to what Spark does: ``studies/spark/README.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from faircal._base.errors import ParameterError
from faircal._base.registry import check_whole, did_you_mean
from faircal.production.spark.sizing.resources import Cluster, Job, Rates, duration, size
from faircal.production.spark.sizing.volumes import (
    Dealt,
    fullest,
    naive_bytes,
    row_bytes,
    tiles_of,
    vectors_read,
)

#: How workers get at embeddings.
WAYS = ("map", "send", "tiles")
#: Sizes of blocks that are tried: the largest, half of it, and so on.
_HALVED = 8


@dataclass(frozen=True)
class Plan:
    """What a job comes to; `plan` makes one, and printing it shows all.

    Attributes
    ----------
    way : {"map", "send", "tiles"}
    templates, pairs, dimension, cores : int
        As told; cores are those of all machines.
    vector_bytes : float
        Of all embeddings.
    naive_bytes : float
        What a join that moves vectors with pairs would write.
    read_bytes : float
        Vectors that workers read, all loads of blocks together.
    partitions : int
        For ``spark.sql.shuffle.partitions``, or as many parts of the pairs.
    fullest : float
        Pairs of the fullest of them.
    task_bytes : float
        Memory of a Python worker at its peak.
    executor_bytes : float
        Of an executor: Java's heap, a Python worker for each core, and with ``map`` all vectors,
        which the workers of a machine share.
    core_hours, hours, cost : float
        Processor time, time on these cores at most (the fullest task may begin last), and price;
        one pass over the pairs.
    blocks, rows_per_block, tiles : int
        For ``tiles``; 0 otherwise.
    shuffle_bytes : float
        What is written, and read again, to bring pairs to their tiles.
    """

    way: str
    templates: int
    pairs: int
    dimension: int
    cores: int
    vector_bytes: float
    naive_bytes: float
    read_bytes: float
    partitions: int
    fullest: float
    task_bytes: float
    executor_bytes: float
    core_hours: float
    hours: float
    cost: float
    blocks: int = 0
    rows_per_block: int = 0
    tiles: int = 0
    shuffle_bytes: float = 0.0

    def table(self) -> list[tuple[str, str]]:
        """Return names and values as they are printed."""
        rows = [
            ("pairs", f"{self.pairs:,}"),
            ("templates", f"{self.templates:,} × {self.dimension}, {size(self.vector_bytes)}"),
            ("embeddings", self.way),
        ]
        if self.way == "tiles":
            rows += [
                ("blocks", f"{self.blocks:,} of {self.rows_per_block:,} templates"),
                ("tiles", f"{self.tiles:,}, {self.pairs / self.tiles:,.0f} pairs each"),
                ("shuffled", f"{size(self.shuffle_bytes)} ({size(self.naive_bytes)} with vectors)"),
            ]
        return [
            *rows,
            ("vectors read", size(self.read_bytes)),
            ("partitions", f"{self.partitions:,}, up to {self.fullest:,.0f} pairs each"),
            ("memory of a task", size(self.task_bytes)),
            ("memory of an executor", size(self.executor_bytes)),
            ("core hours", f"{self.core_hours:,.3g}"),
            (f"time on {self.cores:,} cores", duration(self.hours)),
            ("cost", f"{self.cost:,.2f}"),
        ]

    def __str__(self) -> str:
        rows = self.table()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def plan(
    templates: int,
    pairs: int,
    *,
    dimension: int = 512,
    number_bytes: int = 4,
    way: str = "tiles",
    rows_per_block: int | None = None,
    executors: int = 4,
    cores: int = 4,
    task_memory: float = 2e9,
    heap: float = 4e9,
    kept: Sequence[str] = ("genuine",),
    text: int = 0,
    price: float = 0.05,
    rates: Rates | None = None,
) -> Plan:
    """Work out what scoring comes to.

    Parameters
    ----------
    templates, pairs : int
    dimension, number_bytes : int
        Numbers of a vector, and bytes of a number.
    way : {"map", "send", "tiles"}
        How workers get at vectors, as for `open_pairs`.
    rows_per_block : int, optional
        For ``tiles``; unless told, what takes least time of sizes that `task_memory` has room for.
    executors, cores : int
        Of the cluster, and of an executor: as many tasks run at a time.
    task_memory, heap : float
        Bytes that a Python worker may take, and those of an executor's Java heap.
    kept : sequence of str
        Columns that go with the pairs: ``genuine``, ``fold``, ``score``.
    text : int
        Characters in which ids differ; 0: they are whole numbers.
    price : float
        Of a core hour.
    rates : Rates, optional
        Measured figures; ours unless told.

    Examples
    --------
    >>> print(plan(10_000_000, 1_000_000_000, executors=25))
    pairs                  1,000,000,000
    templates              10,000,000 × 512, 20.5 GB
    embeddings             tiles
    blocks                 107 of 93,842 templates
    tiles                  5,778, 173,070 pairs each
    shuffled               17.2 GB (2.11 TB with vectors)
    vectors read           1.65 TB
    partitions             600, up to 4,378,579 pairs each
    memory of a task       802 MB
    memory of an executor  7.21 GB
    core hours             1.22
    time on 100 cores      63 s
    cost                   0.06
    """
    cluster = Cluster(executors, cores, task_memory, heap, price, rates or Rates())
    _check(templates, pairs, dimension, number_bytes, way)
    job = Job(templates, pairs, dimension, number_bytes, text, tuple(kept))
    if way == "tiles":
        if rows_per_block is None:
            return _best(job, cluster)
        return _in_tiles(job, cluster, rows_per_block)
    if rows_per_block is not None:
        raise ParameterError("rows_per_block: is for way 'tiles'; leave it out")
    return _within_reach(job, cluster, way)


def _check(templates: int, pairs: int, dimension: int, number_bytes: int, way: str) -> None:
    check_whole("templates", templates, 2)
    check_whole("pairs", pairs, 1)
    check_whole("dimension", dimension, 1)
    check_whole("number_bytes", number_bytes, 1)
    if way not in WAYS:
        raise ParameterError(f"way: unknown way {way!r}; {did_you_mean(way, WAYS)}")


def _best(job: Job, cluster: Cluster) -> Plan:
    """Return the plan that takes least time: blocks are as large as two have room, or smaller."""
    room = cluster.task_memory - cluster.own
    most = min(int(room / 2 / (job.row + cluster.rates.image)), job.templates)
    if most < 1:
        raise ParameterError(
            f"task_memory: expected more than {size(cluster.own)}, which a worker takes without "
            f"data, found {size(cluster.task_memory)}; give tasks more memory, or fewer cores"
        )
    plans = [_in_tiles(job, cluster, max(1, most >> halved)) for halved in range(_HALVED)]
    return min(plans, key=lambda found: found.hours)


def _in_tiles(job: Job, cluster: Cluster, rows: int) -> Plan:
    check_whole("rows_per_block", rows, 1)
    rates = cluster.rates
    blocks = -(-job.templates // rows)
    tiles = tiles_of(blocks)
    partitions = cluster.tasks(job.pairs)
    shares = Dealt.of(blocks, partitions).shares
    return _plan(
        job,
        cluster,
        way="tiles",
        blocks=blocks,
        rows_per_block=rows,
        tiles=tiles,
        shuffle_bytes=job.pairs * row_bytes(job.templates, blocks, text=job.text, kept=job.kept),
        read_bytes=vectors_read(job.templates, blocks, job.pairs, partitions, job.row),
        partitions=partitions,
        fullest=fullest(shares, partitions) / shares * job.pairs,
        held=2 * min(rows, job.templates) * (job.row + rates.image),
        seconds=job.pairs / 1e6 * rates.shuffle + min(tiles, job.pairs) * rates.tile,
    )


def _within_reach(job: Job, cluster: Cluster, way: str) -> Plan:
    """Plan for vectors that are mapped once a machine, or sent to each worker."""
    image = cluster.rates.image
    copies = cluster.executors if way == "map" else cluster.all_cores
    partitions = cluster.tasks(job.pairs)
    return _plan(
        job,
        cluster,
        way=way,
        read_bytes=float(copies * job.vectors),
        partitions=partitions,
        fullest=job.pairs / partitions,
        held=job.templates * (image + (job.row if way == "send" else 0)),
        shared=job.vectors if way == "map" else 0,
    )


def _plan(
    job: Job,
    cluster: Cluster,
    *,
    held: float,
    shared: float = 0.0,
    seconds: float = 0.0,
    **known: Any,
) -> Plan:
    rates = cluster.rates
    each = rates.read + rates.score + rates.vector * job.dimension / 100 + rates.write
    total = job.pairs / 1e6 * each + known["read_bytes"] / 1e9 * rates.load + seconds
    task = cluster.own + held
    last = total * known["fullest"] / job.pairs
    return Plan(
        templates=job.templates,
        pairs=job.pairs,
        dimension=job.dimension,
        cores=cluster.all_cores,
        vector_bytes=float(job.vectors),
        naive_bytes=naive_bytes(job.templates, job.pairs, job.row),
        task_bytes=task,
        executor_bytes=cluster.heap + cluster.cores * task + shared,
        core_hours=total / 3600,
        hours=(total / cluster.all_cores + last) / 3600,
        cost=total / 3600 * cluster.price,
        **known,
    )
