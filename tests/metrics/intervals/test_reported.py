"""From measured values to results: what may be shown, and groups told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from faircal.metrics import wilson
from faircal.metrics.intervals import as_reported, least_ratios, summarise, worst_and_best
from faircal.metrics.results import Result

POINT = "global_fpr=0.01"


def rate(group="F", value=0.05, trials=5000.0, effective=None, metric="fpr", condition=""):
    """A rate with Wilson's interval of as many independent trials as it has, unless told."""
    effective = trials if effective is None else effective
    low, high = wilson(value * effective, effective)
    where = {"group": group, "condition": condition, "metric": metric, "value": value}
    ends = {"low": float(low), "high": float(high), "level": 0.95}
    return Result(**where, **ends, trials=trials, effective=effective, errors=value * trials)


def reason(row, people=None):
    return as_reported([row], people=lambda *_: people)[0].withheld


class TestReasons:
    def test_pairs_count_at_a_wanted_rate(self):
        assert "299 pairs of strangers" in reason(rate(trials=299.0, condition=POINT))
        assert reason(rate(trials=300.0, condition=POINT)) == ""
        assert reason(rate(trials=100.0)) == ""
        assert "only 1 pair of strangers" in reason(rate(trials=1.0))

    def test_people_who_suffice_for_one_rate_do_not_for_a_lower_one(self):
        assert "only 24 effective people" in reason(rate(condition=POINT), 24.9)
        assert reason(rate(condition=POINT), 25.0) == ""
        assert reason(rate(condition="global_fpr=0.1"), 24.9) == ""

    def test_a_calibration_error_needs_a_hundred_pairs_of_both_kinds(self):
        row = Result(group="F", metric="ks", value=0.1, trials=99)
        assert "only 99 pairs" in reason(row)
        assert reason(row._replace(trials=100)) == ""

    def test_nothing_and_undefined(self):
        assert reason(rate(trials=0.0)) == "no pairs of strangers: nothing to say"
        assert "undefined" in reason(rate()._replace(value=math.nan))

    def test_numbers_over_groups_and_thresholds_are_never_withheld(self):
        assert reason(rate("all", trials=3.0, metric="fpr_mad")) == ""
        assert reason(rate("global", trials=3.0, metric="threshold")) == ""

    def test_of_folds_all_trials_together_and_everybodys_people_count(self):
        folds = [rate(trials=60.0)._replace(fold=fold, attribute="sex") for fold in "12"]
        assert reason(folds[0])
        known = {"sex": lambda group, metric: {"fpr": 40.0}[metric]}
        *_, mean, std = summarise(as_reported(folds), known.__getitem__)
        assert (mean.trials, mean.people, mean.withheld) == (120, 40.0, "")
        assert math.isnan(std.low)


class TestToldApart:
    def test_the_near_ends_at_a_level_that_holds_for_all_groups(self):
        # Two groups: each interval at 97.5 %.
        rows = [rate("A", 0.03, 1000.0), rate("B", 0.003, 1000.0)]
        low = binomtest(30, 1000).proportion_ci(0.975, method="wilson").low
        high = binomtest(3, 1000).proportion_ci(0.975, method="wilson").high
        (over,) = least_ratios(rows)
        assert (over.group, over.metric) == ("all", "fpr_least_ratio")
        assert over.value == pytest.approx(low / high)

    def test_worst_and_best_are_of_those_that_may_be_shown(self):
        rows = {"A": rate("A", 0.2), "B": rate("B", 0.1), "C": rate("C", 0.9)}
        rows["C"] = rows["C"]._replace(withheld="only 5 pairs")
        assert worst_and_best(rows) == ("A", "B")
        assert worst_and_best({"A": rows["A"], "C": rows["C"]}) is None
        rows = {"A": rate("A", 0.1), "B": rate("B", 0.1, 9000.0)}
        assert worst_and_best(rows) == ("B", "B")

    def test_intervals_that_know_people_are_wider(self):
        def ratio(effective):
            pair = [rate("A", 0.05, 4000.0, effective), rate("B", 0.02, 4000.0, effective)]
            return least_ratios(pair)[0].value

        assert ratio(4000.0) > 1 > ratio(100.0)

    def test_a_wider_one_is_never_narrower_than_what_was_measured(self):
        rows = [rate("A", 0.05, 1000.0, 400.0), rate("B", 0.01, 1000.0, 400.0)]
        wide = [row._replace(low=row.low / 50, high=row.high * 8) for row in rows]
        assert least_ratios(wide)[0].value == pytest.approx(wide[0].low / wide[1].high)

    def test_of_many_groups_the_extremes_part_by_chance(self):
        rows = [rate(str(i), 0.10, 1000.0) for i in range(28)]
        ends = [rate("high", 0.125, 1000.0), rate("low", 0.075, 1000.0)]
        assert least_ratios(ends)[0].value > 1 > least_ratios([*rows, *ends])[0].value

    def test_chance_seldom_tells_equal_groups_apart(self):
        rng = np.random.default_rng(0)
        apart = 0
        for _ in range(200):
            errors = rng.binomial(2000, 0.05, 30)
            rows = [rate(str(i), n / 2000, 2000.0) for i, n in enumerate(errors)]
            apart += least_ratios(rows)[0].value > 1
        assert apart <= 10  # 5 %
