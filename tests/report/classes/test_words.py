"""The summary of a classifier's report: no sentence says more than intervals carry."""

from __future__ import annotations

import re

import numpy as np
import pytest

from faircal.evaluation.classes import audit_classes, write_class_audit
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.classes.words import class_summary
from faircal.report.store import ResultsFolder

FACES = re.compile(
    r"\b(people|pairs?|match(es)?|genuine|imposters?|strangers?|faces?)\b", re.IGNORECASE
)


def every(said):
    return [*said.who, *said.sure, *said.changes, *said.limits]


def test_groups_are_called_different_only_where_intervals_part(two):
    said = class_summary(two.store(), "place").who
    (accuracy,) = [text for text in said if text.startswith("The predicted class")]
    assert "least often for A, 79.0 % (76.0 % to 82.0 %) of rows" in accuracy
    assert accuracy.endswith("; this could be chance.")
    (confidence,) = [text for text in said if text.startswith("The confidence")]
    assert "most for A, by 12.0 % (10.0 % to 14.0 %), and least for B" in confidence
    assert confidence.endswith("that is 9.0 points apart.")


def test_the_worst_of_many_groups_is_parted_by_more(by_hand):
    """Intervals that barely part are widened for all groups that were looked at."""
    hand = by_hand()
    for group, value in (("A", 0.10), ("B", 0.055), *((f"C{i}", 0.07) for i in range(8))):
        hand.add("uncalibrated", group, "top_ks", value, value - 0.02, value + 0.02)
    hand.add("uncalibrated", ALL, "top_ks_least_gap", -0.01)
    (said,) = [text for text in class_summary(hand.store(), "place").who if "most for A" in text]
    assert said.endswith("; this could be chance.")


def write(folder, says, codes, groups, **more):
    """Write the folder of an audit, and read it."""
    found = audit_classes(says, codes, groups=groups, dataset="beasts", attribute="place", **more)
    write_class_audit(folder, found, {})
    return ResultsFolder.read(folder)


def sentence(store, start):
    (text,) = [t for t in class_summary(store, "place").who if t.startswith(start)]
    return text


def test_two_groups_differ_where_the_interval_of_their_deviation_leaves_out_0(tmp_path):
    """70.0 against 62.8 % of 750 rows each, p = 0.003, though widened intervals overlap."""
    right = np.concatenate([np.arange(750) < 525, np.arange(750) < 471])
    says = np.where(right[:, None], [[0.3, 0.7]], [[0.7, 0.3]])
    store = write(tmp_path, says, np.ones(1500, int), ["A"] * 750 + ["B"] * 750)
    over = {row.metric: row for row in store.results.rows if row.group == ALL}
    mad = over["accuracy_mad"]
    assert mad.low > 0
    assert over["accuracy_least_gap"].value < 0
    text = sentence(store, "The predicted class")
    assert "groups differ by more than chance explains" in text
    assert f"(MAD) is 3.6 points ({100 * mad.low:.1f} to {100 * mad.high:.1f})." in text


@pytest.mark.parametrize(
    ("mad", "aad", "said"),
    [
        ((0.0, 0.05), (0.0, 0.05), "; this could be chance."),
        ((0.01, 0.05), (0.0, 0.05), "(MAD) is 3.0 points (1.0 to 5.0)."),
        ((1e-17, 0.05), (0.02, 0.05), "average deviation of a group from their mean (AAD) is 3.0"),
    ],
)
def test_a_deviation_that_leaves_out_0_is_said(by_hand, mad, aad, said):
    hand = by_hand()
    for group, value in (("A", 0.10), ("B", 0.06), ("C", 0.07)):
        hand.add("uncalibrated", group, "top_ks", value, value - 0.03, value + 0.03)
    hand.add("uncalibrated", ALL, "top_ks_mad", 0.03, *mad)
    hand.add("uncalibrated", ALL, "top_ks_aad", 0.03, *aad)
    assert said in sentence(hand.store(), "The confidence")


def test_a_deviation_that_a_small_group_is_part_of_says_nothing_of_the_others(by_hand):
    hand = by_hand(withheld={"Tiny": "only 3 rows: not enough data (100 are needed)"})
    for group, value in (("A", 0.70), ("B", 0.72), ("Tiny", 0.1)):
        hand.add("uncalibrated", group, "accuracy", value, value - 0.03, value + 0.03)
    hand.add("uncalibrated", ALL, "accuracy_mad", 0.3, 0.2, 0.4)
    assert sentence(hand.store(), "The predicted").endswith("; this could be chance.")


@pytest.mark.parametrize("others", [(), ("Tiny",)])
def test_an_only_group_is_called_so(by_hand, others):
    hand = by_hand(withheld=dict.fromkeys(others, "only 3 rows: not enough data"))
    for group in ("A", *others):
        hand.add("uncalibrated", group, "accuracy", 0.8, 0.7, 0.9)
    enough = " with enough data" if others else ""
    text = sentence(hand.store(), "The predicted class")
    assert f"for A, the only group{enough}; there is no other" in text


