"""What is asked of the processor: cosines of pairs, in blocks, however vectors are stored."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from faircal._base.errors import DataError
from faircal.compute import CPU, engine
from faircal.compute import kmeans as lloyd
from faircal.compute.engine import Nearest

MODULE = sys.modules["faircal.compute.engine"]  # whose name in the package is the function's


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blocks_of_100(monkeypatch):
    monkeypatch.setattr(MODULE, "_BLOCK", 100)


def lengths(vectors):
    return np.linalg.norm(vectors.astype(np.float64), axis=1).astype(np.float32)


def cosine64(vectors, left, right):
    a, b = vectors[left].astype(np.float64), vectors[right].astype(np.float64)
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def cosines(vectors, left, right):
    return CPU.cosines(vectors, lengths(vectors), left, right)


def test_the_processor_by_its_name():
    assert engine("cpu") is CPU


class TestCosines:
    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    @pytest.mark.parametrize("n_pairs", [1, 16384, 16385, 40000])
    def test_against_float64(self, rng, dtype, n_pairs):
        vectors = rng.normal(size=(300, 24)).astype(dtype)
        left, right = rng.integers(300, size=(2, n_pairs))
        found = cosines(vectors, left, right)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, cosine64(vectors, left, right), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_however_they_are_stored(self, rng, dtype, tmp_path, blocks_of_100):
        wide = rng.normal(size=(300, 60)).astype(dtype)
        vectors = np.ascontiguousarray(wide[:, :30])
        left, right = rng.integers(300, size=(2, 950))
        expected = cosines(vectors, left, right)
        np.save(tmp_path / "rows.npy", vectors)
        np.save(tmp_path / "columns.npy", np.asfortranarray(vectors))
        rows, columns = (
            np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("rows", "columns")
        )
        assert not (rows.flags.writeable or columns.flags.c_contiguous)
        others = (rows, columns, np.asfortranarray(vectors), wide[:, :30], vectors[::-1][::-1])
        for other in others:
            np.testing.assert_array_equal(cosines(other, left, right), expected)

    def test_every_second_row(self, rng):
        vectors = rng.normal(size=(80, 5)).astype(np.float32)
        left, right = rng.integers(40, size=(2, 200))
        found = cosines(vectors[::2], left, right)
        np.testing.assert_array_equal(found, cosines(vectors[::2].copy(), left, right))

    def test_however_rows_are_numbered(self, rng):
        vectors = rng.normal(size=(80, 5)).astype(np.float32)
        pairs = rng.integers(80, size=(200, 2))
        expected = cosines(vectors, *np.ascontiguousarray(pairs.T))
        fixed = pairs.copy()
        fixed.flags.writeable = False
        for numbers in (pairs, pairs.astype(np.int32), pairs.astype(np.uint8), fixed):
            found = cosines(vectors, numbers[:, 0], numbers[:, 1])
            np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(("row", "found"), [(10, "0 to 10"), (-1, "-1 to 9"), (10**9, "0 to")])
    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_a_row_that_is_not_there(self, order, side, row, found):
        vectors = np.ones((10, 3), dtype=np.float32, order=order)
        pairs = np.stack([np.arange(10), np.arange(10)])
        pairs[side, 4] = row
        with pytest.raises(DataError, match=f"rows: expected numbers from 0 to 9, found {found}"):
            cosines(vectors, *pairs)

    def test_no_pairs(self):
        none = np.empty(0, dtype=np.intp)
        assert cosines(np.ones((3, 2), np.float32), none, none).shape == (0,)

    def test_number_of_threads(self, rng, use_threads, blocks_of_100):
        vectors = rng.normal(size=(300, 24)).astype(np.float32)
        left, right = rng.integers(300, size=(2, 5000))
        found = []
        for count in (1, 2, 3):
            use_threads(count)
            found.append(cosines(vectors, left, right).tobytes())
        assert len(set(found)) == 1

    def test_several_callers(self, rng, use_threads, blocks_of_100):
        use_threads(2)
        vectors = rng.normal(size=(300, 24)).astype(np.float32)
        lefts, rights = rng.integers(300, size=(2, 6, 2000))
        expected = [cosines(vectors, *sides) for sides in zip(lefts, rights, strict=True)]
        with ThreadPoolExecutor(4) as callers:
            found = list(callers.map(lambda i: cosines(vectors, lefts[i], rights[i]), range(6)))
        np.testing.assert_array_equal(found, expected)


def test_kmeans_and_assignment_are_those_of_the_processor(rng):
    points = rng.normal(size=(400, 5)).astype(np.float32)
    options = {"n_init": 2, "max_iter": 50, "shift": 0.0}
    found = CPU.best_start(points, 6, rng=np.random.default_rng(3), **options)
    expected = lloyd.kmeans(points, 6, rng=np.random.default_rng(3), **options)
    np.testing.assert_array_equal(found.centers, expected.centers)
    assert found[1:] == expected[1:]
    np.testing.assert_array_equal(
        CPU.assign(points, found.centers), Nearest.of(found.centers)(points)
    )


RNG = np.random.default_rng(0)


def exactly(vectors, centers):
    """Return the nearest centre by distances in long double precision."""
    x, c = vectors.astype(np.longdouble), centers.astype(np.longdouble)
    return np.stack([((x - one) ** 2).sum(axis=1) for one in c]).argmin(axis=0)


@pytest.mark.parametrize("away", [0.0, 0.3, 30.0])
def test_between_two_centres(away):
    """Vectors within rounding of half-way; `away` is how far everything is from the origin."""
    rng = np.random.default_rng(0)
    centers = (rng.standard_normal((12, 40)) / 8 + away).astype(np.float32)
    one, other = centers[rng.integers(12, size=(2, 5000))].astype(np.float64)
    middle = (one + other) / 2 + 1e-7 * rng.standard_normal((5000, 1)) * (one - other)
    vectors = middle.astype(np.float32)
    assert (Nearest.of(centers)(vectors) == exactly(vectors, centers)).all()


def test_first_of_equals():
    centers = np.array([[1, 0], [1, 0], [-1, 0]], np.float32)
    vectors = np.array([[1, 0], [0, 1], [-2, 1]], np.float32)
    assert Nearest.of(centers)(vectors).tolist() == [0, 0, 2]


@pytest.mark.parametrize("n", [0, 1, 3000])
def test_any_number_and_one_centre(n):
    vectors = np.ones((n, 3), np.float32)
    assert Nearest.of(np.zeros((1, 3), np.float32))(vectors).tolist() == [0] * n


def test_double_precision_decides_what_single_cannot():
    """Half way between two centres but for a hair: single precision sees none."""
    centers = RNG.normal(size=(2, 256)).astype(np.float32)
    middle = centers.mean(axis=0, dtype=np.float64)
    towards = (centers[1] - centers[0]).astype(np.float64)
    shifts = RNG.normal(size=400) * 1e-7
    vectors = (middle + shifts[:, None] * towards).astype(np.float32)
    exact = ((vectors[:, None].astype(np.float64) - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert 50 < exact.sum() < 350
    np.testing.assert_array_equal(Nearest.of(centers)(vectors), exact)


def test_it_does_not_matter_who_is_looked_at_together():
    centers = RNG.normal(size=(50, 128)).astype(np.float32)
    vectors = RNG.normal(size=(1500, 128)).astype(np.float32)
    nearest = Nearest.of(centers)
    whole = nearest(vectors)
    assert all(nearest(vectors[i : i + 1])[0] == whole[i] for i in range(0, 1500, 50))
