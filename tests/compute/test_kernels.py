"""The inner loops, in NumPy and in Numba, against float64."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from faircal.compute import kernels
from faircal.compute.kernels import NumPyKernels


def load(name):
    return NumPyKernels if name == "numpy" else pytest.importorskip("faircal.compute._numba")


@pytest.fixture(params=["numpy", "numba"])
def kernel(request):
    return load(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def lengths(vectors):
    return np.linalg.norm(vectors.astype(np.float64), axis=1).astype(np.float32)


def cosine64(vectors, left, right):
    a, b = vectors[left].astype(np.float64), vectors[right].astype(np.float64)
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def distances(points, centers):
    gaps = points[:, None].astype(np.float64) - centers[None].astype(np.float64)
    return np.sqrt(np.square(gaps).sum(axis=2))


def squares(vectors):
    return np.square(vectors).sum(axis=1)


def test_numba_is_used_where_it_is_installed():
    assert kernels.settle is load("numba").settle


class TestCosines:
    def cosines(self, kernel, vectors, left, right, norms=None):
        out = np.full(len(left), 7.0)
        norms = lengths(vectors) if norms is None else norms
        if vectors.dtype == np.float16:
            kernel.half_cosines(vectors.view(np.uint16), norms, left, right, out)
        else:
            kernel.cosines(vectors, norms, left, right, out)
        return out

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    @pytest.mark.parametrize("dimension", [1, 7, 128, 512, 513])
    def test_against_float64(self, kernel, rng, dimension, dtype):
        vectors = rng.normal(size=(90, dimension)).astype(dtype)
        left, right = rng.integers(90, size=(2, 700))  # more than are gathered at a time
        found = self.cosines(kernel, vectors, left, right)
        np.testing.assert_allclose(found, cosine64(vectors, left, right), rtol=0, atol=1e-6)

    def test_every_finite_half(self, kernel):
        # 1 · x / (2^16 · 2^16): powers of two lose nothing.
        halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
        halves = halves[np.isfinite(halves)]
        assert len(halves) == 2 * 31 * 1024  # subnormal numbers and both zeros among them
        vectors = np.append(halves, np.float16(1))[:, None]
        norms = np.full(len(vectors), 2.0**16, dtype=np.float32)
        here = np.arange(len(halves))
        found = self.cosines(kernel, vectors, here, np.full_like(here, len(halves)), norms)
        np.testing.assert_array_equal(found * 2.0**32, halves.astype(np.float64))

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_a_vector_with_itself_is_not_beyond_1(self, kernel, rng, dtype):
        vectors = rng.normal(size=(2000, 33)).astype(dtype)
        vectors = np.concatenate([vectors, -vectors])
        norms = np.nextafter(lengths(vectors), np.float32(0))  # as rounding may leave them
        here = np.arange(2000)
        same = self.cosines(kernel, vectors, here, here, norms)
        assert same.max() == 1.0
        assert same.min() > 1 - 1e-6
        np.testing.assert_array_equal(
            self.cosines(kernel, vectors, here, here + 2000, norms), -same
        )

    def test_what_cannot_be_told_is_nan(self, kernel):
        vectors = np.array([[1, 2], [np.nan, 1], [np.inf, 1], [0, 0]], dtype=np.float32)
        norms = np.array([np.sqrt(5), np.nan, np.inf, 0], dtype=np.float32)
        left, right = np.array([0, 1, 2, 2, 3]), np.array([1, 0, 0, 2, 0])
        with np.errstate(invalid="ignore"):
            assert np.isnan(self.cosines(kernel, vectors, left, right, norms)).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_what_cannot_be_written_to_is_read(self, kernel, rng, dtype):
        vectors = rng.normal(size=(50, 20)).astype(dtype)
        norms = lengths(vectors)
        left, right = rng.integers(50, size=(2, 60))
        expected = self.cosines(kernel, vectors, left, right, norms)
        for array in (vectors, norms, left, right):
            array.flags.writeable = False
        np.testing.assert_array_equal(self.cosines(kernel, vectors, left, right, norms), expected)

    def test_no_pairs(self, kernel, rng):
        none = np.empty(0, dtype=np.intp)
        assert len(self.cosines(kernel, np.ones((2, 3), np.float32), none, none)) == 0

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_vectors_in_any_order_to_the_last_digit(self, kernel, rng, dtype, monkeypatch):
        monkeypatch.setattr(kernels, "cosines", kernel.cosines)
        monkeypatch.setattr(kernels, "half_cosines", kernel.half_cosines)
        wide = rng.normal(size=(80, 2 * 45)).astype(dtype)
        vectors = np.ascontiguousarray(wide[:, ::2])
        left, right = rng.integers(80, size=(2, 600))
        expected = self.cosines(kernel, vectors, left, right)
        for other in (np.asfortranarray(vectors), wide[:, ::2]):
            assert not other.flags.c_contiguous
            found = np.empty(600)
            kernels.cosines_of_any(other, lengths(vectors), left, right, found)
            np.testing.assert_array_equal(found, expected)


def make(rng, n=400, n_clusters=17, dimension=9):
    """Points, centres, and bounds that nobody has worked out yet."""
    points = rng.normal(size=(n, dimension)).astype(np.float32)
    centers = rng.normal(size=(n_clusters, dimension)).astype(np.float32)
    return SimpleNamespace(
        points=points,
        centers=centers,
        squares=squares(points),
        travel=np.zeros(n_clusters, dtype=np.float32),
        labels=np.full(n, -1, dtype=np.int32),
        upper=np.full(n, -1, dtype=np.float32),
        second=np.full(n, -1, dtype=np.float32),
        lower=np.full((n, n_clusters), -1, dtype=np.float32),
    )


def settle(kernel, it, rows):
    products = it.points[rows] @ it.centers.T
    bounds = it.labels, it.upper, it.second, it.lower
    kernel.settle(rows, products, it.squares, squares(it.centers), it.travel, *bounds)


def doubtful(kernel, it, rows, slack):
    return kernel.doubtful(
        rows,
        it.points,
        it.squares,
        it.centers,
        squares(it.centers),
        it.travel,
        slack,
        it.labels,
        it.upper,
        it.second,
        it.lower,
    )


class TestSettle:
    @pytest.mark.parametrize("n_clusters", [1, 2, 17, 64])
    def test_against_float64(self, kernel, rng, n_clusters):
        it = make(rng, n_clusters=n_clusters)
        it.travel = rng.random(n_clusters).astype(np.float32)
        rows = np.sort(rng.choice(400, 250, replace=False))
        settle(kernel, it, rows)
        expected = distances(it.points, it.centers)[rows]
        nearest = expected.argmin(axis=1)
        np.testing.assert_array_equal(it.labels[rows], nearest)
        np.testing.assert_allclose(it.upper[rows], expected.min(axis=1), rtol=0, atol=2e-6)
        expected[np.arange(250), nearest] = np.inf
        np.testing.assert_allclose(it.second[rows], expected.min(axis=1), rtol=0, atol=2e-6)
        np.testing.assert_allclose(it.lower[rows], expected + it.travel, rtol=0, atol=3e-6)

    def test_other_rows_are_left_alone(self, kernel, rng):
        it = make(rng)
        rows = np.arange(0, 400, 3)
        settle(kernel, it, rows)
        others = np.setdiff1d(np.arange(400), rows)
        for kept in (it.labels, it.upper, it.second, it.lower):
            assert (kept[others] == -1).all()
            assert not (kept[rows] == -1).any()

    def test_the_first_of_equal_centers(self, kernel):
        points = np.array([[0.0, 0.0], [2.0, 0.0], [-2.0, 1.0]], dtype=np.float32)
        it = make(np.random.default_rng(0), n=3, n_clusters=4, dimension=2)
        it.points, it.squares = points, squares(points)
        it.centers = np.array([[5, 0], [1, 0], [-1, 0], [1, 0]], dtype=np.float32)
        settle(kernel, it, np.arange(3))
        assert it.labels.tolist() == [1, 1, 2]
        assert it.second.tolist() == [1.0, 1.0, np.sqrt(np.float32(10))]

    def test_rounding_below_zero(self, kernel):
        # A product a little too large must not leave the root of a negative number.
        it = make(np.random.default_rng(0), n=1, n_clusters=2, dimension=1)
        it.squares = np.array([1.0], dtype=np.float32)
        products = np.array([[1.000001, 1.0000005]], dtype=np.float32)
        ones = np.ones(2, dtype=np.float32)
        kernel.settle(
            np.arange(1),
            products,
            it.squares,
            ones,
            it.travel,
            it.labels,
            it.upper,
            it.second,
            it.lower,
        )
        assert (it.labels[0], it.upper[0], it.second[0], it.lower[0, 1]) == (0, 0, 0, 0)


class TestDoubtful:
    SLACK = 1e-4

    def drift(self, rng, it, far):
        """Move the centres by up to `far`, and the bounds with them, as `kmeans` does."""
        before = it.centers
        step = rng.normal(size=before.shape) * far * rng.random((len(before), 1))
        it.centers = (before + step).astype(np.float32)
        drift = np.sqrt(squares(it.centers - before))
        it.travel = it.travel + drift
        it.upper += drift[it.labels]
        it.second -= drift.max()

    @pytest.mark.parametrize("far", [0.001, 0.02, 0.3])
    def test_bounds_hold_and_nothing_is_missed(self, kernel, rng, far):
        it = make(rng)
        settle(kernel, it, np.arange(400))
        missed = spared = 0
        for _ in range(12):
            self.drift(rng, it, far)
            rows = np.flatnonzero(it.second < it.upper + self.SLACK)
            near = doubtful(kernel, it, rows, self.SLACK)
            assert near.dtype == bool
            assert near.shape == rows.shape
            true = distances(it.points, it.centers)
            here = np.arange(400), it.labels
            own = true[here]
            assert (it.upper >= own - 1e-5).all()
            true[here] = np.inf
            assert (it.lower - it.travel <= true + 1e-5).all()
            assert (it.second <= true.min(axis=1) + 1e-5).all()
            # Those whose bounds met have had their own distance worked out.
            met = rows[near]
            np.testing.assert_allclose(it.upper[met], own[met], rtol=0, atol=1e-5)
            changed = true.min(axis=1) < own
            calm = np.ones(400, dtype=bool)
            calm[met] = False
            missed += (changed & calm).sum()
            spared += calm.sum()
            settle(kernel, it, met)
            np.testing.assert_array_equal(
                it.labels, distances(it.points, it.centers).argmin(axis=1)
            )
        assert missed == 0
        if far < 0.1:
            assert spared > 1000  # of 4800: bounds are of use

    def test_numpy_and_numba_agree(self):
        found = []
        for name in ("numpy", "numba"):
            rng = np.random.default_rng(3)
            kernel, it = load(name), make(np.random.default_rng(4))
            settle(kernel, it, np.arange(400))
            self.drift(rng, it, 0.05)
            rows = np.flatnonzero(it.second < it.upper + self.SLACK)
            found.append((rows, doubtful(kernel, it, rows, self.SLACK), it))
        (rows, near, one), (others, too, two) = found
        np.testing.assert_array_equal(rows, others)
        np.testing.assert_array_equal(near, too)
        assert 0 < near.sum() < len(near)
        np.testing.assert_allclose(one.upper, two.upper, rtol=0, atol=1e-5)
        np.testing.assert_allclose(one.second, two.second, rtol=0, atol=1e-5)

    def test_by_hand(self, kernel):
        # Centres at 0 and 10; points at 1, 4 and 5.5. The first centre moves on to −1, the
        # second to 9: nearest now are the first, the first (5 each) and the second.
        it = make(np.random.default_rng(0), n=3, n_clusters=2, dimension=1)
        it.points = np.array([[1.0], [4.0], [5.5]], dtype=np.float32)
        it.squares = squares(it.points)
        it.centers = np.array([[0.0], [10.0]], dtype=np.float32)
        settle(kernel, it, np.arange(3))
        assert it.labels.tolist() == [0, 0, 1]
        assert it.second.tolist() == [9.0, 6.0, 5.5]
        it.centers = np.array([[-1.0], [9.0]], dtype=np.float32)
        it.travel = np.ones(2, dtype=np.float32)
        it.upper += 1
        near = doubtful(kernel, it, np.arange(3), 0.01)
        assert near.tolist() == [False, True, False]
        assert it.second.tolist() == [8.0, 5.0, 4.5]
        # The bound of 2 on the first was enough; the other two had their distance worked out.
        assert it.upper.tolist() == [2.0, 5.0, 3.5]

    def test_no_rows(self, kernel, rng):
        it = make(rng)
        settle(kernel, it, np.arange(400))
        near = doubtful(kernel, it, np.empty(0, dtype=np.intp), 0.1)
        assert near.shape == (0,)
        assert near.dtype == bool


def test_without_numba(python):
    """All of it works, with the same numbers up to rounding."""
    script = """
        import numpy as np
        from faircal.compute import CPU
        from faircal.compute import kernels
        from faircal.data import Embeddings
        rng = np.random.default_rng(0)
        middle = rng.normal(size=(8, 12))
        vectors = (middle[rng.integers(8, size=900)] + 0.3 * rng.normal(size=(900, 12)))
        vectors = vectors.astype(np.float32)
        left, right = rng.integers(900, size=(2, 40000))
        found = CPU.kmeans(vectors, 20, n_init=3)
        print(kernels.settle.__module__, found.n_iter)
        numbers = [found.inertia, *found.centers.ravel().tolist()]
        for of in (vectors, vectors.astype(np.float16), np.asfortranarray(vectors)):
            numbers += Embeddings(of).cosine(left, right)[::100].tolist()
        print(CPU.assign(vectors, found.centers).tolist())
        print(numbers)
    """
    pytest.importorskip("numba")
    outcomes = [python(script, without=names).splitlines() for names in ((), ("numba",))]
    (head, labels, numbers), (other_head, other_labels, other_numbers) = outcomes
    assert head.split()[0] == "faircal.compute._numba"
    assert other_head.split()[0] == "faircal.compute.kernels"
    assert head.split()[1] == other_head.split()[1]
    assert labels == other_labels
    one, two = (
        np.array(text.strip("[]").split(", "), dtype=float) for text in (numbers, other_numbers)
    )
    assert len(one) == 1 + 20 * 12 + 3 * 400
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def profiles(rng, n, n_components):
    """Own shift and tilt of images, how likely components make them, and their partners'."""
    likely = rng.random((n, n_components)) ** 4
    coupling = rng.random((n_components, n_components))
    return np.hstack([rng.normal(size=(n, 2)), likely, likely @ (coupling + coupling.T)])


