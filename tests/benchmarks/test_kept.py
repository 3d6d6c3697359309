"""A loss of more than 30 % is seen, in either direction; nothing loses its guard unseen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.figure import aside
from benchmarks.kept import Part, compare, machine, measured, read, write


@pytest.mark.parametrize(
    ("better", "before", "now", "verdict"),
    [
        ("higher", 10.0, 6.9, "slower"),
        ("higher", 10.0, 7.1, "kept"),
        ("higher", 10.0, 12.9, "kept"),
        ("higher", 10.0, 13.1, "better"),
        ("lower", 10.0, 13.1, "slower"),
        ("lower", 10.0, 12.9, "kept"),
        ("lower", 10.0, 7.1, "kept"),
        ("lower", 10.0, 6.9, "better"),
    ],
)
def test_a_loss_of_more_than_30_percent_fails(guarded, better, before, now, verdict):
    (row,) = compare([guarded(now, better)], [guarded(before, better)])
    assert (row.verdict, row.before) == (verdict, before)
    assert row.failed is (verdict == "slower")


def test_a_figure_without_a_kept_one_is_new(guarded):
    (row,) = compare([guarded(1.0)], [])
    assert (row.verdict, row.before, row.failed) == ("new", None, False)


def test_a_kept_figure_that_is_measured_no_more_fails(guarded):
    rows = compare([guarded(1.0, name="a")], [guarded(1.0, name="a"), guarded(5.0, name="b")])
    assert [(row.figure.name, row.verdict, row.failed) for row in rows] == [
        ("a", "kept", False),
        ("b", "missing", True),
    ]


def test_a_guard_that_is_taken_off_fails(guarded):
    (row,) = compare([replace(guarded(1.0), guarded=False)], [guarded(1.0)])
    assert row.failed


def test_seconds_may_change_and_go():
    rows = compare([aside("time", "", 9.0, "s")], [aside("time", "", 1.0, "s"), aside("x", "", 1)])
    assert [(row.figure.name, row.verdict, row.failed) for row in rows] == [("time", "", False)]


def test_what_is_written_is_read(guarded, tmp_path):
    path = tmp_path / "results.json"
    parts = {"fit": measured("fit", [guarded(30.5, goal=30), aside("time", "s", 2.5)])}
    write(parts, path)
    assert read(path) == parts
    assert parts["fit"].command == "python -m benchmarks fit"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]


def test_nothing_is_kept_at_first(tmp_path):
    assert read(tmp_path / "results.json") == {}


def test_the_machine_is_told():
    told = machine()
    assert told["cpu"]
    assert told["cores"] >= 1
    assert told["versions"]["numpy"]


def test_a_part_without_a_record_is_equal_to_itself(guarded):
    assert Part((guarded(1.0),)) == Part((guarded(1.0),))
