"""Tables from files and from memory, all as Arrow, and to files."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.interchange import from_dataframe

from faircal._base.errors import DataError
from faircal._base.files import atomic_path, existing
from faircal._base.registry import did_you_mean, short
from faircal.data.columns import Column, is_missing


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _pascal_case(name: str) -> str:
    return name.title().replace("_", "")


#: What score tables call a person, and the two sides of a pair.
_PERSON = ("identity", "person", "subject", "speaker", "name", "person_id", "subject_id", "id")
_BOTH_SIDES = (("left", "right"), ("1", "2"), ("a", "b"), ("probe", "reference"))
#: Where a score table says who is in each pair: the names of both sides, in order of preference, as
#: they are, ``Left_Identity``, ``LEFT_IDENTITY``, ``leftIdentity`` and ``LeftIdentity``.
PEOPLE_COLUMNS = tuple(
    (written(form.format(one, person)), written(form.format(other, person)))
    for person in _PERSON
    for one, other in _BOTH_SIDES
    for form in ("{0}_{1}", "{1}_{0}", *(("{1}{0}",) if one == "1" else ()))
    if person != "id" or one in ("1", "a")  # left_id may well be that of an image
    for written in (str, str.title, str.upper, _camel_case, _pascal_case)
)
#: Columns that are read as text, so that an id such as ``007`` stays what it is.
ID_COLUMNS = ("image_id", "left", "right", "identity", *chain.from_iterable(PEOPLE_COLUMNS))
TABLE_SUFFIXES = (".csv", ".parquet")
#: A longer table is written as Parquet: it is smaller, and read many times faster.
MOST_CSV_ROWS = 1_000_000
#: The names of columns with the row numbers that pandas writes along: they are no attribute.
INDEX = re.compile("$|__index_level_")
#: What reading a damaged file raises.
_UNREADABLE = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    pa.ArrowException,
)


def as_table(source: Any, where: str) -> pa.Table:
    """Return `source` as an Arrow table.

    Takes Arrow, Polars and pandas tables (anything with Arrow's C stream), mappings from name to
    array, and structured NumPy arrays.
    """
    try:
        if isinstance(source, np.ndarray) and source.dtype.names:
            source = {name: source[name] for name in source.dtype.names}
        if isinstance(source, Mapping):
            return pa.table({name: _column(values) for name, values in source.items()})
        table = None
        if isinstance(source, pa.Table) or hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        elif hasattr(source, "__dataframe__"):
            table = from_dataframe(source)
        if table is not None:
            return table.select([name for name in table.column_names if not INDEX.match(name)])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: cannot be read as a table ({short(error)}); check its columns"
        ) from error
    raise DataError(
        f"{where}: expected a table (pandas, Polars, Arrow, or a mapping from column to array), "
        f"found {type(source).__name__}; convert it first"
    )


def _column(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.dtype == object:
        return [None if is_missing(value) else value for value in values]
    return values


def table_files(path: Path) -> list[Path]:
    """Return the files that a table is in, in the order of their names; none where it is no table.

    It is a file, or a folder of ``part-*.parquet`` files, as Spark writes one, or one that is
    itself called ``*.parquet``.
    """
    if not path.is_dir():
        return [path]
    names = "*.parquet" if path.suffix == ".parquet" else "part-*.parquet"
    return sorted(file for file in path.glob(names) if file.is_file())


def is_table(path: Path) -> bool:
    """Whether `path` is a table by itself: no folder, but for a table in several files."""
    return not path.is_dir() or (bool(table_files(path)) and not has_table(path, "images"))


def check_alike(parts: Sequence[tuple[Path, pa.Schema]]) -> pa.Schema:
    """Return the columns of a table in several files; all must have the same."""
    (first, schema), *others = parts
    for file, other in others:
        if not other.equals(schema):
            raise DataError(
                f"{file}: expected the columns of {first.name}, found others; keep the files of "
                "one table in a folder of their own"
            )
    return schema


def read_table(path: Path) -> pa.Table:
    """Read a ``.csv`` or ``.parquet`` table.

    A folder of Parquet files is one, too; see `table_files`.
    """
    files = checked_files(path)
    with unreadable(path):
        if path.is_dir():
            read = [(file, pq.ParquetFile(file).read()) for file in files]
            check_alike([(file, table.schema) for file, table in read])
            table = pa.concat_tables([table for _, table in read])
        elif path.suffix == ".csv":
            options = csv_options(ID_COLUMNS)
            try:
                table = pacsv.read_csv(path, convert_options=options)
            except pa.ArrowInvalid:
                # With one thread Arrow knows, and says, which row it is.
                slow = pacsv.ReadOptions(use_threads=False)
                table = pacsv.read_csv(path, slow, convert_options=options)
        else:
            table = pq.read_table(path)
    return table.select(data_columns(table.schema, table.num_rows, path))


def checked_files(path: Path) -> list[Path]:
    """Return the files of the table `path`; raise where it is of no kind that holds one."""
    files = table_files(existing(path))
    if not files:
        raise DataError(f"{path}: expected a table, found a folder; give the path of a file")
    if not path.is_dir() and path.suffix not in TABLE_SUFFIXES:
        raise DataError(f"{path}: expected a .csv or .parquet file; convert it first")
    return files


def data_columns(schema: pa.Schema, n_rows: int, path: Path) -> list[str]:
    """Return the columns that hold data; raise where there are no rows, or a column can't be."""
    names = schema.names
    for field in schema if path.suffix == ".csv" and path.is_file() else ():
        if pa.types.is_binary(field.type):
            raise DataError(
                f"{path}: cannot be read (column '{field.name}' is not UTF-8 text); repair or "
                "export it again"
            )
    if not n_rows:
        raise DataError(f"{path}: expected at least one row, found none; check the export")
    for mark, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in names[0]:
            raise DataError(
                f"{path}: its columns are separated by {called}; export it with commas between them"
            )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path}: column '{twice[0]}' appears more than once; rename one of them")
    return [name for name in names if not INDEX.match(name)]


