"""K-means where the vectors are: the clusters of one machine, whatever the blocks and the tasks."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from faircal import ParameterError
from faircal.compute.clustering import kmeans as on_one_machine
from faircal.data.pair_sources import FolderParts
from faircal.data.types import Embeddings, Images
from faircal.production.spark import kmeans as module
from faircal.production.spark.gallery import SentGallery, SparkGallery, Tile
from faircal.production.spark.kmeans import kmeans


def clouds(n, d=6, k=7, seed=0, spread=0.3):
    """Vectors around `k` points."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(k, d))
    return (middle[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d))).astype(np.float32)


class Dealt(SparkGallery):
    """Images dealt to blocks at random."""

    name = where = "dealt"

    def __init__(self, vectors, n_blocks, seed=0, normalize=True):
        self.held = Embeddings(vectors, normalize)
        block = np.random.default_rng(seed).integers(n_blocks, size=len(vectors))
        self.rows = [np.flatnonzero(block == number) for number in range(n_blocks)]

    @property
    def images(self):
        return Images(pa.array(range(len(self.held))))

    @property
    def features(self):
        return {"f": Embeddings(self.held.vectors[:0], self.held.normalize)}

    @property
    def block_sizes(self):
        return np.array([len(rows) for rows in self.rows])

    def tile(self, i, j):
        assert i == j
        rows = self.rows[i]
        some = Embeddings(self.held.vectors[rows], self.held.normalize)
        return Tile(rows, self.images, {"f": some})


class Here:
    """As much of Spark as K-means asks for, in this process."""

    def __init__(self, n_cores=2):
        self.sparkContext = SimpleNamespace(broadcast=self.broadcast, defaultParallelism=n_cores)
        self.held, self.jobs, self.tasks = 0, 0, []

    def broadcast(self, value):
        self.held += 1

        def destroy():
            self.held -= 1

        return SimpleNamespace(value=value, destroy=destroy)

    def range(self, start, stop, step, tasks):
        def run(work, schema):
            self.jobs += 1
            self.tasks.append(tasks)
            numbers = np.random.default_rng(self.jobs).permutation(stop)  # tasks end in any order
            batches = [pa.record_batch({"id": [number]}) for number in numbers.tolist()]
            rows = [row for batch in work(iter(batches)) for row in batch.to_pylist()]
            found = [Row((row["number"], row["state"])) for row in rows]
            return SimpleNamespace(collect=lambda: found)

        return SimpleNamespace(mapInArrow=run)


class Row(tuple):
    state = property(lambda self: self[1])


@pytest.fixture
def here():
    made = Here()
    yield made
    assert made.held == 0  # nothing stays on the workers


def clustered(spark, vectors, k, n_blocks=4, images=None, normalize=True, **options):
    gallery = Dealt(vectors, n_blocks, normalize=normalize)
    rows = np.arange(len(vectors)) if images is None else images
    found = kmeans(spark, gallery, "f", rows, k, **options)
    expected = on_one_machine(gallery.held.rows(rows), k, **options)
    return found, expected


def assert_same(found, expected):
    np.testing.assert_allclose(found.centers, expected.centers, rtol=0, atol=1e-6)
    assert found.centers.dtype == np.float32
    assert found.inertia == pytest.approx(expected.inertia, rel=1e-6)


