"""Every example of docs/tutorials/classifier.md runs as it stands there, and prints what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faircal.calibrators.classes import CLASS_CALIBRATORS

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "classifier.md"
TEXT = PAGE.read_text("utf-8")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def chapters():
    """Chapters with examples: each runs by itself, from its first block to its last."""
    found = {}
    for chapter in TEXT.split("\n## ")[1:]:
        title = chapter.partition("\n")[0]
        # A block of code, and the block of what it prints where there is one.
        pattern = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
        blocks = re.findall(pattern, chapter, flags=re.MULTILINE | re.DOTALL)
        if blocks:
            found[title] = blocks
    return found


CHAPTERS = chapters()


@pytest.mark.parametrize("title", CHAPTERS)
def test_examples_run_and_print_what_they_show(title, tmp_path, monkeypatch, capsys):
    blocks = CHAPTERS[title]
    if any("import torch" in code for code, _ in blocks):
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    for code, shown in blocks:
        exec(compile(code, PAGE.name, "exec"), names)  # noqa: S102
        printed = capsys.readouterr().out
        assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), printed
        # Another library or processor may move the last digit.
        got, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, shown))
        assert got == pytest.approx(expected, rel=0.02, abs=0.0021), printed


def test_nothing_is_left_out():
    assert len(CHAPTERS) >= 3
    assert sum(map(len, CHAPTERS.values())) == TEXT.count("```python\n")
    assert sum(bool(shown) for blocks in CHAPTERS.values() for _, shown in blocks) == TEXT.count(
        "```text\n"
    )


def test_every_calibrator_is_in_the_table():
    for name in CLASS_CALIBRATORS:
        assert f"| `{name}` |" in TEXT
