"""The model card: all that a file says, readable, and no text in it is markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import faircal
from faircal import Baseline, FairCal
from faircal.data import ClassifierRows
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import decode, encode
from faircal.model import About, OperatingPoint, Provenance
from faircal.production.describe import describe
from faircal.production.monitoring import survey
from faircal.report.card import card_facts, card_html, card_markdown

#: Markup, a table's border, a terminal's commands, and letters that turn the text round.
EVIL = "<script>alert(1)</script> | [x](javascript:1) \x1b[2J\u202e\n# \"'&"


@pytest.fixture(scope="module")
def faces():
    return faircal.simulate("small", seed=0, people=80, images=240, pairs=640, dimension=16)


@pytest.fixture(scope="module")
def model(faces):
    made = FairCal(n_clusters=3).fit(faces)
    describe(made, faces, intended_use="opening a door", limits=["not for minors"])
    survey(made, faces)
    rows = (
        {"name": "all", "imposters": 400, "fpr": 0.001, "fpr_low": 0.0, "fpr_high": 0.009},
        {"name": "gender F", "imposters": 200, "fpr": 0.004, "genuine": 9, "fnr": 0.25},
    )
    point = OperatingPoint(
        0.5, "score", "faircal threshold", 0.001, 0.95, "global", "faces", "ab" * 32, rows
    )
    made.about_ = replace(made.about_, operating_point=point)
    return made


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    given, features = rng.dirichlet(np.ones(2), 100), rng.normal(size=(100, 2)).astype(np.float32)
    rows = ClassifierRows(
        "rows", given, (rng.random(100) < given[:, 1]) * 1, ("no", "yes"), features
    )
    made = FairCalClassifier(n_clusters=2)
    made.fit_calibration(given, np.array(rows.classes)[rows.codes], features=features)
    describe(made, rows)
    return made


@pytest.fixture(scope="module")
def hostile(faces):
    made = Baseline().fit(faces)
    made.diagnostics_.notes.append(EVIL)
    made.diagnostics_.figures[EVIL] = 1.0
    told = Provenance(
        *(EVIL, EVIL, EVIL),
        counts={EVIL: 3, "images": None},
        groups={EVIL: {EVIL: 2, "fine": 0}},
        settings={EVIL: {EVIL: [EVIL]}},
        versions={EVIL: EVIL},
        intended_use=EVIL,
        limits=(EVIL,),
    )
    point = OperatingPoint(0.5, "score", EVIL, 0.1, None, EVIL, EVIL, EVIL, ({"name": EVIL},))
    measured = ({"name": EVIL, "fpr": EVIL, "fnr": 7.0, "people": None, EVIL: 1},)
    made.about_ = About(told, None, replace(point, measured=measured))
    return made


def replace_about(model, point):
    """Return another model like it, with another operating point."""
    made = decode(encode(model))
    made.about_ = replace(made.about_, operating_point=point)
    return made


class Reader(HTMLParser):
    """Gathers elements, and checks that they are closed in order."""

    EMPTY = ("meta", "link", "line", "path", "rect")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for key, value in attributes if key == "id"]
        assert not any(key.startswith("on") for key, _ in attributes)
        for key, value in attributes:
            if key in ("href", "src"):
                assert value.startswith(("#", "data:")), value
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


class TestPoint:
    def test_a_counted_rate_is_not_called_promised(self, model):
        point = replace(model.about_.operating_point, within="")
        made = replace_about(model, point)
        text = card_markdown(made)
        assert "At most 0.10 % false positives were counted there; no rate is promised." in text
        assert "Promised" not in text


class TestMarkdown:
    def test_sections(self, model):
        text = card_markdown(model)
        assert re.findall(r"^## (.*)", text, re.MULTILINE) == [
            "What it is",
            "Intended use",
            "Calibration population",
            "How it decides",
            "How strong evidence can be",
            "Limits",
            "Not for",
            "Notes and figures of the fit",
            "Provenance",
        ]
        for expected in (
            "# Model card: FairCal",
            "opening a door",
            "- not for minors",
            "| Pairs | 640 |",
            "| n_clusters | 3 |",
            "| People | 80 |",
            "### Groups by ethnicity",
            "A pair counts as genuine where its score is 0.5 or more.",
            "Evidence is bounded by what ",
            "Promised false-positive rate: 0.10 % (global), with 95.0 % confidence.",
            "| Of | Imposter pairs | False-positive rate | Genuine pairs | False-negative rate |",
            "| all | 400 | 0.10 % (0 % to 0.90 %) | – | – |",
            "| gender F | 200 | 0.40 % | 9 | 25.0 % |",
            "| Version of faircal |",
        ):
            assert expected in text

    def test_tables_are_tables(self, model):
        lines = card_markdown(model).splitlines()
        for before, line in pairwise(lines):
            if before.startswith("|") and line.startswith("|"):
                assert before.count("|") == line.count("|")

    def test_nothing_told(self, faces):
        text = card_markdown(Baseline().fit(faces))
        assert "Nobody has said what it is for" in text
        assert "does not say whom it was calibrated on" in text
        assert "The file says of none." in text
        assert "no operating point is in the file. 'faircal threshold MODEL DATA" in text
        assert "does not say where it is from" in text

    def test_classifier(self, classifier):
        text = card_markdown(classifier)
        for expected in ("| Classes | no, yes |", "| Rows | 100 |", "The likeliest class is"):
            assert expected in text

    def test_the_file(self, model, tmp_path):
        path = tmp_path / "m.faircal"
        model.save(path)
        loaded = faircal.load_model(path)
        text = card_markdown(loaded, file=path)
        assert f"| Size | {path.stat().st_size:,} bytes |" in text
        assert f"| Written by | faircal {faircal.__version__} |" in text
        assert "| Format | 1, schema 1 |" in text
        assert text.split("## File")[0] == card_markdown(model) + "\n"

    def test_hostile_text_is_text(self, hostile):
        text = card_markdown(hostile)
        assert "<script>" not in text
        assert "[x](" not in text.replace("\\[", "")
        assert all(line.isprintable() for line in text.splitlines())
        headings = re.findall(r"^#+ .*", text, re.MULTILINE)
        assert len(re.findall(r"^#", text, re.MULTILINE)) == len(headings) == 12


class TestHtml:
    @pytest.mark.parametrize("which", ["model", "classifier", "hostile"])
    def test_well_formed(self, which, request):
        page = Reader(card_html(request.getfixturevalue(which)))
        assert not page.open
        assert len(set(page.ids)) == len(page.ids)
        assert "script" not in page.tags

    def test_hostile_text_is_text(self, hostile):
        text = card_html(hostile)
        assert "<script" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "&lt;script&gt;alert(1)" in text

    def test_chart(self, model, faces):
        text = card_html(model)
        drawn = text[text.index("<figure>") : text.index("</figure>")]
        assert drawn.count("<path") == 2
        said = re.search(r"genuine: nine in ten between (\S+) and (\S+)\.", drawn)
        ends = np.quantile(faces.scores[faces.genuine], [0.05, 0.95])
        np.testing.assert_allclose(list(map(float, said.groups())), ends, atol=0.03)

    def test_no_chart_without_scores(self, hostile, classifier):
        assert "<svg" not in card_html(hostile) + card_html(classifier)


class TestFacts:
    @pytest.mark.parametrize("which", ["model", "classifier", "hostile"])
    def test_json(self, which, request):
        facts = card_facts(request.getfixturevalue(which))
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