class TestAsOnOneMachine:
    @pytest.mark.parametrize("seed", range(4))
    def test_clusters(self, here, seed):
        found, expected = clustered(here, clouds(3000, seed=seed), 7, random_state=seed)
        assert_same(found, expected)
        assert found.n_iter == expected.n_iter

    @pytest.mark.parametrize("n_blocks", [1, 3, 40])
    def test_whatever_the_blocks(self, here, n_blocks):
        assert_same(*clustered(here, clouds(900), 5, n_blocks, random_state=3))

    def test_of_a_sample(self, here):
        """Among more points the start is chosen from some of them, which are fetched."""
        assert_same(*clustered(here, clouds(20_000), 7, random_state=2))

    def test_only_images_in_use(self, here):
        vectors, images = clouds(2000), np.arange(0, 2000, 3)
        vectors[1::3] = np.nan
        assert_same(*clustered(here, vectors, 7, images=images))

    def test_the_best_of_some_starts(self, here):
        vectors = clouds(1500, k=12, spread=0.6)
        found, expected = clustered(here, vectors, 12, n_init=4, random_state=5)
        assert found.inertia == pytest.approx(expected.inertia, rel=1e-4)
        one, _ = clustered(here, vectors, 12, random_state=5)
        assert found.inertia < one.inertia

    def test_vectors_as_stored(self, here):
        assert_same(*clustered(here, 5 * clouds(800) + 3, 7, normalize=False))

    def test_no_more_iterations_than_told(self, here):
        found, expected = clustered(here, clouds(2000, spread=0.8), 9, max_iter=3)
        assert_same(found, expected)
        assert found.n_iter == expected.n_iter == 3

    def test_one_cluster(self, here):
        assert_same(*clustered(here, clouds(500), 1))

    def test_a_cluster_each(self, here):
        found, _ = clustered(here, clouds(6), 6)
        assert found.inertia == pytest.approx(0, abs=1e-9)

    def test_more_clusters_than_images(self, here):
        with pytest.raises(ParameterError, match=r"expected 1 to 5 \(the number of images\)"):
            clustered(here, clouds(5), 6)


def test_neither_cores_nor_the_order_of_tasks_change_a_bit():
    vectors = clouds(4000, spread=0.8)
    found = [clustered(Here(n_cores), vectors, 9, n_blocks=30)[0] for n_cores in (1, 7)]
    np.testing.assert_array_equal(found[0].centers, found[1].centers)
    assert found[0].inertia == found[1].inertia


def test_what_is_sent_is_bounded(here, monkeypatch):
    """With many blocks a task adds up several of them."""
    monkeypatch.setattr(module, "_SENT", 4 * 8 * 7 * 8)
    assert_same(*clustered(here, clouds(2000), 7, n_blocks=30))
    assert max(here.tasks) <= 4


def test_an_empty_cluster_gets_the_point_farthest_from_its_centre(here):
    """Two centres on one spot: one of them gets nothing, and then what is farthest from its own."""
    points = np.array([[0, 0], [0, 1], [9, 0], [9, 1], [30, 0]], np.float32)
    with ExitStack() as stack:
        gallery = Dealt(points, 2, normalize=False)
        made = module.VectorCloud.of(here, gallery, "f", np.arange(5), 3, stack)
        start = np.array([[0, 0], [0, 0], [9, 0]], np.float32) - made.mean
        found = module._lloyd(made, start, 10, 0.0, lambda _: None)
    centers = found.centers + made.mean
    np.testing.assert_allclose(sorted(centers.tolist()), [[0, 0.5], [9, 0.5], [30, 0]], atol=1e-5)
    assert found.inertia == pytest.approx(1.0)


def test_by_spark(spark):
    """Three blocks of 65,536 rows, in processes of Spark's: as here, to the last bit."""
    vectors = clouds(140_000, d=4)
    parts = FolderParts(Images(pa.array(range(140_000))), {"f": Embeddings(vectors)}, *"abc", None)
    images = np.flatnonzero(np.arange(140_000) % 5)
    found = kmeans(spark, SentGallery(parts), "f", images, 7, max_iter=3)
    again = kmeans(Here(), SentGallery(parts), "f", images, 7, max_iter=3)
    np.testing.assert_array_equal(found.centers, again.centers)
    assert (found.inertia, found.n_iter) == (again.inertia, again.n_iter)
    assert_same(found, on_one_machine(Embeddings(vectors).rows(images), 7, max_iter=3))
