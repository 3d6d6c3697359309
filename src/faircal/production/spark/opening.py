"""From files, or a user's own frame, to `SparkPairs`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import existing, stamp
from faircal._base.registry import did_you_mean
from faircal.data import Cohort, Dataset
from faircal.data.build import ScoreColumns
from faircal.data.dataset import COSINE_RANGE, check_range, join_scores
from faircal.data.pair_sources import ROW, FolderParts, TableParts
from faircal.data.tables import (
    check_alike,
    data_columns,
    find_table,
    is_table,
    read_table,
    require_columns,
    table_files,
    unreadable,
)
from faircal.production.spark.pairs import PartReader, SparkPairs
from faircal.production.spark.session import errors_in_one_line, require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Range = tuple[float, float]

#: How workers get at embeddings.
EMBEDDING_WAYS = ("auto", "map", "send")
#: Vectors of more bytes are not sent to each worker unless that is asked for.
MOST_SENT = 1 << 30


def open_pairs(
    spark: SparkSession,
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    score_range: Range | None = COSINE_RANGE,
    embeddings: str = "auto",
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
    embeddings : {"auto", "map", "send"}
        How workers get at vectors. ``map``: they map the files of the folder, which all of them
        must see. ``send``: they get them over the network, each its own. ``auto``: mapped where
        the workers see the folder; else sent, up to 1 GB.
    """
    require()
    source, limits = existing(path), _limits(score_range, embeddings)
    mark = _mark(source, f"{features}\0{normalize}\0{limits}\0")
    if is_table(source):
        frame, n_rows = read_frame(spark, source, numbered=True)
        return _with_table(frame, features, limits, source.stem, str(source), mark, n_rows)
    find_table(source, "images")  # else it is no dataset folder, whatever is in it
    file = find_table(source, "pairs")
    frame, _ = read_frame(spark, file)
    mapped = MappedParts.read(source.resolve(), features, normalize, limits, str(file))
    return _with_images(frame, _as_reached(spark, mapped, embeddings), mark)


def pairs_of(
    frame: DataFrame,
    templates: str | Path | Dataset | None = None,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    score_range: Range | None = COSINE_RANGE,
    embeddings: str = "auto",
    name: str = "pairs",
) -> SparkPairs:
    """Take the pairs of a Spark frame of your own.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With ``left`` and ``right``, and where they are known ``genuine``, ``fold``, ``score``.
        Without `templates`: a score table.
    templates : path or Dataset, optional
        The images that ``left`` and ``right`` name: a dataset folder (its pairs are not read), or
        a dataset in memory.
    features, normalize, score_range, embeddings
        As for `open_pairs`.
    name : str
        For tables and messages.
    """
    require()
    limits, mark = _limits(score_range, embeddings), str(frame.semanticHash())
    if templates is None:
        return _with_table(frame, features, limits, name, name, mark, n_rows=0)
    if isinstance(templates, Dataset):
        of = templates
        vectors = {n: f.embeddings for n, f in of.features.items() if f.embeddings is not None}
        held = of.images, vectors, of.name, of.where, name, limits, of.provenance, of.cohort
        return _with_images(frame, _sent(FolderParts(*held)), mark)
    folder = existing(templates).resolve()
    mapped = MappedParts.read(folder, features, normalize, limits, name)
    return _with_images(frame, _as_reached(frame.sparkSession, mapped, embeddings), mark)


def _limits(score_range: Range | None, embeddings: str) -> Range | None:
    """Return where scores must lie; check how workers are to get at embeddings."""
    if embeddings not in EMBEDDING_WAYS:
        hint = did_you_mean(embeddings, EMBEDDING_WAYS)
        raise ParameterError(f"embeddings: unknown way {embeddings!r}; {hint}")
    return None if score_range is None else check_range(score_range)


# ------------------------------------------------------------------ images


