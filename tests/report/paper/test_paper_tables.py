"""The paper's tables: each published number in its place, in the paper's order and form."""

from __future__ import annotations

import csv
import math
from importlib.resources import files

import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.metrics.results import Result
from faircal.report.paper import check_networks, reproduction
from faircal.report.paper.published import Matched, group_name

KEYS = {"RFW": "rfw", "BFW": "bfw", "IJB-C": "ijbc"}


def column_and_block(condition, metric):
    """Say where a row of the paper's CSV belongs, from its own words."""
    kind, _, told = condition.partition("=")
    if kind == "subgroup":
        return told, ""
    if metric == "TPR":
        return f"TPR @ {told.replace('%', ' %')} FPR", ""
    if metric == "AUROC":
        return "AUROC", ""
    name = metric.split("_")[1]
    block = f"{told.replace('%', ' %')} {kind[-3:].upper()}" if told else ""
    return name if name.isupper() else name.capitalize(), block


def placed(tables):
    """Return the text of every numeric cell by where it is."""
    return {
        (table.key, heading.block, line.label, heading.name, line.block): value
        for table in tables
        if table.key != "properties_comparison"
        for line in table.lines
        for heading, value in zip(table.headings, line.values, strict=True)
    }


def test_every_published_row_stands_in_exactly_its_table(make_store):
    cells = {
        (key, *place): value
        for key in KEYS.values()
        for place, value in placed(reproduction(make_store(key)).tables).items()
    }
    text = files("faircal.report.paper").joinpath("published.csv").read_text(encoding="utf-8")
    cut_short = 0
    for row in csv.DictReader(text.splitlines()):
        table = row["table_label"].removeprefix("table:")
        where = column_and_block(row["condition"], row["metric"])
        method = row["method"]
        if method == "PASS" and row["dataset"] != "RFW":
            method = "MultiPASS"
        value = cells.pop((KEYS[row["dataset"]], table, row["feature"], method, *where))
        if value.text != f"{float(row['mean']):.2f}":
            cut_short += 1
            assert value.text.startswith(row["mean"])
        assert f"{100 * value.published:.2f}" == value.text
        if row["std"]:
            assert value.spread == f"{float(row['std']):.2f}"
    assert cut_short == 4
    assert not cells


def test_tables_are_in_the_papers_order(make_store):
    assert [table.key for table in reproduction(make_store("rfw")).tables][:7] == [
        "properties_comparison",
        "global_performance_beta",
        "fair_calibration_ks",
        "predictive_equality_at_fpr_beta",
        "subgroup_calibration_rfw_ks_ethnicity",
        "equal_opportunity_at_fnr_beta",
        "global_performance_beta_auroc",
    ]
    counts = {key: len(reproduction(make_store(key)).tables) for key in KEYS.values()}
    assert counts == {"rfw": 19, "bfw": 19, "ijbc": 4}


def test_only_the_appendix_shows_spreads(make_store):
    tables = reproduction(make_store("bfw")).tables
    assert [table.spreads for table in tables] == [False] * 6 + [True] * 13


def test_best_is_bold_among_all_but_oracle_and_ties_are_both(make_store):
    cells = placed(reproduction(make_store("bfw")).tables)
    pe, web = "predictive_equality_at_fpr_beta", "FaceNet (Webface)"
    best = {
        method
        for (table, feature, method, column, block), value in cells.items()
        if (table, feature, column, block) == (pe, web, "AAD", "0.1 % FPR") and value.best
    }
    assert best == {"FSN", "FairCal"}
    assert not any(value.best for place, value in cells.items() if place[2] == "Oracle")


def test_methods_in_the_papers_order_and_others_before_faircal(make_store):
    extra = [
        Result("d", "arcface", name, "beta", "", "0", "mean", "att", "global", "", "auroc", 0.99)
        for name in ("pass", "mine")
    ]
    tables = reproduction(make_store("bfw", extra=extra)).tables
    lines = tables[1].lines
    assert [line.label for line in lines] == [
        *("Baseline", "AGENDA", "MultiPASS", "FTC", "GST", "FSN"),
        *("PASS", "mine", "FairCal", "Oracle"),
    ]
    assert [line.apart for line in lines] == [False] * 9 + [True]
    assert math.isnan(lines[6].values[3].published)


def variants(make_store, found, **settings):
    extra = [
        Result("d", "net", "faircal", *kind, "0", "mean", "att", "global", "", "auroc", value)
        for kind, value in found.items()
    ]
    run = {"settings": settings, "simulated": True}
    store = make_store("rfw", lambda *_: None, extra=extra, **run)
    return reproduction(store)


def test_the_main_variant_is_the_papers(make_store):
    found = {("isotonic", "100"): 0.1, ("beta", "50"): 0.2, ("beta", "100"): 0.3}
    (line,) = variants(make_store, found).tables[1].lines
    assert (line.label, line.values[0].text) == ("FairCal", "30.00")


