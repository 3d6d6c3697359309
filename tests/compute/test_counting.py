"""Counting in bins: the same as counting one by one, whatever the order; means kept closely."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faircal import DataError, ParameterError
from faircal._base.container import cut, pack, unpack
from faircal.compute import counting
from faircal.compute.counting import ScoreCounts, ascending, fine_edges

EDGES = np.array([-1.0, -0.5, 0.0, 0.25, 0.5])
finite = st.floats(-3, 3, allow_subnormal=False)


def neighbours(values):
    """Numbers, and the doubles next to them on both sides."""
    values = np.asarray(values, float)
    return np.concatenate([values, np.nextafter(values, -9), np.nextafter(values, 9)])


def draw(seed=0, n=400, n_sets=4):
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.normal(0, 0.5, n - 20), rng.choice(EDGES, 20)])
    left, right = rng.integers(-1, n_sets, (2, n))
    return score, rng.random(n) < 0.4, left, right


def same(one, two):
    first, second = one.state(), two.state()
    assert first.keys() == second.keys()
    for key, value in first.items():
        np.testing.assert_array_equal(value, second[key], err_msg=key)


@settings(max_examples=150)
@given(
    st.lists(finite, min_size=2, max_size=40, unique=True),
    st.lists(finite, min_size=1, max_size=40),
)
@example([0.0, 2e-66, 3e-59, 3e-26, 1.0], [-1e-300, -2.0])  # too close for a table: searched
def test_the_bin_is_that_of_a_search(edges, scores):
    edges = np.unique(edges)
    if len(edges) < 2:
        return
    scores = np.concatenate([scores, neighbours(edges)])
    counts = ScoreCounts.zeros(1, edges)
    counts.add(scores, np.ones(len(scores), bool))
    expected = np.maximum(np.searchsorted(edges, scores, side="right") - 1, 0)
    np.testing.assert_array_equal(counts.genuine[0], np.bincount(expected, minlength=len(edges)))


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0), (0.0, 1e5), (-7e-3, 2e-3)])
def test_the_bin_among_fine_edges(low, high):
    edges = fine_edges(low, high, also=[low - 0.3 * (high - low), high + 1.0])
    rng = np.random.default_rng(1)
    tails = (high - low) * np.exp(-rng.uniform(0, 60, 3000))
    scores = np.concatenate(
        [neighbours(edges), low + tails, high - tails, rng.normal(0, high, 500)]
    )
    for score in (scores, rng.permutation(scores)):
        counts = ScoreCounts.zeros(1, edges)
        counts.add(score, np.zeros(len(score), bool))
        expected = np.maximum(np.searchsorted(edges, scores, side="right") - 1, 0)
        found = np.bincount(expected, minlength=len(edges))
        np.testing.assert_array_equal(counts.imposter[0], found)


def test_a_pair_counts_once_in_each_of_its_sets():
    score, genuine, left, right = draw()
    counts = ScoreCounts.zeros(4, EDGES)
    counts.add(score, genuine, left, right)
    which = np.maximum(np.searchsorted(EDGES, score, side="right") - 1, 0)
    genuine_pairs, imposter_pairs = np.zeros((2, 4, len(EDGES)), int)
    for i, same_person in enumerate(genuine):
        for k in {left[i], right[i]} - {-1}:
            (genuine_pairs if same_person else imposter_pairs)[k, which[i]] += 1
    np.testing.assert_array_equal(counts.genuine, genuine_pairs)
    np.testing.assert_array_equal(counts.imposter, imposter_pairs)


def test_one_number_stands_for_all_pairs():
    score, genuine, left, _ = draw()
    counts, spelt_out = ScoreCounts.zeros(6, EDGES), ScoreCounts.zeros(6, EDGES)
    counts.add(score, genuine, 0, left + 1, -1)
    spelt_out.add(score, genuine, np.zeros(len(score), int), left + 1)
    same(counts, spelt_out)
    alone = ScoreCounts.zeros(1, EDGES)
    alone.add(score, genuine)
    np.testing.assert_array_equal(counts.genuine[0], alone.genuine[0])
    np.testing.assert_array_equal(counts.imposter[0], alone.imposter[0])
    # A pair of no group has the code of the first set, and has been counted there.
    assert counts.genuine[1:].sum() == genuine[left >= 0].sum()


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_neither_order_nor_parts_nor_blocks_change_anything(block, monkeypatch):
    score, genuine, left, right = draw()
    whole = ScoreCounts.zeros(4, EDGES)
    whole.add(score, genuine, left, right)
    monkeypatch.setattr("faircal.compute.counting._BLOCK", block)
    order = np.random.default_rng(3).permutation(len(score))
    one, two = ScoreCounts.zeros(4, EDGES), ScoreCounts.zeros(4, EDGES)
    for counts, rows in ((two, order[:150]), (one, order[150:170]), (two, order[170:])):
        counts.add(score[rows], genuine[rows], right[rows], left[rows])
    same(one + two, whole)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), min_size=1, max_size=50))
def test_means_are_close_and_in_their_bins(pairs):
    score, genuine = map(np.array, zip(*pairs, strict=True))
    counts = ScoreCounts.zeros(1, EDGES)
    counts.add(score, genuine)
    found = counts.means(0)
    which = np.maximum(np.searchsorted(EDGES, score, side="right") - 1, 0)
    upper = np.append(EDGES[1:], np.inf)
    assert len(found.mean) == len(np.unique(which))
    for i, b in enumerate(np.unique(which)):
        inside = which == b
        expected = {
            "genuine_mean": score[inside & genuine],
            "imposter_mean": score[inside & ~genuine],
            "mean": score[inside],
        }
        for name, values in expected.items():
            values = values if len(values) else score[inside]
            assert abs(getattr(found, name)[i] - values.mean()) <= 1e-6
            assert b == 0 or EDGES[b] <= getattr(found, name)[i] < upper[b]
        assert found.genuine[i] == (inside & genuine).sum()
        assert found.imposter[i] == (inside & ~genuine).sum()


def test_scores_outside_the_edges():
    counts = ScoreCounts.zeros(1, EDGES)
    counts.add([-2.0, -1.6, 2.5, 3.5], [0, 0, 1, 1])
    assert (counts.least, counts.greatest) == (-2.0, 3.5)
    found = counts.means(0)
    assert (found.imposter.tolist(), found.genuine.tolist()) == ([2, 0], [0, 2])
    assert found.mean == pytest.approx([-1.8, 3.0], abs=1e-5)
    # As far away as one likes: sums stay in their integers, and means in their bins.
    counts.add([-1.7e307, 1.7e307], [0, 1])
    assert (np.abs(counts.means(0).mean) < 20).all()


def test_room_for_a_million_million_pairs():
    counts = ScoreCounts.zeros(1, EDGES)
    counts.add([-1e9, 0.24999999, 1e9], [0, 0, 0])
    for _ in range(40):  # each time twice as many
        counts = counts + counts
    found = counts.means(0)
    assert found.imposter.tolist() == [2**40] * 3
    assert found.mean[1] == pytest.approx(0.25, abs=1e-6)
    assert (found.mean[0] < -1, found.mean[2] > 1) == (True, True)


def test_a_checkpoint_brings_everything_back():
    score, genuine, left, right = draw()
    counts = ScoreCounts.zeros(4, EDGES)
    counts.add(score, genuine, left, right)
    header, body = unpack(pack({}, counts.state()))
    again = ScoreCounts.from_state(cut(header["arrays"], body))
    same(counts, again)
    again.add(score, genuine, left, right)
    same(again, counts + counts)
    same(ScoreCounts.from_state(ScoreCounts.zeros(2, EDGES).state()), ScoreCounts.zeros(2, EDGES))


def test_counting_nothing():
    counts = ScoreCounts.zeros(2, EDGES)
    counts.add([], np.zeros(0, bool), np.zeros(0, int))
    same(counts, ScoreCounts.zeros(2, EDGES))
    assert not len(counts.means(1).mean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, np.nan], [0, 1]), "expected finite scores"),
        (([0.1, np.inf], [0, 1]), "expected finite scores"),
        (([0.1], [0, 1]), "a score and a label per pair"),
        (([0.1, 0.2], [0, 1], [0, 2]), "expected sets from -1 to 1; found 0 to 2"),
        (([0.1, 0.2], [0, 1], [-2, 0]), "expected sets from -1 to 1; found -2 to 0"),
        (([0.1, 0.2], [0, 1], [0]), r"number of a set per pair; found int64 of shape \(1,\)"),
        (([0.1, 0.2], [0, 1], [0.0, 1.0]), "number of a set per pair; found float64"),
    ],
)
def test_what_cannot_be_counted_leaves_the_counts_alone(arguments, message):
    counts = ScoreCounts.zeros(2, EDGES)
    with pytest.raises(DataError, match=message):
        counts.add(*arguments)
    same(counts, ScoreCounts.zeros(2, EDGES))


@pytest.mark.parametrize("edges", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, np.inf], [[0.0, 1.0]]])
def test_edges_that_are_none(edges):
    with pytest.raises(ParameterError, match="two or more finite numbers, ascending"):
        ScoreCounts.zeros(1, edges)


@pytest.mark.parametrize("other", [(2, EDGES[1:]), (1, EDGES)])
def test_what_is_counted_otherwise_cannot_be_added(other):
    with pytest.raises(DataError, match="cannot be added"):
        ScoreCounts.zeros(2, EDGES) + ScoreCounts.zeros(*other)


class TestFineEdges:
    @pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0), (0.0, 100.0), (-4.0, -3.0)])
    def test_each_end_has_a_bin_of_its_own(self, low, high):
        edges = fine_edges(low, high)
        assert 16_000 <= len(edges) <= 24_000
        for end in (low, high):
            place = np.searchsorted(edges, end)
            assert edges[place] == end
            assert edges[place + 1] == np.nextafter(end, np.inf)

    def test_widths(self):
        edges = fine_edges(-1.0, 1.0)
        width, z = np.diff(edges) / 2, (edges + 1) / 2
        assert width.max() <= 1 / 16384 + 1e-12
        inside = (z[:-1] > 2.0**-51) & (z[1:] < 1 - 2.0**-51)
        # Relative to the distance to an end, but for the rounding of numbers close to it.
        slack = 4 * np.spacing(1.0)
        assert (width[inside] <= z[1:][inside] / 64 + slack).all()
        assert (width[inside] <= (1 - z[:-1])[inside] / 64 + slack).all()

    def test_edges_asked_for_are_among_them(self):
        also = np.array([-2.0, 0.123456789, 0.3, 1.7])
        edges = fine_edges(-1.0, 1.0, also)
        assert np.isin(also, edges).all()
        assert (np.diff(edges) > 0).all()
        assert len(fine_edges(-1.0, 1.0, edges)) == len(edges)


@given(
    numbers=st.lists(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.floats(-1, 1, width=32)
        | st.sampled_from([0.0, -0.0, 0.5, 2.0])
    )
)
def test_keeps_the_order_of_ties(numbers):
    values = np.array(numbers, dtype=np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_FEW", 1)
        found = ascending(values)
    np.testing.assert_array_equal(found, np.argsort(values, kind="stable"))


@pytest.mark.parametrize("values", [[1e308, -1e308, 0.0], [0.5, 0.5], [1.0, 1.0 + 1e-15, 1.0]])
def test_extreme_ranges(monkeypatch, values):
    monkeypatch.setattr(counting, "_FEW", 1)
    found = ascending(np.array(values))
    np.testing.assert_array_equal(found, np.argsort(values, kind="stable"))


def test_very_many():
    values = np.random.default_rng(1).normal(size=100_000).round(3)
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))
