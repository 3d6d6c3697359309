"""Tables of a classifier: the folder's numbers, best in bold, yardsticks apart."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from faircal.report.classes import class_tables, further_class_tables
from faircal.report.classes.found import Found
from faircal.report.classes.tables import class_differences
from faircal.report.formats import latex, markdown
from faircal.report.writing import write_all
from faircal.results import ALL, GLOBAL, read_intervals, read_results


def cell(table, label, column, block=None):
    """The value in a row and column."""
    (place,) = [
        i
        for i, heading in enumerate(table.headings)
        if heading.name == column and block in (None, heading.block)
    ]
    (line,) = [line for line in table.lines if line.label == label]
    return line.values[place]


def test_the_numbers_and_intervals_are_the_folders(folder, store):
    overall, over = class_tables(store, "place")
    values = {row[2:11]: row.value for row in read_results(folder)}
    ends = {(i.method, i.group, i.condition, i.metric): i for i in read_intervals(folder)}
    for method, title in (("uncalibrated", "As it comes"), ("faircal", "FairCal")):
        for metric, name in (("nll", "NLL"), ("top_ks", "Top-label KS"), ("accuracy", "Accuracy")):
            shown = cell(overall, title, name)
            assert shown.mean == values[method, "", "", "", "", "place", GLOBAL, "", metric]
            known = ends[method, GLOBAL, "", metric]
            assert (shown.low, shown.high) == (known.low, known.high)
        shown = cell(over, title, "MAD", "Class-wise KS")
        assert shown.mean == values[method, "", "", "", "", "place", ALL, "", "class_ks_mad"]


def test_costs_are_no_percent(store):
    overall, over = class_tables(store, "place")
    for value in (cell(overall, "FairCal", "NLL"), cell(overall, "FairCal", "Brier")):
        assert value.text == f"{value.mean:.4f}"
    accuracy = cell(overall, "FairCal", "Accuracy")
    assert accuracy.text == f"{100 * accuracy.mean:.2f}"
    spread = cell(over, "FairCal", "AAD", "NLL")
    assert spread.text == f"{spread.mean:.4f}"


def test_yardsticks_stand_last_and_are_never_best(store):
    for table in [*class_tables(store, "place"), *further_class_tables(store, "place")]:
        if table.stub != "Method":
            continue
        apart = [line.apart for line in table.lines if line.block == table.lines[0].block]
        assert apart == [False, False, False, True]
        assert not any(value.best for line in table.lines if line.apart for value in line.values)
    assert cell(class_tables(store, "place")[0], "FairCal", "NLL").best


def test_a_group_that_is_too_small_has_no_number(store):
    tables = {table.key: table for table in further_class_tables(store, "place")}
    for metric in ("accuracy", "nll", "top_ks", "class_ece"):
        table = tables[f"groups-{metric}"]
        assert cell(table, "FairCal", "Tiny").text == "not enough data"
        assert cell(table, "FairCal", "South").interval
    assert {
        value.text
        for line in tables["brier"].lines
        if line.block == "Tiny"
        for value in line.values
    } == {"not enough data"}
    over = class_tables(store, "place")[1]
    assert "not enough data to be told alone: Tiny." in over.caption
    for table in class_differences(store, "place"):  # noise of the small one would decide
        assert cell(table, "FairCal", "Top-label KS mean").text == "not enough data"


def test_the_parts_of_the_brier_score_add_up(store):
    (table,) = [t for t in further_class_tables(store, "place") if t.key == "brier"]
    for line in table.lines:
        if line.block != "Tiny":
            score, wrong, told, left = (value.mean for value in line.values)
            assert score == pytest.approx(wrong - told + left, abs=1e-12)


def test_classes_stand_below_each_other(store):
    (table,) = [t for t in further_class_tables(store, "place") if t.key == "classes"]
    assert [line.label for line in table.lines] == ["cat", "dog", "owl"]
    assert [block for block, _ in table.parts()] == ["KS", "ECE"]
    (found,) = [
        row.value
        for row in store.results.rows
        if (row.method, row.group, row.condition) == ("global", GLOBAL, "class=owl")
        and row.metric == "class_ece"
    ]
    assert cell(table, "owl", "Global", "ECE").mean == found
    for line in table.lines:  # the best method of each class; the yardstick is none
        best = [h.name for h, value in zip(table.headings, line.values, strict=True) if value.best]
        assert len(best) >= 2
        assert "Group-wise" not in best


def test_differences_are_told_whichever_way_round_they_were_written(two):
    store = two.store()
    to_raw, to_global = class_differences(store, "place")
    assert to_raw.title == "Difference to As it comes"
    value = cell(to_raw, "Global", "NLL")
    assert (value.text, value.best, value.interval) == ("-0.0400", True, "-0.0500–-0.0300")
    value = cell(to_global, "As it comes", "NLL")
    assert (value.mean, value.low, value.high, value.worse) == (0.04, 0.03, 0.05, True)
    value = cell(to_global, "FairCal", "NLL")
    assert not value.best
    assert not value.worse
    value = cell(to_global, "FairCal", "Top-label KS mean")
    assert value.text == "2.00*"
    assert value.interval == "1.00–3.00"


def test_one_method_alone_has_no_differences(by_hand):
    hand = by_hand(methods={"": {}}).add("", GLOBAL, "accuracy", 0.8, 0.7, 0.9)
    store = hand.store()
    assert class_differences(store, "place") == []
    (table,) = class_tables(store, "place")
    (line,) = table.lines
    assert line.label == "probabilities"
    assert not line.values[0].best


def test_methods_have_the_names_that_the_run_gives_them(store):
    found = Found(store, "place")
    assert [method.title for method in found.methods] == [
        "As it comes",
        "Global",
        "FairCal",
        "Group-wise",
    ]
    assert found.classes == ["cat", "dog", "owl"]
    assert found.small == ["Tiny"]


def test_forms_for_papers_and_machines(store):
    overall = class_tables(store, "place")[0]
    assert "**" in markdown(overall)
    assert "±" not in markdown(overall)
    assert r"\textbf" in latex(overall)


def test_files(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as where it is not installed
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    store = replace(store, folder=Path(shutil.copytree(store.folder, tmp_path / "copy")))
    report = write_all(store)
    names = sorted(path.name for path in report.paths["tables"].glob("*.csv"))
    assert names[:2] == ["01-overall.csv", "02-groups.csv"]
    assert {"03-differences-uncalibrated.csv", "04-differences-global.csv"} <= set(names)
    rows = pacsv.read_csv(report.paths["tables"] / "01-overall.csv").to_pylist()
    assert {row["method"] for row in rows} == {"As it comes", "Global", "FairCal", "Group-wise"}
    assert "audit" not in report.paths  # that is for faces
