"""The page: self-contained, honest about simulation, safe with hostile names."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.cli.main import main
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.curves import CURVES
from faircal.methods import METHODS
from faircal.metrics.results import read_results
from faircal.report import write_report
from faircal.report import writing as page_module
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.writing import FACES

VOID = {"meta", "br", "hr", "img", "input", "link"}
EVIL = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(2)> & \"q\" 'p'")


class Page(HTMLParser):
    """Checks that tags close in order; collects tags, attributes, headings and text by tag."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags, self.attributes = [], {}, Counter(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and data.strip():
            self.text.setdefault(self.open[-1], []).append(data.strip())

    def values(self, name):
        return [value for _, found, value in self.attributes if found == name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    data = faircal.simulate("small", seed=0, people=80, pairs=2000, dimension=16)
    methods = ("baseline", "faircal")
    attributes = ("gender", "ethnicity")
    settings = BenchmarkSettings(methods=methods, clusters=(5,), attributes=attributes)
    run_benchmark(data, folder, settings, jobs=1)
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture
def no_figures(monkeypatch):
    """Draw nothing, where figures are not what is looked at."""
    drawing_nothing = replace(FACES, figures=lambda *_: [])
    monkeypatch.setattr(page_module, "subject_of", lambda _: drawing_nothing)
    monkeypatch.setattr("faircal.report.figures.paper_figures", lambda *_: [])


def copy(folder, target, *names):
    for name in names:
        shutil.copy(folder / name, target)


def test_nothing_is_fetched(text, page):
    assert [v for n in ("src", "srcset", "xlink:href") for v in page.values(n)] == []
    assert all(target.startswith(("#", "data:")) for target in page.values("href"))
    for word in ("http:", "https:", "@import", "innerHTML", "eval("):
        assert word not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r"\son[a-z]+=", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))


def test_the_browser_is_told_to_fetch_nothing_and_run_only_our_script(text):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';")
    assert re.search(r"script-src 'sha256-[\w+/]{43}='$", policy)


def test_ids_are_unique_and_every_link_leads_somewhere(page):
    ids = Counter(page.values("id"))
    assert [name for name, times in ids.items() if times > 1] == []
    for name in ("for", "aria-labelledby"):
        assert set(page.values(name)) <= set(ids)
    assert {target[1:] for target in page.values("href") if target[0] == "#"} <= set(ids)


def test_headings_follow_one_another(text, page):
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert page.text["h2"] == [
        "Summary",
        "Explorer",
        "Tables",
        "Figures",
        "How to read this",
        "How it was computed",
    ]
    assert page.text["h3"].count("Groups by ethnicity") == 3


def test_simulated_data_is_called_simulated(page):
    assert "Simulated data." in page.text["strong"]


def test_the_summary_answers_the_four_questions(page):
    for question in page_module._QUESTIONS.values():
        assert question in page.text["h4"]


def test_the_tables_hold_the_results(folder, page):
    shown = page.text["td"] + page.text["strong"]
    rows = read_results(folder)
    for method in ("baseline", "faircal"):
        row = next(
            row
            for row in rows
            if (row.method, row.metric, row.group, row.fold) == (method, "auroc", "global", "mean")
        )
        assert f"{100 * row.value:.2f}" in shown