@dataclass(frozen=True, eq=False)
class MappedParts(FolderParts):
    """A dataset folder on storage that all workers see; they map its vectors into memory.

    Where to read travels, what was read stays. All workers of one machine share the pages.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        normalize = all(matrix.normalize for matrix in self.embeddings.values())
        names = tuple(self.embeddings) or None
        how = self.where, names, normalize, self.limits, self.table
        return _read_by_worker, (*how, self.shape, self.cohort)

    @property
    def shape(self) -> tuple[int, ...]:
        """Images, and the dimension of each feature."""
        return len(self.images), *(matrix.dimension for matrix in self.embeddings.values())


def _read_by_worker(
    folder: str,
    features: Sequence[str] | None,
    normalize: bool,
    limits: Range | None,
    table: str,
    shape: tuple[int, ...],
    cohort: Cohort | None,
) -> MappedParts:
    """Read a folder that the driver has read; what it saw there is `shape`."""
    if not Path(folder).is_dir():
        raise DataError(
            f"{folder}: the workers do not see this folder; put it on storage that all "
            "machines share, or send the embeddings to them (--embeddings send)"
        )
    read = MappedParts.read(Path(folder), features, normalize, limits, table)
    # The same path can be another disk on another machine.
    if read.shape != shape:
        raise DataError(
            f"{folder}: a worker sees another folder under this name (images and dimensions "
            f"{read.shape}, expected {shape}); give all machines the same"
        )
    return replace(read, cohort=cohort)


def _sent(parts: FolderParts) -> FolderParts:
    """Return `parts` with all vectors in memory: what is mapped from a file can't be sent."""
    inside = {
        name: replace(embeddings, vectors=np.array(embeddings.vectors, order="C", subok=False))
        for name, embeddings in parts.embeddings.items()
    }
    held = {f.name: getattr(parts, f.name) for f in fields(parts)}
    return FolderParts(**{**held, "embeddings": inside})


def _as_reached(spark: SparkSession, mapped: MappedParts, embeddings: str) -> FolderParts:
    """Return the images of a folder, as the workers are to get at them.

    Where that is left open, some of the workers are asked whether they see the folder.
    """
    if embeddings != "auto":
        return mapped if embeddings == "map" else _sent(mapped)
    if spark.sparkContext.master.startswith("local"):
        return mapped
    # As many tasks as run at once: most machines get one, though none is sure to.
    tasks = spark.sparkContext.defaultParallelism
    looker = _looker(mapped.where)
    looks = spark.range(tasks, numPartitions=tasks).mapInArrow(looker, "sees boolean")
    with errors_in_one_line():
        if all(looks.toArrow()["sees"].to_pylist()):
            return mapped
    size = sum(matrix.vectors.nbytes for matrix in mapped.embeddings.values())
    if size <= MOST_SENT:
        return _sent(mapped)
    raise ParameterError(
        f"{mapped.where}: the workers do not see this folder, and {size / 1e9:.1f} GB of "
        "embeddings are much to send; put it on storage that all machines share, or send them "
        "all the same (--embeddings send)"
    )


def _looker(folder: str) -> Any:
    """Return what a worker says: whether it sees the folder, with as many files in it."""
    n_files = len(list(Path(folder).iterdir()))

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for batch in batches:
            try:
                same = len(os.listdir(folder)) == n_files  # noqa: PTH208 (as light as can be)
            except OSError:
                same = False
            yield pa.record_batch({"sees": [same] * batch.num_rows})

    return look


def _with_images(frame: DataFrame, images: FolderParts, mark: str) -> SparkPairs:
    names, table = _names(frame), images.table
    require_columns(names, ("left", "right"), table)
    scores = images.score_columns(names.names)
    join_scores(images.embeddings, np.empty(0) if scores else None, table)  # one of them, clearly
    score_range = _range(frame, scores, images.limits, table) if scores else COSINE_RANGE
    feature = next(iter(images.features))
    return SparkPairs(frame, PartReader(images, score_range, feature, _text_folds(frame)), mark)


# ------------------------------------------------------------------ tables


def _with_table(
    frame: DataFrame,
    features: Sequence[str] | None,
    limits: Range | None,
    name: str,
    where: str,
    mark: str,
    n_rows: int,
) -> SparkPairs:
    layout = ScoreColumns.of(_names(frame), features, where)
    score_range = _range(frame, layout.scores, limits, where)
    table = TableParts(layout, name, where, limits, n_rows)
    reader = PartReader(table, score_range, layout.scores[0], _text_folds(frame))
    return SparkPairs(frame, reader, mark)


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
    # What is no number is met with again when it is read, and then reported.
    scores = [frame[name].try_cast("double") for name in names]
    low = F.least(*map(F.min, scores), F.lit(COSINE_RANGE[0]))
    high = F.greatest(*map(F.max, scores), F.lit(COSINE_RANGE[1]))
    with errors_in_one_line():
        ends = frame.agg(low.alias("low"), high.alias("high")).toArrow().to_pylist()[0]
    if not all(end is not None and math.isfinite(end) for end in ends.values()):
        raise DataError(f"{where}: expected finite scores, found others; drop or repair such pairs")
    return ends["low"], ends["high"]


