"""Tables: the right value in the right place, best in bold, yardsticks apart."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from faircal.cli.printing import show
from faircal.evaluation.curves import Curves
from faircal.metrics.results import Result
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.store import LabelledResults, ResultsFolder
from faircal.report.tables import (
    calibration_table,
    equality_table,
    further_tables,
    group_table,
    main_tables,
    mark_best,
)
from faircal.report.wording import rate_text


def rows(method, value, *, group="global", condition="", metric="auroc", clusters="", std=0.01):
    base = Result(
        "d", "net", method, "beta", clusters, "0", "1", "e", group, condition, metric, value
    )
    return [base, base._replace(fold="mean"), base._replace(fold="std", value=std)]


def store_of(results):
    """A folder of a benchmark that has these results and nothing else."""
    return ResultsFolder(Path(), results, {}, Curves(()))


def accuracy_table(results):
    return main_tables(store_of(results), "e")[0]


@pytest.fixture
def results():
    found = []
    for method, auroc, ks_mean, fpr in (
        ("baseline", 0.95, 0.06, 0.020),
        ("faircal", 0.97, 0.02, 0.010),
        ("oracle", 0.99, 0.01, 0.005),
    ):
        found += rows(method, auroc)
        found += rows(method, auroc / 2, metric="tpr", condition="fpr=0.001")
        for over in ("mean", "aad", "mad", "std"):
            found += rows(method, ks_mean, group="all", metric=f"ks_{over}")
            found += rows(
                method, fpr, group="all", metric=f"fpr_{over}", condition="global_fpr=0.01"
            )
        found += rows(method, ks_mean, group="A", metric="ks")
        found += rows(method, fpr, group="A", metric="fpr", condition="global_fpr=0.01")
    return LabelledResults(found)


def test_the_best_method_is_marked_and_the_yardstick_never(results):
    table = accuracy_table(results)
    assert [(line.label, line.apart) for line in table.lines] == [
        ("Baseline", False),
        ("FairCal", False),
        ("Oracle", True),
    ]
    assert [line.values[0].best for line in table.lines] == [False, True, False]


def test_lower_is_better_for_errors(results):
    table = calibration_table(results, "e")
    assert [h.name for h in table.headings] == ["KS Mean", "KS AAD", "KS MAD", "KS STD"]
    assert [line.values[0].best for line in table.lines] == [False, True, False]
    assert [line.values[0].text for line in table.lines] == ["6.00", "2.00", "1.00"]


def test_values_that_print_the_same_are_both_best():
    found = rows("baseline", 0.950001) + rows("faircal", 0.950002)
    table = accuracy_table(LabelledResults(found))
    assert [line.values[0].best for line in table.lines] == [True, True]


def test_equality_columns_name_the_rate(results):
    table = equality_table(results, "e")
    assert [h.name for h in table.headings] == ["AAD @ 1 %", "MAD @ 1 %", "STD @ 1 %"]


def test_at_a_fixed_global_rate_no_group_value_is_best(results):
    table = group_table(results, "e", "fpr", "global_fpr=0.01")
    assert table.title == "FPR by group at a global FPR of 1 %"
    assert not any(value.best for line in table.lines for value in line.values)


def test_variants_are_told_apart_only_where_needed():
    found = rows("faircal", 0.9, clusters="10") + rows("faircal", 0.8, clusters="20")
    found += rows("baseline", 0.7)
    table = accuracy_table(LabelledResults(found))
    assert [line.label for line in table.lines] == [
        "FairCal, K = 10",
        "FairCal, K = 20",
        "Baseline",
    ]


def test_the_difference_is_in_published_spreads():
    value = TableValue(0.9, published=0.88, published_std=0.01)
    assert value.compared
    assert value.difference == pytest.approx(2)
    for other in (
        TableValue(0.9, published=0.88),
        TableValue(0.9, published=0.88, published_std=0.0),
    ):
        assert other.compared
        assert other.difference != other.difference
    assert not TableValue(0.9).compared
    assert not TableValue(float("nan"), published=0.88, published_std=0.01).compared


def test_marking_the_best_keeps_the_rest_of_a_value():
    grid = [[TableValue(0.9, 0.1, published=0.8, published_std=0.2)], [TableValue(0.7)]]
    mark_best(grid, [0, 1], [Heading("", "AUROC", "higher")])
    assert grid == [[TableValue(0.9, 0.1, True, 0.8, 0.2)], [TableValue(0.7)]]


def test_words_in_place_of_a_number():
    value = TableValue(float("nan"), says="yes")
    assert value.text == "yes"
    assert Table("k", "t", "c", (Heading("", "x", ""),), (Line("m", (value,)),)).measured
    nothing = Line("m", (TableValue(float("nan")),))
    assert not Table("k", "t", "c", (Heading("", "x", ""),), (nothing,)).measured


def test_undefined_values_print_as_a_dash():
    assert TableValue(float("nan")).text == "–"
    found = rows("baseline", float("nan")) + rows("faircal", 0.9)
    table = accuracy_table(LabelledResults(found))
    assert [line.values[0].best for line in table.lines] == [False, True]


def test_without_groups_there_is_one_table():
    only = LabelledResults(rows("baseline", 0.9))
    assert [table.key for table in main_tables(store_of(only), "e")] == ["accuracy"]
    assert further_tables(store_of(only), "e") == []


def test_percent():
    assert rate_text("global_fpr=0.001") == "0.1 %"


def test_in_the_terminal_the_tables_fit_eighty_columns(results, monkeypatch):
    console = Console(width=80, file=io.StringIO())
    monkeypatch.setattr("faircal.cli.printing.console", lambda: console)
    for table in main_tables(store_of(results), "e"):
        show(table)
    text = console.file.getvalue()
    assert "…" not in text
    assert "FairCal" in text
    assert "97.00" in text


def test_records_are_fractions(results):
    record = accuracy_table(results).records()[0]
    assert record == {
        "label": "Baseline",
        "block": "net",
        "column": "AUROC",
        "value": 0.95,
        "std": 0.01,
        "low": None,
        "high": None,
        "best": False,
    }
