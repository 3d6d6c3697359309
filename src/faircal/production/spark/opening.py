"""From files, or a user's own frame, to `SparkPairs`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, existing, stamp
from faircal._base.registry import did_you_mean
from faircal.data import Dataset
from faircal.data.build import ScoreColumns
from faircal.data.dataset import COSINE_RANGE, check_range, join_scores
from faircal.data.pair_sources import TableParts
from faircal.data.tables import find_table, is_table, require_columns
from faircal.production.spark.gallery import FullGallery, MappedGallery, SentGallery, SparkGallery
from faircal.production.spark.pairs import SparkPairs
from faircal.production.spark.parts import ROW, GalleryReader, PartReader, ScoreTableReader
from faircal.production.spark.session import errors_in_one_line, require
from faircal.production.spark.tables import crossable, read_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from faircal.production.spark.blocks.folder import Blocks

Range = tuple[float, float]

#: How workers get at embeddings.
EMBEDDING_WAYS = ("auto", "map", "send", "tiles")
#: Vectors of more bytes are not sent to each worker unless that is asked for.
MOST_SENT = 1 << 30


@dataclass(frozen=True)
class GalleryOptions:
    """How data is read; see `open_pairs`."""

    features: tuple[str, ...] | None = None
    normalize: bool = True
    limits: Range | None = COSINE_RANGE
    embeddings: str = "auto"
    blocks: str | None = None

    @classmethod
    def of(
        cls,
        features: Sequence[str] | None,
        normalize: bool,
        score_range: Range | None,
        embeddings: str,
        blocks: str | Path | None,
    ) -> GalleryOptions:
        """Check what was asked for."""
        if embeddings not in EMBEDDING_WAYS:
            hint = did_you_mean(embeddings, EMBEDDING_WAYS)
            raise ParameterError(f"embeddings: unknown way {embeddings!r}; {hint}")
        limits = None if score_range is None else check_range(score_range)
        return cls(
            tuple(features) if features else None,
            normalize,
            limits,
            embeddings,
            None if blocks is None else str(blocks),
        )


def open_pairs(
    spark: SparkSession,
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    score_range: Range | None = COSINE_RANGE,
    embeddings: str = "auto",
    blocks: str | Path | None = None,
) -> SparkPairs:
    """Open a dataset folder or a score table in a Spark session.

    Parameters
    ----------
    spark : SparkSession
        Its settings stay as they are.
    path : path
        A folder with ``images``, ``pairs`` and embeddings, or one table with ``genuine`` and
        scores. Pairs are read by the workers where they are Parquet (one file, or a folder of
        parts); CSV is read here, and then dealt out.
    features, normalize, score_range
        As for `faircal.load`.
    embeddings : {"auto", "map", "send", "tiles"}
        How workers get at vectors. ``map``: they map the files of the folder, which all of them
        must see. ``send``: they get them over the network, each its own. ``tiles``: they never
        hold more than two blocks of them; pairs are sorted to where these are. ``auto``: mapped
        where the workers see the folder and have twice the memory; else sent, up to 1 GB.
    blocks : path or str, optional
        Folder for block files, on storage that all workers see, or an address that Arrow knows
        (``s3://…``, ``hdfs://…``); for ``tiles``.
    """
    require()
    source = existing(path)
    how = GalleryOptions.of(features, normalize, score_range, embeddings, blocks)
    if is_table(source):
        frame, n_rows = read_frame(spark, source, numbered=True)
        mark = _mark(source, how)
        return _with_table(frame, how, source.stem, str(source), mark, n_rows)
    find_table(source, "images")  # else it is no dataset folder, whatever is in it
    file = find_table(source, "pairs")
    frame, _ = read_frame(spark, file)
    gallery = _gallery(spark, source, str(file), how)
    return _with_images(frame, gallery, how, str(file), _mark(source, how))


def pairs_of(
    frame: DataFrame,
    templates: str | Path | Dataset | Blocks | SparkGallery | None = None,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    score_range: Range | None = COSINE_RANGE,
    embeddings: str = "auto",
    blocks: str | Path | None = None,
    name: str = "pairs",
) -> SparkPairs:
    """Take the pairs of a Spark frame of your own.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With ``left`` and ``right``, and where they are known ``genuine``, ``fold``, ``score``.
        Without `templates`: a score table.
    templates : path, Dataset, Blocks or SparkGallery, optional
        The images that ``left`` and ``right`` name: a dataset folder (its pairs are not read), a
        dataset in memory, or blocks made before.
    features, normalize, score_range, embeddings, blocks
        As for `open_pairs`.
    name : str
        For tables and messages.
    """
    require()
    how = GalleryOptions.of(features, normalize, score_range, embeddings, blocks)
    mark = str(frame.semanticHash())
    if templates is None:
        return _with_table(frame, how, name, name, mark, n_rows=0)
    gallery = gallery_of(frame.sparkSession, templates, how, name)
    return _with_images(frame, gallery, how, name, mark)


def gallery_of(
    spark: SparkSession,
    templates: str | Path | Dataset | Blocks | SparkGallery,
    how: GalleryOptions,
    table: str = "pairs",
) -> SparkGallery:
    """Return how workers get at the images that `templates` are."""
    from faircal.production.spark.blocks.folder import Blocks
    from faircal.production.spark.blocks.tiles import TiledGallery

    if isinstance(templates, SparkGallery):
        return templates
    if isinstance(templates, Blocks):
        return TiledGallery(templates, table, how.limits)
    if isinstance(templates, Dataset):
        return SentGallery.of_data(templates)
    return _gallery(spark, existing(templates), table, how)


# ------------------------------------------------------------------ images


def _gallery(spark: SparkSession, folder: Path, table: str, how: GalleryOptions) -> SparkGallery:
    here = MappedGallery(
        str(folder.resolve()), how.features, how.normalize, how.limits, table
    ).checked()
    way = how.embeddings
    if way == "auto":
        way = "tiles" if how.blocks is not None else _way(spark, here)
    if way == "map":
        return here
    if way == "send":
        return SentGallery.of(here.parts)
    if how.blocks is None:
        raise ParameterError(
            "embeddings in tiles: expected a folder for block files on storage that all workers "
            "see; give it (--blocks DIR)"
        )
    from faircal.production.spark.blocks.folder import Blocks
    from faircal.production.spark.blocks.tiles import TiledGallery

    made = Blocks.write(spark, folder, how.blocks, features=how.features, normalize=how.normalize)
    return TiledGallery(made, table, how.limits)


def _way(spark: SparkSession, here: MappedGallery) -> str:
    """Choose how workers get at vectors: some of them are asked what they see and have."""
    size = sum(found.vectors.nbytes for found in here.features.values())
    if spark.sparkContext.master.startswith("local"):
        return "map"
    tasks = spark.sparkContext.defaultParallelism
    asked = spark.range(tasks, numPartitions=tasks).mapInArrow(_looker(here), "memory long")
    with errors_in_one_line():
        memory = min(asked.toArrow()["memory"].to_pylist())
    if memory > 2 * size:
        return "map"
    if memory <= 0 and size <= MOST_SENT:
        return "send"
    why = (
        "the workers do not see the folder" if memory <= 0 else "the workers have no room for them"
    )
    raise ParameterError(
        f"{here.folder}: {size / 1e9:.1f} GB of embeddings, and {why}; give a folder for blocks of "
        "them on storage that all machines share (--blocks DIR)"
    )


def _looker(here: MappedGallery) -> Any:
    """Return what a worker says: its machine's memory where it sees the folder, else 0."""
    folder, n_files = here.folder, len(list(Path(here.folder).iterdir()))

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for batch in batches:
            try:
                same = len(os.listdir(folder)) == n_files  # noqa: PTH208 (as light as can be)
            except OSError:
                same = False
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if same else 0
            yield pa.record_batch({"memory": [memory] * batch.num_rows})

    return look


def _with_images(
    frame: DataFrame, gallery: SparkGallery, how: GalleryOptions, table: str, mark: str
) -> SparkPairs:
    require_columns(_names(frame), ("left", "right"), table)
    scores = "score" in frame.columns
    join_scores(gallery.features, np.empty(0) if scores else None, table)  # one of them, clearly
    score_range = _range(frame, ["score"], how.limits, table) if scores else COSINE_RANGE
    feature = next(iter(gallery.features), "score")
    reader = _reader(gallery, score_range, feature, _text_folds(frame))
    name, where, about = gallery.name, gallery.where, gallery.provenance
    return SparkPairs(frame, reader, gallery, name, where, mark, about)


def _reader(
    gallery: SparkGallery, score_range: Range, feature: str, text_folds: bool
) -> PartReader:
    if isinstance(gallery, FullGallery):
        return GalleryReader(gallery, score_range, feature, text_folds)
    from faircal.production.spark.blocks.tiles import TiledGallery, TiledReader

    if not isinstance(gallery, TiledGallery):
        raise ParameterError(f"expected images, found {type(gallery).__name__}")
    return TiledReader(gallery, score_range, feature, text_folds)


# ------------------------------------------------------------------ tables


def _with_table(
    frame: DataFrame, how: GalleryOptions, name: str, where: str, mark: str, n_rows: int
) -> SparkPairs:
    layout = ScoreColumns.of(_names(frame), how.features, where)
    score_range = _range(frame, layout.scores, how.limits, where)
    crossed = crossable(frame, layout, where)
    table = TableParts(layout, name, where, how.limits, crossed, n_rows)
    reader = ScoreTableReader(table, score_range, layout.scores[0], _text_folds(frame))
    return SparkPairs(frame, reader, None, name, where, mark, layout=layout, crossed=crossed)


def _names(frame: DataFrame) -> pa.Schema:
    """Return the columns of a frame, in Arrow's types; wide whole numbers are whole numbers."""
    schema: pa.Schema = frame.limit(0).toArrow().schema
    fields = [field for field in schema if field.name != ROW]
    return pa.schema(
        field.with_type(pa.int64())
        if pa.types.is_decimal(field.type) and not field.type.scale
        else field
        for field in fields
    )


def _text_folds(frame: DataFrame) -> bool:
    return "fold" in frame.columns and frame.schema["fold"].dataType.typeName() == "string"


def _range(frame: DataFrame, names: Sequence[str], limits: Range | None, where: str) -> Range:
    """Return the range of scores; where any is taken, that found, at least the cosine's."""
    from pyspark.sql import functions as F  # noqa: N812

    if limits is not None:
        return limits
    # What is no number is met with again when it is read, and then told of.
    scores = [frame[name].try_cast("double") for name in names]
    low = F.least(*map(F.min, scores), F.lit(COSINE_RANGE[0]))
    high = F.greatest(*map(F.max, scores), F.lit(COSINE_RANGE[1]))
    with errors_in_one_line():
        ends = frame.agg(low.alias("low"), high.alias("high")).toArrow().to_pylist()[0]
    if not all(end is not None and math.isfinite(end) for end in ends.values()):
        raise DataError(f"{where}: expected finite scores, found others; drop or repair such pairs")
    return ends["low"], ends["high"]


def _mark(source: Path, how: GalleryOptions) -> str:
    """Return a hash of how the data is read, and of what tells whether a file was changed."""
    files = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]

    def feed(update: Any) -> None:
        update(f"{how.features}\0{how.normalize}\0{how.limits}\0".encode())
        for path in sorted(files):
            update(stamp(path))

    return digest(feed)
