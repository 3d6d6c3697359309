"""K-means on the processor: where it starts, and Lloyd's iterations with bounds and without."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from threadpoolctl import threadpool_info, threadpool_limits

from faircal.compute import CPU
from faircal.compute import kmeans as module
from faircal.compute.kernels import NumPyKernels
from faircal.compute.kmeans import _CandidatesInMemory, _Lloyd, kmeans, starting_rows


def column(*values):
    return np.array(values, dtype=np.float32)[:, None]


def clustered(seed=0, n=1500, dimension=6, n_clusters=9, spread=0.4):
    """Points around unequal clusters, about the origin."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(n_clusters, dimension))
    which = rng.choice(n_clusters, n, p=rng.dirichlet(np.full(n_clusters, 3.0)))
    points = middle[which] + spread * rng.normal(size=(n, dimension))
    return (points - points.mean(axis=0)).astype(np.float32)


def repeated(seed=0, n=800, distinct=60, dimension=4):
    """Few points, many times each."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(distinct, dimension)).astype(np.float32)[rng.integers(distinct, size=n)]


def distances(points, centers):
    """Squared distances in float64, shape (n, K)."""
    gaps = points[:, None].astype(np.float64) - centers[None].astype(np.float64)
    return np.square(gaps).sum(axis=2)


def plain(points, centers, max_iter, shift=0.0):
    """Lloyd's iterations by their definition, in float64: centres, labels, objective, passes."""
    points, centers = points.astype(np.float64), centers.astype(np.float64)
    labels = distances(points, centers).argmin(axis=1)
    moved, iteration = np.inf, 1
    while moved > shift and iteration < max_iter:
        labels, before = labels.copy(), centers
        away = distances(points, centers)[np.arange(len(points)), labels]
        for cluster in range(len(centers)):
            if not (labels == cluster).any():
                several = np.bincount(labels, minlength=len(centers))[labels] > 1
                labels[np.where(several, away, -1.0).argmax()] = cluster
        centers = np.array([points[labels == k].mean(axis=0) for k in range(len(centers))])
        moved = np.square(centers - before).sum()
        new = distances(points, centers).argmin(axis=1)
        iteration += 1
        if (new == labels).all():
            break
        labels = new
    squared = distances(points, centers)
    return centers, squared.argmin(axis=1), squared.min(axis=1).sum(), iteration


def fit(points, n_clusters, *, n_init=1, seed=0, max_iter=100, shift=0.0, **more):
    rng = np.random.default_rng(seed)
    return kmeans(
        points, n_clusters, n_init=n_init, rng=rng, max_iter=max_iter, shift=shift, **more
    )


def lloyd(points, centers, max_iter=50, shift=0.0):
    return _Lloyd(points, squares_of(points), centers).run(max_iter, shift)


def squares_of(points):
    return np.einsum("ij,ij->i", points, points)


def start(points, n_clusters, rng):
    squares = squares_of(points)
    rows = starting_rows(
        len(points), n_clusters, rng, lambda some: _CandidatesInMemory(points[some], squares[some])
    )
    return points[rows]


@pytest.fixture(params=["numba", "numpy"])
def each_kernel(request, monkeypatch):
    """Both sets of inner loops."""
    kernels = NumPyKernels
    if request.param == "numba":
        kernels = pytest.importorskip("faircal.compute._numba")
    monkeypatch.setattr(module, "settle", kernels.settle)
    monkeypatch.setattr(module, "doubtful", kernels.doubtful)


@pytest.fixture
def starts(monkeypatch):
    """A list that grows by the centres that each start begins with."""
    seen, begin = [], _Lloyd.__init__

    def noted(self, points, squares, centers):
        seen.append(centers.copy())
        begin(self, points, squares, centers)

    monkeypatch.setattr(_Lloyd, "__init__", noted)
    return seen


CASES = {
    "random": (np.random.default_rng(1).normal(size=(1200, 8)).astype(np.float32), 20),
    "clustered": (clustered(), 12),
    "one dimension": (np.random.default_rng(2).normal(size=(500, 1)).astype(np.float32), 9),
    "wide": (np.random.default_rng(3).normal(size=(300, 200)).astype(np.float32), 10),
    "repeated": (repeated(), 15),
    "a cluster for each": (clustered(n=40), 40),
    "one cluster": (clustered(n=300), 1),
    "one point": (np.zeros((1, 3), dtype=np.float32), 1),
    "two": (column(-1.0, 1.0), 2),
    "more than a block": (clustered(5, n=2500), 40),
}


