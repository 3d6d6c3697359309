"""Wrong labels of groups: made wrong on purpose, and taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from faircal import DataError, ParameterError
from faircal.data import Groups
from faircal.evaluation.audit import ScoredPairs, audit_pairs
from faircal.evaluation.audit.label_noise import (
    LABEL_NOISE,
    LabelledPeople,
    LabelMixing,
    LabelNoiseRow,
    RelabelledCounts,
    confusion,
    label_noise,
    over_groups,
)
from faircal.metrics import ks
from faircal.metrics.results import read_rows, write_rows

NAMES = ("A", "B", "C")
SHARES = np.array([0.5, 0.3, 0.2])
#: At the score 1: rates of imposters by true group, and across groups; of genuine pairs.
FPR = np.array([[0.02, 0.005, 0.005], [0.005, 0.06, 0.01], [0.005, 0.01, 0.15]])
FNR = np.array([0.02, 0.1, 0.3])


def world(rng, n=300_000, people=6000):
    """Return labels, decisions as scores 0 and 1, the true groups of people, and the pairs."""
    group = rng.choice(3, people, p=SHARES)
    left, right = rng.integers(0, people, (2, n))
    genuine = rng.random(n) < 0.3
    right = np.where(genuine, left, np.where(left == right, (right + 1) % people, right))
    accept = rng.random(n) < np.where(genuine, 1 - FNR[group[left]], FPR[group[left], group[right]])
    return genuine, accept.astype(float), group, left, right


def scored(genuine, score, group, left, right, probability=None):
    groups = Groups(NAMES, group[left].astype(np.int32), group[right].astype(np.int32))
    names = tuple(map(str, range(len(group))))
    people = Groups(names, left.astype(np.int32), right.astype(np.int32))
    return ScoredPairs(genuine, score, probability, groups, people)


def mislabel(rng, group, rate):
    sizes = np.bincount(group, minlength=3).astype(float)
    reach = np.cumsum(confusion(sizes, rate), axis=1)
    return (rng.random(len(group))[:, None] >= reach[group]).sum(axis=1)


class TestMixing:
    @pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
    def test_confusion_rows_sum_to_one(self, rate):
        found = confusion(np.array([5.0, 3.0, 2.0]), rate)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_allclose(np.diag(found), 1 - rate)

    def test_who_is_in_a_labelled_group_by_counting(self):
        rng = np.random.default_rng(0)
        true = rng.choice(3, 400_000, p=SHARES)
        labelled = mislabel(rng, true, 0.1)
        mixing = LabelMixing.of(np.bincount(labelled, minlength=3).astype(float), 0.1)
        for h in range(3):
            counted = np.bincount(true[labelled == h], minlength=3) / (labelled == h).sum()
            np.testing.assert_allclose(mixing.truly[h], counted, atol=0.01)

    def test_taking_back_undoes_mixing(self):
        mixing = LabelMixing.of(np.array([500.0, 300.0, 200.0]), 0.1)
        back = mixing.one_label(mixing.truly @ FNR)
        np.testing.assert_allclose(back.rates, FNR)
        assert back.reliable

    def test_pairs_across_groups_measured_or_not(self):
        mixing = LabelMixing.of(np.array([500.0, 300.0, 200.0]), 0.1)
        mixed = np.diag(mixing.truly @ FPR @ mixing.truly.T)
        rates = FPR.copy()
        np.fill_diagonal(rates, mixed)
        np.testing.assert_allclose(mixing.two_labels(rates).rates, np.diag(FPR))
        # Not measured: right where pairs across groups do match never, or as those within.
        only = np.full((3, 3), np.nan)
        np.fill_diagonal(only, mixing.truly**2 @ np.diag(FPR))
        np.testing.assert_allclose(mixing.two_labels(only, never=True).rates, np.diag(FPR))
        np.fill_diagonal(only, mixing.truly @ np.diag(FPR))
        np.testing.assert_allclose(mixing.two_labels(only).rates, np.diag(FPR))

    def test_too_much_noise_is_not_relied_on(self):
        even = np.array([500.0, 500.0])
        rates = np.array([0.1, 0.12])
        assert LabelMixing.of(even, 0.05).one_label(rates).reliable
        assert not LabelMixing.of(even, 0.4).one_label(rates).reliable
        assert not LabelMixing.of(even, 0.5).one_label(rates).reliable
        # A rate below 0 would be needed.
        clipped = LabelMixing.of(even, 0.2).one_label(np.array([0.0, 0.5]))
        assert clipped.rates[0] == 0
        assert not clipped.reliable
        # So small a group cannot be left by so many wrong labels.
        assert not LabelMixing.of(np.array([999.0, 1.0]), 0.3).possible

    def test_groups_without_a_rate_are_left_out(self):
        mixing = LabelMixing.of(np.array([500.0, 300.0, 200.0]), 0.1)
        found = mixing.one_label(np.array([0.1, np.nan, 0.2]))
        assert np.isnan(found.rates[1])
        assert not np.isnan(found.rates[[0, 2]]).any()


class TestDraws:
    def test_values_as_labelled_are_those_of_the_audit(self):
        rng = np.random.default_rng(1)
        genuine, _, group, left, right = world(rng, 4000, 200)
        score = rng.normal(genuine * 0.8 + 0.1 * group[left], 0.3).round(3)
        probability = (1 / (1 + np.exp(3 - 6 * score))).round(2)  # with ties
        pairs = scored(genuine, score, group, left, right, probability)
        found = label_noise(pairs, 0.05, threshold=0.5, draws=2)
        audit = audit_pairs(pairs, threshold=0.5, score_range=(-3, 3))
        for name in NAMES:
            for metric in ("fpr", "fnr", "ks"):
                expected = audit.value(metric, group=name)
                assert found.row(metric, group=name).value == pytest.approx(expected)
        for metric in ("ks_aad", "ks_mean", "ks_mad", "ks_std"):
            expected = audit.value(metric, group="all")
            assert found.row(metric).value == pytest.approx(expected)
        assert found.row("ks_gap").value == pytest.approx(
            np.ptp([audit.value("ks", group=name) for name in NAMES])
        )
        under = "global_fpr=0.01"
        assert found.row("fpr", group="A", condition=under).value == pytest.approx(
            audit.value("fpr", group="A", condition=under)
        )

    def test_people_move_as_a_whole_and_as_often_as_told(self):
        rng = np.random.default_rng(2)
        genuine, score, group, left, right = world(rng, 20_000, 2000)
        pairs = scored(genuine, score, group, left, right)
        people = LabelledPeople.of(pairs, pairs.groups)
        moved = people.mislabelled(0.2, rng)
        of_person = np.full(2000, -1)
        of_person[left[genuine]] = moved[genuine]
        # All genuine pairs of a person are in one group, that person's.
        np.testing.assert_array_equal(of_person[left[genuine]], moved[genuine])
        seen = of_person >= 0
        changed = of_person[seen] != group[seen]
        assert changed.mean() == pytest.approx(0.2, abs=0.03)
        to = np.bincount(of_person[seen][changed & (group[seen] == 0)], minlength=3)
        assert to[0] == 0
        assert to[1] / to.sum() == pytest.approx(0.6, abs=0.15)  # 30 % against 20 %

    def test_a_genuine_pair_is_of_one_person_whichever_side_is_named(self):
        groups = Groups(("A", "B"), *(np.array([0, 0, 1, 1], np.int32) for _ in range(2)))
        left, right = np.array([0, -1, 0, -1], np.int32), np.array([-1, 0, -1, 1], np.int32)
        people = Groups(("ann", "bea"), left, right)
        pairs = ScoredPairs(np.array([True, True, False, True]), np.zeros(4), None, groups, people)
        made = LabelledPeople.of(pairs, groups)
        assert made._left.tolist()[:2] == made._right.tolist()[:2] == [0, 0]
        assert made._left[2] == 0 != made._right[2]
        assert made._left[3] == made._right[3] == 1

    def test_unknown_labels_stay_unknown(self):
        rng = np.random.default_rng(3)
        genuine, score, group, left, right = world(rng, 5000, 300)
        group[:60] = -1
        pairs = scored(genuine, score, group, left, right)
        moved = LabelledPeople.of(pairs, pairs.groups).mislabelled(0.5, rng)
        assert (moved[pairs.groups.unknown] == -1).all()
        assert (moved[~pairs.groups.unknown] >= 0).any()

    def test_gaps_shrink_forwards_and_come_back_backwards(self):
        """Labels made wrong outside: the draws foretell it, and taking back undoes it."""
        rng = np.random.default_rng(4)
        genuine, score, group, left, right = world(rng)
        given = scored(genuine, score, group, left, right)
        before = label_noise(given, 0.1, threshold=0.5, draws=60)
        wrong = mislabel(rng, group, 0.1)
        after = label_noise(scored(genuine, score, wrong, left, right), 0.1, threshold=0.5, draws=5)
        for metric in ("fpr_gap", "fnr_gap", "fnr_aad"):
            true, noisy = before.row(metric), after.row(metric)
            assert noisy.value < 0.93 * true.value
            # Within what 60 draws span, and a bit.
            slack = 0.5 * (true.high - true.low)
            assert true.low - slack <= noisy.value <= true.high + slack
            assert abs(noisy.corrected - true.value) < 0.5 * abs(noisy.value - true.value)
            assert noisy.corrected == noisy.corrected_never  # all pairs of groups are measured
            assert noisy.reliable

    def test_unknown_people(self):
        """A pair within a group has one label: rates mix in proportion, ×(1 − 2 r) of two even."""
        rng = np.random.default_rng(5)
        group = np.repeat([0, 1], 50_000)
        accept = (rng.random(100_000) < np.where(group == 0, 0.1, 0.3)).astype(float)
        none = np.zeros(100_000, bool)
        groups = Groups(("A", "B"), group.astype(np.int32), group.astype(np.int32))
        found = label_noise(ScoredPairs(none, accept, groups=groups), 0.1, threshold=0.5, draws=20)
        row = found.row("fpr_gap")
        assert row.median == pytest.approx(0.8 * row.value, rel=0.01)
        assert row.corrected == pytest.approx(row.value / 0.8, rel=0.01)
        assert "every one of the pairs" in found.notes[0]
        assert any("people are unknown" in text for text in found.notes)

    def test_seeds(self):
        rng = np.random.default_rng(6)
        pairs = scored(*world(rng, 5000, 300))
        one, same, other = (
            label_noise(pairs, 0.1, threshold=0.5, draws=5, seed=seed).rows for seed in (0, 0, 1)
        )
        assert repr(one) == repr(same)
        assert repr(one) != repr(other)

    def test_ks_of_groups_under_new_labels(self):
        """Against the metric itself, ties included."""
        rng = np.random.default_rng(7)
        genuine, score, group, left, right = world(rng, 3000, 100)
        probability = rng.random(3000).round(2)
        pairs = scored(genuine, score, group, left, right, probability)
        codes = rng.integers(-1, 3, 3000)
        found = RelabelledCounts(pairs, pairs.groups, {}).values(codes)["", "ks"]
        expected = [ks(probability[codes == g], genuine[codes == g]) for g in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestBadInput:
    @pytest.mark.parametrize("rate", [0, 1, -0.1, float("nan")])
    def test_rates(self, rate):
        pairs = scored(*world(np.random.default_rng(0), 100, 20))
        with pytest.raises(ParameterError, match="expected a share between 0 and 1"):
            label_noise(pairs, rate)

    def test_no_groups(self):
        with pytest.raises(DataError, match="two or more groups"):
            label_noise(ScoredPairs.of([0, 1], [0.1, 0.9]), 0.1)

    def test_one_group_with_people(self):
        one = np.zeros(4, np.int32)
        pairs = ScoredPairs(np.array([0, 1, 0, 1], bool), np.arange(4.0))
        groups = Groups(("A", "B"), one, np.array([0, -1, 0, 0], np.int32))
        with pytest.raises(DataError, match="two or more groups with people"):
            label_noise(replace(pairs, groups=groups), 0.1)
        groups = Groups(("A", "B", "C"), one, np.array([0, 1, 0, 1], np.int32))
        assert label_noise(replace(pairs, groups=groups), 0.1, draws=2).rows

    def test_unknown_rows(self):
        pairs = scored(*world(np.random.default_rng(0), 100, 20))
        found = label_noise(pairs, 0.1, draws=2)
        with pytest.raises(ParameterError, match="no 'fpr'"):
            found.row("fpr")


class TestTable:
    ROW = LabelNoiseRow(
        "f", "a", "all", "", "fpr_gap", 0.05, 0.04, 0.03, 0.02, 0.035, 0.045, 0.044, 1.0
    )

    def test_reads_back_and_is_removed(self, tmp_path):
        path = tmp_path / LABEL_NOISE
        write_rows(path, LabelNoiseRow, [self.ROW])
        assert read_rows(path, LabelNoiseRow) == [self.ROW]
        write_rows(path, LabelNoiseRow, [])
        assert not path.exists()
        assert read_rows(path, LabelNoiseRow) == []

    def test_what_is_shown_and_how_it_is_called(self):
        ks = self.ROW._replace(metric="ks_aad")
        hidden = [
            self.ROW._replace(group="A", metric="fpr"),
            self.ROW._replace(metric="fpr_mad"),
            self.ROW._replace(value=float("nan")),
        ]
        assert over_groups([self.ROW, *hidden, ks]) == [self.ROW, ks]
        assert [(row.name, row.of_rate) for row in (self.ROW, ks)] == [
            ("FPR gap", True),
            ("KS AAD", False),
        ]
        assert self.ROW.taken_back("{:.3f}".format) == "0.044 to 0.045"
        assert self.ROW.taken_back("{:.1f}".format) == "0.0"