def _mark(source: Path, how: str) -> str:
    """Return a hash of how the data is read, and of what tells whether a file was changed."""
    files = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]
    sha = hashlib.sha256(how.encode())
    for path in sorted(files):
        sha.update(stamp(path))
    return sha.hexdigest()


#: Rows that are read here and dealt out, at most: Java must hold them.
_MOST_ROWS = 2_000_000
#: What means something else to who looks for files by patterns.
_SIGNS = frozenset("\\[]{}*?")


def read_frame(spark: SparkSession, path: Path, numbered: bool = False) -> tuple[DataFrame, int]:
    """Return a table as a frame, and how many rows it has.

    Parquet, one file or several, is read by the workers, but for columns that Spark has no type for
    (times of day, nanoseconds, half floats); another table is read here, and then dealt out.

    Parameters
    ----------
    spark : SparkSession
    path : Path
    numbered : bool
        Add a column `ROW` with the number of each row; those of several files follow each other in
        the order of the files' names.
    """
    files = table_files(path) if path.is_dir() or path.suffix == ".parquet" else []
    if files:
        return _read_parquet(spark, path, files, numbered)
    table = with_spark_types(read_table(path))
    if table.num_rows > _MOST_ROWS:
        raise DataError(
            f"{path}: {table.num_rows:,} rows, and Spark takes over {_MOST_ROWS:,} from Parquet "
            "only; write it as .parquet"
        )
    if numbered:
        table = table.append_column(ROW, pa.array(range(table.num_rows), pa.int64()))
    return spark.createDataFrame(table), table.num_rows


def _read_parquet(
    spark: SparkSession, path: Path, files: Sequence[Path], numbered: bool
) -> tuple[DataFrame, int]:
    from pyspark.sql import functions as F  # noqa: N812

    with unreadable(path):
        about = [pq.read_metadata(file) for file in files]
        schemas = [metadata.schema.to_arrow_schema() for metadata in about]
        schema = check_alike(list(zip(files, schemas, strict=True)))
    n_rows = sum(metadata.num_rows for metadata in about)
    names = data_columns(schema, n_rows, path)
    kinds = [(field.name, _spark_type(field.type)) for field in schema]
    readable = pa.schema([(name, kind) for name, kind in kinds if kind is not None])
    types = spark.createDataFrame(readable.empty_table()).schema
    frame = spark.read.schema(types).parquet(*map(spark_address, files))
    if numbered:
        # Spark knows the row within each file.
        starts, start = [], 0
        for file, metadata in zip(files, about, strict=True):
            starts += [F.lit(file.name), F.lit(start)]
            start += metadata.num_rows
        # Names come as in an address, but for "+", which stands for itself.
        name = F.url_decode(F.replace(F.col("_metadata.file_name"), F.lit("+"), F.lit("%2B")))
        row = F.col("_metadata.row_index") + F.create_map(*starts)[name]
        frame = frame.withColumn(ROW, row.cast("long"))
    return frame.select([name for name in frame.columns if name in (*names, ROW)]), n_rows


def spark_address(path: Path) -> str:
    r"""Return the address of a file for Spark to read: that one, whatever signs are in its name.

    Examples
    --------
    >>> print(spark_address(Path("/data/a [1].parquet")))
    file:///data/a \[1\].parquet
    """
    return "file://" + "".join(f"\\{c}" if c in _SIGNS else c for c in str(path.resolve()))


#: What Spark has in place of whole numbers without a sign.
_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def _spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that Spark has for values of this one; None where it has none.

    It has none for times of day, nanoseconds and half floats, and stumbles over them in Parquet.
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    kind = _SIGNED.get(kind, kind)
    number = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    float_ = pa.types.is_floating(kind) and not pa.types.is_float16(kind)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return kind if number or float_ or text or pa.types.is_date(kind) else None


def with_spark_types(table: pa.Table) -> pa.Table:
    """Return a table in types that Spark has; what is neither number nor text becomes text.

    Examples
    --------
    >>> table = pa.table({"n": pa.array([1], pa.uint8()), "none": pa.nulls(1)})
    >>> with_spark_types(table).schema.types
    [DataType(int16), DataType(string)]
    """
    return table.cast(
        pa.schema(
            (
                field.name,
                _spark_type(pa.float32() if pa.types.is_float16(field.type) else field.type)
                or (field.type if pa.types.is_binary(field.type) else pa.string()),
            )
            for field in table.schema
        )
    )
