"""Drawn folds share no person."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal.data import Dataset, Images, Pairs, load
from faircal.data.columns import Column
from faircal.data.folds import draw_folds

PEOPLE = st.lists(st.integers(-1, 9), min_size=2, max_size=40)


def column(codes):
    return Column(np.array(codes, dtype=np.int32), tuple(f"p{i}" for i in range(10)))


def images(n, identity=None):
    return Images(pa.array(np.arange(n)), identity)


def pairs_among(rng, n_images, n_pairs):
    left, right = rng.integers(n_images, size=(2, n_pairs))
    return Pairs(left, right, rng.random(n_pairs) < 0.5)


@given(PEOPLE, st.integers(0, 99), st.integers(1, 200))
def test_identities_never_cross_folds(codes, seed, n_pairs):
    rng = np.random.default_rng(seed)
    pairs = pairs_among(rng, len(codes), n_pairs)
    fold, note = draw_folds(pairs, images(len(codes), column(codes)), seed)
    assert set(fold) <= {-1, 1, 2, 3, 4, 5}
    person = np.array(codes)
    for one in set(codes) - {-1}:
        seen = (person[pairs.left] == one) | (person[pairs.right] == one)
        assert len(set(fold[seen & (fold != -1)])) <= 1
    # An image of nobody known is a person of its own.
    for image in np.flatnonzero(person == -1):
        seen = (pairs.left == image) | (pairs.right == image)
        assert len(set(fold[seen & (fold != -1)])) <= 1
    assert f"{(fold == -1).sum()} of {n_pairs} pairs join people of two folds" in note
    assert f"seed {seed}" in note


@given(st.integers(0, 99))
def test_without_identities_genuine_pairs_make_people(seed):
    rng = np.random.default_rng(seed)
    pairs = pairs_among(rng, 60, 80)
    fold, note = draw_folds(pairs, images(60), seed)
    assert "genuine pairs (no identities)" in note
    assert (fold[pairs.genuine] != -1).all()
    for image in range(60):
        seen = ((pairs.left == image) | (pairs.right == image)) & (fold != -1)
        assert len(set(fold[seen])) <= 1


def test_without_identities_and_labels_images_are_people():
    pairs = Pairs(np.arange(0, 40, 2), np.arange(1, 40, 2), None)
    fold, note = draw_folds(pairs, images(40), 0)
    assert "images (no identities, no labels)" in note
    assert sorted(np.bincount(fold)[1:]) == [4] * 5


def separate_sets(n_sets, rng):
    """Pairs inside `n_sets` sets of four people, one image each."""
    left, right = (index.ravel() for index in np.triu_indices(4, 1))
    start = 4 * np.arange(n_sets)[:, None]
    left, right = (start + left).ravel(), (start + right).ravel()
    codes = np.arange(4 * n_sets, dtype=np.int32)
    people = Column(codes, tuple(f"p{i}" for i in codes))
    return Pairs(left, right, rng.random(len(left)) < 0.5), people


@pytest.mark.parametrize("n_sets", [5, 7, 50])
def test_no_pair_is_lost_where_people_form_separate_sets(n_sets):
    pairs, people = separate_sets(n_sets, np.random.default_rng(0))
    fold, note = draw_folds(pairs, images(4 * n_sets, people), 0)
    assert "0 of" in note
    sizes = np.bincount(fold, minlength=6)[1:]
    assert sizes.sum() == len(pairs)
    assert sizes.max() - sizes.min() <= 6  # a set


def test_pairs_across_folds_belong_to_none():
    """One connected crowd: pairs of two folds are marked −1."""
    rng = np.random.default_rng(0)
    pairs = pairs_among(rng, 100, 2000)
    people = Column(np.arange(100, dtype=np.int32), tuple(map(str, range(100))))
    fold, _ = draw_folds(pairs, images(100, people), 0)
    kept = np.bincount(fold[fold != -1], minlength=6)[1:]
    assert (kept > 0).all()
    assert 0.1 < kept.sum() / 2000 < 0.3  # a fifth meet in one fold


def test_seeded():
    pairs, people = separate_sets(50, np.random.default_rng(0))
    first, again, other = (draw_folds(pairs, images(200, people), seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_dataset_draws_folds_and_leaves_lost_pairs_out_of_both_parts():
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(40, 1)
    data = Dataset(
        embeddings=rng.normal(size=(40, 3)),
        pairs={"left": left, "right": right, "genuine": left // 2 == right // 2},
        attributes={"identity": np.arange(40) // 2},
        seed=5,
    )
    assert data.drawn_folds
    assert data.fold_names == [1, 2, 3, 4, 5]
    lost = int((data.pairs.fold == -1).sum())
    assert lost > 0
    for fold in data.fold_names:
        calibration, test = data.split(fold)
        assert len(calibration) + len(test) + lost == len(data)
        assert not set(calibration.used_images()) & set(test.used_images())
    assert "folds drawn: 5 identity-disjoint folds, seed 5" in data.notes[0]


def test_a_fold_of_minus_one_that_was_given_is_a_fold():
    data = Dataset(
        embeddings=np.eye(3),
        pairs={"left": [0, 1], "right": [1, 2], "genuine": [1, 0], "fold": [-1, 2]},
    )
    assert not data.drawn_folds
    assert data.fold_names == [-1, 2]


def test_a_score_table_without_people_says_that_folds_may_share_them(tmp_path):
    table = tmp_path / "scores.csv"
    rows = [f"{i % 2},{i / 50},p{i},q{i}" for i in range(40)]
    table.write_text("genuine,score,left_identity,right_identity\n" + "\n".join(rows) + "\n")
    assert "identity-disjoint" in load(table).notes[0]
    anonymous = ["genuine,score", *(row.rsplit(",", 2)[0] for row in rows)]
    table.write_text("\n".join(anonymous) + "\n")
    assert "a person may be in several folds" in load(table).notes[0]


def test_a_set_too_large_for_its_fold_is_cut_into_people():
    # Twenty people in one chain of 19 pairs, and five couples: a fold's share is 24 / 5 pairs.
    chain = np.arange(20)
    couples = np.arange(20, 30)
    left = np.concatenate([chain[:-1], couples[::2]])
    right = np.concatenate([chain[1:], couples[1::2]])
    fold, _ = draw_folds(Pairs(left, right, np.zeros(24, dtype=bool)), images(30), 0)
    assert (fold[:19] == -1).any()
    assert (fold[19:] != -1).all()