@contextmanager
def unreadable(path: Path, remedy: str = "repair or export it again") -> Iterator[None]:
    """Turn what reading a damaged file raises into our error."""
    try:
        yield
    except DataError:
        raise
    except _UNREADABLE as error:
        raise DataError(f"{path}: cannot be read ({short(error)}); {remedy}") from error


def open_npy(path: Path) -> NDArray[Any]:
    """Open an ``.npy`` file, at least 1-d; nothing is read yet."""
    with unreadable(existing(path), "save it again with numpy.save"):
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # np.load would take other things, too
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array if array.ndim else array.reshape(1)


def first_rows(path: Path) -> pa.Table:
    """Return the beginning of a ``.csv`` or ``.parquet`` table: its columns, and a few rows."""
    with unreadable(path):
        if path.suffix != ".csv":
            return pq.ParquetFile(path).schema_arrow.empty_table()
        with pacsv.open_csv(path, convert_options=csv_options(ID_COLUMNS)) as reader:
            return pa.Table.from_batches(islice(reader, 1), reader.schema)


def count_rows(path: Path) -> int:
    """Return the number of rows of a ``.csv`` or ``.parquet`` table."""
    if path.suffix == ".csv":
        return len(read_table(path))
    return int(pq.ParquetFile(path).metadata.num_rows)


