"""Figures of a classifier: what is drawn is what the folder holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from faircal.evaluation.classes import audit_classes, write_class_audit
from faircal.report.classes.figures import ChangeDots, ClassDiagram, class_figures
from faircal.report.classes.tables import ClassResults
from faircal.report.figures import svg
from faircal.report.figures.style import style
from faircal.report.store import ResultsFolder

KEYS = [
    "differences",
    "groups-top_ks",
    "groups-class_ks",
    "groups-accuracy",
    "groups-nll",
    "reliability",
    "reliability-classes",
]
FACES = re.compile(r"\b(people|pairs?|match(es)?|genuine|imposters?|strangers?)\b", re.IGNORECASE)


@pytest.fixture
def figures(store):
    return {figure.key: figure for figure in class_figures(store, "place")}


def test_all_are_there_with_table_words_and_caption(figures):
    assert list(figures) == KEYS
    for figure in figures.values():
        assert figure.title
        assert len(figure.caption) > 20
        assert len(figure.table)
        assert re.search(r"\d", figure.words)
        said = f"{figure.title} {figure.caption} {figure.words} {figure.table.column_names}"
        assert not FACES.search(said), said


def test_dots_are_the_results_with_their_intervals(store, figures):
    found = ClassResults(store, "place")
    rows = figures["groups-top_ks"].table.to_pylist()
    assert len(rows) == 4 * 2  # methods by groups with enough data
    for row in rows:
        value = found.result("top_ks", found.methods[row["method"]], row["group"])
        assert (row["value"], row["low"], row["high"]) == (value.value, value.low, value.high)
        assert row["low"] <= row["value"] <= row["high"]
    assert "Not drawn, not enough data: Tiny." in figures["groups-top_ks"].caption


def test_reliability_is_counted_from_the_curves(store, figures):
    panels = figures["reliability"]
    assert list(panels.names) == ["Uncalibrated", "Global", "FairCal", "Group-wise"]
    source = next(s for s in store.curves.sources if s.method == "global")
    histogram = store.curves.get("South", "probability", source)
    inside = (histogram.edges >= 0.7) & (histogram.edges < 0.8)
    rows = (histogram.genuine + histogram.imposter)[inside].sum()
    expected = histogram.genuine[inside].sum() / rows
    (row,) = [
        row
        for row in panels.table.to_pylist()
        if (row["panel"], row["group"]) == ("Global", "South") and 0.7 <= row["confidence"] < 0.8
    ]
    assert row["rows"] == rows
    assert row["right"] == expected
    assert "Tiny" not in {row["group"] for row in panels.table.to_pylist()}


def test_classes_are_drawn_by_name_and_of_many_the_worst(store, figures):
    assert set(figures["reliability-classes"].table["group"].to_pylist()) == {"cat", "dog", "owl"}
    of = "uncalibrated", "class"
    source = next(s for s in store.curves.sources if (s.method, s.attribute) == of)
    one = ClassDiagram(store.curves, source, without=("cat", "dog"))
    assert one.groups == ["owl"]
    assert one.caption.endswith("Not drawn, not enough data or a lower KS: cat and dog.")


def test_differences_are_filled_where_they_are_clear(two):
    found = ClassResults(two.store(), "place")
    figure = ChangeDots(found, found.references[-1], [("nll", "global")])
    assert figure.words == (
        "Difference to Global. NLL: Uncalibrated 0.04 (0.03 to 0.05), worse, FairCal −0.01 (−0.02 "
        "to 0.002), no clear difference."
    )
    pytest.importorskip("matplotlib")
    ax = figure.plot()
    white = [line for line in ax.get_lines() if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in white] == [[-0.01]]


def test_costs_and_shares_have_panels_of_their_own(two):
    two.differ("faircal", "global", "accuracy", 0.01, 0.005, 0.02)
    figures = class_figures(two.store(), "place")
    (figure,) = [figure for figure in figures if figure.key == "differences"]
    assert list(figure.names) == ["shares", "NLL"]


def looks(figure):
    """Colour and shape of each method, as the legend has it."""
    from matplotlib.figure import Figure

    with style():
        entries = figure.draw(Figure().add_subplot())
    return {name: (line.get_color(), line.get_marker()) for name, line in entries.items()}


def test_methods_look_the_same_in_every_figure(store):
    pytest.importorskip("matplotlib")
    found = ClassResults(store, "place")
    figures = {figure.key: figure for figure in class_figures(store, "place")}
    by_group = looks(figures["groups-top_ks"])
    assert list(by_group) == ["Uncalibrated", "Global", "FairCal", "Group-wise"]
    for reference in found.references:
        change = looks(ChangeDots(found, reference, [("nll", "global")]))
        assert change == {k: v for k, v in by_group.items() if k != store.results.label(reference)}


def many(by_hand, told, small):
    """A folder of many groups: the higher their number, the worse."""
    hand = by_hand(withheld={f"s{i:03}": "only 2 rows" for i in range(small)})
    for i in range(told):
        hand.add("uncalibrated", f"g{i:03}", "top_ks", i / 1000, 0, 1)
    for i in range(small):
        hand.add("uncalibrated", f"s{i:03}", "top_ks", 0.9, 0, 1)
    return ClassResults(hand.store(), "place")


def test_of_many_groups_the_worst_are_drawn(by_hand):
    store = many(by_hand, told=100, small=300).store
    (figure,) = [each for each in class_figures(store, "place") if each.key == "groups-top_ks"]
    assert figure.table["group"].to_pylist() == [f"g{i:03}" for i in range(76, 100)]
    assert figure.caption.endswith(
        "Not drawn, not enough data: s000, s001, s002, s003, s004, s005 and 294 more. Drawn are "
        "the 24 of 100 groups that fare worst."
    )
    assert figure.size[1] < 15


def test_of_many_groups_few_lines_are_drawn(tmp_path):
    names = [f"g{i}" for i in range(12)] + [f"s{i}" for i in range(10)]
    stated = np.linspace(0.55, 0.95, 12).tolist() + [0.9] * 10
    sizes = [100] * 12 + [2] * 10
    says = np.repeat(stated, sizes)
    found = audit_classes(
        np.c_[1 - says, says],
        np.ones(len(says), int),
        groups=np.repeat(names, sizes).tolist(),
        attribute="place",
    )
    write_class_audit(tmp_path, found, {})
    figures = class_figures(ResultsFolder.read(tmp_path), "place")
    (figure,) = [figure for figure in figures if figure.key == "reliability"]
    assert set(figure.table["group"].to_pylist()) == {f"g{i}" for i in range(8)}
    assert "or a lower KS: g10, g11, g8, g9, s0, s1 and 8 more." in figure.caption


def test_no_groups_no_group_figures(by_hand):
    store = by_hand().add("uncalibrated", "global", "top_ks", 0.1, 0.05, 0.15).store()
    assert class_figures(store, "place") == []


def test_they_can_be_drawn(figures):
    pytest.importorskip("matplotlib")
    for key in ("differences", "groups-nll", "reliability-classes"):
        drawn = svg(figures[key])
        assert drawn.startswith('<svg role="img" aria-label="')
        assert np.all([name in drawn for name in ("FairCal", "Group-wise")])