@pytest.mark.usefixtures("each_kernel")
@pytest.mark.parametrize("name", CASES)
class TestAgainstTheDefinition:
    def test_same_centers(self, name, starts):
        points, n_clusters = CASES[name]
        found = fit(points, n_clusters, seed=4)
        centers, labels, inertia, passes = plain(points, starts[0], 100)
        np.testing.assert_allclose(found.centers, centers, rtol=0, atol=2e-6)
        np.testing.assert_array_equal(CPU.assign(points, found.centers), labels)
        scale = np.square(points, dtype=np.float64).sum()
        assert found.inertia == pytest.approx(inertia, rel=1e-5, abs=1e-9 * scale)
        assert found.n_iter == passes

    def test_bounds_change_nothing(self, name, monkeypatch):
        points, n_clusters = CASES[name]
        with_bounds = fit(points, n_clusters, n_init=2)
        monkeypatch.setattr(module, "_MOST_KEPT", 0)
        without = fit(points, n_clusters, n_init=2)
        np.testing.assert_allclose(with_bounds.centers, without.centers, rtol=0, atol=2e-6)
        assert with_bounds.n_iter == without.n_iter
        assert with_bounds.inertia == pytest.approx(without.inertia, rel=1e-6, abs=1e-12)


class TestLloyd:
    def test_two_iterations_by_hand(self):
        # The first moves the centres to 0.5 and 9.5, the second finds every point where it was.
        found = lloyd(column(0, 1, 9, 10), column(0, 10))
        assert found.centers.ravel().tolist() == [0.5, 9.5]
        assert (found.n_iter, found.inertia) == (2, 1.0)
        assert found.centers.dtype == np.float32

    @pytest.mark.parametrize("most", [1, 2, 3, 5])
    def test_cut_short(self, most):
        points = clustered()
        found = lloyd(points, points[:12], most)
        centers, _, inertia, passes = plain(points, points[:12], most)
        assert found.n_iter == passes == most
        np.testing.assert_allclose(found.centers, centers, rtol=0, atol=1e-6)
        assert found.inertia == pytest.approx(inertia, rel=1e-6)  # of these very centres

    def test_next_to_nothing_moves(self):
        points = clustered()
        found = lloyd(points, points[:12], 100, 0.01)
        centers, _, inertia, passes = plain(points, points[:12], 100, 0.01)
        assert found.n_iter == passes < lloyd(points, points[:12], 100).n_iter
        np.testing.assert_allclose(found.centers, centers, rtol=0, atol=1e-6)
        assert found.inertia == pytest.approx(inertia, rel=1e-6)

    @pytest.mark.parametrize("name", ["random", "clustered", "wide", "more than a block"])
    def test_bounds_hold_all_the_way(self, name, monkeypatch, each_kernel):
        look, looked_at = _Lloyd._look_at, []

        def checked(self, rows):
            look(self, rows)
            looked_at.append(len(rows))
            true = np.sqrt(distances(self.points, self.centers))
            here, slack = (np.arange(len(true)), self.labels), 1e-5 * self.reach
            assert (self.upper >= true[here] - slack).all()
            np.testing.assert_array_equal(self.labels, true.argmin(axis=1))
            true[here] = np.inf
            assert (self.lower - self.travel <= true + slack).all()
            assert (self.second <= true.min(axis=1) + slack).all()

        points, n_clusters = CASES[name]
        points, n_clusters = points[:1200], min(n_clusters, 20)
        monkeypatch.setattr(_Lloyd, "_look_at", checked)
        fit(points, n_clusters)
        assert len(looked_at) > 4
        assert looked_at[0] == len(points)
        assert looked_at[-1] < len(points)  # bounds are of use

    def test_sums_follow_the_points(self, monkeypatch):
        # However many points change at a time, the sums are those of the clusters.
        monkeypatch.setattr(module, "_CHANGED", 7)
        doubtful, labels = _Lloyd._doubtful, []

        def checked(self, drift):
            labels.append(self.labels.copy())
            expected = np.zeros_like(self.sums)
            np.add.at(expected, self.labels, self.points.astype(np.float64))
            np.testing.assert_allclose(self.sums, expected, rtol=0, atol=1e-4)
            return doubtful(self, drift)

        monkeypatch.setattr(_Lloyd, "_doubtful", checked)
        fit(clustered(), 12)
        assert max((one != two).sum() for one, two in pairwise(labels)) > 21

    def test_sums_of_blocks_take_no_more_room_than_points(self, monkeypatch):
        points, parts, run = clustered(n=900), [], module.each

        def noted(work, n, block):
            made = run(work, n, block)
            parts.extend(part for part in made if part is not None)
            return made

        monkeypatch.setattr(module, "each", noted)
        monkeypatch.setattr(module, "_BLOCK", 16)
        state = _Lloyd(points, squares_of(points), points[:200])
        state.run(1, 0.0)
        assert len(parts) > 1
        assert sum(part.nbytes for part in parts[:-1]) <= points.nbytes
        expected = np.zeros((200, points.shape[1]))
        np.add.at(expected, state.labels, points.astype(np.float64))
        np.testing.assert_allclose(state.sums, expected, rtol=0, atol=1e-14)

    def test_the_best_start_counts(self, starts):
        points = clustered(spread=1.0)
        found = fit(points, 15, n_init=6)
        each_one = [lloyd(points, first, 100) for first in list(starts)]
        best = min(each_one, key=lambda one: one.inertia)
        assert len({one.inertia for one in each_one}) > 1
        assert found.inertia == best.inertia
        np.testing.assert_array_equal(found.centers, best.centers)

    def test_progress(self):
        told = []
        fit(clustered(n=60), 3, n_init=2, progress=lambda *said: told.append(said))
        assert told == [("K-means", 0, 2, "K = 3"), ("K-means", 1, 2, "K = 3")]

    def test_no_starts(self):
        with pytest.raises(ValueError, match="n_init: expected 1 or more"):
            fit(clustered(n=60), 3, n_init=0)

    def test_points_are_not_changed(self):
        points = clustered()
        points.flags.writeable = False
        fit(points, 12)
        CPU.assign(points, points[:5])

    @pytest.mark.usefixtures("each_kernel")
    def test_same_bytes_again(self):
        one, two = (fit(clustered(), 12, n_init=2, seed=8) for _ in range(2))
        assert one.centers.tobytes() == two.centers.tobytes()
        assert one[1:] == two[1:]


