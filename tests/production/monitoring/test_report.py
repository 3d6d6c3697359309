"""The report of monitoring: words, pictures, record, table, page; from findings made by hand."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from faircal.model import Population
from faircal.production.monitoring import Finding, PairsInUse, Verdict
from faircal.production.monitoring.report import (
    DUE,
    QUIET,
    WAIT,
    MonitoringResult,
    Stretch,
    advice,
    headline,
    monitoring_page,
    pictures,
    write_monitoring,
)

NAN = float("nan")
WINDOW = {
    "tolerance": 0.02,
    "window_end": 2000,
    "window_pairs": 1500,
    "known": "people",
    "caveat": "",
    "share_genuine": 0.25,
}
TITLES = {"clusters": "Cluster occupancy", "scores": "Scores", "outside": "Outside"}
DETAILS = {
    "clusters": {"regions": {"found": [0.5, 0.3, 0.2], "expected": [0.2, 0.35, 0.45]}},
    "scores": {
        "bins": {"found": [0.1, 0.2, 0.3, 0.4], "expected": [0.25] * 4},
    },
    "outside": {"found": 0.04, "expected": 0.005},
    "calibration": {
        "curve": {"probability": [0.1, 0.5, 0.9], "labels": [40, 0, 5], "genuine": [8, 0, 4]}
    },
}


def finding(name, *, alarm=False, enough=True):
    title = TITLES.get(name, "Calibration on feedback")
    if not enough:
        return Finding(name, title, NAN, NAN, NAN, False, False, "too few", {})
    return Finding(
        name, title, 0.25, 1e-9, 1e-5, alarm, True, f"{name} in words", WINDOW | DETAILS[name]
    )


def verdict(alarms=("clusters",), missing=()):
    findings = tuple(
        finding(name, alarm=name in alarms, enough=name not in missing) for name in DETAILS
    )
    return Verdict(bool(alarms), findings, 2345, 45, "All of it in words.")


POPULATION = Population(
    np.zeros((4, 2), np.float32),
    np.ones(4, np.float32),
    np.array([0.0, 1.0]),
    np.array([1]),
    np.array([1]),
    region=np.array([0, 1, 2, 1]),
    counted_by="people",
    people=321,
)
TIMELINE = (
    Stretch("monday.csv", 2000, 0.5, 0.4, 4000, 20, 45, 12, 11.5),
    Stretch("<b>tuesday</b>", 345, 0.6, 0.5, 690, 69, 0, 0, 0.0),
)


@pytest.fixture
def found():
    model = {"name": "faces.faircal", "method": "FairCal", "sha256": "ab" * 32}
    return MonitoringResult(
        verdict(),
        POPULATION,
        TIMELINE,
        {**model, "data": "gate <1>", "simulated": False},
        0.01,
        {"monday.csv": 2000},
        ["people are <unknown>"],
    )


class Page(HTMLParser):
    """Tags that are open, ids, links, tables of cells; what is not closed fails."""

    VOID = ("meta", "link", "line", "rect", "circle", "path")

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.tables, self.tags, self.words = [], [], [], [], []
        self._open = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.tags.append((tag, of))
        if tag not in self.VOID:
            self._open.append(tag)
        if "id" in of:
            self.ids.append(of["id"])
        if tag == "a":
            self.links.append(of["href"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        if "style" not in self._open:
            self.words.append(data)


def test_the_page_says_the_verdict_first_and_every_link_leads_somewhere(found):
    page = Page(monitoring_page(found))
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len(page.links) == 9
    text = " ".join(page.words)
    assert text.index("Recalibration is due") < text.index("What was tested")
    assert "Cluster occupancy: other people" in text
    assert "321 people" in text


def test_tests_are_in_a_table(found):
    page = Page(monitoring_page(found))
    head, clusters, *_ = page.tables[0]
    assert head == ["what", "verdict", "how far", "tolerance", "p-value", "level"]
    assert clusters == ["Cluster occupancy", "ALARM", "0.25", "0.02", "1e−09", "1e−05"]
    assert [row[1] for row in page.tables[0][2:]] == ["quiet"] * 3


def test_regions_are_listed_with_the_biggest_change_first(found):
    rows = pictures(found.verdict, POPULATION, TIMELINE)["clusters"].rows
    assert rows == (
        ("region 0", "20 %", "50 %", "+30.00 pp", "0"),
        ("region 2", "45 %", "20 %", "−25.00 pp", "2"),
        ("region 1", "35 %", "30 %", "−5.00 pp", "1, 3"),
    )


def test_scores_are_shown_bin_by_bin():
    rows = pictures(verdict(), POPULATION, TIMELINE)["scores"].rows
    assert [row[0] for row in rows] == ["0 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"]
    assert rows[0][1:] == ("25 %", "10 %", "−15.00 pp")


def test_bins_that_calibration_hardly_fills_are_joined():
    details = {"bins": {"found": [1 / 201] * 201, "expected": [1 / 201] * 201}}
    many = replace(finding("scores"), details=WINDOW | details)
    shown = pictures(Verdict(False, (many,), 1, 0, ""), POPULATION, ())["scores"]
    assert 15 <= len(shown.rows) <= 20
    parts = [float(row[1].removesuffix(" %")) for row in shown.rows]
    assert sum(parts) == pytest.approx(100, abs=0.5)
    assert max(parts) < 2 * min(parts)


def test_images_outside_are_shown_over_time_beside_those_of_calibration():
    shown = pictures(verdict(), POPULATION, TIMELINE)["outside"]
    assert [row[3] for row in shown.rows] == ["0.5 %", "10 %"]
    assert "Expected: 0.5 %" in shown.drawing
    low, high = re.findall(r"[\d.]+", shown.rows[1][4])
    assert 7 < float(low) < 10 < float(high) < 13


def test_reliability_has_intervals_and_leaves_few_pairs_to_the_table():
    shown = pictures(verdict(), POPULATION, TIMELINE)["calibration"]
    assert [row[:4] for row in shown.rows] == [
        ("10 %", "40", "8", "20 %"),
        ("90 %", "5", "4", "80 %"),
    ]
    assert shown.drawing.count("<circle") == 1


def test_what_was_not_looked_at_is_not_drawn(found):
    missing = tuple(DETAILS)
    bare = replace(found, verdict=verdict((), missing), timeline=())
    page = Page(monitoring_page(bare))
    assert "Not enough data" in " ".join(page.words)
    assert not [tag for tag, _ in page.tags if tag == "svg"]
    assert [row[1:] for row in page.tables[0][1:]] == [["not enough data"] + ["–"] * 4] * 4


def test_names_are_text_and_nothing_else(found):
    text = monitoring_page(found)
    for name in ("<b>tuesday", "gate <1>", "<unknown>"):
        assert name not in text
    assert "&lt;b&gt;tuesday" in text


def test_the_page_stands_alone_and_has_no_script(found):
    text = monitoring_page(found)
    tags = [tag for tag, _ in Page(text).tags]
    assert "script" not in tags
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", text)
    assert "default-src 'none'" in text


def test_every_figure_says_what_it_shows_and_can_be_reached_by_keyboard(found):
    page = Page(monitoring_page(found))
    drawn = [of for tag, of in page.tags if tag == "svg"]
    assert len(drawn) == 5
    assert all(of["role"] == "img" for of in drawn)
    regions = [of for _, of in page.tags if of.get("role") == "region"]
    assert all(of["tabindex"] == "0" and of["aria-label"] for of in regions)
    assert len({of["aria-label"] for of in regions}) == len(regions) == 11


def test_simulated_data_is_said_to_be(found):
    assert "Simulated data." not in monitoring_page(found)
    assert "Simulated data." in monitoring_page(
        replace(found, model={**found.model, "simulated": True})
    )


def test_record_and_table_have_all_numbers(found, tmp_path):
    paths = write_monitoring(tmp_path / "watch", replace(found, verdict=verdict((), ("outside",))))
    record = json.loads(paths["record"].read_text())
    assert record["kind"] == "monitor"
    assert record["findings"][2]["p_value"] is None
    assert record["timeline"][1]["source"] == "<b>tuesday</b>"
    with paths["table"].open() as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert ("clusters", "regions.0", "found", "0.5") in rows
    assert ("scores", "bins.3", "found", "0.4") in rows
    assert ("timeline", "2", "outside", "69.0") in rows
    assert ("verdict", "", "due", "0.0") in rows


@pytest.mark.parametrize(
    ("alarms", "missing", "said"),
    [(("scores",), (), DUE), ((), (), QUIET), ((), ("scores",), QUIET), ((), tuple(DETAILS), WAIT)],
)
def test_headlines(alarms, missing, said):
    assert headline(verdict(alarms, missing)) == said


@pytest.mark.parametrize("name", DETAILS)
def test_every_alarm_has_something_to_do(name):
    said = advice(verdict((name,)))
    assert len(said) == 2
    assert "faircal" in said[0] or "fit again" in said[0]
    assert "new --state" in said[1]


def test_the_promise_names_the_rate(found):
    assert "at most 0.5 % of streams" in monitoring_page(replace(found, false_alarms=0.005))


def test_a_stretch_counts_what_is_known():
    pairs = PairsInUse(
        np.array([0.1, 0.3]),
        np.array([0.2, 0.8]),
        left_outside=np.array([True, False]),
        genuine=np.array([-1, 1]),
    )
    assert Stretch.of(pairs, "a.csv") == Stretch("a.csv", 2, 0.2, 0.5, 2, 1, 1, 1, 0.8)
