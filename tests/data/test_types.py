"""Embeddings, pairs and features."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from faircal._base.errors import DataError
from faircal.compute import CPU
from faircal.data import Dataset, Embeddings, Feature, Groups, Images, Pairs
from faircal.data.columns import Column
from faircal.data.types import cross

VECTORS = np.random.default_rng(1).normal(size=(40, 7)).astype(np.float32)


def cosine64(vectors, left, right):
    a, b = vectors[left].astype(np.float64), vectors[right].astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize(
    ("given_as", "kept_as"),
    [(np.float16, np.float16), (np.float32, np.float32), (np.float64, np.float32)],
)
def test_dtype(given_as, kept_as):
    made = Embeddings.of(VECTORS.astype(given_as), "here")
    assert made.vectors.dtype == kept_as
    assert made.rows(np.arange(3)).dtype == np.float32
    assert made.norms.dtype == np.float32
    assert made.cosine(np.arange(3), np.arange(3)).dtype == np.float64
    assert (len(made), made.dimension) == (40, 7)


def test_float32_is_not_copied():
    assert Embeddings.of(VECTORS, "here").vectors is VECTORS


@pytest.mark.parametrize(
    ("vectors", "found"),
    [
        (np.zeros(3, np.float32), r"shape \(3,\)"),
        (np.zeros((2, 3, 4), np.float32), r"shape \(2, 3, 4\)"),
        (np.zeros((3, 0), np.float32), r"shape \(3, 0\)"),
        (np.zeros((3, 2), int), "int64"),
        (np.zeros((3, 2), complex), "complex128"),
        ([["a", "b"]], "<U1"),
        ([[1.0], [1.0, 2.0]], "unequal"),
    ],
)
def test_refused(vectors, found):
    with pytest.raises(DataError, match=f"here: expected .*{found}"):
        Embeddings.of(vectors, "here")


def test_too_large_for_float32_becomes_infinite_in_silence():
    made = Embeddings.of(np.array([[1e300, 0.0], [1.0, 0.0]]), "here")
    assert np.isinf(made.norms).tolist() == [True, False]


def test_rows_are_of_unit_length_unless_told():
    rows = np.array([5, 0, 5])
    made = Embeddings.of(VECTORS, "here")
    np.testing.assert_allclose(np.linalg.norm(made.rows(rows), axis=1), 1, rtol=1e-6)
    stored = Embeddings.of(VECTORS, "here", normalize=False)
    np.testing.assert_array_equal(stored.rows(rows), VECTORS[rows])
    # a cosine is a cosine either way
    np.testing.assert_array_equal(stored.cosine(rows, rows[::-1]), made.cosine(rows, rows[::-1]))


def test_cosine_against_float64():
    rng = np.random.default_rng(2)
    left, right = rng.integers(40, size=(2, 3000))  # more than one block
    found = Embeddings.of(VECTORS, "here").cosine(left, right)
    np.testing.assert_allclose(found, cosine64(VECTORS, left, right), atol=5e-7)


@given(
    arrays(np.float32, (4, 3), elements=st.floats(-1000, 1000, width=32)).filter(
        lambda a: (np.abs(a).max(1) > 1e-3).all()
    )
)
def test_cosine_is_symmetric_and_clipped(vectors):
    made = Embeddings.of(vectors, "here")
    left, right = (index.ravel() for index in np.indices((4, 4)))
    found = made.cosine(left, right)
    assert (np.abs(found) <= 1).all()
    np.testing.assert_array_equal(found, made.cosine(right, left))
    np.testing.assert_allclose(found, cosine64(vectors, left, right), atol=2e-6)


def test_the_order_in_memory_does_not_matter():
    left, right = np.random.default_rng(3).integers(40, size=(2, 100))
    rows, columns = (
        Embeddings.of(order(VECTORS), "here") for order in (np.array, np.asfortranarray)
    )
    np.testing.assert_array_equal(rows.cosine(left, right), columns.cosine(left, right))
    np.testing.assert_array_equal(rows.rows(left), columns.rows(left))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("normalize", [True, False])
def test_rows_and_lengths_in_blocks_from_a_file(tmp_path, dtype, normalize):
    rng = np.random.default_rng(4)
    vectors = (3 * rng.normal(size=(1300, 6))).astype(dtype)  # more than two blocks
    np.save(tmp_path / "vectors.npy", vectors)
    stored = Embeddings.of(np.load(tmp_path / "vectors.npy", mmap_mode="r"), "here", normalize)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    np.testing.assert_allclose(stored.norms, lengths, rtol=1e-6)
    rows = rng.integers(1300, size=1700)
    found = stored.rows(rows)
    assert type(found) is np.ndarray
    assert (found.dtype, found.flags.c_contiguous) == (np.float32, True)
    expected = vectors[rows].astype(np.float64)
    if normalize:
        expected /= lengths[rows, None]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert stored.rows(rows[:0]).shape == (0, 6)
    np.testing.assert_array_equal(
        stored.cosine(rows, rows[::-1]), Embeddings(vectors).cosine(rows, rows[::-1])
    )


def test_lengths_are_there_before_rows_are_taken_in_blocks(monkeypatch):
    # A block that asked for blocks of its own, and all others for its lock, would wait for ever.
    within = []

    def alone(work, n, block):
        assert not within
        within.append(n)
        done = [work(slice(start, min(start + block, n))) for start in range(0, n, block)]
        within.pop()
        return done

    monkeypatch.setattr("faircal.data.types.each", alone)
    made = Embeddings.of(VECTORS, "here")
    assert "norms" not in vars(made)
    assert made.rows(np.arange(5)).shape == (5, 7)


def test_the_processor_unless_told():
    assert Embeddings.of(VECTORS, "here").device == "cpu"
    assert Embeddings.of(VECTORS, "here").engine is CPU


def test_norms_tell_what_is_wrong():
    vectors = VECTORS[:4].copy()
    vectors[0], vectors[1], vectors[2] = np.nan, np.inf, 0
    norms = Embeddings.of(vectors, "here").norms
    assert np.isnan(norms[0])
    assert np.isinf(norms[1])
    assert norms[2] == 0
    assert np.isfinite(norms[3])


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Embeddings.of(VECTORS, "here").vectors = VECTORS


def test_subset_of_pairs():
    pairs = Pairs(np.arange(4), np.arange(4) + 4, np.array([True, False, True, False]))
    part = (
        dataset({"net": Feature(Embeddings.of(VECTORS, ""))}, pairs).subset(np.array([3, 0])).pairs
    )
    assert part.left.tolist() == [3, 0]
    assert part.right.tolist() == [7, 4]
    assert part.genuine.tolist() == [False, True]
    assert part.fold is None


def dataset(features, pairs):
    images = Images(pa.array(np.arange(len(VECTORS))))
    return Dataset.assemble("faces", images, pairs, features, seed=None)


def test_features_work_cosines_out_once_and_keep_them_apart_from_given_scores():
    pairs = Pairs(np.arange(5), np.arange(5) + 5, None)
    given_scores = np.linspace(0, 1, 5)
    both = {"net": Feature(Embeddings.of(VECTORS, "")), "ready": Feature(None, given_scores)}
    data = dataset(both, pairs)
    assert data.select("net").scores is data.scores
    assert data.features["net"].scores is None
    assert data.select("ready").scores is given_scores
    rows = np.array([4, 1])
    part = data.subset(rows)
    np.testing.assert_array_equal(part.scores, data.scores[rows])
    np.testing.assert_array_equal(part.select("ready").scores, given_scores[rows])
    np.testing.assert_array_equal(part.features["ready"].scores, given_scores[rows])


def test_feature_with_nothing():
    with pytest.raises(DataError, match="neither embeddings nor scores; supply one"):
        _ = dataset({"net": Feature()}, Pairs(np.arange(1), np.arange(1), None)).scores


NAMES = ("A", "B")
CODES = st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1)


def groups_of(pairs):
    left, right = np.array(pairs, dtype=np.int32).T
    return Groups(NAMES, left, right)


def test_by_hand():
    groups = groups_of([(0, 0), (1, 1), (0, 1), (1, -1), (-1, -1)])
    assert groups.pair.tolist() == [0, 1, -1, -1, -1]
    assert groups.cross.tolist() == [False, False, True, False, False]
    assert groups.unknown.tolist() == [False, False, False, True, True]
    assert len(groups) == 5


@given(CODES)
def test_every_pair_is_in_a_group_or_cross_or_unknown(pairs):
    groups = groups_of(pairs)
    inside = groups.pair >= 0
    assert (inside.astype(int) + groups.cross + groups.unknown == 1).all()


@given(CODES)
def test_swapping_left_and_right_changes_nothing(pairs):
    groups, swapped = groups_of(pairs), groups_of([pair[::-1] for pair in pairs])
    for name in ("pair", "cross", "unknown"):
        np.testing.assert_array_equal(getattr(groups, name), getattr(swapped, name))


def test_renamed():
    groups = groups_of([(0, 0), (1, 1), (0, 1), (-1, 0)]).renamed(["C", "B"])
    assert groups.names == ("C", "B")
    assert groups.left.tolist() == [-1, 1, -1, -1]
    assert groups.right.tolist() == [-1, 1, 1, -1]


class TestParts:
    @pytest.fixture
    def data(self):
        return Dataset(
            embeddings=np.eye(4),
            pairs={"left": [0, 1, 2], "right": [1, 2, 3], "genuine": [1, 0, 0], "fold": [1, 2, 2]},
            attributes={
                "ethnicity": ["Asian", "Black", "Asian", "Asian"],
                "gender": ["F", "F", "M", ""],
                "age": ["old", "old", "old", "young"],
            },
        )

    def test_each_attribute_alone(self, data):
        groups = data.groups("gender+ethnicity")
        assert groups.names == ("F Asian", "F Black", "M Asian")
        assert list(groups.parts) == ["gender", "ethnicity"]
        gender, ethnicity = groups.parts.values()
        assert gender.names == ("F", "M")
        assert gender.left.tolist() == [0, 0, 1]
        assert gender.right.tolist() == [0, 1, -1]
        assert ethnicity.names == ("Asian", "Black")
        assert ethnicity.left.tolist() == [0, 1, 0]
        assert ethnicity.right.tolist() == [1, 0, 0]

    def test_what_one_attribute_leaves_unknown_the_other_may_tell(self, data):
        groups = data.groups("ethnicity+gender")
        assert groups.unknown.tolist() == [False, False, True]
        assert groups.parts["gender"].unknown.tolist() == [False, False, True]
        assert groups.parts["ethnicity"].unknown.tolist() == [False, False, False]

    def test_three(self, data):
        assert list(data.groups().parts) == ["ethnicity", "gender", "age"]
        assert all(not part.parts for part in data.groups().parts.values())

    @pytest.mark.parametrize("attribute", ["ethnicity", "gender"])
    def test_one_attribute_has_none(self, data, attribute):
        assert data.groups(attribute).parts == {}

    def test_none_unless_told(self):
        assert groups_of([(0, 0)]).parts == {}


def test_cross_of_three_keeps_what_occurs():
    columns = {
        "a": Column.of(["x", "y", "x", ""]),
        "b": Column.of(["1", "2", "2", "1"]),
        "c": Column.of(["p", "p", "q", "p"]),
    }
    crossed = cross(columns, "a+b+c")
    assert crossed.names == ("x 1 p", "x 2 q", "y 2 p")
    assert crossed.codes.tolist() == [0, 2, 1, -1]
    assert cross(columns, "b+a").names == ("1 x", "2 x", "2 y")
    assert cross(columns, "a").names == ("x", "y")


def test_cross_with_an_empty_column():
    columns = {"a": Column.of(["x", "y"]), "b": Column.of([None, None])}
    for attribute in ("a+b", "b+a", "b"):
        crossed = cross(columns, attribute)
        assert crossed.names == ()
        assert crossed.codes.tolist() == [-1, -1]


@pytest.mark.parametrize("attribute", ["gendr", "ethnicity+gendr", "gendr+ethnicity"])
def test_unknown_attribute(attribute):
    columns = {"ethnicity": Column.of(["x"]), "gender": Column.of(["F"])}
    with pytest.raises(DataError, match="'gendr' is not in the data; did you mean gender"):
        cross(columns, attribute)


def test_groups_are_the_same_only_when_they_are_one_object():
    codes = np.array([0, 1, 0], dtype=np.int32)
    groups = Groups(("a", "b"), codes, codes)
    assert groups == groups
    assert groups != Groups(("a", "b"), codes, codes)
