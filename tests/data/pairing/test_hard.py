"""Hard imposters against going through all pairs one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal.data.pairing import imposters
from faircal.data.pairing.imposters import Pool, nearest


def brute_force(person, vectors, wanted, cap):
    """Every image's nearest stranger, the most similar first; then every second nearest, …."""
    similarity = vectors @ vectors.T
    ranked = []
    for i in range(len(person)):
        strangers = [j for j in range(len(person)) if person[j] != person[i]]
        strangers.sort(key=lambda j: (-similarity[i, j], j))
        ranked += [
            (rank, -similarity[i, j], min(i, j), max(i, j)) for rank, j in enumerate(strangers)
        ]
    kept, times = [], Counter()
    for _, _, i, j in sorted(ranked):
        couple = frozenset((int(person[i]), int(person[j])))
        if (i, j) not in kept and times[couple] < cap and len(kept) < wanted:
            kept.append((i, j))
            times[couple] += 1
    return kept


def found(person, vectors, wanted, cap, progress=lambda *step: None):
    person = np.asarray(person)
    pool = Pool(person, np.zeros_like(person), cap, vectors, progress, "fold 1")
    left, right = nearest(pool, wanted, np.random.default_rng(0))
    return list(zip(left.tolist(), right.tolist(), strict=True))


def test_by_hand():
    # Angles in degrees; people a a b b c.
    angle = np.radians([0, 50, 8, 90, 60])
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    person = [0, 0, 1, 1, 2]
    # First: 0→2 (8°), 1→4 (10°), 2→0, 3→4 (30°), 4→1. Then: 1→3 (40°), 1 and 3 the same pair.
    assert found(person, vectors, 3, 9) == [(0, 2), (1, 4), (3, 4)]
    assert found(person, vectors, 4, 9)[3] == (1, 3)
    # With one pair a couple, a and b have had theirs.
    assert found(person, vectors, 9, 1) == [(0, 2), (1, 4), (3, 4)]


@given(
    st.integers(0, 999),
    st.integers(2, 24),
    st.integers(1, 80),
    st.integers(1, 5),
    st.sampled_from([1, 3]),
)
def test_against_brute_force(seed, n, wanted, cap, values):
    # Small whole numbers: products are exact, and there are many ties.
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-values, values + 1, size=(n, 3)).astype(np.float32)
    _, person = np.unique(rng.integers(6, size=n), return_inverse=True)
    assert found(person, vectors, wanted, cap) == brute_force(person, vectors, wanted, cap)


@pytest.mark.parametrize("wanted", [30, 300, 10**6])
@pytest.mark.parametrize("alike", [False, True])
def test_blocks_change_nothing(monkeypatch, wanted, alike):
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(12), 8)
    vectors = rng.integers(-9, 10, size=(96, 4)).astype(np.float32)
    if alike:  # neighbours come person by person: the search has to go deeper
        vectors = 100 * vectors[person] + rng.integers(-1, 2, size=(96, 4)).astype(np.float32)
    expected = brute_force(person, vectors, wanted, 3)
    assert found(person, vectors, wanted, 3) == expected
    monkeypatch.setattr(imposters, "_ROWS", 7)
    monkeypatch.setattr(imposters, "_RANKS", 5)
    steps = []
    assert found(person, vectors, wanted, 3, lambda *step: steps.append(step)) == expected
    assert steps[0] == ("looking for similar strangers", 0, 14, "fold 1")
    assert steps[-1] == ("looking for similar strangers", 14, 14, "fold 1")
