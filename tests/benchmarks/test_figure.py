"""Goals, and figures that go to a file and come back."""

from __future__ import annotations

import json

import pytest

from benchmarks.figure import Figure, aside, number, ratio, rounded


@pytest.mark.parametrize(
    ("value", "better", "met"),
    [
        (30.0, "higher", True),
        (29.9, "higher", False),
        (30.0, "lower", True),
        (30.1, "lower", False),
    ],
)
def test_a_goal_is_the_least_or_the_most_that_is_wanted(value, better, met):
    assert Figure("a", "", value, better, goal=30).met is met


def test_without_a_goal_there_is_nothing_to_meet():
    assert ratio("a", "", 1.0).met is None
    assert ratio("a", "", 1.0).wanted == ""


@pytest.mark.parametrize(
    "figure",
    [
        ratio("a", "words", 0.123456, "lower", goal=1.0),
        aside("b", "seconds", 12.5, "s"),
        Figure("c over d", "growth", 1.02, "lower", points=((10, 0.5), (100, 5.25))),
        Figure("zero", "an error", 0.0, "lower", goal=0.0),
    ],
)
def test_a_figure_comes_back_as_it_went(figure):
    back = Figure.from_json(json.loads(json.dumps(figure.as_json())))
    assert back.value == rounded(figure.value)
    assert (back.name, back.what, back.better, back.guarded, back.goal, back.unit, back.points) == (
        figure.name,
        figure.what,
        figure.better,
        figure.guarded,
        figure.goal,
        figure.unit,
        figure.points,
    )


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_cannot_be_compared_cannot_be_guarded(value):
    with pytest.raises(ValueError, match="speed-up"):
        ratio("speed-up", "", value)


def test_a_goal_needs_a_direction():
    with pytest.raises(ValueError, match="direction"):
        Figure("a", "", 1.0, goal=2.0)


def test_numbers_next_to_one_keep_their_digits():
    assert number(1.0046) == "1.005"
    assert number(1.4546) == "1.45"
    assert Figure("a", "", 2.0, "lower", goal=25, unit="s").wanted == "≤ 25 s"
