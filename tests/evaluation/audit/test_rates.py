"""Error rates at an operating point are those of an audit there."""

from __future__ import annotations

import math

import numpy as np
import pytest

import faircal
from faircal.evaluation.audit import ScoredPairs
from faircal.evaluation.audit.rates import imposter_matrix, rates_at
from faircal.metrics import wilson


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    person = rng.normal(size=90)
    left = rng.integers(0, 90, 6000)
    right = np.where(rng.random(6000) < 0.4, left, rng.integers(0, 90, 6000))
    genuine = left == right
    score = genuine + 0.3 * (person[left] + person[right]) + 0.3 * rng.normal(size=6000)
    groups = np.array([["few" if who < 5 else "many" for who in side] for side in (left, right)]).T
    return {
        "genuine": genuine,
        "score": score,
        "groups": groups,
        "left_identity": left,
        "right_identity": right,
    }


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_rates_and_intervals(pairs, level):
    rows = rates_at(ScoredPairs.of(**pairs), 0.7, level=level)
    found = faircal.audit(**pairs, threshold=0.7)
    assert [row.name for row in rows] == ["global", "few", "many"]
    for row in rows:
        assert (row.genuine, row.imposters) == found.trials[row.name]
        for metric in ("fpr", "fnr"):
            value, low, high = (getattr(row, f"{metric}{end}") for end in ("", "_low", "_high"))
            told = found.result(metric, group=row.name).reportable
            assert math.isnan(value) is not told
            if told:
                assert value == found.value(metric, group=row.name)
                assert (low, high) == found.interval(metric, group=row.name, level=level)
    assert "not enough data" in rows[1].fpr_lacking
    assert rows[2].fpr_lacking is None


def test_without_people(pairs):
    known = {key: pairs[key] for key in ("genuine", "score")}
    (row,) = rates_at(ScoredPairs.of(**known), 0.7)
    assert row.people is row.effective_people is None
    assert (row.fpr_low, row.fpr_high) == faircal.audit(**known, threshold=0.7).interval("fpr")


def test_as_json_knows_no_nan(pairs):
    told = rates_at(ScoredPairs.of(**pairs), 0.7)[1].as_json()
    assert told["fpr"] is None
    assert told["name"] == "few"


def test_one_class_only():
    scores = np.linspace(-1, 1, 400)
    (row,) = rates_at(ScoredPairs.of(np.zeros(400, bool), scores), 0.5)
    assert row.fpr == 0.25
    assert math.isnan(row.fnr)
    assert row.fnr_lacking.startswith("no pairs of one person")


class TestMatrix:
    @pytest.mark.parametrize("identities", [True, False])
    def test_counts_are_what_masks_give(self, pairs, identities):
        given = {k: v for k, v in pairs.items() if identities or not k.endswith("identity")}
        audit = faircal.audit(**given, threshold=0.7)
        rows = [
            row
            for row in imposter_matrix(ScoredPairs.of(**given), audit)
            if row.condition in ("", "threshold=0.7")
        ]
        assert [(row.left_group, row.right_group) for row in rows] == [
            ("few", "few"),
            ("few", "many"),
            ("many", "many"),
        ]
        for row in rows:
            both = np.sort(pairs["groups"], axis=1) == sorted((row.left_group, row.right_group))
            score = pairs["score"][both.all(axis=1) & ~pairs["genuine"]]
            assert (row.imposters, row.errors) == (len(score), (score >= 0.7).sum())
            assert row.fpr == row.errors / row.imposters

    def test_pairs_of_two_groups_without_people_are_independent(self, pairs):
        given = {key: pairs[key] for key in ("genuine", "score", "groups")}
        audit = faircal.audit(**given, threshold=0.7)
        across = [
            row
            for row in imposter_matrix(ScoredPairs.of(**given), audit)
            if row.left_group != row.right_group
        ]
        assert across
        for row in across:
            assert (row.low, row.high) == wilson(row.errors, row.imposters)
            assert math.isnan(row.effective_people)

    def test_people_make_the_interval_wider(self, pairs):
        audit = faircal.audit(**pairs, threshold=0.7)
        across = [
            row
            for row in imposter_matrix(ScoredPairs.of(**pairs), audit)
            if row.left_group != row.right_group
        ]
        assert across
        for row in across:
            low, high = wilson(row.errors, row.imposters)
            assert row.high - row.low > high - low
            assert row.low <= row.fpr <= row.high
            assert row.effective_people < 90