@pytest.mark.usefixtures("each_kernel")
@pytest.mark.parametrize("kept", [2**27, 0])
class TestEmptyClusters:
    @pytest.fixture(autouse=True)
    def bounds(self, kept, monkeypatch):
        monkeypatch.setattr(module, "_MOST_KEPT", kept)

    @pytest.fixture(autouse=True)
    def consistent(self, monkeypatch):
        """After empty clusters were filled, sums and counts are those of the labels.

        No bound says of another centre than a point's own that it is of no interest.
        """
        fill, look = _Lloyd._fill_empty, _Lloyd._look_at

        def looked(self, rows):
            look(self, rows)
            if self.lower is not None:
                own = self.labels[:, None] == np.arange(len(self.centers))
                np.testing.assert_array_equal(np.isinf(self.lower), own)

        monkeypatch.setattr(_Lloyd, "_look_at", looked)

        def checked(self, counts):
            fill(self, counts)
            sums = self.sums
            assert counts.min() > 0
            np.testing.assert_array_equal(counts, np.bincount(self.labels, minlength=len(counts)))
            expected = np.zeros_like(sums)
            np.add.at(expected, self.labels, self.points.astype(np.float64))
            most = np.abs(self.points).max()
            np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-4 * most)

        monkeypatch.setattr(_Lloyd, "_fill_empty", checked)

    def test_gets_the_farthest_point(self):
        points, first = column(0, 1, 2, 30), column(0, 500)
        found = lloyd(points, first)
        assert sorted(found.centers.ravel()) == [1.0, 30.0]
        assert found.inertia == 2.0
        assert lloyd(points, first, 2).centers.ravel().tolist() == [1.0, 30.0]  # at once

    def test_several_get_the_farthest_in_turn(self):
        points = column(0, 1, 2, 40, 100)
        found = lloyd(points, column(1, 500, 600), 2)
        assert found.centers.ravel().tolist() == [1.0, 100.0, 40.0]

    def test_a_cluster_is_not_emptied_to_fill_another(self):
        # The point farthest out is alone in its cluster.
        points = column(0, 1, 2, 60)
        found = lloyd(points, column(1, 50, 500), 2)
        assert found.centers.ravel().tolist() == [1.5, 60.0, 0.0]

    @pytest.mark.parametrize("seed", range(3))
    def test_against_the_definition(self, seed):
        rng = np.random.default_rng(seed)
        points = clustered(seed, n=200)
        first = np.concatenate([points[:5], 30 + rng.normal(size=(7, 6))]).astype(np.float32)
        found = lloyd(points, first, 100)
        centers, _, inertia, passes = plain(points, first, 100)
        np.testing.assert_allclose(found.centers, centers, rtol=0, atol=1e-5)
        assert found.n_iter == passes
        assert found.inertia == pytest.approx(inertia, rel=1e-5)

    @pytest.mark.parametrize("n_clusters", [1, 3, 8])
    def test_all_points_equal(self, n_clusters):
        points = np.full((8, 3), 0.25, dtype=np.float32)
        found = fit(points, n_clusters)
        assert found.inertia == 0
        assert found.n_iter == 2  # centres that stay put end it, although labels keep moving
        np.testing.assert_array_equal(found.centers, np.full((n_clusters, 3), 0.25))

    @pytest.mark.parametrize("n_clusters", [10, 11, 25, 150])
    def test_fewer_distinct_points_than_clusters(self, n_clusters):
        for seed in range(5):
            points = repeated(seed, n=150, distinct=10)
            found = fit(points, n_clusters, seed=seed)
            assert np.isfinite(found.centers).all()
            assert found.inertia == pytest.approx(0, abs=1e-9)
            assert found.n_iter < 20  # the empty ones do not go round and round

    def test_points_that_rounding_cannot_tell_apart(self):
        # Which of two centres is nearer then changes from product to product.
        for seed in range(3):
            rng = np.random.default_rng(seed)
            points = 20 * rng.normal(size=(8, 4))[rng.integers(8, size=70)]
            points = (points + 1e-4 * rng.normal(size=(70, 4))).astype(np.float32)
            found = fit(points, 40, seed=seed)
            assert np.isfinite(found.centers).all()
            nearest = distances(points, found.centers).min(axis=1)
            assert nearest.sum() <= found.inertia + 1e-6
            assert found.inertia < 1e-3  # of 100,000 about the mean

    @settings(max_examples=25)
    @given(data=st.data())
    def test_any_small_case(self, kept, data):
        rows = data.draw(
            st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=14)
        )
        points = np.array(rows, dtype=np.float32)
        points -= points.mean(axis=0)
        n_clusters = data.draw(st.integers(1, len(rows)))
        found = fit(points, n_clusters, seed=data.draw(st.integers(0, 3)))
        assert np.isfinite(found.centers).all()
        nearest = distances(points, found.centers).min(axis=1)
        assert found.inertia == pytest.approx(nearest.sum(), abs=1e-4)
        if n_clusters >= len(set(rows)):
            assert found.inertia == pytest.approx(0, abs=1e-4)


