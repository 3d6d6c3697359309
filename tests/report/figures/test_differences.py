"""The figure of differences shows what was compared, and leaves out what is not told."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircal.evaluation.compare import Comparison
from faircal.evaluation.curves import Curves
from faircal.metrics.results import Result
from faircal.report.figures import Differences, FigureScope
from faircal.report.store import LabelledResults, ResultsFolder


def compared(metric, a, b, verdict="better", method="fsn"):
    half = 0.01 * 2**0.5
    ends = (b - a, b - a - half, b - a + half, 0.95, 0.0, float("inf"))
    where = ("f", "sex", "baseline", method, "global", "", metric)
    return Comparison(*where, a, b, *ends, 0.01, 0.02, verdict, 3, 50.0)


FOUND = [
    compared("auroc", 0.90, 0.93),
    compared("ks", 0.05, 0.05, "not told apart"),
    compared("ks", 0.05, 0.02, "not enough data", "oracle"),
]


def test_table_holds_what_is_told():
    rows = Differences(FOUND).table.to_pylist()
    assert [(row["metric"], row["method"], row["verdict"]) for row in rows] == [
        ("AUROC", "FSN", "better"),
        ("KS", "FSN", "not told apart"),
    ]
    assert rows[0]["difference"] == pytest.approx(0.03)
    assert rows[0]["high"] - rows[0]["low"] == pytest.approx(2 * 0.01 * 2**0.5)


@pytest.fixture
def reported():
    """The figures in the report of a benchmark that found these differences."""

    def figures(compared, feature="f"):
        rows = [Result("d", feature, "baseline", attribute="sex", metric="ks", value=0.1)]
        store = ResultsFolder(
            Path(), LabelledResults(rows), {}, Curves([]), comparisons=list(compared)
        )
        return Differences.in_report(FigureScope(store, feature, "sex"))

    return figures


def test_accuracy_and_errors_have_a_panel_each(reported):
    (figure,) = reported(FOUND)
    assert figure.key == "differences"
    assert figure.title == "Difference to Baseline"
    canvas = figure.plot()
    assert [ax.get_title() for ax in canvas.axes] == ["accuracy", "errors and deviations"]
    marks = [line for line in canvas.axes[0].lines if list(line.get_xdata()) == [FOUND[0].b - 0.9]]
    assert marks[0].get_markerfacecolor() != "white"
    assert reported(FOUND, "another feature") == []


def test_nothing_told_is_nothing_drawn(reported):
    untold = [each._replace(verdict="not known") for each in FOUND]
    assert reported(untold) == []
