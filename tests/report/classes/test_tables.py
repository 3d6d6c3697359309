"""Tables of a classifier: the folder's numbers, best in bold, yardsticks apart."""

from __future__ import annotations

import io
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pacsv
import pytest
from rich.console import Console

from faircal.cli.printing import show
from faircal.metrics.results import ALL, GLOBAL, read_results
from faircal.report.cells import markdown
from faircal.report.classes.tables import (
    ClassResults,
    class_differences,
    class_tables,
    further_class_tables,
)
from faircal.report.paper.latex import latex
from faircal.report.writing import make_report


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
    ends = {(i.method, i.group, i.condition, i.metric): i for i in read_results(folder)}
    for method, title in (("uncalibrated", "Uncalibrated"), ("faircal", "FairCal")):
        for metric, name in (("nll", "NLL"), ("top_ks", "Top-label KS"), ("accuracy", "Accuracy")):
            shown = cell(overall, title, name)
            assert shown.mean == values[method, "", "", "", "", "place", GLOBAL, "", metric]
            known = ends[method, GLOBAL, "", metric]
            assert (shown.low, shown.high) == (known.low, known.high)
        shown = cell(over, title, "MAD", "Class-wise KS")
        assert shown.mean == values[method, "", "", "", "", "place", ALL, "", "class_ks_mad"]


def test_costs_are_no_percent(store):
    overall, over = class_tables(store, "place")
    cost = cell(overall, "FairCal", "NLL")
    assert cost.text == f"{cost.mean:.4f}"
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
        assert cell(table, "Tiny", "FairCal").text == "not enough data"
        assert cell(table, "South", "FairCal").interval
    over = class_tables(store, "place")[1]
    assert "not enough data to be told alone: Tiny." in over.caption
    for table in class_differences(store, "place"):  # noise of the small one would decide
        assert cell(table, "FairCal", "Top-label KS mean").text == "not enough data"


def test_numbers_over_groups_need_groups_that_can_be_told(two):
    two.add("uncalibrated", ALL, "top_ks_mad", 0.1, 0.05, 0.2)
    for few, text in (("", "10.00"), ("few rows", "not enough data")):
        two.withheld[ALL] = few
        over = class_tables(two.store(), "place")[1]
        assert cell(over, "Uncalibrated", "MAD", "Top-label KS").text == text


def crowded(by_hand, count, small=0):
    hand = by_hand(withheld={f"s{i:03}": "only 2 rows" for i in range(small)})
    for method in ("uncalibrated", "global"):
        hand.add(method, GLOBAL, "nll", 0.4)
        for name in [*(f"g{i:03}" for i in range(count)), *hand.withheld]:
            hand.add(method, name, "nll", 0.5 if method == "global" else 0.6)
            hand.add(method, name, "accuracy", 0.5)
            hand.rows[-1] = hand.rows[-1]._replace(trials=float(100 + int(name[1:])))
    tables = further_class_tables(hand.store(), "place")
    return next((table for table in tables if table.key == "groups-nll"), None)


def test_groups_stand_below_each_other(by_hand):
    table = crowded(by_hand, 9)
    assert [heading.name for heading in table.headings] == ["Uncalibrated", "Global"]
    assert [line.label for line in table.lines] == ["All rows", *(f"g{i:03}" for i in range(9))]
    assert table.stub == "Group"
    assert [value.best for value in table.lines[1].values] == [False, True]


def test_of_very_many_groups_those_with_most_rows_are_shown(by_hand):
    table = crowded(by_hand, 50, small=600)
    assert [line.label for line in table.lines[1:]] == [f"g{i:03}" for i in range(10, 50)]
    assert table.caption.endswith(
        "Shown are 40 of 650 groups, those with enough data and most rows; results.csv has all."
    )


def test_no_table_by_group_where_none_of_very_many_can_be_told(by_hand):
    assert crowded(by_hand, 0, small=700) is None


def terminal(tables, width):
    console = Console(width=width, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faircal.cli.printing.console", lambda: console)
        for table in tables:
            show(table)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [200, 80, 60, 30])
def test_no_number_is_ever_cut_in_the_terminal(store, width):
    tables = [*class_tables(store, "place"), *class_differences(store, "place")]
    text = terminal(tables, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    found = text.split()
    for value in (value for table in tables for line in table.lines for value in line.values):
        assert value.says or value.text in found


def test_a_long_name_is_broken_and_no_number(store):
    (table,) = class_tables(store, "place")[:1]
    lines = tuple(replace(line, label=f"{line.label}{'long' * 30}") for line in table.lines)
    text = terminal([replace(table, lines=lines)], 80)
    assert "…" not in text
    assert "".join(text.split()).count("longlong") > 20
    assert all(value.text in text for line in table.lines for value in line.values)


def test_classes_stand_below_each_other(store):
    (table,) = [t for t in further_class_tables(store, "place") if t.key == "classes"]
    assert [line.label for line in table.lines] == ["cat", "dog", "owl"]
    assert [block for block, _ in table.parts] == ["KS", "ECE"]
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
    assert to_raw.title == "Difference to Uncalibrated"
    value = cell(to_raw, "Global", "NLL")
    assert (value.text, value.best, value.interval) == ("-0.0400", True, "-0.0500–-0.0300")
    value = cell(to_global, "Uncalibrated", "NLL")
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


def test_methods_have_their_titles_yardsticks_last(store):
    found = ClassResults(store, "place")
    assert list(found.methods) == ["Uncalibrated", "Global", "FairCal", "Group-wise"]
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
    report = make_report(shutil.copytree(store.folder, tmp_path / "copy"))
    tables = Path(report.paths["tables"])
    names = sorted(path.name for path in tables.glob("*.csv"))
    assert names[:2] == ["01-overall.csv", "02-groups.csv"]
    assert {"03-differences-uncalibrated.csv", "04-differences-global.csv"} <= set(names)
    rows = pacsv.read_csv(tables / "01-overall.csv").to_pylist()
    assert {row["method"] for row in rows} == {"Uncalibrated", "Global", "FairCal", "Group-wise"}
    assert "audit" not in report.paths  # that is for faces