class TestStart:
    @pytest.mark.parametrize("seed", range(12))
    def test_each_point_is_drawn_once(self, seed):
        # A point already chosen is at distance 0; any other is exactly 1/64, 225/64 or 4 away.
        found = start(column(2, 2.125, 4), 3, np.random.default_rng(seed))
        assert sorted(found.ravel().tolist()) == [2.0, 2.125, 4.0]

    @pytest.mark.parametrize("seed", range(8))
    def test_distinct_rows_as_long_as_there_are(self, seed):
        points = clustered(seed, n=120)
        for n_clusters in (2, 30, 120):
            found = start(points, n_clusters, np.random.default_rng(seed))
            assert found.shape == (n_clusters, 6)
            assert len(np.unique(found, axis=0)) == n_clusters
            assert set(map(bytes, found)) <= set(map(bytes, points))

    def test_all_distinct_points_before_any_twice(self):
        # Whole numbers: the distance of equal points is exactly 0.
        points = np.repeat(column(-9, -4, 1, 5, 7), [1, 30, 2, 5, 12], axis=0)
        for seed in range(10):
            for n_clusters in (5, 8, 50):
                found = start(points, n_clusters, np.random.default_rng(seed))
                assert len(found) == n_clusters
                assert set(found[:5].ravel().tolist()) == {-9, -4, 1, 5, 7}

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
            np.testing.assert_array_equal(start(points, 2, Low()), points)

    def test_rounding_does_not_draw_a_later_choice_again(self):
        class Low:
            def integers(self, n):
                return 0

            def random(self, n):
                return np.full(n, 0.1)

        for seed in range(30):
            one = np.random.default_rng(seed).normal(100, 1, 512).astype(np.float32)
            points = np.stack([one, one + np.float32(0.125), one - np.float32(0.125)])
            np.testing.assert_array_equal(start(points, 3, Low()), points)

    def test_a_draw_of_nought(self):
        class Nought:
            calls = 0

            def integers(self, n):
                return 0

            def random(self, n):
                self.calls += 1
                assert self.calls < 20
                return np.zeros(n)

        assert start(column(0, 1, 3), 3, Nought()).ravel().tolist() == [0.0, 1.0, 3.0]

    POINTS = column(0, 1, 3, 7, 8)

    def chances(self, n_clusters, trials):
        """Return the chance of each sequence of choices, by the definition of k-means++."""
        squared = distances(self.POINTS, self.POINTS)

        def next_choice(chosen):
            nearest = squared[list(chosen)].min(axis=0)
            share = nearest / nearest.sum()
            left = np.minimum(squared, nearest).sum(axis=1)  # objective after each choice
            chance = np.zeros(len(share))
            for draws in product(range(len(share)), repeat=trials):
                chance[min(draws, key=lambda row: left[row])] += share[list(draws)].prod()
            return chance

        table = {(row,): 1 / len(squared) for row in range(len(squared))}
        for _ in range(1, n_clusters):
            table = {
                (*chosen, row): chance * more
                for chosen, chance in table.items()
                for row, more in enumerate(next_choice(chosen))
                if more
            }
        return table

    def check(self, n_clusters, trials, count=3000):
        rng, rows = (
            np.random.default_rng(0),
            {value: row for row, value in enumerate(self.POINTS[:, 0])},
        )
        table = self.chances(n_clusters, trials)
        seen = dict.fromkeys(permutations(range(5), n_clusters), 0)
        for _ in range(count):
            found = start(self.POINTS, n_clusters, rng)
            seen[tuple(rows[value] for value in found[:, 0])] += 1
        assert not [chosen for chosen, times in seen.items() if times and chosen not in table]
        expected = {chosen: count * chance for chosen, chance in table.items()}
        rare = [chosen for chosen in expected if expected[chosen] < 8]
        common = [chosen for chosen in expected if expected[chosen] >= 8]
        observed = [seen[chosen] for chosen in common] + [sum(seen[chosen] for chosen in rare)]
        ideal = [expected[chosen] for chosen in common] + [sum(expected[chosen] for chosen in rare)]
        kept = np.array(ideal) > 0
        assert kept.sum() > 10
        return chisquare(np.array(observed)[kept], np.array(ideal)[kept]).pvalue

    def test_chances_are_those_of_the_definition(self, monkeypatch):
        # One candidate each: plain k-means++, four choices out of one set of draws.
        sizes, measure, counts = module.sizes, _CandidatesInMemory.measure, []

        def noted(self, rows):
            counts.append(len(rows))
            measure(self, rows)

        monkeypatch.setattr(_CandidatesInMemory, "measure", noted)
        monkeypatch.setattr(module, "sizes", lambda n, k: sizes(n, k)._replace(trials=1))
        assert self.check(n_clusters=4, trials=1) > 0.01
        assert max(counts) == 3  # several at a time: some are refused

    def test_chances_are_those_of_the_definition_with_the_best_of_several(self):
        assert self.check(n_clusters=4, trials=3) > 0.01

    def test_few_distances_at_a_time_are_the_same_draws(self, monkeypatch):
        # As little room as can be: candidates for one centre at a time.
        counts, measure = [], _CandidatesInMemory.measure

        def noted(self, rows):
            counts.append(len(rows))
            measure(self, rows)

        monkeypatch.setattr(_CandidatesInMemory, "measure", noted)
        monkeypatch.setattr(module, "_MOST_DRAWN", 1)
        assert self.check(n_clusters=4, trials=3, count=2000) > 0.01
        assert set(counts) == {1, 3}

    def test_among_a_sample_of_very_many(self, monkeypatch):
        monkeypatch.setattr(module, "_SAMPLE", 64)
        monkeypatch.setattr(module, "_SAMPLE_A_CLUSTER", 5)
        points, sizes, measure = clustered(n=3000), [], _CandidatesInMemory.measure

        def noted(self, rows):
            sizes.append(len(self.points))
            np.testing.assert_array_equal(self.squares, squares_of(self.points))
            measure(self, rows)

        monkeypatch.setattr(_CandidatesInMemory, "measure", noted)
        rng = np.random.default_rng(0)
        one, two = start(points, 9, rng), start(points, 9, rng)
        assert set(sizes) == {64}
        assert not np.array_equal(one, two)  # a sample for each
        assert set(map(bytes, one)) <= set(map(bytes, points))
        assert len(np.unique(one, axis=0)) == 9
        sizes.clear()
        start(points, 40, rng)
        assert set(sizes) == {200}
        sampled = fit(points, 9, n_init=5)
        monkeypatch.undo()
        assert sampled.inertia < 1.02 * fit(points, 9, n_init=5).inertia

    def test_no_more_than_are_there(self, monkeypatch):
        monkeypatch.setattr(module, "_SAMPLE", 100)
        points = clustered(n=100)
        first = start(points, 1, np.random.default_rng(5))
        np.testing.assert_array_equal(first[0], points[np.random.default_rng(5).integers(100)])


