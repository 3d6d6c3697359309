"""A classifier's page: the sections that it has, and none of faces."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from faircal.report import ResultsFolder, make_report, write_report
from faircal.report.writing import FACES, subject_of
from tests.report.classes.conftest import measured

WORDS = re.compile(
    r"\b(people|pairs?|match(es)?|genuine|imposters?|strangers?|faces?)\b", re.IGNORECASE
)


@pytest.fixture(scope="module")
def text(folder):
    return write_report(folder).read_text("utf-8")


def seen(text):
    """What a reader sees, and what is read out."""
    body = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    labels = " ".join(re.findall(r'aria-label="([^"]*)"', body))
    return re.sub(r"<[^>]*>", " ", body) + labels


def test_it_has_its_own_sections_only(text):
    assert re.findall(r"<h2[^>]*>([^<]*)", text) == [
        "Summary",
        "Tables",
        "Figures",
        "Notes",
        "How to read this",
        "How it was computed",
    ]
    targets = set(re.findall(r'href="#([\w-]+)"', text))
    assert targets <= set(re.findall(r'id="([\w-]+)"', text))
    assert '<p class="kind">Comparison of calibrations</p>' in text


def test_no_words_of_faces(text):
    assert not WORDS.findall(seen(text))


def test_there_is_no_script_and_none_may_run(text):
    assert "<script" not in text
    assert "script-src 'none'\">" in text
    assert not re.search(r"https?:|@import|url\((?!#)", text)


def test_the_glossary_has_what_the_tables_have(text):
    terms = re.findall(r"<dt>([^<]*)</dt>", text)
    assert {"NLL", "Brier", "Top-label KS, ECE", "Class-wise KS, ECE"} <= set(terms)
    assert "FPR" not in terms


def test_intervals_below_nothing_are_read_without_doubt(text):
    assert re.search(r'<small class="range">\(−0\.\d{4} to −0\.\d{4}\)</small>', text)


def test_it_is_made_again_from_the_folder_alone_with_the_same_bytes(folder, text, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("report.html", "figures", "tables"))
    make_report(copy)
    assert (copy / "report.html").read_text("utf-8") == text


def test_faces_have_the_other_subject(folder, tmp_path):
    for name in ("results.csv", "run.json"):
        shutil.copy(folder / name, tmp_path)
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    (tmp_path / "run.json").write_text(json.dumps(run | {"kind": "audit"}), "utf-8")
    assert subject_of(ResultsFolder.read(tmp_path)) is FACES


@pytest.mark.parametrize(
    ("methods", "settings", "title"),
    [
        ([""], {"model": None}, "Audit of a classifier"),
        (["mine"], {}, "Audit of a classifier"),
        (["uncalibrated", "faircal"], {"model": "m.faircal"}, "Audit of a classifier"),
        (["uncalibrated", "faircal"], {"calibrator": "dirichlet"}, "Comparison of calibrations"),
        (["uncalibrated", "global"], {}, "Comparison of calibrations"),
        (["uncalibrated", "faircal", "oracle"], {}, "Comparison of calibrations"),
    ],
)
def test_an_audit_and_a_comparison_are_called_what_they_are(by_hand, methods, settings, title):
    hand = by_hand(methods={name: {} for name in methods}, settings=settings)
    for method in methods:
        hand.add(method, "global", "accuracy", 0.8, 0.7, 0.9)
    assert subject_of(hand.store()).kinds == {"classify": title}


def test_hundreds_of_groups_do_not_flood_it(tmp_path):
    measured(tmp_path, names=[f"g{i:03}" for i in range(200)], n=400, spread=True)
    text = write_report(tmp_path).read_text("utf-8")
    assert len(text) < 3e5
    assert text.count("g199") == 0
    assert text.count("200 of 200 groups have not enough data: g000, g001,") == 1
    assert "and 194 more" in text
    assert "Largest distance from the diagonal: all rows" in text  # no group can be drawn
    assert not WORDS.findall(seen(text))


def test_hostile_names_are_only_names(two):
    evil = '<script>alert("x")</script>'
    two.add("uncalibrated", evil, "accuracy", 0.7, 0.6, 0.8)
    two.run |= {"methods": {"uncalibrated": {"title": evil}}}
    two.withheld[evil] = evil
    text = write_report(two.store().folder).read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert" in text
