"""``docs/benchmarks.md`` says what ``results.json`` says."""

from __future__ import annotations

import pytest

from benchmarks import kept
from benchmarks.figure import Figure, aside
from benchmarks.kept import RESULTS, measured
from benchmarks.page import DOCS, PAGE, PICTURE, draw, page
from benchmarks.parts import PARTS


def test_the_page_agrees_with_the_kept_figures():
    assert RESULTS.exists(), "run python -m benchmarks --accept"
    assert PAGE.read_text("utf-8") == page(kept.read()), "run python -m benchmarks --accept"


def test_kept_parts_are_parts_of_the_suite():
    assert set(kept.read()) <= set(PARTS)


def test_the_picture_is_there_when_the_page_shows_it():
    assert str(PICTURE.relative_to(DOCS)) not in PAGE.read_text("utf-8") or PICTURE.exists()


def test_the_page_tells_command_machine_goals_and_guards(guarded):
    figures = [guarded(31.4, goal=30), guarded(0.5, name="share", goal=0.6), aside("t", "ours", 2)]
    part = measured("fit", figures)
    text = page({"fit": part})
    assert f"`python -m benchmarks fit`, {part.date}" in text
    assert f"{part.machine['cores']} cores" in text
    assert "| speed-up of something | **31.4** | ≥ 30 | met |" in text
    assert "| share of something | **0.5** | ≥ 0.6 | missed |" in text
    assert "| ours | 2 |  |  |" in text
    assert "Goals met: 1 of 2." in text
    assert "- missed: share of something (`fit`): 0.5, wanted ≥ 0.6" in text


def test_growth_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    curve = Figure("fit over pairs", "growth", 1.0, "lower", points=((10.0, 1.0), (100.0, 10.0)))
    draw([aside("t", "ours", 2), curve], tmp_path / "images" / "growth.png")
    assert (tmp_path / "images" / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert "images/benchmark-growth.png" in page({"growth": measured("growth", [curve])})


def test_without_curves_nothing_is_drawn(tmp_path):
    draw([aside("t", "ours", 2)], tmp_path / "growth.png")
    assert not (tmp_path / "growth.png").exists()
