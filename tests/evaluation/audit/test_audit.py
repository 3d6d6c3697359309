"""The audit against fairlearn, SciPy and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fairlearn.metrics import (
    MetricFrame,
    false_negative_rate,
    false_positive_rate,
    true_positive_rate,
)
from scipy.stats import binomtest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from faircal import Audit, DataError, ParameterError, audit
from faircal.data import Groups

COLUMNS = [
    "dataset",
    "feature",
    "method",
    "calibrator",
    "clusters",
    "seed",
    "fold",
    "attribute",
    "group",
    "condition",
    "metric",
    "value",
]


@pytest.fixture(scope="module")
def sample():
    """Scores of 600 pairs in three groups; scores of genuine pairs are higher."""
    rng = np.random.default_rng(0)
    genuine = rng.random(600) < 0.4
    group = rng.choice(["Asian F", "Asian M", "Black F"], 600, p=[0.5, 0.3, 0.2])
    score = np.clip(
        rng.normal(np.where(genuine, 0.5, 0.1) + 0.1 * (group == "Asian F"), 0.2), -1, 1
    )
    return {"score": score.round(2), "genuine": genuine, "groups": group}


def by_hand():
    return audit(
        score=[0.9, 0.8, 0.3, 0.7, 0.6, 0.1, 0.65],
        genuine=[1, 1, 0, 1, 0, 0, 1],
        groups=["A", "A", "A", "B", "B", "B", "B"],
        threshold=0.65,
    )


class TestValues:
    def test_by_hand(self):
        found = by_hand()
        assert found.groups == ("A", "B")
        assert found.trials == {"global": (4, 3), "A": (2, 1), "B": (2, 2)}
        assert found.value("fpr") == 0
        assert found.value("fnr") == 0
        assert found.value("tpr", group="B") == 1
        assert found.value("threshold") == 0.65
        assert found.value("auroc") == 1
        assert found.value("auroc", group="B") == 1

    def test_a_score_at_the_threshold_is_a_match(self):
        found = audit(score=[0.5, 0.5, 0.4], genuine=[1, 0, 0], threshold=0.5)
        assert found.value("fpr") == 0.5
        assert found.value("tpr") == 1

    @pytest.mark.parametrize("threshold", [-2.0, 0.1, 0.33, 0.5, 2.0])
    def test_against_fairlearn(self, sample, threshold):
        found = audit(**sample, threshold=threshold)
        frame = MetricFrame(
            metrics={
                "fpr": false_positive_rate,
                "fnr": false_negative_rate,
                "tpr": true_positive_rate,
            },
            y_true=sample["genuine"].astype(int),
            y_pred=(sample["score"] >= threshold).astype(int),
            sensitive_features=sample["groups"],
        )
        for metric in ("fpr", "fnr", "tpr"):
            assert found.value(metric) == pytest.approx(frame.overall[metric], abs=1e-12)
            for group in found.groups:
                expected = frame.by_group.loc[group, metric]
                assert found.value(metric, group=group) == pytest.approx(expected, abs=1e-12)

    def test_against_scikit_learn(self, sample):
        probability = (sample["score"] + 1) / 2
        found = audit(**sample, probability=probability)
        for group in ("global", *found.groups):
            rows = (sample["groups"] == group) | (group == "global")
            truth = sample["genuine"][rows].astype(int)
            for metric, function, values in (
                ("auroc", roc_auc_score, sample["score"]),
                ("brier", brier_score_loss, probability),
                ("nll", log_loss, probability),
            ):
                expected = function(truth, values[rows])
                assert found.value(metric, group=group) == pytest.approx(expected, rel=1e-10)

    def test_probability_ranks_where_there_is_no_score(self, sample):
        probability = (sample["score"] + 1) / 2
        found = audit(probability=probability, genuine=sample["genuine"], threshold=0.6)
        direct = audit(
            score=probability,
            probability=probability,
            genuine=sample["genuine"],
            threshold=0.6,
            score_range=(0.0, 1.0),
        )
        assert found.table.equals(direct.table)

    def test_score_only_measures_no_calibration(self, sample):
        found = audit(**sample)
        with pytest.raises(ParameterError, match="the audit has no metric 'ks'"):
            found.value("ks")

    def test_without_threshold_no_counted_rates(self, sample):
        found = audit(**sample)
        with pytest.raises(ParameterError, match=r"under condition ''; it has 'global_fpr=0\.001'"):
            found.value("fpr")
        imposters = found.trials["global"][1]
        value = found.value("fpr", condition="global_fpr=0.01")
        assert value == np.floor(0.01 * imposters) / imposters

    def test_rates_are_whole_errors(self, sample):
        found = audit(**sample, rates=[0.05])
        for metric, trials in zip(("fnr", "fpr"), found.trials["global"], strict=True):
            result = found.result(metric, condition=f"global_{metric}=0.05")
            assert result.errors == int(result.errors) <= 0.05 * trials
            assert result.value == result.errors / trials
        hits = found.result("tpr", condition="fpr=0.05")
        missed = found.result("fnr", condition="global_fpr=0.05")
        assert hits.errors == missed.trials - missed.errors

    def test_an_audit_is_equal_to_itself_alone(self):
        # It holds lists and NaN, so comparing contents could mislead; as an object it can be a key.
        one, two = by_hand(), by_hand()
        assert one != two
        assert len({one, two}) == 2


class TestOneClass:
    @pytest.mark.parametrize(
        ("genuine", "defined", "undefined"), [(1, ("fnr", "tpr"), "fpr"), (0, ("fpr",), "fnr")]
    )
    def test_what_it_leaves_undefined_is_nan(self, genuine, defined, undefined):
        found = audit(
            score=[0.9, 0.3, 0.2],
            probability=[0.9, 0.3, 0.2],
            genuine=[genuine] * 3,
            groups=["A", "A", "B"],
            threshold=0.5,
        )
        for metric in defined:
            assert 0 <= found.value(metric) <= 1
        assert np.isnan(found.value(undefined))
        assert np.isnan(found.value("auroc"))
        assert np.isnan(found.interval(undefined)).all()
        assert 0 <= found.value("ks") <= 1
        assert np.isfinite(found.value("brier"))

    def test_in_one_group_only(self):
        found = audit(
            score=[0.9, 0.3, 0.2, 0.8], genuine=[1, 0, 0, 0], groups=list("AABB"), threshold=0.5
        )
        assert found.value("fpr", group="B") == 0.5
        assert np.isnan(found.value("fnr", group="B"))
        assert np.isnan(found.value("auroc", group="B"))
        assert found.value("fnr_mean", group="all", condition="global_fpr=0.01") == (
            found.value("fnr", group="A", condition="global_fpr=0.01")
        )

    def test_a_group_of_cross_group_pairs_only_is_nan(self):
        found = audit(
            score=[0.9, 0.3, 0.5],
            genuine=[1, 0, 0],
            groups=[("A", "A"), ("A", "A"), ("A", "B")],
            threshold=0.5,
        )
        assert found.trials["B"] == (0, 0)
        assert np.isnan(found.value("fpr", group="B"))
        assert found.value("fpr") == 0.5


class TestIntervals:
    @pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
    @pytest.mark.parametrize("metric", ["fpr", "fnr", "tpr"])
    def test_wilson(self, sample, metric, level):
        found = audit(**sample, threshold=0.3)
        for group in ("global", *found.groups):
            rows = (sample["groups"] == group) | (group == "global")
            counted = rows & (sample["genuine"] != (metric == "fpr"))
            match = sample["score"] >= 0.3
            hits = (counted & (~match if metric == "fnr" else match)).sum()
            expected = binomtest(int(hits), int(counted.sum())).proportion_ci(level, "wilson")
            low, high = found.interval(metric, group=group, level=level)
            assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)

    def test_95_percent_unless_told(self, sample):
        found = audit(**sample, threshold=0.3)
        assert found.interval("fpr") == found.interval("fpr", level=0.95)

    def test_no_errors_and_nothing_but_errors(self):
        found = audit(score=[0.9, 0.1, 0.2], genuine=[1, 0, 0], threshold=0.5)
        assert found.interval("fpr")[0] == 0
        assert 0 < found.interval("fpr")[1] < 1
        assert found.interval("tpr")[1] == 1

    def test_every_value_but_a_threshold_has_one(self, sample):
        found = audit(**sample, threshold=0.3)
        assert np.isnan(found.interval("threshold")).all()
        for row in found.measures:
            (group, condition, metric), value = row.what, row.value
            if metric != "threshold" and np.isfinite(value):
                low, high = found.interval(metric, group=group, condition=condition)
                assert low <= value + 1e-12 and value <= high + 1e-12, (group, condition, metric)

    @pytest.mark.parametrize("level", [0, 1, 95])
    def test_level(self, sample, level):
        with pytest.raises(ParameterError, match="level: expected a number between 0 and 1"):
            audit(**sample, threshold=0.3).interval("fpr", level=level)

    def test_list_of_all(self, sample):
        found = audit(**sample, threshold=0.3, attribute="ethnicity+gender")
        assert [row.what for row in found.rows[: len(found.measures)]] == [
            each.what for each in found.measures
        ]
        for row in found.rows:
            assert row.attribute == "ethnicity+gender"
            if row.metric == "threshold" or row.metric.endswith("least_ratio"):
                continue
            ends = found.interval(row.metric, group=row.group, condition=row.condition)
            assert (row.low, row.high) == pytest.approx(ends, nan_ok=True)
            if row.metric in ("fpr", "fnr", "tpr") and row.group != "all":
                if row.trials and not np.isnan(row.value):
                    assert row.low <= row.value <= row.high
                    assert row.errors == pytest.approx(row.value * row.trials, abs=1e-6)
                assert row.effective == row.trials  # nobody is known: pairs are independent
        assert "pair-wise" in found.interval_kind


class TestEnough:
    @pytest.mark.parametrize(
        ("strangers", "condition", "told"),
        [
            (99, "", False),
            (100, "", True),
            (299, "global_fpr=0.01", False),
            (300, "global_fpr=0.01", True),
            (299, "global_fpr=0.1", True),
        ],
    )
    def test_pairs_for_a_rate(self, strangers, condition, told):
        genuine = [0] * strangers + [1] * 150
        found = audit(
            score=np.linspace(0, 1, len(genuine)), genuine=genuine, threshold=0.5, rates=[0.01, 0.1]
        )
        assert found.result("fpr", condition=condition).reportable is told
        # The false-negative rate is no wanted one here: 100 genuine pairs do.
        assert found.result("fnr", condition=condition).reportable
        assert found.result("auroc").reportable

    def test_what_was_not_measured(self, sample):
        with pytest.raises(ParameterError, match="has no fpr of group 'Nobody'"):
            audit(**sample, threshold=0.3).result("fpr", group="Nobody")


class TestGroups:
    def test_one_column_is_both_sides(self, sample):
        pairs = np.stack([sample["groups"]] * 2, axis=1)
        codes = np.array([("Asian F", "Asian M", "Black F").index(g) for g in sample["groups"]])
        groups = Groups(("Asian F", "Asian M", "Black F"), codes, codes)
        tables = [
            audit(**{**sample, "groups": form}, threshold=0.3).table
            for form in (
                sample["groups"],
                list(sample["groups"]),
                pairs,
                pairs.tolist(),
                groups,
                pd.Series(sample["groups"], index=range(600, 0, -1)),
                pd.Series(sample["groups"], dtype="category"),
                pa.array(sample["groups"]),
            )
        ]
        for table in tables[1:]:
            # Undefined values are NaN, which Arrow's tables don't call equal.
            pd.testing.assert_frame_equal(table.to_pandas(), tables[0].to_pandas())

    @pytest.mark.parametrize("unknown", ["", None, " ", float("nan")])
    def test_unknown_counts_globally_and_in_no_group(self, unknown):
        found = audit(
            score=[0.9, 0.2, 0.8, 0.1],
            genuine=[1, 0, 0, 0],
            groups=np.array(["A", "A", unknown, "B"], dtype=object),
            threshold=0.5,
        )
        assert found.groups == ("A", "B")
        assert found.trials == {"global": (1, 3), "A": (1, 1), "B": (0, 1)}
        assert found.value("fpr") == pytest.approx(1 / 3)
        assert found.value("fpr", group="A") == 0

    def test_cross_group_counts_globally_and_in_no_group(self):
        found = audit(
            score=[0.9, 0.2, 0.8, 0.1],
            genuine=[1, 0, 0, 0],
            groups=[("A", "A"), ("A", "A"), ("A", "B"), ("B", None)],
            threshold=0.5,
        )
        assert found.trials == {"global": (1, 3), "A": (1, 1), "B": (0, 0)}

    def test_numbers_as_groups(self):
        found = audit(score=[0.9, 0.2], genuine=[1, 0], groups=[2, 1], threshold=0.5)
        assert found.groups == ("1", "2")

    def test_none_at_all(self):
        found = audit(score=[0.9, 0.2], genuine=[1, 0], threshold=0.5)
        assert found.groups == ()
        assert {m.group for m in found.measures} == {"global"}

    @pytest.mark.parametrize("name", ["global", "all"])
    def test_names_that_results_keep(self, name):
        with pytest.raises(DataError, match=f"a group is called '{name}'"):
            audit(score=[0.9, 0.2], genuine=[1, 0], groups=["A", name])


class TestPeople:
    def test_counted_overall_and_by_group(self):
        found = audit(
            score=[0.9, 0.2, 0.8, 0.1, 0.4],
            genuine=[1, 0, 0, 0, 0],
            groups=[("A", "A"), ("A", "A"), ("A", "B"), ("B", "B"), ("B", "B")],
            left_identity=["ann", "ann", "bea", "cleo", "cleo"],
            right_identity=["ann", "bea", "cleo", "dora", ""],
        )
        assert found.people == {"global": 4, "A": 2, "B": 2}

    def test_numbers(self):
        found = audit(score=[0.9, 0.2], genuine=[1, 0], left_identity=[1, 1], right_identity=[1, 7])
        assert found.people == {"global": 2}

    def test_one_side_only_says_nothing(self):
        assert audit(score=[0.9, 0.2], genuine=[1, 0], left_identity=[1, 1]).people is None


class TestTable:
    def test_columns_of_the_results(self, sample):
        found = audit(
            **sample, threshold=0.3, dataset="D", feature="F", attribute="e+g", method="M"
        )
        table = found.table
        assert table.column_names[:12] == COLUMNS
        kinds = [str(kind) for kind in table.schema.types]
        assert kinds == ["string"] * 11 + ["double"] * 8 + ["string"]
        assert table.num_rows == len(found.rows)
        first = table.slice(0, 1).to_pylist()[0]
        assert [first[c] for c in COLUMNS[:8]] == ["D", "F", "M", "", "", "", "", "e+g"]

    def test_every_row_can_be_asked_for(self, sample):
        found = audit(**sample, probability=(sample["score"] + 1) / 2, threshold=0.3)
        asked = set()
        for row in found.table.to_pylist():
            key = (row["metric"], row["group"], row["condition"])
            assert key not in asked
            asked.add(key)
            value = found.value(row["metric"], group=row["group"], condition=row["condition"])
            assert value == row["value"] or np.isnan(value)

    def test_is_an_audit(self, sample):
        assert isinstance(audit(**sample), Audit)


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "expected score or probability, found neither"),
            ({"score": [0.1]}, r"score: expected 2 values, one per pair, found shape \(1,\)"),
            ({"score": [[0.1], [0.2]]}, r"score: expected 2 values.* found shape \(2, 1\)"),
            ({"score": [0.1, "high"]}, "score: expected numbers"),
            ({"score": [0.1, float("nan")]}, "score, row 2: expected a finite number, found nan"),
            ({"probability": [0.1, float("inf")]}, "probability, row 2: expected a finite number"),
            ({"probability": [0.1, 1.5]}, "probability, row 2: expected 0 to 1, found 1.5"),
            ({"probability": [1.0, 1.5]}, "probability, row 2: expected 0 to 1, found 1.5"),
            ({"probability": [0.0, -0.5]}, "probability, row 2: expected 0 to 1, found -0.5"),
            ({"score": [0.1, 0.2], "groups": ["A"]}, r"groups: expected shape \(2,\) or \(2, 2\)"),
            (
                {"score": [0.1, 0.2], "groups": [["A", "B", "C"]] * 2},
                r"groups: expected shape .* found \(2, 3\)",
            ),
            (
                {"score": [0.1, 0.2], "groups": Groups(("A",), np.zeros(3, int), np.zeros(3, int))},
                "groups: expected 2, one per pair, found 3",
            ),
            (
                {"score": [0.1, 0.2], "left_identity": ["a"], "right_identity": ["a", "b"]},
                "identities: expected 2 values",
            ),
            ({"score": [0.1, 0.2], "threshold": float("nan")}, "threshold: expected a finite"),
            ({"score": [0.1, 0.2], "rates": [2]}, "rates: expected rates between 0 and 1, found 2"),
            ({"score": [0.1, 0.2], "genuine": [1, 2]}, "row 2: expected 0, 1, true or false"),
            ({"score": [0.1, 0.2], "genuine": [[1], [0]]}, "genuine: expected one value per pair"),
            ({"score": [], "genuine": []}, "not empty"),
        ],
    )
    def test_one_clear_line(self, arguments, message):
        with pytest.raises((DataError, ParameterError), match=message) as caught:
            audit(**{"genuine": [1, 0], **arguments})
        assert "\n" not in str(caught.value)

    def test_misspelt(self):
        found = by_hand()
        with pytest.raises(ParameterError, match=r"no metric 'fprr'; did you mean fpr\?"):
            found.value("fprr")
        with pytest.raises(ParameterError, match="no fpr of group 'C'"):
            found.value("fpr", group="C")
        with pytest.raises(ParameterError, match="no fpr of group 'C'"):
            found.interval("fpr", group="C")
        with pytest.raises(ParameterError, match=r"under condition 'global_fpr=0\.5'"):
            found.value("fpr", condition="global_fpr=0.5")
