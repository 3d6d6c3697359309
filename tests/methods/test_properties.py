"""The paper's table of properties, copied here by hand."""

from __future__ import annotations

from faircal.methods import METHODS, properties

COLUMNS = (
    "improves_accuracy",
    "fairly_calibrated",
    "predictive_equality",
    "no_attribute_to_fit",
    "no_attribute_to_apply",
    "no_training",
)
PAPER = {
    "gst": (True, False, True, False, False, True),
    "fsn": (True, False, True, True, True, True),
    "faircal": (True, True, True, True, True, True),
    "oracle": (True, True, True, False, False, True),
    "agenda": (False, False, True, False, True, False),
    "pass": (False, False, True, False, True, False),
    "ftc": (False, False, True, False, True, False),
}


def test_as_the_paper_says():
    rows = {row["method"]: tuple(row[column] for column in COLUMNS) for row in properties()}
    assert {name: rows[name] for name in PAPER} == PAPER


def test_what_the_paper_calls_pass_is_multipass_where_attributes_are_two():
    rows = {row["method"]: row for row in properties()}
    assert [rows["multipass"][column] for column in COLUMNS] == list(PAPER["pass"])


def test_extras():
    found = {row["method"]: row["extra"] for row in properties()}
    assert found.pop("ftc") == found.pop("agenda") == "torch"
    assert found.pop("pass") == found.pop("multipass") == "torch"
    assert set(found.values()) == {""}


def test_the_baseline_claims_nothing_and_needs_nothing():
    row = next(row for row in properties() if row["method"] == "baseline")
    assert [row[column] for column in COLUMNS] == [False, False, False, True, True, True]


def test_one_row_for_each_method_in_the_order_of_the_tables():
    assert [row["method"] for row in properties()] == list(METHODS)
    assert [row["title"] for row in properties()] == [kind.title for kind in METHODS.values()]


def test_only_the_oracle_is_a_yardstick():
    assert [name for name, kind in METHODS.items() if kind.yardstick] == ["oracle"]
