"""Writing block files: Spark deals the images out to blocks, its workers write one file each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress
from faircal._base.registry import check_whole
from faircal.compute.threads import single
from faircal.data.build import MOST_GROUPS, makes_groups
from faircal.data.columns import Column
from faircal.data.types import Embeddings
from faircal.production.spark.blocks.block import ATTRIBUTE, NORM, VECTOR, block_name
from faircal.production.spark.blocks.folder import HEADER, Blocks
from faircal.production.spark.blocks.places import SharedFolder
from faircal.production.spark.blocks.sources import BlockSource, FolderSource, FrameSource
from faircal.production.spark.blocks.tiles import NUMBERS, block_of, runs
from faircal.production.spark.session import errors_in_one_line, require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bytes of vectors in a block, unless told.
_BYTES = 1 << 27
#: What a write that was cut short may leave behind.
_LEFTOVER = re.compile(
    r"\.?block-\d+\.(clusters-\w+\.)?arrow(\..*\.tmp)?|\.?(blocks\.json|block-images\.parquet)(\..*\.tmp)?"
)
_WRITTEN = "block int, images long, attributes string"
_ROW = pa.schema({"block": pa.int32(), "images": pa.int64(), "attributes": pa.string()})


def write_blocks(
    spark: SparkSession,
    source: str | Path | DataFrame,
    path: str | Path,
    rows_per_block: int | None,
    features: Sequence[str] | None,
    normalize: bool,
    progress: Progress,
) -> Blocks:
    """Do what `Blocks.write` says."""
    require()
    if rows_per_block is not None:
        check_whole("rows_per_block", rows_per_block, 1)
    # A path means the same to all workers, wherever they run.
    place = SharedFolder(str(path) if "://" in str(path) else str(Path(path).absolute()))
    found: BlockSource
    if isinstance(source, str | Path):
        found = FolderSource.of(Path(source), features)
    else:
        found = FrameSource.of(source, features)
    there = place.read(HEADER)
    if there is not None:
        return _again(place, found, rows_per_block, features, normalize, progress)
    _check_free(place)
    with errors_in_one_line():
        return _write(spark, found, place, rows_per_block, normalize, progress)


def _again(
    place: SharedFolder,
    source: BlockSource,
    rows_per_block: int | None,
    features: Sequence[str] | None,
    normalize: bool,
    progress: Progress,
) -> Blocks:
    """Return the blocks that are there already, where they are of the same source."""
    kept = Blocks.open(place.path)
    if source.stamps is None or kept.stamps is None:
        raise ParameterError(
            f"{place}: there are blocks already, and a frame does not tell whether it is the same; "
            "use them with Blocks.open, or choose another folder"
        )
    if any(kept.stamps.get(key) != stamp for key, stamp in source.stamps.items()):
        raise ParameterError(
            f"{place}: holds blocks of {kept.where} as it was before, or of another folder; remove "
            "it to have them written again, or choose another folder"
        )
    if rows_per_block is not None and kept.n_blocks != _n_blocks(len(kept), rows_per_block):
        raise ParameterError(
            f"{place}: holds {kept.n_blocks} blocks of other sizes than {rows_per_block} images; "
            "remove it, or leave their size open"
        )
    progress("blocks", kept.n_blocks, kept.n_blocks, "there already: the data has not changed")
    return replace(kept.using(features, normalize), reused=True)


def _check_free(place: SharedFolder) -> None:
    """Raise where something is in the folder that is none of ours."""
    foreign = [name for name in place.names() if not _LEFTOVER.fullmatch(name)]
    if foreign:
        raise ParameterError(
            f"{place}: expected a new folder, or one of blocks, found {foreign[0]}; choose another"
        )


def _n_blocks(images: int, rows_per_block: int) -> int:
    return max(1, -(-images // rows_per_block))


def _write(
    spark: SparkSession,
    source: BlockSource,
    place: SharedFolder,
    rows_per_block: int | None,
    normalize: bool,
    progress: Progress,
) -> Blocks:
    from pyspark.sql import functions as F  # noqa: N812

    kinds = source.kinds
    width = sum(kind.dimension * np.dtype(kind.dtype).itemsize for kind in kinds.values())
    n = _n_blocks(source.n_images, rows_per_block or max(1, _BYTES // width))
    progress("blocks", 0, n, f"of {source.where}")
    frame = source.frame(spark, place)
    frame = frame.withColumn("block", block_of(frame["image_id"], n).cast("int"))
    starts = None if isinstance(source, FolderSource) else _starts(frame, n)
    writer = Writer(place, source, starts)
    dealt = frame.repartition(n, F.col("block")).sortWithinPartitions("block", source.order)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return writer(batches)

    written = dealt.mapInArrow(run, _WRITTEN).toArrow()
    sizes = np.zeros(n, np.int64)
    sizes[np.asarray(written["block"])] = np.asarray(written["images"])
    none: pa.Table = frame.drop("block").limit(0).toArrow()
    for number in np.flatnonzero(sizes == 0).tolist():
        writer.write(number, none)
    _check_all_there(place, sizes, source)
    attributes, crossed = source.groups(map(json.loads, written["attributes"].to_pylist()))
    made = Blocks(
        place,
        sizes,
        source.ids,
        kinds,
        normalize,
        source.people,
        attributes,
        crossed,
        source.name,
        place.path if source.stamps is None else source.where,
        source.provenance,
        source.stamps,
    )
    made.save()
    progress("blocks", n, n, f"of {source.where}")
    return made


def _starts(frame: DataFrame, n: int) -> NDArray[np.int64]:
    """Return the number of the first image of each block, and of all: one block after the other."""
    found = frame.groupBy("block").count().toArrow()
    sizes = np.zeros(n, np.int64)
    sizes[np.asarray(found["block"])] = np.asarray(found["count"])
    return np.append(0, np.cumsum(sizes))


def _check_all_there(place: SharedFolder, sizes: NDArray[np.int64], source: BlockSource) -> None:
    """Raise where blocks are missing, and take away what repeated tasks left behind."""
    expected = {block_name(number) for number in range(len(sizes))}
    names = set(place.names())
    if not expected <= names or sizes.sum() != source.n_images:
        raise DataError(
            f"{place}: expected {len(sizes)} blocks with {source.n_images} images in all, found "
            f"{len(expected & names)} with {sizes.sum()}; choose a place that all machines see, "
            "and leave the data alone meanwhile"
        )
    for name in names - expected:
        place.remove(name)


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes the blocks of a share of the images; runs on the workers.

    What is written is the same however often, and by whom, it is done.
    """

    place: SharedFolder
    source: BlockSource
    starts: NDArray[np.int64] | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the blocks in `batches`, sorted by block; yield a row for each."""
        with single():
            for number, table in runs(batches, "block"):
                found = json.dumps(self.write(number, table))
                row = {"block": number, "images": len(table), "attributes": found}
                yield pa.RecordBatch.from_pylist([row], _ROW)

    def write(self, number: int, table: pa.Table) -> dict[str, list[str] | None]:
        """Write a block; return the values of each attribute: None where they make no groups."""
        source = self.source
        rows = self._rows(number, table)
        ids = pa.int64() if source.ids == NUMBERS else pa.string()
        columns = {"row": rows, "image_id": table["image_id"].combine_chunks().cast(ids)}
        if source.people:
            columns["identity"] = _coded(Column.of(table["identity"], f"{source.where}, identity"))
        found: dict[str, list[str] | None] = {}
        for k, name in enumerate(source.attributes):
            column, where = table[f"{ATTRIBUTE}{k}"], f"{source.where}, column '{name}'"
            grouping = makes_groups(column)
            values = Column.of(column if grouping else pa.nulls(len(column), pa.string()), where)
            columns[ATTRIBUTE + name] = _coded(values)
            found[name] = list(values.names[: MOST_GROUPS + 1]) if grouping else None
        for name, kind in source.kinds.items():
            vectors = source.vectors(name, table, rows)
            columns[NORM + name] = Embeddings(vectors).norms
            flat = pa.array(vectors.reshape(-1))
            columns[VECTOR + name] = pa.FixedSizeListArray.from_arrays(flat, kind.dimension)
        self.place.write_batch(block_name(number), pa.RecordBatch.from_pydict(columns))
        return found

    def _rows(self, number: int, table: pa.Table) -> NDArray[np.int64]:
        if self.starts is None:
            return np.asarray(table["row"], np.int64)
        _check_unique(table["image_id"], self.source.where)
        start, stop = self.starts[number : number + 2].tolist()
        if stop - start != len(table):
            raise DataError(
                f"{self.source.where}: its images change from one time to the next; save the frame "
                "first, and take what was saved"
            )
        return np.arange(start, stop)


def _coded(column: Column) -> pa.Array:
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.names, pa.string()))


def _check_unique(ids: pa.ChunkedArray, where: str) -> None:
    if ids.null_count:
        raise DataError(
            f"{where}, column 'image_id': empty id ({ids.null_count} such rows in a part of them); "
            "give every row an id"
        )
    if len(pc.unique(ids)) != len(ids):
        counts = pc.value_counts(ids)
        repeated = counts.filter(pc.greater(pc.struct_field(counts, "counts"), 1))
        raise DataError(
            f"{where}, column 'image_id': id {repeated[0]['values'].as_py()!r} is not unique; give "
            "every image an id of its own"
        )
