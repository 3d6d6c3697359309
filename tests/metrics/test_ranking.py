"""Sorting once: order, tie blocks, subsets, and the door."""

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.metrics import Ranking, ks
from faircal.metrics.ranking import as_probabilities, as_ranking


def test_descends_and_keeps_the_input_order_of_ties():
    ranking = Ranking.of([0.2, 0.7, 0.2, 0.9, 0.7], [0, 1, 1, 1, 0])
    assert ranking.order.tolist() == [3, 1, 4, 0, 2]
    assert ranking.scores.tolist() == [0.9, 0.7, 0.7, 0.2, 0.2]
    assert ranking.genuine.tolist() == [True, True, False, False, True]


def test_counts_stand_at_the_ends_of_tie_blocks():
    ranking = Ranking.of([0.2, 0.7, 0.2, 0.9, 0.7], [0, 1, 1, 1, 0])
    assert ranking.thresholds.tolist() == [0.9, 0.7, 0.2]
    assert ranking.tp.tolist() == [1, 2, 3]
    assert ranking.fp.tolist() == [0, 1, 2]
    assert (len(ranking), ranking.n_genuine, ranking.n_imposter) == (5, 3, 2)


def test_casts_at_the_door():
    ranking = Ranking.of(np.array([0.5, 0.25], dtype=np.float32), np.array([1.0, 0.0]))
    assert ranking.scores.dtype == np.float64
    assert ranking.genuine.dtype == np.bool_


def test_does_not_touch_or_share_the_input():
    scores, genuine = np.array([0.1, 0.9]), np.array([False, True])
    ranking = Ranking.of(scores, genuine)
    scores[0] = 5.0
    assert ranking.scores.tolist() == [0.9, 0.1]
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 5.0


def test_subset_may_be_empty():
    empty = Ranking.of([0.1, 0.9], [0, 1]).subset([False, False])
    assert (len(empty), empty.n_genuine, empty.n_imposter) == (0, 0, 0)
    assert empty.thresholds.size == empty.tp.size == empty.fp.size == 0


@pytest.mark.parametrize("mask", [[True], [1, 0], [[True, False]]])
def test_subset_wants_a_boolean_mask_of_its_length(mask):
    with pytest.raises(DataError, match="boolean mask of shape"):
        Ranking.of([0.1, 0.9], [0, 1]).subset(mask)


@pytest.mark.parametrize(
    ("scores", "genuine", "message"),
    [
        ([0.1, 0.2], [0], "found 2 scores and 1 labels"),
        ([], [], "not empty"),
        ([[0.1], [0.2]], [0, 1], r"found shape \(2, 1\)"),
        ([0.1, float("nan")], [0, 1], "found nan in row 1"),
        ([0.1, float("inf")], [0, 1], "found inf in row 1"),
        ([0.1, 0.2], [0, 2], "found 2 in row 1"),
        ([0.1, 0.2], [0.0, float("nan")], "found nan in row 1"),
        (["0.1", "0.2"], [0, 1], "scores to be numbers"),
        ([0.1, 0.2], ["yes", "no"], "genuine to be numbers"),
        ([0.1, 0.2], [None, object()], "genuine to be numbers"),
        ([[0.1], [0.2, 0.3]], [0, 1], "scores to be numbers"),
    ],
)
def test_refuses_unusable_input_in_one_line(scores, genuine, message):
    with pytest.raises(DataError, match=message) as caught:
        Ranking.of(scores, genuine)
    assert "\n" not in str(caught.value)


def test_labels_come_with_arrays_and_only_with_arrays():
    ranking = Ranking.of([0.1, 0.9], [0, 1])
    assert as_ranking(ranking, None) is ranking
    with pytest.raises(ParameterError, match="found a ranking and labels"):
        as_ranking(ranking, [0, 1])
    with pytest.raises(ParameterError, match="pass genuine"):
        as_ranking([0.1, 0.9], None)


@pytest.mark.parametrize("values", [[0.5, 1 + 1e-12], [-1e-12, 0.5]])
def test_probabilities_outside_the_unit_interval_are_refused(values):
    with pytest.raises(DataError, match=r"expected probabilities in \[0, 1\]"):
        as_probabilities(values, [0, 1])
    with pytest.raises(DataError, match="calibrate the scores first"):
        ks(Ranking.of(values, [0, 1]))


def test_counted_is_the_ranking_of_the_pairs():
    scores, genuine = [0.2, 0.9, 0.9, 0.4, 0.4, 0.4], [0, 1, 0, 1, 1, 0]
    counted = Ranking.counted([0.2, 0.4, 0.9], [0, 2, 1], [1, 1, 1])
    ranking = Ranking.of(scores, genuine)
    for name in ("thresholds", "tp", "fp"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(ranking, name))
    assert (len(counted), counted.n_genuine, counted.n_imposter) == (6, 3, 3)
    with pytest.raises(ParameterError, match="found one made of counts"):
        counted.pairs  # noqa: B018


@pytest.mark.parametrize("name", ["scores", "genuine", "order"])
def test_counted_knows_no_single_pair(name):
    with pytest.raises(ParameterError, match="found one made of counts"):
        getattr(Ranking.counted([0.2], [1], [1]), name)


def test_counted_of_nothing_is_empty():
    empty = Ranking.counted([], [], [])
    assert (len(empty), empty.n_genuine) == (0, 0)


@pytest.mark.parametrize("scores", [[0.4, 0.2], [0.2, 0.2], [0.2]])
def test_counted_wants_ascending_scores_with_counts(scores):
    with pytest.raises(DataError, match="ascending scores with two counts"):
        Ranking.counted(scores, [1, 1], [1, 1])


@pytest.mark.parametrize("n", [3, 33_000])
def test_splitting_is_a_subset_for_each_group(n):
    rng = np.random.default_rng(0)
    scores, genuine = rng.integers(0, 30, 200) / 30, rng.random(200) < 0.5
    codes = rng.integers(-1, 3, 200).astype(np.int32) * (n // 3)
    codes[codes < 0] = -1
    ranking = Ranking.of(scores, genuine)
    parts = ranking.split(codes, n)
    assert len(parts) == n
    for code in {0, 1, n // 3, n - 1}:
        expected = ranking.subset(codes == code)
        for name in ("scores", "genuine", "order", "thresholds", "tp", "fp"):
            np.testing.assert_array_equal(getattr(parts[code], name), getattr(expected, name))


@pytest.mark.parametrize("codes", [[0, 1], [0.0, 1.0, 0.0]])
def test_splitting_wants_a_group_per_pair(codes):
    with pytest.raises(DataError, match=r"a whole number per pair, of shape \(3,\)"):
        Ranking.of([0.1, 0.2, 0.3], [0, 1, 1]).split(codes, 2)
