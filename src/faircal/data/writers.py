"""Writing a dataset folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from faircal._base.errors import DataError
from faircal._base.files import atomic_path, output_folder, write_text
from faircal.data.columns import Column
from faircal.data.dataset import DEFAULT_FEATURE, Dataset
from faircal.data.tables import csv_options

#: A longer table is written as Parquet: it is smaller, and read many times faster.
MOST_CSV_ROWS = 1_000_000


def save_dataset(data: Dataset, path: str | Path) -> Path:
    """Write `data` as a dataset folder; each file appears whole or not at all.

    Folds that faircal drew are not written: they are drawn again, and reported, on reading.
    """
    if not data.has_images:
        raise DataError(f"{data.where}: only datasets with images can be written as a folder")
    folder = output_folder(path)
    _check_free(folder, several=DEFAULT_FEATURE not in data.features)
    images = {"image_id": data.images.ids}
    if data.images.identity is not None:
        images["identity"] = decoded(data.images.identity)
    images |= {name: decoded(column) for name, column in data.images.attributes.items()}
    write_csv(folder / "images.csv", pa.table(images))

    ids = data.images.ids
    pairs: dict[str, Any] = {
        "left": ids.take(pa.array(data.pairs.left)),
        "right": ids.take(pa.array(data.pairs.right)),
    }
    if data.pairs.genuine is not None:
        pairs["genuine"] = data.pairs.genuine.astype(np.int8)
    if data.pairs.fold is not None and not data.drawn_folds:
        pairs["fold"] = pa.array(data.pairs.fold)
    for feature in data.features.values():
        if feature.scores is not None:
            pairs["score"] = feature.scores
    write_csv(folder / "pairs.csv", pa.table(pairs))

    for name, feature in data.features.items():
        if feature.embeddings is None:
            continue
        single = name == DEFAULT_FEATURE
        target = folder / ("embeddings.npy" if single else f"embeddings/{name}.npy")
        with atomic_path(target) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(feature.embeddings.vectors), allow_pickle=False)
    write_about(folder, {"name": data.name, **data.provenance})
    return folder


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write ``dataset.json``."""
    write_text(folder / "dataset.json", json.dumps(about, indent=2) + "\n")


def write_dropped(folder: Path, dropped: Mapping[str, str], before: pa.Table | None = None) -> None:
    """Write ``dropped.csv``, the images that were left out and why, after those of `before`."""
    rows = pa.table({"image_id": list(dropped), "reason": list(dropped.values())})
    if before is not None:
        rows = pa.concat_tables([before.select(rows.column_names).cast(rows.schema), rows])
    write_csv(folder / "dropped.csv", rows)


def _check_free(folder: Path, several: bool) -> None:
    """Raise where a file of another format would stand beside ours and make two of one thing."""
    embeddings = "embeddings.npy" if several else "embeddings"
    for name in ("images.parquet", "pairs.parquet", "embeddings.npz", embeddings):
        if (folder / name).exists():
            raise DataError(
                f"{folder}: {name} is there already, and a dataset has one of each; "
                "remove it or choose another folder"
            )


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
