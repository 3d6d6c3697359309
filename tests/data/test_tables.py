"""Tables that come in parts, and rows that are left out of tables."""

from __future__ import annotations

import csv
import weakref

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal.data import tables
from faircal.data.tables import filter_table, read_table, write_table


def parts_of(*sizes):
    """Yield tables of these sizes whose rows are numbered on."""
    begin = 0
    for size in sizes:
        numbers = range(begin, begin + size)
        begin += size
        columns = {"left": [f"{n:03}" for n in numbers], "n": list(numbers)}
        types = pa.schema({"left": pa.string(), "n": pa.int64()})
        yield pa.table(columns, schema=types)


@pytest.fixture
def limit(monkeypatch):
    monkeypatch.setattr(tables, "MOST_CSV_ROWS", 10)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ((3,), "t.csv"),
        ((10,), "t.csv"),
        ((4, 6), "t.csv"),
        ((0, 0, 1), "t.csv"),
        ((0,), "t.csv"),
        ((11,), "t.parquet"),
        ((4, 6, 1), "t.parquet"),
        ((0, 11, 0, 30), "t.parquet"),
        ((25, 25), "t.parquet"),
    ],
)
def test_long_tables_are_parquet(tmp_path, limit, sizes, name):
    path = write_table(tmp_path, "t", parts_of(*sizes))
    assert path == tmp_path / name
    assert names(tmp_path) == [name]
    expected = pa.concat_tables(parts_of(*sizes))
    if name == "t.csv":
        types = {"left": pa.string(), "n": pa.int64()}
        found = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types=types))
    else:
        found = pq.read_table(path)
    assert found.equals(expected)


@pytest.mark.parametrize(("before", "sizes"), [("t.csv", (11,)), ("t.parquet", (3,))])
def test_the_other_file_goes(tmp_path, limit, before, sizes):
    (tmp_path / before).write_text("old")
    (tmp_path / "t2.csv").write_text("another table's")
    path = write_table(tmp_path, "t", parts_of(*sizes))
    assert names(tmp_path) == sorted([path.name, "t2.csv"])
    assert path.name != before


@pytest.mark.parametrize("sizes", [(3,), (8, 8)])
@pytest.mark.parametrize("before", ["t.csv", "t.parquet"])
def test_a_fault_in_a_part_changes_nothing(tmp_path, limit, sizes, before):
    (tmp_path / before).write_text("old")

    def parts():
        yield from parts_of(*sizes)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        write_table(tmp_path, "t", parts())
    assert names(tmp_path) == [before]
    assert (tmp_path / before).read_text() == "old"


def test_parts_do_not_pile_up(tmp_path, limit):
    """A part is written and forgotten before the next but one is asked for."""
    alive, most = [], 0

    def parts():
        nonlocal most
        for _ in range(40):
            (part,) = parts_of(5)
            alive.append(weakref.ref(part))
            yield part
            del part
            most = max(most, sum(ref() is not None for ref in alive))

    write_table(tmp_path, "t", parts())
    assert pq.read_metadata(tmp_path / "t.parquet").num_rows == 200
    # The first eleven rows or more, the part in hand, and the one that was just written.
    assert most <= 3 + 2


# ------------------------------------------------------------------------ filter_table

ROWS = [
    ["image_id", "fold", "price", "flag", "note", "7"],
    ["007", "01", "1.50", "true", "", "a"],
    ["1e3", "1", "-0", "TRUE", "NA", "b,c"],
    ["2020-01-01", "001", "1_000", "0", 'say "hi"', ""],
    ["Nan", "+1", " 1", "null", "ü", "d"],
]


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def keep(*wanted):
    """Return a filter for the rows of these numbers."""

    def choose(table):
        return pa.array([row in wanted for row in range(len(table))])

    return choose


