"""Tables in narrow terminals: nothing is cut, and what is too wide comes below."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from faircal.cli.printing import laid_out, print_table

ROWS = (
    ("Caucasian", "1200", "12.34", "11.11 to 13.57", "5.67", "4.44 to 6.78"),
    ("a-name-without-any-space", "31", "98.76", "87.65 to 99.99", "–", "not enough data"),
)


HEADS = ("group", "effective people", "FPR", "interval", "FNR", "interval")


def printed(width, **how):
    """Return the pieces as text."""
    console = Console(width=width, file=io.StringIO())
    shown = []
    for piece in laid_out(HEADS, ROWS, console, left=range(6), **how)[0]:
        with console.capture() as capture:
            console.print(piece)
        shown.append(capture.get())
    return shown


def test_where_there_is_room_a_table_is_in_one_piece():
    (one,) = printed(200)
    assert "effective people" in one


@pytest.mark.parametrize("width", range(30, 120, 3))
def test_nothing_is_cut_and_no_line_is_too_wide(width):
    pieces = printed(width)
    text = "".join(pieces)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    names, *columns = zip(*ROWS, strict=True)
    words = {word for column in columns for cell in column for word in cell.split()}
    assert words <= set(text.split())
    if width > 50:
        for piece in pieces:
            assert all(name in piece for name in names)


@pytest.mark.parametrize("width", [12, 20])
def test_where_not_even_one_column_fits_letters_go_to_the_next_line(width):
    text = "".join(printed(width))
    assert "…" not in text
    letters = "".join(text.split())
    found = sorted(letter for letter in letters if letter.isdigit())
    said = "".join("".join(row[1:]) for row in ROWS)
    assert found == sorted(letter for letter in said if letter.isdigit())


def test_heads_are_broken_before_columns_go_below():
    (one,) = printed(88)
    assert "effective people" not in one
    assert len(printed(70)) == 2


def test_title_and_caption_are_said_once(monkeypatch):
    console = Console(width=60, file=io.StringIO())
    monkeypatch.setattr("faircal.cli.printing.console", lambda: console)
    with console.capture() as capture:
        print_table(HEADS, ROWS, title="The title", caption="The caption")
    first, *_, last = re.split(r"(?=\n +effective|\n +FPR|\n +FNR)", capture.get())
    assert capture.get().count("The title") == capture.get().count("The caption") == 1
    assert "The title" in first
    assert "The caption" in last


@pytest.mark.parametrize("width", [60, 70])
def test_a_value_and_its_interval_stay_together(width):
    for piece in printed(width, blocks=[1, 2, 2]):
        for value, interval in (("12.34", "11.11 to 13.57"), ("5.67", "4.44 to 6.78")):
            assert (value in piece) == (interval in piece)


def test_several_columns_of_names_are_beside_every_piece():
    pieces = printed(60, names=2)
    assert len(pieces) > 1
    assert all("Caucasian" in piece and "1200" in piece for piece in pieces)
