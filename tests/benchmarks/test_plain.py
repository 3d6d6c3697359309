"""The plain version is right: what ours is held against must be FairCal."""

from __future__ import annotations

import numpy as np
import pytest

import faircal

plain = pytest.importorskip("benchmarks.plain")


@pytest.fixture(scope="module")
def cal_and_test():
    return faircal.simulate("small", seed=0).split(5)


@pytest.mark.parametrize("slope", [2.0, 12.0])
def test_an_exact_map_has_no_better_neighbour(slope):
    rng = np.random.default_rng(0)
    score = rng.uniform(-0.6, 0.9, 3000)
    genuine = rng.random(3000) < 1 / (1 + np.exp(-slope * (score - 0.2)))
    found = plain.exact_beta(score, genuine)

    def loss(a, b, c):
        p = plain.BetaMap(a, b, c)(score)
        return -np.mean(np.where(genuine, np.log(p), np.log1p(-p)))

    assert found.a >= 0
    assert found.b >= 0
    best = loss(found.a, found.b, found.c)
    for step in np.vstack([np.eye(3), -np.eye(3)]) * 1e-3:
        a, b, c = np.array([found.a, found.b, found.c]) + step
        if a >= 0 and b >= 0:
            assert loss(a, b, c) > best


def test_the_exact_version_is_faircal(cal_and_test):
    cal, test = cal_and_test
    model = faircal.FairCal(n_clusters=5).fit(cal)

    def codes(part):
        images, clusters, _ = model.image_clusters(part)
        cluster = np.zeros(len(part.images), dtype=np.int32)
        cluster[images] = clusters
        return cluster[part.pairs.left], cluster[part.pairs.right]

    exact = plain.exact_maps(cal.scores, cal.genuine, *codes(cal), 5)
    np.testing.assert_allclose(
        model.predict_proba(test), exact(test.scores, *codes(test)), rtol=0, atol=1e-6
    )


def test_the_objective_is_the_sum_of_squared_distances():
    points = np.array([[0, 0], [0, 1], [9, 9]], dtype=np.float32)
    centers = np.array([[0, 0.5], [9, 8]], dtype=np.float32)
    assert plain.objective(points, centers) == 0.25 + 0.25 + 1.0


def test_the_plain_version_saves_a_model(cal_and_test, tmp_path):
    cal, _ = cal_and_test
    found = plain.fit(
        cal.embeddings.vectors, cal.pairs.left, cal.pairs.right, cal.genuine, 3, tmp_path / "m.npz"
    )
    saved = np.load(tmp_path / "m.npz")
    assert saved["maps"].shape == (3, 3)
    assert (saved["sizes"] > 0).all()
    np.testing.assert_array_equal(saved["centers"], found.cluster_centers_)
