"""What curves over labelled pairs come to, in words."""

from __future__ import annotations

from dataclasses import replace

from faircal.evaluation.benchmark.transfer import LabellingCurve, LabellingPoint


def test_labels_that_gain_nothing_are_not_asked_for():
    points = {
        0: LabellingPoint(0, {"1": 0.01, "2": 0.01}),
        100: LabellingPoint(9, {"1": 0.05, "2": 0.06}),
        900: LabellingPoint(80, {"1": 0.01, "2": 0.012}),
    }
    curve = LabellingCurve("f", "m", "", "", "", "recalibrated", points)
    told = curve.words
    assert told.startswith("labelled pairs gain nothing that can be told: 1 % as it is")
    assert told.endswith("If any are used, use about 900 or more.")
    assert (curve.labels_needed, curve.as_good) == (0, 900)
    none = replace(curve, points={n: points[n] for n in (0, 900)}).words
    assert "If any" not in none
