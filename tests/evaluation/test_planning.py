"""How many people a wanted interval needs, and what is said of where that is from."""

from __future__ import annotations

from dataclasses import replace

from faircal.evaluation.planning import plan_sample


def test_where_correlations_differ_it_is_said_which_are_whose():
    planned = plan_sample(0.01, people=90)
    fpr, fnr = planned.alike
    alike = [fpr._replace(source="pilot, 80 people"), fnr._replace(source="pilot, 79 people")]
    of = "correlations of pairs that share people: pilot,"
    assert replace(planned, alike=alike).notes == [f"FPR: {of} 80 people", f"FNR: {of} 79 people"]
    assert replace(planned, alike=alike[:1] * 2).notes == [f"{of} 80 people"]