def tilts(kernel, *arguments):
    shift, tilt = np.full((2, len(arguments[2])), 7.0)
    kernel.tilts(*arguments, shift, tilt)
    return np.stack([shift, tilt])


def written_out(profiles, effects, left, right):
    n = effects.shape[1]
    found = []
    for i, k in zip(left, right, strict=True):
        a, b = profiles[i], profiles[k]
        share = [a[2 + j] * b[2 + n + j] + a[2 + n + j] * b[2 + j] for j in range(n)]
        for row in range(2):
            effect = sum(share[j] * effects[row, j] for j in range(n)) / (sum(share) or 1.0)
            found.append((a[row] + b[row]) / 2 + effect)
    return np.reshape(found, (-1, 2)).T


@pytest.mark.parametrize("n_components", [0, 1, 2, 7, 32])
def test_against_a_plain_loop(kernel, rng, n_components):
    images, effects = profiles(rng, 40, n_components), rng.normal(size=(2, n_components))
    left, right = rng.integers(40, size=(2, 600))  # more than are gathered at a time
    found = tilts(kernel, images, effects, left, right)
    expected = written_out(images, effects, left, right)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_components", [0, 1, 7, 32])
def test_left_and_right_are_the_same_to_the_last_bit(kernel, rng, n_components):
    images, effects = profiles(rng, 40, n_components), rng.normal(size=(2, n_components))
    left, right = rng.integers(40, size=(2, 600))
    one, two = (tilts(kernel, images, effects, *s) for s in ((left, right), (right, left)))
    np.testing.assert_array_equal(one, two)


