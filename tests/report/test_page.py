"""The page: self-contained, honest about simulation, safe with hostile names."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import faircal
from faircal.benchmark import Settings, run_benchmark
from faircal.cli.main import main
from faircal.report import write_report
from faircal.report.svg import DotPlot
from faircal.results import Interval, read_results, write_intervals

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that tags close in order; collects text by tag, and attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.attributes = [], {}, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and data.strip():
            self.text.setdefault(self.open[-1], []).append(data.strip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    data = faircal.simulate("small", seed=0)
    methods = ("baseline", "gst", "fsn", "faircal", "oracle")
    run_benchmark(data, folder, Settings(methods=methods, clusters=(5,)), jobs=1)
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text("utf-8"))


def test_the_page_is_well_formed_and_fetches_nothing(folder, page):
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "srcset"}
    text = (folder / "report.html").read_text("utf-8")
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert "<script" not in text


def test_simulated_data_is_called_simulated(page):
    assert "Simulated data." in page.text["strong"]


def test_the_tables_hold_the_results(folder, page):
    rows = read_results(folder)
    for method in ("baseline", "faircal"):
        (row,) = [
            row
            for row in rows
            if (row.method, row.metric, row.group, row.fold) == (method, "auroc", "global", "mean")
        ]
        shown = page.text["td"] + page.text["strong"]
        assert f"{100 * row.value:.2f}" in shown


def test_figures_carry_their_values_as_words(page):
    labels = [value for name, value in page.attributes if name == "aria-label"]
    assert any(label.startswith("False-positive rate of each group") for label in labels)
    assert sum("Asian F" in label for label in labels) >= 2


def test_writing_again_changes_neither_results_nor_page(folder):
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    write_report(folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_names_from_the_data_cannot_break_out(tmp_path):
    evil = '<script>alert("x")</script>'
    rng = np.random.default_rng(0)
    n = 400
    data = faircal.Dataset(
        name=evil,
        pairs={
            "left": np.arange(n),
            "right": np.arange(n) + n,
            "genuine": np.arange(n) % 2,
            "score": rng.uniform(-1, 1, n),
            "fold": np.arange(n) // 2 % 2,
        },
        attributes={"group": np.tile([evil, "b & c"], n)},
    )
    run_benchmark(data, tmp_path, Settings(), jobs=1)
    text = write_report(tmp_path).read_text("utf-8")
    assert "<script" not in text
    Page(text)


def test_a_folder_without_results_is_one_clear_error(tmp_path):
    with pytest.raises(faircal.DataError, match=re.escape("results.csv: not found")):
        write_report(tmp_path)


def test_dot_plot_axis_ends_at_a_round_number_above_all_values():
    plot = DotPlot("t", "a", ["x", "y"], {"m": [0.021, float("nan")]}, mark=0.01)
    assert plot._ticks == pytest.approx([0, 0.01, 0.02, 0.03])
    svg = plot.svg()
    assert svg.count("<title>") == 1  # the undefined value is not drawn
    assert "m, x: 2.10 %" in svg


def test_each_feature_stands_over_its_own_numbers(tmp_path):
    """In the order of the data, not of the alphabet."""
    rng = np.random.default_rng(0)
    table = tmp_path / "scores.csv"
    lines = ["genuine,fold,zebra,aardvark"]
    for i in range(400):
        good = 0.9 if i % 2 else -0.9
        lines.append(f"{i % 2},{i // 2 % 2},{good},{rng.uniform(-1, 1)}")
    table.write_text("\n".join(lines) + "\n")
    run_benchmark(faircal.load(table), tmp_path / "b", Settings(methods=("baseline",)), jobs=1)
    page = Page(write_report(tmp_path / "b").read_text("utf-8"))
    assert page.text["h4"] == ["zebra", "aardvark"]
    aurocs = page.text["td"][0], page.text["td"][3]  # three columns a feature
    assert aurocs[0] == "100.00"
    assert float(aurocs[1]) < 70


@pytest.mark.parametrize(("n", "clear"), [(40, False), (20_000, True)])
def test_the_headline_says_whether_the_data_can_tell_groups_apart(tmp_path, n, clear):
    rng = np.random.default_rng(1)
    genuine = np.arange(n) % 2 == 1
    group = np.where(np.arange(n) // 2 % 2, "A", "B")
    scores = np.clip(rng.normal(genuine * 0.6 + (group == "A") * 0.05, 0.1), -1, 1)
    table = tmp_path / "scores.csv"
    lines = [f"{int(y)},{s},{g}" for y, s, g in zip(genuine, scores, group, strict=True)]
    table.write_text("genuine,score,group\n" + "\n".join(lines) + "\n")
    main_args = ["audit", str(table), "--threshold", "0.1", "--out", str(tmp_path / "a")]
    with pytest.raises(SystemExit) as left:
        main(main_args)
    assert left.value.code == 0
    text = (tmp_path / "a" / "report.html").read_text("utf-8")
    assert ("times as many" in text) is clear
    assert ("does not tell them apart" in text) is not clear


def test_intervals_of_an_earlier_audit_are_not_shown_with_a_benchmark(folder, tmp_path):
    (tmp_path / "results.csv").write_bytes((folder / "results.csv").read_bytes())
    (tmp_path / "run.json").write_bytes((folder / "run.json").read_bytes())
    row = Interval("embedding", "ethnicity+gender", "Asian F", "", "fpr", 0.1, 0, 1, 0.95, 1.0, 10)
    write_intervals(tmp_path, [row])
    assert "Error rates with intervals" not in write_report(tmp_path).read_text("utf-8")


def test_every_method_has_a_marker_of_its_own():
    plot = DotPlot("t", "a", ["x"], {f"m{i}": [0.01 * i] for i in range(20)})
    assert len({marker for _, marker in plot.legend()}) == 20
    few = DotPlot("t", "a", ["x"], {f"m{i}": [0.01 * i] for i in range(10)})
    shapes = {re.search(r">(<(?:circle|rect|path)[^>]*>)", marker)[1] for _, marker in few.legend()}
    assert len(shapes) == 10  # told apart in grey, too
