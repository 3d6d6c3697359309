"""K-means against scikit-learn, and its own promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from faircal.clustering import Clustering, _lloyd, _start, kmeans
from faircal.errors import ParameterError


def blobs(n=1200, dimension=16, centers=12, seed=0):
    """Unit vectors around unequal clusters that overlap a little, as faces do."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(centers, 3.0))
    middle = rng.normal(size=(centers, dimension))
    points = middle[rng.choice(centers, n, p=share)] + 0.6 * rng.normal(size=(n, dimension))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def distances(points, centers):
    gaps = points[:, None].astype(np.float64) - centers[None].astype(np.float64)
    return (gaps**2).sum(axis=2)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("k", [2, 12, 40])
    def test_objective(self, k):
        # Either may have the luckier start on one dataset: compare over several.
        ratios = []
        for seed in range(8):
            points = blobs(seed=seed)
            theirs = KMeans(k, n_init=5, random_state=seed).fit(points).inertia_
            ratios.append(kmeans(points, k, n_init=5, random_state=seed).inertia / theirs)
        assert np.mean(ratios) < 1.02

    def test_same_clusters_where_they_are_clear(self):
        rng = np.random.default_rng(5)
        truth = rng.integers(6, size=600)
        points = (10 * np.eye(6)[truth] + rng.normal(size=(600, 6))).astype(np.float32)
        labels = kmeans(points, 6, n_init=3).assign(points)
        assert len(set(zip(truth.tolist(), labels.tolist(), strict=True))) == 6

    def test_assignment(self):
        points = blobs()
        found = kmeans(points, 10)
        theirs = KMeans(10, init=found.centers, n_init=1, max_iter=1).fit(points)
        theirs.cluster_centers_ = found.centers
        np.testing.assert_array_equal(found.assign(points), theirs.predict(points))


class TestStart:
    @pytest.mark.parametrize("seed", range(12))
    def test_each_point_is_drawn_once(self, seed):
        # A point already chosen is at distance 0; any other is exactly 1/64, 225/64 or 4 away.
        points = np.array([[2.0], [2.125], [4.0]], dtype=np.float32)
        found = _start(points, 3, np.random.default_rng(seed))
        assert sorted(found.ravel().tolist()) == [2.0, 2.125, 4.0]

    def test_rounding_does_not_draw_a_point_twice(self):
        # So far out, float32 products can leave a distance of 2 from a point to itself. A draw
        # at a tenth of the way through the distances would then find the first point again.
        class Low:
            def integers(self, n):
                return 0

            def random(self, n):
                return np.full(n, 0.1)

        for seed in range(30):
            one = np.random.default_rng(seed).normal(100, 1, 512).astype(np.float32)
            points = np.stack([one, one + np.float32(0.125)])  # 8 apart
            np.testing.assert_array_equal(_start(points, 2, Low()), points)


class TestLloyd:
    def test_two_iterations_by_hand(self):
        # The first moves the centres to 0.5 and 9.5, the second finds every point where it was.
        points = np.array([[0.0], [1.0], [9.0], [10.0]], dtype=np.float32)
        found = _lloyd(points, np.array([[0.0], [10.0]], dtype=np.float32), 50, 0.0)
        assert found.centers.ravel().tolist() == [0.5, 9.5]
        assert (found.n_iter, found.inertia) == (2, 1.0)

    def test_centers_are_the_means_of_their_points(self):
        points = blobs()
        found = kmeans(points, 12, tol=0.0)
        labels = found.assign(points)
        for k in range(12):
            mean = points[labels == k].mean(axis=0, dtype=np.float64)
            np.testing.assert_allclose(found.centers[k], mean, rtol=0, atol=1e-6)

    def test_inertia_is_the_objective(self):
        points = blobs()
        found = kmeans(points, 12)
        expected = distances(points, found.centers).min(axis=1).sum()
        assert found.inertia == pytest.approx(expected, rel=1e-5)

    def test_every_iteration_lowers_the_objective(self):
        points = blobs()
        inertia = [kmeans(points, 12, max_iter=i, tol=0.0).inertia for i in range(1, 12)]
        assert inertia[-1] < inertia[0]
        assert (np.diff(inertia) <= 1e-6 * inertia[0]).all()

    def test_a_fixed_point_stays(self):
        points = blobs()
        most = kmeans(points, 12, tol=0.0)
        assert most.n_iter < 300
        again = kmeans(points, 12, tol=0.0, max_iter=most.n_iter + 50)
        np.testing.assert_array_equal(again.centers, most.centers)

    def test_tolerance_stops_early(self):
        points = blobs(4000)
        assert kmeans(points, 30, tol=0.1).n_iter < kmeans(points, 30, tol=0.0).n_iter

    @pytest.mark.parametrize("most", [1, 2, 3])
    def test_max_iter(self, most):
        assert kmeans(blobs(), 12, max_iter=most, tol=0.0).n_iter == most

    def test_more_rows_than_a_block(self):
        points = blobs(5000, dimension=4)
        found = kmeans(points, 7, tol=0.0)
        expected = distances(points, found.centers)
        np.testing.assert_array_equal(found.assign(points), expected.argmin(axis=1))
        assert found.inertia == pytest.approx(expected.min(axis=1).sum(), rel=1e-5)

    def test_far_from_the_origin(self):
        # Embeddings that are used as stored need not lie around 0.
        points = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
        moved = points + np.float32(2000)
        found = kmeans(moved, 6, tol=0.0)
        expected = distances(moved, found.centers)
        np.testing.assert_array_equal(found.assign(moved), expected.argmin(axis=1))
        assert found.inertia == pytest.approx(expected.min(axis=1).sum(), rel=1e-3)


