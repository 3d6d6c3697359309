"""The summary of a classifier's report: no sentence says more than intervals carry."""

from __future__ import annotations

import re

import pytest

from faircal.report.classes import class_summary
from faircal.results import GLOBAL

FACES = re.compile(
    r"\b(people|pairs?|match(es)?|genuine|imposters?|strangers?|faces?)\b", re.IGNORECASE
)


def every(said):
    return [*said.who, *said.sure, *said.changes, *said.limits]


def test_groups_are_called_different_only_where_intervals_part(two):
    said = class_summary(two.store(), "place").who
    (accuracy,) = [text for text in said if text.startswith("The predicted class")]
    assert "least often for A, 79.0 % (76.0 % to 82.0 %) of rows" in accuracy
    assert accuracy.endswith("their intervals overlap: the data does not tell them apart.")
    (confidence,) = [text for text in said if text.startswith("The confidence")]
    assert "most for A, by 12.0 % (10.0 % to 14.0 %), and least for B" in confidence
    assert confidence.endswith("that is 9.0 points apart.")


def test_the_worst_of_many_groups_is_parted_by_more(by_hand):
    """Intervals that barely part are widened for all groups that were looked at."""
    hand = by_hand()
    for group, value in (("A", 0.10), ("B", 0.055), *((f"C{i}", 0.07) for i in range(8))):
        hand.add("uncalibrated", group, "top_ks", value, value - 0.02, value + 0.02)
    (said,) = [text for text in class_summary(hand.store(), "place").who if "most for A" in text]
    assert "among 10 groups chance alone can part two so far" in said


def test_changes_are_better_worse_or_not_clear(two):
    said = class_summary(two.store(), "place").changes
    raw, ours, other = said
    assert raw == (
        "Global against As it comes (no calibration): better: NLL down by 0.0400 (0.0300 to "
        "0.0500)."
    )
    # Here an interval lies beyond the difference that was found: noise is taken out of it.
    assert ours == (
        "FairCal against As it comes (no calibration): better: NLL down by 0.0500 (0.0400 to "
        "0.0600); top-label KS, mean over groups down by 1.0 to 3.0 points."
    )
    assert other == (
        "FairCal against Global (one map for everyone): worse: top-label KS, mean over groups up "
        "by 2.0 points (1.0 to 3.0). No clear difference: NLL."
    )


def test_yardsticks_are_compared_with_what_can_be_used(two):
    two.add("groupwise", GLOBAL, "nll", 0.4, 0.39, 0.41)
    two.differ("groupwise", "uncalibrated", "nll", -0.1, -0.11, -0.09)
    two.differ("groupwise", "global", "nll", -0.06, -0.07, -0.05)
    said = class_summary(two.store(), "place")
    (text,) = [text for text in said.changes if text.startswith("Group-wise")]
    assert text.startswith("Group-wise (a yardstick) against Global")
    assert any(
        text.startswith("Yardsticks and no tools") and "Group-wise" in text for text in said.limits
    )


def test_a_small_group_is_named_and_nothing_over_groups_is_told(two):
    two.add("uncalibrated", "Tiny", "accuracy", 0.2, 0.1, 0.4)
    two.run["not_enough"] = {"Tiny": "only 41 rows: not enough data (100 are needed)"}
    said = class_summary(two.store(), "place")
    assert "Tiny: only 41 rows: not enough data (100 are needed)." in said.who
    assert not any("20.0 %" in text for text in every(said))
    assert said.changes[-1] == (
        "What methods change over the groups cannot be told, since Tiny has not enough data."
    )
    assert not any("mean over groups" in text for text in said.changes)
    assert any(text.startswith("A group without a number") for text in said.limits)


def test_too_sure_or_not_sure_enough(store):
    said = class_summary(store, "place").who
    (text,) = [text for text in said if text.startswith("For South")]
    source = next(s for s in store.curves.sources if s.method == "uncalibrated")
    histogram = store.curves.get("South", "probability", source)
    rows = histogram.n_genuine + histogram.n_imposter
    assert "too sure on the whole" in text
    assert f"{100 * histogram.n_genuine / rows:.1f} % of the time" in text
    assert f"a confidence of {100 * histogram.total.sum() / rows:.1f} %" in text


@pytest.mark.parametrize("units", [None, 120])
def test_what_varies_is_said(two, units):
    two.run |= {"units": units, "group_units": units and {"A": 70, "B": 50}}
    said = " ".join(class_summary(two.store(), "place").sure)
    assert ("too narrow" in said) == (units is None)
    assert ("120 units; the smallest group, B, has 50" in said) == (units is not None)


def test_unknown_groups_are_counted(store):
    said = class_summary(store, "place").limits
    assert (
        "45 of 900 rows (5.0 %) have no known place: they count in the overall numbers and in "
        "no group's." in said
    )


def test_without_groups_nobody_is_compared(by_hand):
    hand = by_hand().add("uncalibrated", GLOBAL, "accuracy", 0.8, 0.7, 0.9)
    hand.add("global", GLOBAL, "accuracy", 0.8, 0.7, 0.9)
    hand.add("global", GLOBAL, "top_ks", 0.01, 0.0, 0.02)
    hand.add("uncalibrated", GLOBAL, "top_ks", 0.05, 0.04, 0.06)
    hand.differ("global", "uncalibrated", "top_ks", -0.04, -0.06, -0.02)
    said = class_summary(hand.store(), "place")
    assert "The data names no groups: who is treated differently cannot be told." in said.who
    (text,) = said.changes
    assert text == (
        "Global against As it comes (no calibration): better: top-label KS of all rows down by 4.0 "
        "points (2.0 to 6.0)."
    )


def test_groups_that_fare_exactly_alike(by_hand):
    hand = by_hand()
    for group in "AB":
        hand.add("uncalibrated", group, "accuracy", 0.8, 0.7, 0.9)
    (text,) = [t for t in class_summary(hand.store(), "place").who if "in each group" in t]
    assert text.endswith("the data does not tell them apart.")


def test_no_words_of_faces(store, two):
    for text in (
        *every(class_summary(store, "place")),
        *every(class_summary(two.store(), "place")),
    ):
        assert not FACES.search(text), text


def test_simulated_rows_are_called_so(two):
    two.run["simulated"] = True
    assert any("simulated" in text for text in class_summary(two.store(), "place").limits)