def csv_options(text: Iterable[str]) -> pacsv.ConvertOptions:
    """Return how CSV is read: columns `text` as text, what is missing as null.

    What is in quotes is meant, so that a person may be called nan.
    """
    return pacsv.ConvertOptions(
        column_types=dict.fromkeys(text, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=["", "NaN", "nan"],
    )


def has_table(folder: Path, stem: str) -> bool:
    """Whether ``folder/stem.csv`` or ``folder/stem.parquet`` is there."""
    return any((folder / f"{stem}{end}").exists() for end in TABLE_SUFFIXES)


def find_table(folder: Path, stem: str) -> Path:
    """Return ``folder/stem.csv`` or ``folder/stem.parquet``; exactly one must be there."""
    paths = [folder / f"{stem}{end}" for end in TABLE_SUFFIXES]
    paths = [path for path in paths if path.exists()]
    if not paths:
        remedy = "a dataset folder holds images, pairs and embeddings: see 'faircal import --help'"
        if stem == "pairs":
            remedy = "add it, or make pairs of your images with 'faircal pairs'"
        raise DataError(f"{folder}: expected {stem}.csv or {stem}.parquet, found neither; {remedy}")
    if len(paths) > 1:
        raise DataError(
            f"{folder}: both {stem}.csv and {stem}.parquet are there; remove one of them"
        )
    return paths[0]


def rows_without(table: pa.Table, columns: Sequence[str], ids: pa.Array) -> pa.Array:
    """Tell which rows of `table` name none of `ids`, which are text, in `columns`."""
    named = [pc.is_in(table[name].cast(pa.string()), value_set=ids) for name in columns]
    return pc.invert(reduce(pc.or_, named))


def require_columns(table: pa.Table | pa.Schema, names: Sequence[str], where: str) -> None:
    """Raise when one of the columns `names` is not in `table`."""
    columns = table.names if isinstance(table, pa.Schema) else table.column_names
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise DataError(f"{where}: column '{name}' is missing; add or rename it ({hint})")


def choose(
    names: Collection[str], chosen: Sequence[str] | None, where: str, what: str
) -> list[str]:
    """Return `chosen` (by default all of `names`); an unknown one is an error with a hint."""
    for name in chosen or ():
        if name not in names:
            raise DataError(f"{where}: no {what} named '{name}'; {did_you_mean(name, names)}")
    return list(chosen or names)


def decoded(column: Column) -> pa.Array:
    """Return a categorical column as text, null where unknown."""
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(
        codes, pa.array(column.names, pa.string())
    ).dictionary_decode()


def write_table(folder: Path, stem: str, parts: Iterable[pa.Table]) -> Path:
    """Write a table that comes in parts, ``stem.csv``, or ``stem.parquet`` where it is long.

    At any time no more than a million rows and one part are in memory. Where the other file was
    there, it goes: a dataset has one of each.
    """
    first: list[pa.Table] = []
    coming = iter(parts)
    for part in coming:
        first.append(part)
        if sum(map(len, first)) > MOST_CSV_ROWS:
            path, other = folder / f"{stem}.parquet", folder / f"{stem}.csv"
            write_parquet(path, chain(first, coming))
            break
    else:
        path, other = folder / f"{stem}.csv", folder / f"{stem}.parquet"
        write_csv(path, pa.concat_tables(first))
    other.unlink(missing_ok=True)
    return path


def write_parquet(path: Path, parts: Iterator[pa.Table]) -> None:
    """Write a table that comes in parts as Parquet, whole or not at all."""
    first = next(parts)
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer,
    ):
        for part in chain([first], parts):
            writer.write_table(part)


def write_csv(path: Path, table: pa.Table) -> None:
    """Write a table as CSV, whole or not at all."""
    with atomic_path(path) as temporary:
        pacsv.write_csv(
            table,
            temporary,
            pacsv.WriteOptions(quoting_style="needed", quoting_header="needed"),
        )


def filter_table(path: Path, folder: Path, keep: Callable[[pa.Table], pa.Array]) -> tuple[int, int]:
    """Write to `folder`, under its own name, the rows of a table that `keep` is true for.

    Columns and values stay as they are written; missing ones are empty. Returns the numbers of rows
    kept and left out.
    """
    if path.suffix == ".csv":
        parts: Iterable[pa.Table] = [_read_as_text(path)]
    else:
        parts = map(
            pa.Table.from_batches, ([b] for b in pq.ParquetFile(path).iter_batches(1 << 20))
        )
    kept = lost = 0

    def filtered() -> Iterator[pa.Table]:
        nonlocal kept, lost
        for part in parts:
            rest = part.filter(keep(part))
            kept, lost = kept + len(rest), lost + len(part) - len(rest)
            yield rest

    if path.suffix == ".csv":
        write_csv(folder / path.name, *filtered())
    else:
        write_parquet(folder / path.name, filtered())
    return kept, lost


def _read_as_text(path: Path) -> pa.Table:
    with pacsv.open_csv(path) as reader:
        names = reader.schema.names
    return pacsv.read_csv(path, convert_options=csv_options(names))
