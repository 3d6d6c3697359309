"""Parquet files one behind the other are one file."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircal.production.scoring import footer
from faircal.production.scoring.footer import join_footers


def table(start, rows):
    numbers = np.arange(start, start + rows)
    return pa.table(
        {
            "left": numbers,
            "right": [f"image {n}" for n in numbers],
            "score": numbers / 7,
            "group": pa.array([["a", "b", None][n % 3] for n in numbers]),
            "fold": (numbers % 5).astype(np.int8),
            "mated": numbers % 2 == 0,
        }
    )


def written(rows, **options):
    sink = BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def join(path, files):
    path.write_bytes(b"".join(files))
    ends = np.cumsum([len(file) for file in files]).tolist()
    with path.open("ab") as file:
        file.write(join_footers(path, ends))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "use_dictionary": False},
        {"write_page_index": True, "store_schema": False},
        {"data_page_version": "2.0", "column_encoding": {"left": "DELTA_BINARY_PACKED"}},
    ],
)
@pytest.mark.parametrize("lengths", [[10], [10, 1], [7, 40, 3, 9], [1] * 20])
def test_joined_files_are_one_table(lengths, options, tmp_path):
    starts = np.cumsum([0, *lengths])
    more = options | ({"use_dictionary": ["group"]} if "column_encoding" in options else {})
    files = [
        written(table(start, rows), row_group_size=6, **more)
        for start, rows in zip(starts, lengths, strict=False)
    ]
    path = join(tmp_path / "joined.parquet", files)
    expected = table(0, sum(lengths))
    assert pq.read_table(path).equals(expected)
    # Read in pieces, too: each row group is where the footer says.
    opened = pq.ParquetFile(path)
    groups = [opened.read_row_group(i) for i in reversed(range(opened.num_row_groups))]
    assert pa.concat_tables(reversed(groups)).equals(expected)
    # By an independent reader.
    assert pl.read_parquet(path).to_dicts() == expected.to_pylist()
    assert pl.scan_parquet(path).filter(pl.col("left") >= 3).collect().height == max(
        0, sum(lengths) - 3
    )


def test_statistics_are_those_of_each_row_group(tmp_path):
    path = join(tmp_path / "j.parquet", [written(table(0, 5)), written(table(5, 5))])
    found = pq.read_metadata(path)
    ends = [found.row_group(i).column(0).statistics for i in range(2)]
    assert [(s.min, s.max) for s in ends] == [(0, 4), (5, 9)]
    assert pq.read_schema(path).equals(table(0, 1).schema)


def test_a_footer_survives_reading_and_writing(tmp_path):
    path = tmp_path / "one.parquet"
    rows = table(0, 100).replace_schema_metadata({"made by": "a test", "": "x" * 300})
    path.write_bytes(written(rows, row_group_size=5))
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    out = BytesIO()
    footer._write_struct(out, footer._read_footer(path, len(data)))
    assert out.getvalue() == data[-8 - length : -8]
    assert join_footers(path, [len(data)]) == data[-8 - length :]


@pytest.mark.parametrize(
    "value", [0, 1, -1, 63, 64, -64, -65, 2**31, -(2**31), 2**63 - 1, -(2**63)]
)
def test_numbers(value):
    out = BytesIO()
    footer._write_signed(out, value)
    out.seek(0)
    assert footer._read_signed(out) == value


def test_fields_far_apart(tmp_path):
    """A step of more than 15 between two fields is written in full."""
    struct = footer._Struct({1: (6, 5), 40: (8, b"x"), 41: (1, None), 42: (7, b"12345678")})
    struct.fields[200] = (9, footer._List(1, [b"\1", b"\2"]))
    out = BytesIO()
    footer._write_struct(out, struct)
    out.seek(0)
    assert footer._read_struct(out) == struct


def test_no_end_of_a_file(tmp_path):
    path = tmp_path / "one.parquet"
    path.write_bytes(written(table(0, 10)))
    with pytest.raises(ValueError, match="no Parquet file ends at byte 50"):
        join_footers(path, [50])
    with pytest.raises(ValueError, match="found none"):
        join_footers(path, [])
    with pytest.raises(ValueError, match="type 11"):
        footer._read_value(BytesIO(b"\0"), 11)
