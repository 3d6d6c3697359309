"""Tables as Spark frames: read from disk, and which groups a score table has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from faircal._base.errors import DataError
from faircal.data.build import MOST_GROUPS, ScoreColumns
from faircal.data.pair_sources import ROW, combinations
from faircal.data.tables import check_alike, check_shape, is_index, parts_of, read_table, unreadable
from faircal.production.spark.running import gathered
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    files = [path] if path.is_file() and path.suffix == ".parquet" else parts_of(path)
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
        schemas = [found.schema.to_arrow_schema() for found in about]
        schema = check_alike(list(zip(files, schemas, strict=True)))
    n_rows = sum(found.num_rows for found in about)
    check_shape(schema.names, n_rows, path)
    reader = spark.read
    if any(map(_is_strange, schema)):
        # Spark stumbles over what it has no type for, wanted or not; so it is told what to read.
        reader = reader.schema(spark.createDataFrame(_told(schema).empty_table()).schema)
    frame = reader.parquet(*map(spark_address, files))
    if numbered:
        # Spark knows the row within each file.
        starts, start = [], 0
        for file, found in zip(files, about, strict=True):
            starts += [F.lit(file.name), F.lit(start)]
            start += found.num_rows
        # Names come as in an address, but for "+", which stands for itself.
        name = F.url_decode(F.replace(F.col("_metadata.file_name"), F.lit("+"), F.lit("%2B")))
        row = F.col("_metadata.row_index") + F.create_map(*starts)[name]
        frame = frame.withColumn(ROW, row.cast("long"))
    return frame.select([name for name in frame.columns if not is_index(name)]), n_rows


def spark_address(path: Path) -> str:
    r"""Return the address of a file for Spark to read: that one, whatever signs are in its name.

    Examples
    --------
    >>> print(spark_address(Path("/data/a [1].parquet")))
    file:///data/a \[1\].parquet
    """
    return "file://" + "".join(f"\\{c}" if c in _SIGNS else c for c in str(path.resolve()))


def with_spark_types(table: pa.Table) -> pa.Table:
    """Return a table in types that Spark has; what is neither number nor text becomes text.

    Examples
    --------
    >>> table = pa.table({"n": pa.array([1], pa.uint8()), "none": pa.nulls(1)})
    >>> with_spark_types(table).schema.types
    [DataType(int64), DataType(string)]
    """
    columns = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_unsigned_integer(kind):
            signed = (pc.max(column).as_py() or 0) < 1 << 63
            kind = pa.int64() if signed else pa.string()
        elif pa.types.is_float16(kind):
            kind = pa.float32()
        elif not (_is_known(kind) or pa.types.is_binary(kind)):
            kind = pa.string()
        columns[field.name] = column.cast(kind)
    return pa.table(columns)


def _is_known(kind: pa.DataType) -> bool:
    """Whether Spark has a type for the values of this one, or for wider ones."""
    number = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    float_ = pa.types.is_floating(kind) and not pa.types.is_float16(kind)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(number or float_ or text or pa.types.is_date(kind))


def _is_strange(field: pa.Field) -> bool:
    """Whether Spark can't read the Parquet file that a column is in, unless told what of it."""
    kind = field.type
    nanos = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return bool(nanos or pa.types.is_time(kind) or pa.types.is_float16(kind))


#: What Spark reads whole numbers without a sign as.
_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def _told(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a Parquet file that are numbers or text, in types that Spark has."""
    fields = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if _is_known(kind):
            fields.append(pa.field(field.name, _SIGNED.get(kind, kind)))
    return pa.schema(fields)


Names = tuple[str, ...]


def crossable(frame: DataFrame, layout: ScoreColumns, where: str) -> Names:
    """Return the attributes of a score table that make groups when none is named."""
    keys = layout.grouping
    found = groups_in(frame, layout, [[key] for key in keys], where, MOST_GROUPS)
    return tuple(k for k, names in zip(keys, found, strict=True) if 0 < len(names) <= MOST_GROUPS)


def groups_in(
    frame: DataFrame,
    layout: ScoreColumns,
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

    with errors_in_one_line():
        told_of = frame.select(names).mapInArrow(look, "crossed int, names array<string>")
        rows = told_of.distinct().toArrow()
    groups: list[list[Names]] = [[] for _ in crossed]
    for i, each in zip(rows["crossed"].to_pylist(), rows["names"].to_pylist(), strict=True):
        groups[i].append(tuple(each))
    return [sorted(found) for found in groups]