def test_without_components_the_mean_of_both_images(kernel):
    images = np.array([[1.0, 2.0], [3.0, -4.0]])
    rows = np.array([0, 0]), np.array([1, 0])
    np.testing.assert_array_equal(
        tilts(kernel, images, np.empty((2, 0)), *rows), [[2.0, 1.0], [-1.0, 2.0]]
    )


def test_effects_of_a_component_that_both_are_surely_in(kernel):
    # Components 1 and 2 are never coupled; both images are in the second.
    images = np.array([[0.5, 0.0, 0.0, 1.0, 0.0, 0.5]])
    here = np.array([0])
    found = tilts(kernel, images, np.array([[10.0, 3.0], [20.0, -4.0]]), here, here)
    np.testing.assert_array_equal(found, [[3.5], [-4.0]])


def test_how_likely_is_a_matter_of_proportion(kernel, rng):
    images, effects = profiles(rng, 30, 5), rng.normal(size=(2, 5))
    left, right = rng.integers(30, size=(2, 100))
    expected = tilts(kernel, images, effects, left, right)
    images[:, 2:] *= 2.0 ** rng.integers(-300, 300, size=(30, 1))  # loses no digit
    found = tilts(kernel, images, effects, left, right)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_cannot_be_written_to_is_read(kernel, rng):
    arrays = profiles(rng, 20, 3), rng.normal(size=(2, 3)), *rng.integers(20, size=(2, 30))
    expected = tilts(kernel, *arrays)
    for array in arrays:
        array.flags.writeable = False
    np.testing.assert_array_equal(tilts(kernel, *arrays), expected)


def test_no_pairs(kernel, rng):
    none = np.empty(0, dtype=np.intp)
    assert tilts(kernel, profiles(rng, 2, 3), np.ones((2, 3)), none, none).shape == (2, 0)