def test_else_the_first_calibrator_and_the_nearest_number_and_a_note_says_so(make_store):
    found = {("isotonic", "20"): 0.1, ("platt", "50"): 0.2, ("platt", "20"): 0.3}
    made = variants(make_store, found, calibrators=["platt", "isotonic"], clusters=[20, 50])
    assert made.tables[1].lines[0].values[0].text == "20.00"
    assert "FairCal: calibrator platt in place of beta, 50 clusters in place of 100." in made.notes


def test_features_by_other_names(make_store):
    def renamed(store, names):
        rows = [row._replace(feature=names[row.feature]) for row in store.results.rows]
        store.results.__init__(rows)
        return store

    names = {"facenet-vggface2": "VGGFace2", "facenet-webface": "w"}
    store = renamed(make_store("rfw", published={"w": "facenet-webface"}), names)
    found = Matched.of(store).features
    assert [(match.name, match.title) for match in found] == [
        ("VGGFace2", "FaceNet (VGGFace2)"),
        ("w", "FaceNet (Webface)"),
    ]
    store = renamed(
        make_store("rfw"), {"facenet-vggface2": "facenet", "facenet-webface": "vggface2"}
    )
    assert [match.title for match in Matched.of(store).features] == [
        "FaceNet (VGGFace2): facenet",
        "FaceNet (VGGFace2): vggface2",
    ]


def test_a_feature_that_the_paper_lacks_has_no_published_number(make_store):
    rows = [row for row in make_store("rfw").results.rows if row.feature == "facenet-webface"]
    store = make_store("rfw", extra=[row._replace(feature="dlib") for row in rows])
    made = reproduction(store)
    table = made.tables[1]
    blocks = [block for block, _ in table.parts]
    assert blocks == ["FaceNet (VGGFace2)", "FaceNet (Webface)", "dlib"]
    assert all(math.isnan(line.values[-1].published) for line in table.lines)
    assert "The paper has no numbers of dlib on RFW." in made.notes


@pytest.mark.parametrize(
    ("ours", "papers"),
    [
        ("black_females", "African Female"),
        ("white_males", "Caucasian Male"),
        ("African F", "African Female"),
        ("M Indian", "Indian Male"),
        ("A M", "Asian Male"),
        ("Asian", "Asian"),
        ("dark F", "dark F"),
        ("", ""),
    ],
)
def test_group_names(ours, papers):
    assert group_name(ours) == papers


def test_numbers_over_other_groups_are_not_compared(make_store):
    store = make_store("rfw")
    rows = [row for row in store.results.rows if row.group != "Indian"]
    store.results.__init__(rows)
    made = reproduction(store)
    cells = placed(made.tables)
    accuracy = ("global_performance_beta", "FaceNet (Webface)", "Baseline", "AUROC", "")
    calibration = ("fair_calibration_ks", "FaceNet (Webface)", "Baseline", "AAD", "")
    by_group = ("subgroup_calibration_rfw_ks_ethnicity", "FaceNet (Webface)", "Baseline")
    assert cells[accuracy].compared
    assert not cells[calibration].compared
    assert cells[(*by_group, "African", "")].compared
    assert any("groups are not the paper's" in note for note in made.notes)


def test_groups_that_could_be_the_same_are_not_matched(make_store):
    extra = [
        Result("d", "arcface", "gst", "beta", "", "0", "mean", "att", name, "", "ks", 0.5)
        for name in ("Asian F", "A F")
    ]
    groups = Matched.of(make_store("bfw", extra=extra)).groups
    assert {group.name for group in groups if not group.paper} == {
        "Asian F",
        "A F",
        "asian_females",
    }


def test_tables_without_a_value_are_left_out_and_keep_the_others_numbers(make_store):
    made = reproduction(make_store("rfw", lambda q, p: p.mean if q.metric != "ks" else None))
    assert 5 not in made.numbered
    assert made.numbered[6].key == "equal_opportunity_at_fnr_beta"
    assert any(
        note.endswith("nothing was measured: Calibration error by group.") for note in made.notes
    )


def test_an_unknown_dataset_is_one_clear_line(make_store):
    with pytest.raises(DataError, match=r"run\.json: 'paper' is 'lfw', expected rfw, bfw, ijbc"):
        reproduction(make_store("rfw", paper="lfw"))


def test_networks_are_checked_by_name():
    check_networks({"a": "arcface"}, ["a", "b"])
    with pytest.raises(ParameterError, match="there is no feature 'c'"):
        check_networks({"c": "arcface"}, ["a", "b"])
    with pytest.raises(ParameterError, match="did you mean arcface"):
        check_networks({"a": "arcfac"}, ["a", "b"])


def test_the_table_of_properties(make_store):
    table = reproduction(make_store("ijbc")).tables[0]
    assert len(table.lines) == 16
    assert [line.label for line in table.lines if line.apart] == ["Oracle"]
    assert [value.text for value in table.lines[-1].values] == ["yes"] * 6
    assert [value.text for value in table.lines[0].values] == [
        "yes",
        "no",
        "no",
        "yes",
        "yes",
        "no",
    ]