@pytest.mark.parametrize("wanted", [(0, 1, 2, 3), (1,), (0, 2), ()])
def test_values_stay_as_they_are_written(tmp_path, wanted):
    source, target = tmp_path / "images.csv", tmp_path / "out"
    target.mkdir()
    with source.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(ROWS)
    before = source.read_bytes()
    assert filter_table(source, target, keep(*wanted)) == (len(wanted), 4 - len(wanted))
    assert names(target) == ["images.csv"]
    assert rows_of(target / "images.csv") == [ROWS[0], *(ROWS[1 + row] for row in wanted)]
    assert source.read_bytes() == before


def test_the_filter_sees_text(tmp_path):
    """Two ids that are one number are two ids."""
    (tmp_path / "t.csv").write_text("image_id,n\n7,1\n007,2\n07,3\n")
    (tmp_path / "out").mkdir()
    filter_table(tmp_path / "t.csv", tmp_path / "out", lambda t: pc.equal(t["image_id"], "007"))
    assert rows_of(tmp_path / "out/t.csv") == [["image_id", "n"], ["007", "2"]]


@pytest.mark.parametrize(
    "change",
    [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")],
    ids=["BOM", "Windows line ends"],
)
def test_other_ways_to_write_it(tmp_path, change):
    (tmp_path / "t.csv").write_bytes(change("a,b\n1,x\n2,y\n").encode())
    (tmp_path / "out").mkdir()
    filter_table(tmp_path / "t.csv", tmp_path / "out", keep(1))
    assert rows_of(tmp_path / "out/t.csv") == [["a", "b"], ["2", "y"]]


def test_in_place_of_itself(tmp_path):
    """A filter may be run into the folder that it reads from."""
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    assert filter_table(tmp_path / "t.csv", tmp_path, keep(0)) == (1, 1)
    assert rows_of(tmp_path / "t.csv") == [["a"], ["1"]]


def test_types_of_parquet_stay(tmp_path):
    table = pa.table(
        {
            "image_id": ["007", "01", None],
            "fold": pa.array([1, None, 3], pa.int8()),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "box": [[1.5, 2.0], [], None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "out").mkdir()
    assert filter_table(tmp_path / "t.parquet", tmp_path / "out", keep(1, 2)) == (2, 1)
    found = pq.read_table(tmp_path / "out/t.parquet")
    assert found.schema.types == table.schema.types
    assert found.to_pylist() == table.to_pylist()[1:]


def test_no_row_of_parquet_is_kept(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "out").mkdir()
    assert filter_table(tmp_path / "t.parquet", tmp_path / "out", keep()) == (0, 2)
    found = pq.read_table(tmp_path / "out/t.parquet")
    assert (found.num_rows, found.column_names) == (0, ["a"])


def test_a_filter_that_fails_writes_nothing(tmp_path):
    def fail(table):
        raise ValueError("no")

    (tmp_path / "t.csv").write_text("a\n1\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    (tmp_path / "out").mkdir()
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match="no"):
            filter_table(tmp_path / name, tmp_path / "out", fail)
    assert names(tmp_path / "out") == []


words = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=6
)


@settings(max_examples=60)
@given(st.lists(st.tuples(words, words, st.booleans()), min_size=1, max_size=8))
def test_any_text_comes_back(tmp_path_factory, rows):
    home = tmp_path_factory.mktemp("filter")
    (home / "out").mkdir()
    # A third column, since a row of nothing is no row.
    texts = [["a", "b", "c"], *([a, b, "-"] for a, b, _ in rows)]
    with (home / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(texts)
    filter_table(home / "t.csv", home / "out", lambda _: pa.array([kept for *_, kept in rows]))
    expected = [texts[0], *([a, b, "-"] for a, b, kept in rows if kept)]
    assert rows_of(home / "out/t.csv") == expected


def test_what_is_written_is_read(tmp_path):
    """Ids with commas, quotes and zeros in front."""
    ids = ["007", "a,b", 'c"d', "ü", "x y"]
    path = write_table(tmp_path, "images", [pa.table({"image_id": ids})])
    assert read_table(path)["image_id"].to_pylist() == ids