class TestAssign:
    def test_more_than_a_block(self):
        points, centers = clustered(n=5000), clustered(1, n=30)
        found = CPU.assign(points, centers)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, distances(points, centers).argmin(axis=1))

    def test_far_from_the_origin(self):
        points, centers = clustered(n=1000) + np.float32(3000), clustered(1, n=9) + np.float32(3000)
        np.testing.assert_array_equal(
            CPU.assign(points, centers), distances(points, centers).argmin(axis=1)
        )

    def test_as_stored(self, tmp_path):
        points, centers = clustered(n=1500), clustered(1, n=9)
        expected = CPU.assign(points, centers)
        np.save(tmp_path / "points.npy", points)
        stored = np.load(tmp_path / "points.npy", mmap_mode="r")
        np.testing.assert_array_equal(CPU.assign(stored, centers), expected)
        np.testing.assert_array_equal(CPU.assign(np.asfortranarray(points), centers), expected)


class TestNumberOfThreads:
    def test_same_bytes(self, use_threads):
        rng = np.random.default_rng(0)
        middle = rng.normal(size=(40, 48))
        points = middle[rng.integers(40, size=9000)] + rng.normal(size=(9000, 48))
        points = points.astype(np.float32)
        points[6000:] = points[:3000]
        outcomes = set()
        for threads in (1, 3):
            use_threads(threads)
            for k, n_init in ((1, 1), (7, 2), (120, 1)):
                found = CPU.kmeans(points, k, n_init=n_init)
                labels = CPU.assign(points, found.centers)
                numbers = found.inertia.hex(), found.n_iter
                outcomes.add((k, found.centers.tobytes(), labels.tobytes(), numbers))
        assert len(outcomes) == 3

    def test_products_take_one_thread_each(self, monkeypatch):
        seen, run = [], module.each

        def noted(work, n, block):
            pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
            seen.append({pool["num_threads"] for pool in pools})
            return run(work, n, block)

        monkeypatch.setattr(module, "each", noted)
        monkeypatch.setattr(sys.modules["faircal.compute.engine"], "each", noted)
        with threadpool_limits(2, user_api="blas"):
            found = fit(clustered(n=300), 5)
            count = len(seen)
            CPU.assign(clustered(n=300), found.centers)
        assert len(seen) > count > 5
        assert all(threads == {1} for threads in seen)

    def test_same_bytes_beside_other_work(self, use_threads):
        use_threads(3)
        sets = [clustered(seed, n=2500) for seed in range(4)]
        expected = [fit(points, 30) for points in sets]
        with ThreadPoolExecutor(4) as callers:
            found = list(callers.map(lambda points: fit(points, 30), sets * 2))
        for one, two in zip(found, expected * 2, strict=True):
            assert one.centers.tobytes() == two.centers.tobytes()
            assert one[1:] == two[1:]


def test_far_from_the_origin_as_near_it(starts):
    # The door moves points to the origin; what comes out is moved back.
    points = clustered(n=700)
    for away in (0.0, 50.0, 2000.0):
        moved = points + np.float32(away)
        starts.clear()
        found = CPU.kmeans(moved, 9, tol=0.0)
        middle = moved.mean(axis=0, dtype=np.float64).astype(np.float32)
        centers, labels, inertia, passes = plain(moved - middle, starts[0], 300)
        np.testing.assert_allclose(found.centers, centers + middle, rtol=1e-7, atol=1e-6)
        np.testing.assert_array_equal(CPU.assign(moved, found.centers), labels)
        assert (found.inertia, found.n_iter) == (pytest.approx(inertia, rel=1e-6), passes)
