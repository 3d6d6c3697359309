"""The kernels on a PyTorch device against NumPy: on the CPU, and on a GPU where there is one."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import expit

torch = pytest.importorskip("torch")

from faircal._base.errors import DataError, MissingExtraError, ParameterError  # noqa: E402
from faircal.compute import (  # noqa: E402
    CPU,
    _torch_kernels,
    _torch_kmeans,
    device,
    kmeans,
)
from faircal.compute._torch_kernels import Recorded  # noqa: E402
from faircal.compute.device import TorchEngine, choose_device  # noqa: E402
from faircal.compute.logistic import logistic_sums  # noqa: E402

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_GPU)]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    # Such small work takes longer on several threads, and far longer beside other tests.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=DEVICES)
def engine(request):
    return TorchEngine(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def clustered(rng, n=700, d=5, n_clusters=8, spread=0.1):
    """Points around well separated centres, one cluster after the other, about the origin."""
    centers = rng.normal(size=(n_clusters, d)) * 3
    points = np.repeat(centers, n // n_clusters + 1, axis=0)[:n]
    points = points + spread * rng.normal(size=points.shape)
    return (points - points.mean(axis=0)).astype(np.float32)


def squared(points, centers):
    """Squared distances in float64, shape (n, K)."""
    apart = points[:, None].astype(np.float64) - centers[None].astype(np.float64)
    return np.square(apart).sum(axis=2)


def fit(engine, points, n_clusters, *, n_init=1, seed=0, max_iter=100, shift=0.0, rng=None):
    return engine.best_start(
        points,
        n_clusters,
        n_init=n_init,
        rng=np.random.default_rng(seed) if rng is None else rng,
        max_iter=max_iter,
        shift=shift,
    )


class TestDevices:
    def test_auto_is_a_gpu_where_there_is_one(self):
        assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")

    @pytest.mark.parametrize("name", ["tpu", "cuda:99", ""])
    def test_unusable(self, name):
        with pytest.raises(ParameterError, match=r"^device: .*cuda[^\n]*$"):
            TorchEngine(name)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_no_gpu(self):
        with pytest.raises(ParameterError, match=r"'cuda' cannot be used here .* choose auto, cpu"):
            TorchEngine("cuda")

    def test_no_torch(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'faircal\[torch\]'$"):
            TorchEngine("cuda")


class TestHolding:
    @pytest.fixture
    def copied(self, engine, monkeypatch):
        copied, copy = [], engine._copy
        monkeypatch.setattr(
            engine, "_copy", lambda array: copied.append(array.shape) or copy(array)
        )
        return copied

    def test_once_per_array_for_as_long_as_it_lives(self, engine, copied):
        one, other = np.ones((3, 2), dtype=np.float32), np.zeros((3, 2), dtype=np.float32)
        for _ in range(3):
            assert engine.pair_dots(one, np.array([0]), np.array([1])) == 2
            assert engine.pair_dots(other, np.array([0]), np.array([1])) == 0
        assert copied.count((3, 2)) == 2
        assert len(engine._held) == 2
        del one
        assert len(engine._held) == 1

    def test_an_array_of_another_address_life(self, engine):
        # A new array may get the address of one that is gone.
        for value in range(20):
            assert engine.put(np.full(5, value)).tolist() == [value] * 5

    def test_read_only_memory_mapped_and_strided(self, engine, tmp_path, rng, monkeypatch):
        monkeypatch.setattr(device, "_PART", 64)
        vectors = rng.normal(size=(40, 6)).astype(np.float32)
        np.save(tmp_path / "v.npy", vectors)
        mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
        for array in (mapped, mapped[::2], mapped.T, mapped[:0]):
            there = engine.put(array)
            assert there.dtype == torch.float32
            np.testing.assert_array_equal(there.cpu().numpy(), array)


class TestPairs:
    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    @pytest.mark.parametrize("d", [1, 7, 128, 512, 513, 1500])
    def test_dots(self, engine, rng, d, dtype):
        vectors = rng.normal(size=(60, d)).astype(dtype)
        left, right = rng.integers(60, size=(2, 333))
        found = engine.pair_dots(vectors, left, right)
        exact = vectors.astype(np.float64)
        exact = np.einsum("ij,ij->i", exact[left], exact[right])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * d)

    def test_half_precision_is_not_added_up_in_half_precision(self, engine):
        vectors = np.full((1, 4096), 1.0, dtype=np.float16)
        vectors[0, 0] = 64  # 64² + 4095 is odd and above 2048: no float16
        assert engine.pair_dots(vectors, np.array([0]), np.array([0])) == 64**2 + 4095

    def test_cosines(self, engine, rng, monkeypatch):
        monkeypatch.setattr(device, "_PAIRS", 10)
        vectors = rng.normal(size=(30, 8)).astype(np.float16)
        left, right = rng.integers(30, size=(2, 101))
        left[:30] = right[:30] = np.arange(30)  # the same row: clipped at 1
        norms = np.linalg.norm(vectors.astype(np.float32), axis=1)
        found = engine.cosines(vectors, norms, left, right)
        exact = vectors.astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        assert found.dtype == np.float64
        assert found.max() == 1
        np.testing.assert_allclose(found, (exact[left] * exact[right]).sum(1), atol=1e-6)
        np.testing.assert_allclose(found, CPU.cosines(vectors, norms, left, right), atol=1e-6)

    def test_in_parts(self, engine, rng, monkeypatch):
        vectors = rng.normal(size=(30, 8)).astype(np.float32)
        left, right = rng.integers(30, size=(2, 101)).astype(np.int32)
        whole = engine.pair_dots(vectors, left, right)
        monkeypatch.setattr(device, "_PAIRS", 10)
        monkeypatch.setattr(_torch_kernels, "_GATHERED", 24)
        np.testing.assert_array_equal(engine.pair_dots(vectors, left, right), whole)

    def test_no_pairs(self, engine):
        none = np.array([], dtype=np.int64)
        assert engine.pair_dots(np.ones((3, 2), dtype=np.float32), none, none).shape == (0,)

    @pytest.mark.parametrize("rows", [[0, 3], [-1, 0]])
    def test_rows_that_are_not_there(self, engine, rows):
        vectors, rows = np.ones((3, 2), dtype=np.float32), np.array(rows)
        for sides in ((rows, rows * 0), (rows * 0, rows)):
            with pytest.raises(DataError, match="rows: expected numbers from 0 to 2, found"):
                engine.pair_dots(vectors, *sides)

    @pytest.mark.parametrize("vectors", [np.ones((3, 2)), np.ones(3, dtype=np.float32)])
    def test_other_vectors(self, engine, vectors):
        with pytest.raises(DataError, match="vectors: expected a matrix of float16 or float32"):
            engine.pair_dots(vectors, np.array([0]), np.array([1]))

    @NO_GPU
    def test_the_fused_kernel_is_used_and_agrees(self, rng):
        assert _torch_kernels._has_fused(torch.device("cuda"))
        engine = TorchEngine("cuda")
        vectors = engine.put(rng.normal(size=(1000, 512)).astype(np.float32))
        rows = torch.randint(0, 1000, (2, 10_001), device="cuda")
        fused, plain = (
            f(vectors, *rows) for f in (_torch_kernels.dots, _torch_kernels.gathered_dots)
        )
        torch.testing.assert_close(fused, plain, rtol=0, atol=1e-4)


class TestKMeans:
    def test_finds_clusters(self, engine, rng):
        points = clustered(rng)
        found = fit(engine, points, 8)
        truth = np.arange(700) // 88
        means = np.array([points[truth == k].mean(axis=0) for k in range(8)])
        order = squared(means, found.centers).argmin(axis=1)
        np.testing.assert_allclose(found.centers[order], means, atol=1e-5)
        assert found.inertia == pytest.approx(squared(points, means).min(axis=1).sum(), rel=1e-4)
        assert found.centers.dtype == np.float32
        np.testing.assert_array_equal(engine.assign(points, found.centers), order[truth])

    @pytest.mark.parametrize("n", [3, 511, 512, 513, 2000])
    def test_ends_where_nothing_moves(self, engine, rng, n):
        points = rng.normal(size=(n, 3)).astype(np.float32)
        found = fit(engine, points, 3, max_iter=500)
        distance = squared(points, found.centers)
        labels = distance.argmin(axis=1)
        means = np.array([points[labels == k].mean(axis=0) for k in range(3)])
        np.testing.assert_allclose(found.centers, means, atol=1e-5)
        assert found.inertia == pytest.approx(distance.min(axis=1).sum(), rel=1e-5, abs=1e-5)
        assert 1 < found.n_iter < 500

    def test_repeatable(self, engine, rng):
        points = rng.normal(size=(3000, 16)).astype(np.float32)
        one, other = (fit(engine, points, 20, n_init=3, seed=5) for _ in range(2))
        assert one.centers.tobytes() == other.centers.tobytes()
        assert one[1:] == other[1:]
        assert fit(engine, points, 20, seed=6).inertia != one.inertia

    @NO_GPU
    def test_recorded_steps_have_the_bits_of_plain_ones(self, rng, monkeypatch):
        engine, points = TorchEngine("cuda"), rng.normal(size=(5000, 16)).astype(np.float32)
        recorded = fit(engine, points, 20, n_init=3)
        monkeypatch.setattr(
            _torch_kmeans, "_recorded", lambda step, *_: Recorded(step, torch.device("cpu"))
        )
        assert fit(engine, points, 20, n_init=3).centers.tobytes() == recorded.centers.tobytes()

    @NO_GPU
    def test_no_memory_is_left_behind(self, rng):
        engine, points = TorchEngine("cuda"), rng.normal(size=(5000, 64)).astype(np.float32)

        def used():
            for seed in range(3):
                fit(engine, points, 20, n_init=3, seed=seed)
            return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()

        used()
        assert used() == used()

    def test_several_at_a_time(self, engine, rng):
        points = rng.normal(size=(3000, 16)).astype(np.float32)
        alone = [fit(engine, points, 20, seed=seed) for seed in range(8)]
        with ThreadPoolExecutor(4) as pool:
            beside = list(pool.map(lambda seed: fit(engine, points, 20, seed=seed), range(8)))
        for one, other in zip(alone, beside, strict=True):
            assert one.centers.tobytes() == other.centers.tobytes()

    def test_starts_side_by_side_are_the_starts_one_by_one(self, engine, rng, monkeypatch):
        points = rng.normal(size=(600, 3)).astype(np.float32)
        lots = np.random.default_rng(1)
        alone = [fit(engine, points, 12, rng=lots) for _ in range(6)]
        best = min(alone, key=lambda found: found.inertia)
        assert len({found.n_iter for found in alone}) > 1
        together = fit(engine, points, 12, n_init=6, seed=1)
        monkeypatch.setattr(_torch_kmeans, "_LABELS", 1)
        in_turn = fit(engine, points, 12, n_init=6, seed=1)
        for found in (together, in_turn):
            np.testing.assert_allclose(found.centers, best.centers, atol=1e-5)
            assert found.n_iter == best.n_iter

    def test_in_parts(self, engine, rng, monkeypatch):
        points = rng.normal(size=(2000, 3)).astype(np.float32)
        whole = fit(engine, points, 7, n_init=2)
        monkeypatch.setattr(_torch_kmeans, "_DISTANCES", 1)
        parts = fit(engine, points, 7, n_init=2)
        np.testing.assert_allclose(parts.centers, whole.centers, atol=1e-5)

    def test_no_more_iterations_than_asked_for(self, engine, rng):
        points = rng.normal(size=(600, 3)).astype(np.float32)
        found = [fit(engine, points, 12, max_iter=most) for most in (1, 2, 3, 9)]
        assert [one.n_iter for one in found] == [1, 2, 3, 9]
        for one in found:  # the objective is that of the centres
            exact = squared(points, one.centers).min(axis=1).sum()
            assert one.inertia == pytest.approx(exact, rel=1e-5)
        assert found[3].inertia < found[2].inertia < found[1].inertia < found[0].inertia

    def test_ends_when_next_to_nothing_moves(self, engine, rng):
        points = rng.normal(size=(600, 3)).astype(np.float32)
        assert fit(engine, points, 12, shift=1e9).n_iter == 2

    def test_empty_clusters_get_the_farthest_points(self, engine):
        points = np.array([[0], [1], [2], [50], [60]], dtype=np.float32)
        there = engine.put(points)
        # One start with two empty clusters, one without any.
        centers = torch.tensor([[[0.0], [900], [800]], [[1], [50], [60]]], device=engine.device)
        lloyd = _torch_kmeans._LloydOnDevice(there, centers, 20, 0.0)
        lloyd._iterate()
        assert lloyd.hollow.tolist() == [True, False]
        lloyd._fill_empty(0)
        assert sorted(lloyd.centers[0].flatten().tolist()) == [1, 50, 60]
        assert lloyd.labels[0].tolist() == [0, 0, 0, 2, 1]
        assert [found.inertia for found in lloyd.run()] == [2, 2]

    def test_fewer_points_than_clusters(self, engine):
        points = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
        found = fit(engine, points, 6, n_init=2)
        assert found.inertia == pytest.approx(0, abs=1e-6)
        assert np.isfinite(found.centers).all()

    def test_one_cluster(self, engine, rng):
        points = rng.normal(size=(50, 3)).astype(np.float32)
        np.testing.assert_allclose(fit(engine, points, 1).centers[0], points.mean(0), atol=1e-6)

    def test_large_sums_are_safe(self, engine):
        points = np.full((200_000, 1), 0.1, dtype=np.float32)
        points[::2] = -0.3
        found = fit(engine, points, 2)
        # Summed one after the other in float32 the 100,000 of each would be off by 1e-4.
        np.testing.assert_allclose(np.sort(found.centers[:, 0]), [-0.3, 0.1], rtol=5e-6)

    def test_products_are_of_float32(self, engine, monkeypatch):
        seen, halves = [], _torch_kmeans._halves

        def look(*arguments):
            seen.append(torch.get_float32_matmul_precision())
            return halves(*arguments)

        monkeypatch.setattr(_torch_kmeans, "_halves", look)
        before = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("high")
            fit(engine, np.eye(4, dtype=np.float32), 2)
            assert torch.get_float32_matmul_precision() == "high"
        finally:
            torch.set_float32_matmul_precision(before)
        assert set(seen) == {"highest"}


def faces(rng, n=9000, d=64, people=90):
    """Vectors of length 1, many images a person, as embeddings are; about the origin."""
    points = np.repeat(rng.normal(size=(people, d)), n // people, axis=0)
    points += 0.6 * rng.normal(size=points.shape)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return (points - points.mean(axis=0)).astype(np.float32)


#: Points and numbers of clusters. Starts are chosen among 8192 points, or 40 a cluster.
CASES = {
    "clustered": (clustered(np.random.default_rng(1), n=3000, d=16, n_clusters=12), 12),
    "more clusters than there are": (clustered(np.random.default_rng(2), spread=0.5), 40),
    "no clusters": (np.random.default_rng(3).normal(size=(1500, 8)).astype(np.float32), 30),
    "more than the sample": (
        clustered(np.random.default_rng(4), n=9000, d=24, n_clusters=60, spread=1.0),
        50,
    ),
    "faces": (faces(np.random.default_rng(8)), 80),
    "repeated": (
        np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32)[np.arange(1200) % 300],
        20,
    ),
    # Whole numbers: distances are exact, and a tie is a tie, anywhere.
    "fewer points than clusters": (np.eye(5, dtype=np.float32)[np.arange(40) % 5], 9),
    "a cluster for each": (
        np.random.default_rng(7).integers(-9, 10, size=(60, 5)).astype(np.float32),
        60,
    ),
    "one cluster": (clustered(np.random.default_rng(6)), 1),
    "one point": (np.ones((1, 3), dtype=np.float32), 1),
}


@pytest.mark.parametrize("name", CASES)
class TestKMeansAsOnTheProcessor:
    def test_the_same_start_and_random_numbers(self, engine, name):
        points, n_clusters = CASES[name]
        there, squares = engine.put(points), np.einsum("ij,ij->i", points, points)
        sample = _torch_kmeans._CandidatesOnDevice(there, _torch_kmeans._squares(there), n_clusters)
        for seed in range(2):
            ours, theirs = np.random.default_rng(seed), np.random.default_rng(seed)
            found = kmeans.starting_rows(len(points), n_clusters, ours, sample.among)
            expected = kmeans.starting_rows(
                len(points),
                n_clusters,
                theirs,
                lambda rows: kmeans._CandidatesInMemory(points[rows], squares[rows]),
            )
            assert found.tolist() == expected.tolist()
            assert ours.bit_generator.state == theirs.bit_generator.state

    @pytest.mark.parametrize("n_init", [3])
    def test_the_same_end(self, engine, name, n_init):
        points, n_clusters = CASES[name]
        scale = float(np.square(points).mean())
        for seed, shift in ((0, 0.0), (1, 1e-4 * scale)):
            found, expected = (
                fit(e, points, n_clusters, n_init=n_init, seed=seed, max_iter=300, shift=shift)
                for e in (engine, CPU)
            )
            np.testing.assert_allclose(found.centers, expected.centers, rtol=0, atol=1e-4)
            assert found.inertia == pytest.approx(expected.inertia, rel=1e-6, abs=1e-9)
            assert found.n_iter == expected.n_iter
            # By their centres: of two that are equal, either may be the nearest.
            nearest = found.centers[engine.assign(points, found.centers)]
            theirs = expected.centers[CPU.assign(points, expected.centers)]
            assert (np.abs(nearest - theirs) < 1e-4).all(axis=1).mean() >= 0.999

    @pytest.mark.parametrize("max_iter", [1, 2, 7])
    def test_the_same_end_when_stopped(self, engine, name, max_iter):
        points, n_clusters = CASES[name]
        found, expected = (fit(e, points, n_clusters, max_iter=max_iter) for e in (engine, CPU))
        np.testing.assert_allclose(found.centers, expected.centers, rtol=0, atol=1e-4)
        assert found.inertia == pytest.approx(expected.inertia, rel=1e-6, abs=1e-9)
        assert found.n_iter == expected.n_iter


class TestAssign:
    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    @pytest.mark.parametrize("held", [False, True])
    def test_nearest(self, engine, rng, monkeypatch, dtype, held):
        monkeypatch.setattr(device, "_BLOCK", 64)
        vectors = rng.normal(size=(101, 4)).astype(dtype)
        centers = rng.normal(size=(9, 4)).astype(np.float32)
        if held:
            engine.put(vectors)
        labels = engine.assign(vectors, centers)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels, squared(vectors, centers).argmin(axis=1))
        assert len(engine._held) == held

    def test_far_from_the_origin(self, engine, rng):
        centers = (1000 + rng.normal(size=(9, 4))).astype(np.float32)
        vectors = (1000 + rng.normal(size=(500, 4))).astype(np.float32)
        distance = squared(vectors, centers)
        labels = engine.assign(vectors, centers)
        chosen = distance[np.arange(500), labels]
        np.testing.assert_allclose(chosen, distance.min(axis=1), atol=1e-4)


class TestLogistic:
    @pytest.mark.parametrize("seed", range(12))
    def test_sums(self, engine, seed):
        rng = np.random.default_rng(seed)
        lengths = rng.choice([0, 1, 5, 511, 512, 513, 1200], size=rng.integers(6))
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n, m = int(starts[-1]), int(rng.integers(1, 4))
        features, target, mass = rng.normal(size=(m, n)), rng.random(n), rng.random(n) * 5
        sums = engine.logistic_sums(features, target, mass, starts)
        which = rng.permutation(len(lengths))[: rng.integers(len(lengths) + 1)]
        theta = rng.normal(size=(len(which), m + 1)) * 10
        loss, gradient, hessian = sums(theta, which)
        assert (loss.shape, gradient.shape) == (which.shape, theta.shape)
        assert hessian.shape == (len(which), m + 1, m + 1)
        for at, k in enumerate(which):
            part = slice(starts[k], starts[k + 1])
            rows = np.vstack([features[:, part], np.ones(lengths[k])])
            eta, y, w = theta[at] @ rows, target[part], mass[part]
            p = expit(eta)
            scale = 1e-12 * max(1.0, np.abs(rows).sum())
            exact = w @ (np.logaddexp(0, eta) - y * eta)
            assert loss[at] == pytest.approx(exact, rel=1e-12, abs=1e-12)
            np.testing.assert_allclose(gradient[at], rows @ (w * (p - y)), rtol=1e-12, atol=scale)
            exact = (rows * (w * p * (1 - p))) @ rows.T
            np.testing.assert_allclose(hessian[at], exact, rtol=1e-12, atol=scale)

    def test_in_parts(self, engine, rng, monkeypatch):
        features, starts = rng.normal(size=(2, 5000)), np.array([0, 4000, 4000, 5000])
        target, theta, which = rng.random(5000), rng.normal(size=(3, 3)), np.arange(3)
        sums = engine.logistic_sums(features, target, np.ones(5000), starts)
        whole = sums(theta, which)
        monkeypatch.setattr(_torch_kernels, "_BLOCKS", 3)
        for one, other in zip(sums(theta, which), whole, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)

    def test_agrees_with_the_processor(self, engine, rng):
        features, starts = rng.normal(size=(2, 9000)), np.array([0, 100, 3000, 9000])
        case = features, rng.random(9000), rng.random(9000), starts
        theta, which = rng.normal(size=(2, 3)), np.array([2, 0])
        ours, theirs = (sums(*case)(theta, which) for sums in (engine.logistic_sums, logistic_sums))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())

    def test_large_log_odds(self, engine):
        features, starts = np.array([[2000.0, -2000.0]]), np.array([0, 2])
        sums = engine.logistic_sums(features, np.array([0.0, 1.0]), np.ones(2), starts)
        loss, gradient, hessian = sums(np.array([[1.0, 0.0]]), np.array([0]))
        assert loss.tolist() == [4000]
        assert gradient.tolist() == [[4000, 0]]
        assert not hessian.any()