def sided(folder, sure, n=400, share=0.7, units=1):
    """An audit of groups that are right alike, and told with these confidences."""
    right = np.tile(np.arange(n) < share * n, len(sure))
    stated = np.repeat(list(sure.values()), n)
    says = np.where(right[:, None], np.c_[1 - stated, stated], np.c_[stated, 1 - stated])
    names = np.repeat(list(sure), n).tolist()
    unit = [f"{name} {i // units}" for name in sure for i in range(n)]
    more = {"identity": unit} if units > 1 else {}
    return write(folder, says, np.ones(len(right), int), names, **more)


def test_one_group_too_surely_and_another_not_surely_enough(tmp_path):
    """Their KS is the same: it has no sign."""
    store = sided(tmp_path, {"Over": 0.8, "Under": 0.6, "Fine": 0.71})
    assert sentence(store, "KS does not say which way").endswith(
        "the classifier is too sure for Over (it states a confidence of 80.0 % and is right 70.0 % "
        "of the time), and not sure enough for Under (it states a confidence of 60.0 % and is "
        "right 70.0 % of the time)."
    )


@pytest.mark.parametrize(
    ("sure", "units"),
    [
        ({"A": 0.74, "B": 0.66}, 1),  # within chance of 400 rows
        ({"A": 0.9, "B": 0.8}, 1),  # to one side
        ({"A": 0.8, "B": 0.6}, 10),  # rows of a unit are alike: they are 40 and not 400
    ],
)
def test_sides_are_opposed_only_where_that_is_clear(tmp_path, sure, units):
    said = class_summary(sided(tmp_path, sure, units=units), "place").who
    assert not any(text.startswith("KS does not say which way") for text in said)


def test_of_hundreds_of_small_groups_a_few_are_named(by_hand):
    names = [f"g{i:03}" for i in range(700)]
    hand = by_hand(withheld=dict.fromkeys(names, "only 2 rows: not enough data"))
    for name in names:
        hand.add("uncalibrated", name, "accuracy", 0.5, 0.1, 0.9)
    hand.add("uncalibrated", ALL, "accuracy_mad", 0.5, 0.4, 0.6)
    said = class_summary(hand.store(), "place")
    few = "g000, g001, g002, g003, g004, g005 and 694 more"
    assert f"700 of 700 groups have not enough data: {few}." in said.who
    assert "No group has enough: who is treated differently cannot be told." in said.who
    assert sum(map(len, every(said))) < 3000


def test_changes_are_better_worse_or_not_clear(two):
    said = class_summary(two.store(), "place").changes
    raw, ours, other = said
    assert raw == (
        "Global against Uncalibrated (no calibration). Better: NLL down by 0.0400 (0.0300 to "
        "0.0500)."
    )
    # Here an interval lies beyond the difference that was found: noise is taken out of it.
    assert ours == (
        "FairCal against Uncalibrated (no calibration). Better: NLL down by 0.0500 (0.0400 to "
        "0.0600); top-label KS, mean over groups down by 1.0 to 3.0 points."
    )
    assert other == (
        "FairCal against Global (one map for everyone). Worse: top-label KS, mean over groups up "
        "by 2.0 points (1.0 to 3.0). No clear difference: NLL."
    )


def test_yardsticks_are_compared_with_what_can_be_used(two):
    two.add("groupwise", GLOBAL, "nll", 0.4, 0.39, 0.41)
    two.differ("groupwise", "uncalibrated", "nll", -0.1, -0.11, -0.09)
    two.differ("groupwise", "global", "nll", -0.06, -0.07, -0.05)
    said = class_summary(two.store(), "place")
    (text,) = [text for text in said.changes if text.startswith("Group-wise")]
    assert text.startswith("Group-wise (a yardstick) against Global")


def test_a_small_group_is_named_and_nothing_over_groups_is_told(two):
    two.add("uncalibrated", "Tiny", "accuracy", 0.2, 0.1, 0.4)
    two.withheld["Tiny"] = "only 41 rows: not enough data (100 are needed)"
    two.differences = [
        row._replace(withheld="few") if row.group == ALL else row for row in two.differences
    ]
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
        "Global against Uncalibrated (no calibration). Better: top-label KS of all rows down by "
        "4.0 points (2.0 to 6.0)."
    )


def test_groups_that_fare_exactly_alike(by_hand):
    hand = by_hand()
    for group in "AB":
        hand.add("uncalibrated", group, "accuracy", 0.8, 0.7, 0.9)
    (text,) = [t for t in class_summary(hand.store(), "place").who if "in each group" in t]
    assert text.endswith(
        "80.0 % (70.0 % to 90.0 %) of rows in each group; no difference was found."
    )


def test_that_groups_do_not_differ_is_never_said(store, two):
    for text in (
        *every(class_summary(store, "place")),
        *every(class_summary(two.store(), "place")),
    ):
        assert "does not tell them apart" not in text


def test_no_words_of_faces(store, two):
    for text in (
        *every(class_summary(store, "place")),
        *every(class_summary(two.store(), "place")),
    ):
        assert not FACES.search(text), text


def test_simulated_rows_are_called_so(two):
    two.run["simulated"] = True
    assert any("simulated" in text for text in class_summary(two.store(), "place").limits)
