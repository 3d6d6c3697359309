"""Parquet parts put together to one file."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal.production.scoring.run import join_parts, parquet_options, rows_of


def table(start, rows):
    numbers = np.arange(start, start + rows)
    return pa.table(
        {
            "left": numbers,
            "right": [f"image, {n}" for n in numbers],
            "score": numbers / 7,
            "group": pa.array([["a", "b", None][n % 3] for n in numbers]).dictionary_encode(),
            "fold": (numbers % 5).astype(np.int8),
            "mated": numbers % 2 == 0,
        }
    )


@pytest.fixture
def parts(tmp_path):
    """Two parts as we write them, and one as others do."""
    paths = [tmp_path / f"part-{number}.parquet" for number in range(3)]
    for path, start, rows in zip(paths, (0, 7), (7, 40), strict=False):
        part = table(start, rows)
        pq.write_table(part, path, row_group_size=6, **parquet_options(part.schema))
    pq.write_table(table(47, 12), paths[2], row_group_size=5, compression="zstd")
    return paths


def test_joined_parts_are_one_table(parts, tmp_path):
    path = tmp_path / "joined"
    join_parts(parts, path, ".parquet")
    expected = table(0, 59)
    assert pq.read_schema(path).equals(expected.schema)
    # Codes of groups are each part's own, so values are compared.
    assert pq.read_table(path).to_pylist() == expected.to_pylist()
    assert rows_of(path) == 59
    # By an independent reader.
    assert pl.read_parquet(path).to_dicts() == expected.to_pylist()
    assert pl.scan_parquet(path).filter(pl.col("left") >= 30).collect().height == 29


def test_joined_as_csv(parts, tmp_path):
    join_parts(parts, tmp_path / "joined", ".csv")
    pacsv.write_csv(table(0, 59), tmp_path / "at once")
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "at once").read_bytes()
