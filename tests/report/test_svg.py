"""Pictures as inline SVG: what is drawn lies where it should, is said in words, and is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from faircal.report.svg import (
    FIRST,
    GREY,
    SECOND,
    Frame,
    bars,
    histogram,
    number,
    points,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"
EDGES = np.linspace(-1, 1, 5)


def drawn(text):
    """Parse a picture: what is no XML fails here."""
    return ET.fromstring(text)  # noqa: S314  (our own)


def scores(edges, genuine, imposters, marks=None, title="t"):
    """Draw scores of genuine and imposter pairs."""
    return histogram(edges, {"genuine": genuine, "imposters": imposters}, title=title, marks=marks)


def luminance(colour):
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colour", [FIRST, SECOND, GREY])
def test_colours_stand_out_on_white_and_on_black(colour):
    found = luminance(colour)
    assert 1.05 / (found + 0.05) >= 3
    assert (found + 0.05) / 0.05 >= 3


PICTURES = {
    "scores": lambda words: scores(EDGES, [0, 1, 2, 7], [5, 4, 1, 0], title=words),
    "change": lambda words: histogram(EDGES, {words: [1, 0, 0, 0]}, title=words),
    "bars": lambda words: bars([words], {words: [0.5]}, title=words),
    "points": lambda words: points([1], [0.2], title=words, x_label=words, y_label=words),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_says_what_it_shows_and_escapes_all_text(kind):
    root = drawn(PICTURES[kind]('<script>"&'))
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == '<script>"&'
    assert root[1].tag == f"{SVG}desc"
    assert len(root[1].text) > 5
    assert not root.findall(f".//{SVG}script")


@pytest.mark.parametrize("kind", PICTURES)
def test_has_no_style_script_or_id_that_a_page_could_refuse_or_have_twice(kind):
    text = PICTURES[kind]("plain")
    assert not re.search(r"\b(id|style|class|on\w+|href)=", text)
    assert "url(" not in text


@pytest.mark.parametrize("kind", PICTURES)
def test_stays_inside_its_frame(kind):
    root = drawn(PICTURES[kind]("a name that is too long to stand beside its bar " * 3))
    _, _, width, height = map(float, root.get("viewBox").split())
    for mark in root.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("y", height)):
            value = mark.get(name)
            assert value is None or -60 <= float(value) <= most


def test_a_histogram_is_of_shares_of_its_own_kind():
    """Ten times the imposters look the same: the tallest bin of each reaches as high."""
    paths = drawn(scores([0, 1, 2], [1, 3], [30, 10])).findall(f"{SVG}path")
    tops = [min(map(float, re.findall(r"[ML][\d.]+ ([\d.]+)", p.get("d")))) for p in paths]
    assert tops[0] == tops[1]


def test_the_mark_lies_where_its_score_is():
    root = drawn(scores(EDGES, [0, 1, 2, 7], [5, 4, 1, 0], {"this pair": 0.5, "threshold": 0.1}))
    rules = [line for line in root.findall(f"{SVG}line") if line.get("stroke-width") == "2"]
    frame = Frame((-1, 1), (0, 1), 480, 230)
    assert [float(rule.get("x1")) for rule in rules] == [
        pytest.approx(frame.across(at), abs=0.06) for at in (0.5, 0.1)
    ]
    words = [text.text for text in root.findall(f"{SVG}text")]
    assert {"this pair 0.50", "threshold 0.10"} <= set(words)
    assert "this pair: 0.50." in root[1].text


def test_a_mark_beyond_the_ends_stays_in_the_picture_and_says_its_value():
    root = drawn(scores(EDGES, [1] * 4, [1] * 4, {"this pair": 7.0}))
    rule = next(line for line in root.findall(f"{SVG}line") if line.get("stroke-width") == "2")
    assert float(rule.get("x1")) <= 480
    assert any(text.text == "this pair 7.00" for text in root.findall(f"{SVG}text"))


def test_words_say_where_nine_in_ten_lie():
    counts = [0, 100, 0, 0]
    said = drawn(histogram(EDGES, {"now": counts}, title="t"))[1].text
    assert said == "now: nine in ten between -0.50 and 0.00."


def test_no_pairs_are_drawn_as_none():
    root = drawn(scores(EDGES, [0] * 4, [0] * 4))
    assert "genuine: no pairs." in root[1].text


def test_bars_are_as_long_as_their_values():
    rects = [
        rect
        for rect in drawn(bars(["a", "b"], {"then": [0.2, 0.1], "now": [0.4, 0.0]}, title="t"))
        if rect.tag == f"{SVG}rect" and rect.get("height") == "12"
    ]
    long = [float(rect.get("width")) for rect in rects]
    assert long[1] == pytest.approx(2 * long[0], rel=0.01)
    assert long[0] == pytest.approx(2 * long[2], rel=0.01)
    assert 0 < long[3] < 1


def test_points_have_intervals_and_what_was_expected():
    text = points(
        [1, 2],
        [0.1, 0.2],
        low=[0.05, 0.1],
        high=[0.2, 0.3],
        level=0.1,
        title="t",
        x_label="part",
        y_label="share",
    )
    root = drawn(text)
    assert len(root.findall(f"{SVG}circle")) == 2
    dashed = [line for line in root.findall(f"{SVG}line") if line.get("stroke-dasharray")]
    assert len(dashed) == 1
    assert root[1].text == "Expected: 10 %. 1: 10 % (5 % to 20 %). 2: 20 % (10 % to 30 %)."


def test_the_diagonal_goes_from_corner_to_corner():
    root = drawn(points([0.5], [0.5], diagonal=True, title="t", x_label="x", y_label="y"))
    dashed = next(line for line in root.findall(f"{SVG}line") if line.get("stroke-dasharray"))
    circle = root.find(f"{SVG}circle")
    ends = [float(dashed.get(name)) for name in ("x1", "y1", "x2", "y2")]
    assert float(circle.get("cx")) == pytest.approx((ends[0] + ends[2]) / 2, abs=0.1)
    assert float(circle.get("cy")) == pytest.approx((ends[1] + ends[3]) / 2, abs=0.1)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
        (0, 0.07, [0, 0.02, 0.04, 0.06]),
        (3, 3, [3]),
        (0, float("nan"), [0]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_whole_ticks_are_whole():
    assert ticks(0.5, 3.5, integers=True) == [1, 2, 3]


def test_small_shares_are_not_said_to_be_none():
    assert number(0.00012, percent=True) == "0.012 %"
