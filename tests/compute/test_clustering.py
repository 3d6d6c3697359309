"""K-means against scikit-learn, and its own promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from faircal._base.errors import ParameterError
from faircal.compute import CPU, Clustering, Engine


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
    @pytest.mark.parametrize("k", [2, 40])
    def test_objective(self, k):
        # Either may have the luckier start on one dataset: compare over several.
        ratios = []
        for seed in range(5):
            points = blobs(seed=seed)
            theirs = KMeans(k, n_init=5, random_state=seed).fit(points).inertia_
            ratios.append(CPU.kmeans(points, k, n_init=5, random_state=seed).inertia / theirs)
        assert np.mean(ratios) < 1.02
        assert max(ratios) < 1.05

    @pytest.mark.parametrize("k", [30])
    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng: rng.normal(size=(2000, 20)),
            lambda rng: rng.normal(size=(1500, 1)),
            lambda rng: rng.standard_t(3, size=(1500, 4)),
            lambda rng: rng.normal(size=(100, 5))[rng.integers(100, size=1500)],
        ],
        ids=["no clusters", "one dimension", "far outliers", "repeated"],
    )
    def test_objective_on_other_points(self, draw, k):
        points = draw(np.random.default_rng(0)).astype(np.float32)
        theirs = KMeans(k, n_init=5, random_state=0).fit(points).inertia_
        assert CPU.kmeans(points, k, n_init=5).inertia < 1.05 * theirs

    def test_same_clusters_where_they_are_clear(self):
        rng = np.random.default_rng(5)
        truth = rng.integers(6, size=600)
        points = (10 * np.eye(6)[truth] + rng.normal(size=(600, 6))).astype(np.float32)
        labels = CPU.assign(points, CPU.kmeans(points, 6, n_init=3).centers)
        assert len(set(zip(truth.tolist(), labels.tolist(), strict=True))) == 6

    def test_assignment(self):
        points = blobs()
        found = CPU.kmeans(points, 10)
        theirs = KMeans(10, init=found.centers, n_init=1, max_iter=1).fit(points)
        theirs.cluster_centers_ = found.centers
        np.testing.assert_array_equal(CPU.assign(points, found.centers), theirs.predict(points))


class TestLloyd:
    def test_centers_are_the_means_of_their_points(self):
        points = blobs()
        found = CPU.kmeans(points, 12, tol=0.0)
        labels = CPU.assign(points, found.centers)
        for k in range(12):
            mean = points[labels == k].mean(axis=0, dtype=np.float64)
            np.testing.assert_allclose(found.centers[k], mean, rtol=0, atol=1e-6)

    def test_inertia_is_the_objective(self):
        points = blobs()
        found = CPU.kmeans(points, 12)
        expected = distances(points, found.centers).min(axis=1).sum()
        assert found.inertia == pytest.approx(expected, rel=1e-5)

    def test_every_iteration_lowers_the_objective(self):
        points = blobs()
        inertia = [CPU.kmeans(points, 12, max_iter=i, tol=0.0).inertia for i in range(1, 12)]
        assert inertia[-1] < inertia[0]
        assert (np.diff(inertia) <= 1e-6 * inertia[0]).all()

    def test_a_fixed_point_stays(self):
        points = blobs()
        most = CPU.kmeans(points, 12, tol=0.0)
        assert most.n_iter < 300
        again = CPU.kmeans(points, 12, tol=0.0, max_iter=most.n_iter + 50)
        np.testing.assert_array_equal(again.centers, most.centers)

    def test_tolerance_stops_early(self):
        points = blobs(4000)
        assert CPU.kmeans(points, 30, tol=0.1).n_iter < CPU.kmeans(points, 30, tol=0.0).n_iter

    @pytest.mark.parametrize("most", [1, 2, 3])
    def test_max_iter(self, most):
        assert CPU.kmeans(blobs(), 12, max_iter=most, tol=0.0).n_iter == most

    @pytest.mark.parametrize("order", [np.asfortranarray, lambda points: points[::-1][::-1]])
    def test_however_vectors_are_stored(self, order):
        points = blobs(400)
        one, two = CPU.kmeans(points, 12), CPU.kmeans(order(points), 12)
        np.testing.assert_allclose(one.centers, two.centers, rtol=0, atol=1e-6)
        labels = CPU.assign(points, one.centers)
        np.testing.assert_array_equal(CPU.assign(order(points), one.centers), labels)

    def test_from_a_file(self, tmp_path):
        points = blobs(400)
        np.save(tmp_path / "points.npy", points)
        found = CPU.kmeans(np.load(tmp_path / "points.npy", mmap_mode="r"), 12)
        assert found.centers.tobytes() == CPU.kmeans(points, 12).centers.tobytes()
        assert type(found.centers) is np.ndarray

    @pytest.mark.parametrize("dtype", [np.float16, np.float64])
    def test_other_floats(self, dtype):
        points = blobs(400).astype(dtype)
        found = CPU.kmeans(points, 12)
        assert found.centers.dtype == np.float32
        expected = CPU.kmeans(points.astype(np.float32), 12)
        np.testing.assert_allclose(found.centers, expected.centers, rtol=0, atol=1e-6)

    def test_more_rows_than_a_block(self):
        points = blobs(5000, dimension=4)
        found = CPU.kmeans(points, 7, tol=0.0)
        expected = distances(points, found.centers)
        np.testing.assert_array_equal(CPU.assign(points, found.centers), expected.argmin(axis=1))
        assert found.inertia == pytest.approx(expected.min(axis=1).sum(), rel=1e-5)

    def test_far_from_the_origin(self):
        # Embeddings that are used as stored need not lie around 0.
        points = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
        moved = points + np.float32(2000)
        found = CPU.kmeans(moved, 6, tol=0.0)
        expected = distances(moved, found.centers)
        np.testing.assert_array_equal(CPU.assign(moved, found.centers), expected.argmin(axis=1))
        assert found.inertia == pytest.approx(expected.min(axis=1).sum(), rel=1e-3)


class TestRepeatable:
    def test_same_seed_same_bytes(self):
        points = blobs()
        one, two = (CPU.kmeans(points, 12, n_init=2, random_state=3) for _ in range(2))
        assert one.centers.tobytes() == two.centers.tobytes()
        assert (one.inertia, one.n_iter) == (two.inertia, two.n_iter)

    def test_another_seed_starts_elsewhere(self):
        points = blobs()
        one, two = (CPU.kmeans(points, 12, random_state=seed) for seed in (0, 1))
        assert not np.array_equal(one.centers, two.centers)

    def test_number_of_threads_in_products(self):
        points = blobs(6000, dimension=64)
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads, user_api="blas"):
                clustering = CPU.kmeans(points, 20)
                found.append((clustering, CPU.assign(points, clustering.centers)))
        (one, labels), (two, others) = found
        assert one.centers.tobytes() == two.centers.tobytes()
        assert labels.tobytes() == others.tobytes()
        assert (one.inertia, one.n_iter) == (two.inertia, two.n_iter)

    def test_input_is_not_changed(self):
        points = blobs(200)
        before = points.copy()
        CPU.assign(points, CPU.kmeans(points, 5).centers)
        np.testing.assert_array_equal(points, before)

    def test_the_best_start_counts(self):
        points = blobs(600)
        several = [CPU.kmeans(points, 25, n_init=n, random_state=0).inertia for n in (1, 2, 4, 8)]
        assert CPU.kmeans(points, 25).inertia == several[0]  # one start unless told
        assert several == sorted(several, reverse=True)
        assert several[-1] < several[0]


class TestEmptyClusters:
    def test_all_points_equal(self):
        points = np.ones((8, 3), dtype=np.float32)
        found = CPU.kmeans(points, 4)
        assert found.inertia == 0
        assert found.n_iter == 2  # centres that stay put end it, although labels keep moving
        np.testing.assert_array_equal(found.centers, np.ones((4, 3)))
        assert set(CPU.assign(points, found.centers)) <= set(range(4))

    def test_a_cluster_for_each_point(self):
        points = blobs(40)
        found = CPU.kmeans(points, 40)
        assert found.inertia == pytest.approx(0, abs=1e-5)
        assert sorted(CPU.assign(points, found.centers)) == list(range(40))

    @pytest.mark.parametrize("k", [5, 6, 9, 30])
    def test_duplicates(self, k):
        points = np.repeat(np.eye(5, dtype=np.float32) * 4, 6, axis=0)
        found = CPU.kmeans(points, k, n_init=3)
        assert np.isfinite(found.centers).all()
        assert found.inertia == pytest.approx(0, abs=1e-4)  # of 480 about the mean, in float32
        labels = CPU.assign(points, found.centers)
        assert len(np.unique(labels)) == 5
        np.testing.assert_allclose(found.centers[labels], points, rtol=0, atol=1e-6)

    @settings(max_examples=40)
    @given(data=st.data())
    def test_any_small_case(self, data):
        rows = data.draw(
            st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=14)
        )
        k = data.draw(st.integers(1, len(rows)))
        points = np.array(rows, dtype=np.float32)
        found = CPU.kmeans(points, k, random_state=data.draw(st.integers(0, 3)))
        labels = CPU.assign(points, found.centers)
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
        found = CPU.assign(np.array([[0.0, 3.0], [2.0, 0.0]], np.float32), centers)
        assert found.tolist() == [0, 0]
        assert found.dtype == np.int32

    def test_nothing_to_assign(self):
        centers = CPU.kmeans(blobs(50), 3).centers
        assert CPU.assign(np.empty((0, 16), np.float32), centers).shape == (0,)


class TestEngine:
    def test_is_given_centred_points_and_the_tolerance_in_their_units(self):
        class Noting(Engine):
            def best_start(self, points, n_clusters, **options):
                self.points, self.n_clusters, self.options = points, n_clusters, options
                return Clustering(points[:2] + 1, 3.5, 7)

        engine, points = Noting(), blobs() * 3 + 5
        before = points.copy()
        found = engine.kmeans(points, 2, n_init=4, tol=0.01, max_iter=9, random_state=5)
        np.testing.assert_allclose(engine.points.mean(axis=0), 0, atol=1e-5)
        assert engine.points.dtype == np.float32
        assert engine.options["shift"] == pytest.approx(0.01 * points.var(axis=0).mean(), rel=1e-4)
        assert (engine.options["n_init"], engine.options["max_iter"]) == (4, 9)
        assert engine.options["rng"].random() == np.random.default_rng(5).random()
        np.testing.assert_allclose(found.centers, points[:2] + 1, atol=1e-5)
        assert (found.inertia, found.n_iter) == (3.5, 7)
        np.testing.assert_array_equal(points, before)

    def test_progress(self):
        told = []
        CPU.kmeans(blobs(60), 3, n_init=2, progress=lambda *said: told.append(said))
        assert told == [("K-means", 0, 2, "K = 3"), ("K-means", 1, 2, "K = 3")]


class TestBadParameters:
    @pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True])
    def test_n_clusters(self, k):
        with pytest.raises(ParameterError, match="n_clusters: expected a whole number of 1 or"):
            CPU.kmeans(blobs(20), k)

    def test_more_clusters_than_points(self):
        with pytest.raises(ParameterError, match=r"expected 1 to 20 .*found 21; choose fewer"):
            CPU.kmeans(blobs(20), 21)

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
            CPU.kmeans(blobs(20), 3, **{name: value})

    def test_numpy_integers_are_whole_numbers(self):
        found = CPU.kmeans(blobs(50), np.int64(3), n_init=np.int32(1), random_state=np.uint8(0))
        assert found.inertia == CPU.kmeans(blobs(50), 3).inertia