class TestRepeatable:
    def test_same_seed_same_bytes(self):
        points = blobs()
        one, two = (kmeans(points, 12, n_init=2, random_state=3) for _ in range(2))
        assert one.centers.tobytes() == two.centers.tobytes()
        assert (one.inertia, one.n_iter) == (two.inertia, two.n_iter)

    def test_another_seed_starts_elsewhere(self):
        points = blobs()
        one, two = (kmeans(points, 12, random_state=seed) for seed in (0, 1))
        assert not np.array_equal(one.centers, two.centers)

    def test_number_of_threads(self):
        points = blobs(6000, dimension=64)
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                clustering = kmeans(points, 20)
                found.append((clustering, clustering.assign(points)))
        (one, labels), (two, others) = found
        np.testing.assert_allclose(one.centers, two.centers, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(labels, others)
        assert one.inertia == pytest.approx(two.inertia, rel=1e-6)

    def test_input_is_not_changed(self):
        points = blobs(200)
        before = points.copy()
        kmeans(points, 5).assign(points)
        np.testing.assert_array_equal(points, before)

    def test_the_best_start_counts(self):
        points = blobs(600)
        several = [kmeans(points, 25, n_init=n, random_state=0).inertia for n in (1, 2, 4, 8)]
        assert kmeans(points, 25).inertia == several[0]  # one start unless told
        assert several == sorted(several, reverse=True)
        assert several[-1] < several[0]


class TestEmptyClusters:
    def test_all_points_equal(self):
        points = np.ones((8, 3), dtype=np.float32)
        found = kmeans(points, 4)
        assert found.inertia == 0
        assert found.n_iter == 2  # centres that stay put end it, although labels keep moving
        np.testing.assert_array_equal(found.centers, np.ones((4, 3)))
        assert set(found.assign(points)) <= set(range(4))

    def test_a_cluster_for_each_point(self):
        points = blobs(40)
        found = kmeans(points, 40)
        assert found.inertia == pytest.approx(0, abs=1e-5)
        assert sorted(found.assign(points)) == list(range(40))

    @pytest.mark.parametrize("k", [5, 6, 9, 30])
    def test_duplicates(self, k):
        points = np.repeat(np.eye(5, dtype=np.float32) * 4, 6, axis=0)
        found = kmeans(points, k, n_init=3)
        assert np.isfinite(found.centers).all()
        assert found.inertia == pytest.approx(0, abs=1e-4)  # of 480 about the mean, in float32
        labels = found.assign(points)
        assert len(np.unique(labels)) == 5
        np.testing.assert_allclose(found.centers[labels], points, rtol=0, atol=1e-6)

    def test_an_empty_cluster_gets_the_farthest_point(self):
        points = np.array([[0.0], [1.0], [2.0], [30.0]], dtype=np.float32)
        start = np.array([[0.0], [500.0]], dtype=np.float32)
        found = _lloyd(points, start, 50, 0.0)
        assert sorted(found.centers.ravel()) == [1.0, 30.0]
        assert found.inertia == 2.0
        assert _lloyd(points, start, 1, 0.0).centers.ravel().tolist() == [1.0, 30.0]  # at once

    @settings(deadline=None, max_examples=80)
    @given(data=st.data())
    def test_any_small_case(self, data):
        rows = data.draw(
            st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=14)
        )
        k = data.draw(st.integers(1, len(rows)))
        points = np.array(rows, dtype=np.float32)
        found = kmeans(points, k, random_state=data.draw(st.integers(0, 3)))
        labels = found.assign(points)
        assert found.centers.shape == (k, 2)
        assert np.isfinite(found.centers).all()
        assert labels.min() >= 0
        assert labels.max() < k
        expected = distances(points, found.centers)
        np.testing.assert_allclose(
            expected[np.arange(len(rows)), labels], expected.min(axis=1), atol=1e-4
        )
        assert found.inertia == pytest.approx(expected.min(axis=1).sum(), abs=1e-3)


class TestAssign:
    def test_a_tie_goes_to_the_first(self):
        centers = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
        found = Clustering(centers, 0.0, 1).assign(np.array([[0.0, 3.0], [2.0, 0.0]], np.float32))
        assert found.tolist() == [0, 0]
        assert found.dtype == np.int32

    def test_nothing_to_assign(self):
        assert kmeans(blobs(50), 3).assign(np.empty((0, 16), np.float32)).shape == (0,)


class TestBadParameters:
    @pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True])
    def test_n_clusters(self, k):
        with pytest.raises(ParameterError, match="n_clusters: expected a whole number of 1 or"):
            kmeans(blobs(20), k)

    def test_more_clusters_than_points(self):
        with pytest.raises(ParameterError, match=r"expected 1 to 20 .*found 21; choose fewer"):
            kmeans(blobs(20), 21)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_init", 0),
            ("n_init", 1.5),
            ("max_iter", 0),
            ("random_state", -1),
            ("random_state", "a"),
        ],
    )
    def test_others(self, name, value):
        with pytest.raises(ParameterError, match=f"{name}: expected a whole number"):
            kmeans(blobs(20), 3, **{name: value})

    def test_numpy_integers_are_whole_numbers(self):
        found = kmeans(blobs(50), np.int64(3), n_init=np.int32(1), random_state=np.uint8(0))
        assert found.inertia == kmeans(blobs(50), 3).inertia
