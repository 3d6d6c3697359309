"""Images among the centres of everybody else's, against working it out by hand."""

import numpy as np

from faircal.compute import CPU
from faircal.production.monitoring.population import place_without_own


def test_it_is_the_nearest_mean_of_other_peoples_images():
    rng = np.random.default_rng(0)
    people = rng.integers(12, size=150)
    vectors = rng.normal(size=(150, 6)).astype(np.float32)
    vectors += 2 * rng.normal(size=(12, 6)).astype(np.float32)[people]
    found = CPU.kmeans(vectors, 7, max_iter=300, tol=0.0)
    own = CPU.assign(vectors, found.centers)
    placed = place_without_own(vectors, people, found.centers, vectors[::3], people[::3])
    for row, image in enumerate(range(0, 150, 3)):
        others = people != people[image]
        apart = [
            np.linalg.norm(vectors[image] - vectors[others & (own == k)].mean(axis=0))
            if (others & (own == k)).any()
            else np.inf
            for k in range(7)
        ]
        assert placed.cluster[row] == int(np.argmin(apart))
        np.testing.assert_allclose(placed.distance[row], min(apart), rtol=1e-3)


def test_a_stranger_is_held_against_the_centres_as_they_are():
    vectors = np.array([[0, 0], [0, 2], [9, 9], [9, 7]], np.float32)
    centers = np.array([[0, 1], [9, 8]], np.float32)
    found = place_without_own(
        vectors, np.array([0, 1, 2, 3]), centers, np.array([[0, 1.5]], np.float32), np.array([9])
    )
    assert found.cluster.tolist() == [0]
    np.testing.assert_allclose(found.distance, [0.5])


def test_where_there_is_nobody_else_ones_own_images_count():
    vectors = np.array([[0, 0], [0, 2]], np.float32)
    found = place_without_own(
        vectors, np.zeros(2, int), np.array([[0, 1]], np.float32), vectors, np.zeros(2, int)
    )
    assert found.distance.tolist() == [1, 1]
