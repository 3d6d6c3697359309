"""The gallery in memory against a plain search over all vectors."""

from __future__ import annotations

import numpy as np
import pytest

from faircal.production.serving.store import vector_index as module
from faircal.production.serving.store.vector_index import VectorIndex


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "INDEX_BLOCK", 8)


def plain(kept, probe, limit):
    found = [
        (name, float(vector @ probe / np.linalg.norm(vector) / np.linalg.norm(probe)))
        for name, vector in kept.values()
    ]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]


def test_it_finds_what_a_plain_search_finds_whatever_came_and_went():
    random = np.random.default_rng(0)
    gallery, kept, number = VectorIndex(), {}, 0
    for _ in range(60):
        count = int(random.integers(1, 20))
        vectors = random.normal(size=(count, 5)).astype(np.float32)
        numbers = list(range(number, number + count))
        names = [f"t{each}" for each in numbers]
        gallery.add(numbers, names, vectors)
        kept |= dict(zip(numbers, zip(names, vectors, strict=True), strict=True))
        number += count
        gone = random.choice(list(kept), size=int(random.integers(0, len(kept) + 1)) // 2 or 1)
        gallery.remove([*gone.tolist(), 10**9])
        for each in set(gone.tolist()):
            del kept[each]
        assert len(gallery) == len(kept)
        probe = random.normal(size=5).astype(np.float32)
        found, expected = gallery.search(probe, 7), plain(kept, probe, 7)
        assert [name for name, _ in found] == [name for name, _ in expected]
        np.testing.assert_allclose(
            [cosine for _, cosine in found], [cosine for _, cosine in expected], atol=1e-6
        )


def test_what_is_removed_is_overwritten():
    gallery = VectorIndex()
    gallery.add([1, 2, 3], ["a", "b", "c"], np.eye(3, dtype=np.float32) * 7)
    block = gallery._blocks[0]
    gallery.remove([1])
    np.testing.assert_array_equal(block[:3], [[0, 0, 1], [0, 1, 0], [0, 0, 0]])
    gallery.clear()
    assert not block.any()
    assert gallery.search(np.ones(3, np.float32), 5) == []


def test_equal_cosines_are_cut_by_id():
    gallery = VectorIndex()
    names = [f"t{number:02}" for number in range(30)]
    random = np.random.default_rng(1).permutation(30)
    gallery.add(
        list(range(30)), [names[each] for each in random], np.ones((30, 2), dtype=np.float32)
    )
    assert [name for name, _ in gallery.search(np.array([1, 0], np.float32), 4)] == names[:4]


def test_given_vectors_stay_as_they_are():
    vectors = np.array([[1, 0], [0, 1]], dtype=np.float32)
    VectorIndex().add([1, 2], ["a", "b"], vectors)
    np.testing.assert_array_equal(vectors, np.eye(2))
