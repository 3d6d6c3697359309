"""FairCal against a slow version of method-details 2.2, pair by pair."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircal import (
    FSN,
    Baseline,
    BetaCalibrator,
    DataError,
    FairCal,
    ParameterError,
    load_model,
)
from faircal.calibrators import CALIBRATORS, Samples
from faircal.data.pairing import redraw_imposters


def unit_rows(data):
    vectors = data.embeddings.vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest(vector, centers):
    return int(np.argmin([np.sum((vector - center) ** 2) for center in centers]))


def clusters_of_pairs(data, centers):
    vectors = unit_rows(data)
    return [
        (nearest(vectors[left], centers), nearest(vectors[right], centers))
        for left, right in zip(data.pairs.left, data.pairs.right, strict=True)
    ]


def slow_faircal(calibration, test, centers, calibrator):
    """Steps 3 to 6 of section 2.2, given the centres."""
    pairs_of = {k: [] for k in range(len(centers))}
    for i, (k1, k2) in enumerate(clusters_of_pairs(calibration, centers)):
        for k in {k1, k2}:
            pairs_of[k].append(i)
    maps = {
        k: CALIBRATORS[calibrator](score_range=(-1.0, 1.0)).fit(
            calibration.scores[rows], calibration.genuine[rows]
        )
        for k, rows in pairs_of.items()
    }
    found = []
    for score, (k1, k2) in zip(test.scores, clusters_of_pairs(test, centers), strict=True):
        n1, n2 = len(pairs_of[k1]), len(pairs_of[k2])
        p1, p2 = (maps[k].predict([score])[0] for k in (k1, k2))
        found.append((n1 * p1 + n2 * p2) / (n1 + n2))
    return np.array(found), [len(pairs_of[k]) for k in range(len(centers))]


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_mixture_of_the_two_clusters(parts, calibrator):
    calibration, test = parts
    model = FairCal(n_clusters=5, calibrator=calibrator).fit(calibration)
    expected, sizes = slow_faircal(calibration, test, model.cluster_centers_, calibrator)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.decision_scores(test), model.predict_proba(test))
    assert model.cluster_sizes_.tolist() == sizes
    figures = model.diagnostics_.figures
    assert figures["smallest_cluster_pairs"] == min(sizes) < max(sizes)
    assert figures["largest_cluster_pairs"] == max(sizes)
    in_two = [k1 != k2 for k1, k2 in clusters_of_pairs(calibration, model.cluster_centers_)]
    assert figures["share_of_pairs_in_two_clusters"] == pytest.approx(np.mean(in_two))
    assert model.diagnostics_.notes == []


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_one_cluster_is_baseline_exactly(parts, calibrator):
    calibration, test = parts
    found = FairCal(n_clusters=1, calibrator=calibrator).fit(calibration).predict_proba(test)
    expected = Baseline(calibrator).fit(calibration).predict_proba(test)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_both_images_in_one_cluster(parts):
    calibration, test = parts
    model = FairCal(n_clusters=5).fit(calibration)
    in_cal = clusters_of_pairs(calibration, model.cluster_centers_)
    in_test = clusters_of_pairs(test, model.cluster_centers_)
    same = np.array([k1 == k2 for k1, k2 in in_test])
    assert 0 < same.sum() < len(test)
    probability = model.predict_proba(test)
    for k in range(5):
        rows = np.array([k in pair for pair in in_cal])
        alone = BetaCalibrator().fit(calibration.scores[rows], calibration.genuine[rows])
        here = np.array([pair == (k, k) for pair in in_test])
        np.testing.assert_allclose(
            probability[here], alone.predict(test.scores[here]), rtol=0, atol=1e-9
        )


def test_clusters_are_of_the_calibration_images_each_once(parts):
    calibration, _ = parts
    model = FairCal(n_clusters=3).fit(calibration)
    vectors = unit_rows(calibration)
    used = sorted({*calibration.pairs.left.tolist(), *calibration.pairs.right.tolist()})
    inertia = sum(
        min(np.sum((vectors[i] - center) ** 2) for center in model.cluster_centers_) for i in used
    )
    assert len(used) < len(vectors)
    assert model.inertia_ == pytest.approx(inertia, rel=1e-4)
    assert model.cluster_centers_.shape == (3, 32)
    assert model.diagnostics_.figures["inertia"] == model.inertia_


def test_small_and_one_class_clusters_use_the_global_map(parts):
    calibration, test = parts
    model = FairCal(n_clusters=60, min_pairs=30).fit(calibration)
    in_cal = clusters_of_pairs(calibration, model.cluster_centers_)
    alone = []
    for k in range(60):
        rows = [i for i, pair in enumerate(in_cal) if k in pair]
        labels = calibration.genuine[rows]
        alone.append(len(rows) < 30 or len(set(labels.tolist())) < 2)
    assert 0 < sum(alone) < 60
    np.testing.assert_array_equal(~model.calibrators_.own, alone)
    assert model.diagnostics_.figures["clusters_on_global_map"] == sum(alone)
    few, note = model.diagnostics_.notes
    assert note.startswith(f"{sum(alone)} of 60 clusters have under 30 pairs or only one class")
    counts = []
    for k in np.flatnonzero(np.logical_not(alone)):
        genuine = calibration.genuine[[i for i, pair in enumerate(in_cal) if k in pair]]
        counts.append(min(genuine.sum(), (~genuine).sum()))
    half = np.median(counts)
    told = (
        f"half of the {60 - sum(alone)} clusters with a map of their own have {half:.0f} or fewer "
    )
    assert few.startswith(told)
    rarer = min(calibration.genuine.sum(), (~calibration.genuine).sum())
    assert f"take about {rarer // 40} clusters, or ask 'faircal choose'" in few
    assert FairCal(n_clusters=2).fit(calibration).diagnostics_.notes == []
    both = np.array(
        [alone[a] and alone[b] for a, b in clusters_of_pairs(test, model.cluster_centers_)]
    )
    assert both.any()
    expected = Baseline().fit(calibration).predict_proba(test)
    np.testing.assert_allclose(model.predict_proba(test)[both], expected[both], rtol=0, atol=1e-15)


def test_min_pairs_above_all_is_baseline(parts):
    calibration, test = parts
    model = FairCal(n_clusters=5, min_pairs=10**6).fit(calibration)
    expected = Baseline().fit(calibration).predict_proba(test)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-15)


def test_a_cluster_without_calibration_pairs_gives_the_global_map(parts):
    # K-means may end with a cluster that no calibration image is in; a test image may be.
    calibration, test = parts
    model = FairCal(n_clusters=2).fit(calibration)
    model.n_clusters = 1
    far = np.full((1, 32), 100.0, dtype=np.float32)
    state = {**model._get_state(), "centers": far, "cluster_sizes": np.array([0])}
    lone = {key: values[:1] for key, values in state.items() if key.startswith("bank.")}
    model._set_state({**state, **lone, "bank.own": np.array([False])})
    expected = Baseline().fit(calibration).predict_proba(test)
    np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-9)


def test_more_clusters_than_images(parts):
    with pytest.raises(ParameterError, match=r"n_clusters: expected 1 to \d+ .* found 5000"):
        FairCal(n_clusters=5000).fit(parts[0])


def test_embeddings_of_another_network(parts, tmp_path):
    calibration, test = parts
    FairCal(n_clusters=3).fit(calibration).save(tmp_path / "m")
    wrong = type(test)(
        embeddings=np.ones((4, 8)), pairs={"left": [0, 1], "right": [2, 3], "fold": [1, 2]}
    )
    with pytest.raises(DataError, match=r"expected 32-d embeddings, as in fitting, found 8"):
        load_model(tmp_path / "m").apply(wrong)


def test_embeddings_used_as_stored_on_one_side_only(parts):
    calibration, test = parts
    stored = type(test)(
        embeddings=test.embeddings.vectors,
        pairs={"left": test.pairs.left, "right": test.pairs.right, "fold": test.pairs.fold},
        normalize=False,
    )
    with pytest.raises(DataError, match="fitted with normalize=True"):
        FairCal(n_clusters=3).fit(calibration).apply(stored)


def test_methods_fitted_on_the_same_object_share_a_clustering(data):
    calibration, _ = data.split(test_fold=3)
    first = FairCal(n_clusters=4).fit(calibration)
    assert FairCal(n_clusters=4, calibrator="platt").fit(calibration).clustering_ is (
        first.clustering_
    )
    assert FairCal(n_clusters=4, random_state=1).fit(calibration).clustering_ is not (
        first.clustering_
    )


def members(left, right, n_sets):
    """The pairs of each cluster, told apart by scores that are their numbers."""
    samples = Samples.of(np.arange(len(left)), left == right, left, right, n_sets=n_sets)
    ends = samples.starts[: n_sets + 1]
    return [samples.scores[a:b].astype(int).tolist() for a, b in pairwise(ends)]


class TestMembers:
    def test_by_hand(self):
        left, right = np.array([0, 2, 1, 0]), np.array([0, 0, 1, 2])
        assert members(left, right, 4) == [[0, 1, 3], [2], [1, 3], []]

    @settings(max_examples=60)
    @given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=25))
    def test_against_a_loop(self, pairs):
        left, right = (np.array(side) for side in zip(*pairs, strict=True))
        expected = [[i for i, pair in enumerate(pairs) if k in pair] for k in range(5)]
        assert members(left, right, 5) == expected


@pytest.mark.parametrize("kind", [FairCal, FSN])
def test_a_copy_in_another_process_says_the_same(kind, parts):
    calibration, test = parts
    model = kind(n_clusters=4).fit(calibration)
    expected = model.predict_proba(test)
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301  (our own)
    np.testing.assert_array_equal(copied.predict_proba(test), expected)


@pytest.mark.parametrize(
    ("how", "said"),
    [("given", ""), ("random", "as if paired at random"), ("hard", "the hardest")],
)
def test_who_is_paired_with_whom(parts, how, said):
    calibration = redraw_imposters(parts[0], how, 0)
    model = FairCal(n_clusters=30).fit(calibration)
    both = clusters_of_pairs(calibration, model.cluster_centers_)
    imposters = [
        pair for pair, genuine in zip(both, calibration.genuine, strict=True) if not genuine
    ]
    # Of pairs at random 1 − (1 − p)² have an image in a cluster that has the share p of images.
    has = np.array([np.mean([k in pair for pair in imposters]) for k in range(30)])
    share = 1 - (1 - has) ** 0.5
    by_chance = np.sum((share / share.sum()) ** 2)
    times = np.mean([one == other for one, other in imposters]) / by_chance
    measured = model.diagnostics_.figures["imposters_within_a_cluster_by_chance"]
    assert measured == pytest.approx(times, rel=1e-9)
    told = [note for note in model.diagnostics_.notes if "as often as by chance" in note]
    assert len(told) == bool(said)
    assert all(said in note and f"{measured:.1f} times" in note for note in told)