def test_figures_are_drawn_and_said_in_words(page):
    words = [v for tag, name, v in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(words) == page.tags["figcaption"] + 1  # and the explorer's chart
    assert any("Asian" in said for said in words)


def test_the_explorer_has_its_parts_and_its_data(page):
    ids = set(page.values("id"))
    assert ids >= {"explorer", "explorer-view", "threshold", "threshold-value"}
    assert ids >= {"explorer-table", "explorer-chart", "explorer-note", "explorer-reset"}
    assert ("input", "type", "range") in page.attributes
    data = json.loads(page.text["script"][0])
    assert [view["name"] for view in data["views"]] == [
        "groups by gender",
        "groups by ethnicity",
    ]


def test_writing_again_changes_neither_results_nor_page(folder, tmp_path, no_figures):
    """Figures are drawn alike each time, too: see their tests."""
    copy(folder, tmp_path, "results.csv", "run.json", CURVES, "differences.csv")
    write_report(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    write_report(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_without_matplotlib_the_page_says_how_to_get_figures(folder, tmp_path, monkeypatch):
    copy(folder, tmp_path, "results.csv", "run.json", CURVES)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert page.tags["figure"] == 0
    (line,) = [line for line in page.text["p"] if "faircal[figures]" in line]
    assert "pip install 'faircal[figures]'" in line


def test_a_folder_of_old_without_curves_still_gives_a_page(folder, tmp_path, no_figures):
    copy(folder, tmp_path, "results.csv", "run.json")
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert "threshold" not in page.values("id")
    assert any("curves.parquet" in line for line in page.text["p"])
    assert page.tags["table"] > 3


def test_names_from_the_data_cannot_break_out(tmp_path, monkeypatch):
    """Neither in the page, nor in the figures, nor in the explorer's data."""
    rng = np.random.default_rng(0)
    evil, other = EVIL
    genuine = np.arange(600) % 2
    table = {
        "genuine": genuine,
        "fold": np.arange(600) // 2 % 2,
        evil: np.clip(rng.normal(genuine * 0.5, 0.2), -1, 1),
        other: np.resize(EVIL, 600),
    }
    file = tmp_path / f"{evil.replace('/', '')}.csv"  # names the dataset
    pacsv.write_csv(pa.table(table), file)
    monkeypatch.setattr(METHODS["oracle"], "title", evil)
    settings = BenchmarkSettings(methods=("baseline", "oracle"))
    run_benchmark(faircal.load(file), tmp_path / "out", settings, jobs=1)
    text = write_report(tmp_path / "out").read_text("utf-8")
    page = Page(text)
    assert page.text["h1"] == [file.stem]
    assert (page.tags["script"], page.tags["img"]) == (2, 0)
    assert not re.search(r"<[^>]*\sonerror=", re.sub(r'"[^"]*"', '""', text))
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.DOTALL)
    assert "alert" not in script
    (view,) = json.loads(data)["views"]
    assert sorted(view["groups"]) == sorted(["global", *EVIL])
    assert view["methods"] == ["Baseline", evil]
    assert view["name"] == f"groups by {other}"


def test_a_folder_without_results_is_one_clear_error(tmp_path):
    with pytest.raises(faircal.DataError, match=re.escape("results.csv: not found")):
        write_report(tmp_path)


def test_each_feature_stands_over_its_own_numbers(tmp_path, no_figures):
    """In the order of the data, not of the alphabet."""
    rng = np.random.default_rng(0)
    table = tmp_path / "scores.csv"
    lines = ["genuine,fold,zebra,aardvark"]
    for i in range(400):
        good = 0.9 if i % 2 else -0.9
        lines.append(f"{i % 2},{i // 2 % 2},{good},{rng.uniform(-1, 1)}")
    table.write_text("\n".join(lines) + "\n")
    run_benchmark(
        faircal.load(table), tmp_path / "b", BenchmarkSettings(methods=("baseline",)), jobs=1
    )
    page = Page(write_report(tmp_path / "b").read_text("utf-8"))
    assert page.text["h4"] == ["zebra", "aardvark"]
    aurocs = page.text["td"][0], page.text["td"][3]  # three columns a feature
    assert aurocs[0] == "100.00"
    assert float(aurocs[1]) < 70


def test_an_audit_withholds_what_it_cannot_tell(tmp_path, no_figures):
    rng = np.random.default_rng(1)
    lines = ["genuine,score,group"]
    for i in range(2000):
        group = "few" if i < 60 else "many"
        lines.append(f"{i % 2},{np.clip(rng.normal(0.5 * (i % 2), 0.2), -1, 1)},{group}")
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(SystemExit) as left:
        main(["audit", str(table), "--threshold", "0.1", "--out", str(tmp_path / "a")])
    assert left.value.code == 0
    text = (tmp_path / "a" / "report.html").read_text("utf-8")
    for metric in ("FPR", "FNR"):
        label = f"{metric} by group at the given threshold"
        (shown,) = re.findall(rf'aria-label="{label}">(.*?)</table>', text, flags=re.DOTALL)
        names = re.findall(r'<th scope="col">(.*?)</th>', shown)
        cells = re.findall(r"<td>(.+?)</td>", shown, flags=re.DOTALL)
        by_group = dict(zip(names, map(str.strip, cells), strict=True))
        assert by_group["few"] == "not enough data"
        assert re.match(r"\d+\.\d\d\s*<small", by_group["many"])


def test_rows_stand_under_their_block_and_beside_the_published_number(
    folder, tmp_path, monkeypatch
):
    copy(folder, tmp_path, "results.csv", "run.json")
    table = Table(
        "t",
        "Title",
        "Caption",
        (Heading("net", "AAD", "lower"),),
        (
            Line("one", (TableValue(0.9012, 0.004, True, 0.9058, 0.0042),), block="0.1 % FPR"),
            Line("two", (TableValue(0.5, published=0.25),), block="0.1 % FPR"),
            Line(
                "three", (TableValue(float("nan"), published=0.25, published_std=0.1),), block="1 %"
            ),
        ),
    )
    own = replace(FACES, figures=lambda *_: [], main=lambda *_: [table])
    monkeypatch.setattr(page_module, "subject_of", lambda _: own)
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert page.text["th"].count("0.1 % FPR") == 2  # once for each attribute
    assert "90.12" in page.text["strong"]
    assert page.text["small"][:3] == ["± 0.40", "paper 90.58 (−1.1 σ)", "paper 25.00"]


def test_a_reproduction_on_simulated_data_says_that_nothing_is_compared(
    folder, tmp_path, no_figures
):
    copy(folder, tmp_path, "results.csv", CURVES)
    run = json.loads((folder / "run.json").read_text("utf-8"))
    run |= {"kind": "reproduce", "paper": "bfw"}
    (tmp_path / "run.json").write_text(json.dumps(run), "utf-8")
    page = Page(write_report(tmp_path).read_text("utf-8"))
    assert "Agreement with the paper" in page.text["h2"]
    assert any("the data is simulated" in line for line in page.text["p"])
    assert not any(text.startswith("paper ") for text in page.text["small"])
