"""Numbers in prose are their sources', say under which condition, and none is without a source."""

from __future__ import annotations

import pytest

from pages import claims
from pages.parsing import ROOT, Page, PageError, every_page

MARKER = "<!-- = study-cohort#intervals-over-people; lfw-dlib; random; CohortFairCal: KS mean -->"
CONDITION = (
    "dlib, random imposters, a cohort of 36 people a group, 95 % interval: mean KS of groups"
)


def problems(text, path="README.md"):
    return [*claims.problems(Page(ROOT / path, text, ()))]


@pytest.mark.parametrize("path", every_page(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_numbers_of_prose_are_their_sources(path):
    assert not [*claims.problems(Page.read(path))], "see python -m pages --claims"


def test_another_number_is_seen_and_put_right():
    wrong = Page(ROOT / "README.md", f"{CONDITION}{MARKER} −77.0 to −7.\n", ())
    assert "its source" in " ".join(claims.problems(wrong))
    text = claims.written(wrong)
    assert text.startswith(f"{CONDITION}{MARKER} −")
    assert "77" not in text and not problems(text)


@pytest.mark.parametrize("words", ["dlib", "random", "cohort", "36 ", "95 % interval", "KS"])
def test_a_claim_without_its_condition_is_seen(words):
    text = claims.written(Page(ROOT / "README.md", f"{CONDITION}{MARKER} −9.5 to −7.0.\n", ()))
    assert not problems(text)
    assert any("condition" in each for each in problems(text.replace(words, "them", 1)))


@pytest.mark.parametrize("text", ["KS falls by 3 %.", "It is 2.5 as fast.", "9× less.", "| 0.31 |"])
def test_a_number_without_a_source_is_seen_on_watched_pages(text):
    assert any("no source" in each for each in problems(text))
    assert not problems(text, "docs/how-to/regions.md")
    assert not problems(f"`{text}` and 12 people")


@pytest.mark.parametrize("name", ["study-cohort#no-such-part", "lfw-other", "Δ"])
def test_a_marker_of_no_cell_is_refused(name):
    known = {"lfw-other": "lfw-dlib", "Δ": "KS mean"}.get(
        name, "study-cohort#intervals-over-people"
    )
    with pytest.raises(PageError, match=r"README\.md:1: "):
        problems(f"{CONDITION}{MARKER.replace(known, name)} −1.0 to 1.0.")


def test_cells_of_outputs_above_and_extremes(tmp_path):
    table = " who   people   FPR (interval)\n ───\n A         40   0.5 (0.2 to 1.4)\n"
    shown = f"```sh\nx\n```\n\n```text\n{table} B         30   0.7 (0.3 to 1.9)\n```\n\n"
    said = "FPR of B<!-- = above; B: FPR & interval --> 0.7, interval 0.3 to 2; "
    path = tmp_path / "page.md"
    said += "most FPR<!-- = above: max FPR --> 0.70 %, least<!-- = above: min FPR --> 0.5, "
    path.write_text(f"{shown}{said}settings<!-- = above; B: rows & rows --> 1 and 1.\n")
    assert not [*claims.problems(Page.read(path))]
