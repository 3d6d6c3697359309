"""Datasets in memory."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset


def structured(columns):
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    kind = [(name, array.dtype) for name, array in arrays.items()]
    made = np.empty(len(next(iter(arrays.values()))), dtype=kind)
    for name, array in arrays.items():
        made[name] = array
    return made


class OnlyInterchange:
    """A table of a library that speaks nothing but the dataframe interchange protocol."""

    def __init__(self, columns):
        self._frame = pa.table(columns)

    def __dataframe__(self, **options):
        return self._frame.__dataframe__(**options)


KINDS = {
    "mapping": dict,
    "lists": lambda columns: {name: list(values) for name, values in columns.items()},
    "pandas": pd.DataFrame,
    "filtered pandas": lambda columns: pd.concat([pd.DataFrame(columns)] * 2, ignore_index=True)[
        lambda frame: frame.index >= len(frame) // 2
    ],
    "Polars": pl.DataFrame,
    "Arrow": pa.table,
    "Arrow with a pandas index": lambda columns: pa.Table.from_pandas(
        pd.DataFrame(columns).set_axis(
            range(9, 9 + len(columns["left" if "left" in columns else "image_id"]))
        ),
        preserve_index=True,
    ),
    "structured array": structured,
    "interchange": OnlyInterchange,
}


@pytest.fixture
def expected(faces):
    return Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind_give_the_same(kind, faces, expected):
    make = KINDS[kind]
    data = Dataset(embeddings=faces.vectors, pairs=make(faces.pairs), attributes=make(faces.images))
    assert data.hash() == expected.hash()
    np.testing.assert_array_equal(data.scores, expected.scores)
    np.testing.assert_array_equal(data.pairs.left, faces.left)
    np.testing.assert_array_equal(data.pairs.right, faces.right)
    np.testing.assert_array_equal(data.pairs.fold, faces.pairs["fold"])
    assert list(data.images.attributes) == ["ethnicity", "gender"]
    assert data.images.identity.names == expected.images.identity.names
    assert data.default_attribute == "ethnicity+gender"


@pytest.mark.parametrize(
    "make", [list, pd.DataFrame, pl.DataFrame, lambda v: pa.table(pd.DataFrame(v))]
)
def test_embeddings_of_every_kind_give_the_same(make, faces, expected):
    made = make(faces.vectors)
    data = Dataset(embeddings=made, pairs=faces.pairs, attributes=faces.images)
    np.testing.assert_array_equal(data.scores, expected.scores)


def test_several_networks(faces):
    nets = {"arc": faces.vectors, "face": faces.vectors[:, :2]}
    data = Dataset(embeddings=nets, pairs=faces.pairs, attributes=faces.images)
    assert (list(data.features), data.feature) == (["arc", "face"], "arc")
    other = data.select("face")
    assert other.embeddings.dimension == 2
    assert (other.scores != data.scores).any()
    with pytest.raises(ParameterError, match="unknown feature 'fac'; did you mean face"):
        data.select("fac")


def test_without_attributes_ids_are_rows(faces):
    pairs = {"left": faces.left, "right": faces.right, "genuine": faces.pairs["genuine"]}
    data = Dataset(embeddings=faces.vectors, pairs=pairs)
    np.testing.assert_array_equal(data.pairs.left, faces.left)
    assert data.default_attribute is None
    with pytest.raises(DataError, match="no attribute column; add one"):
        data.groups()


def test_scores_are_the_cosines(faces, expected):
    unit = faces.vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = (unit[faces.left] * unit[faces.right]).sum(1)
    np.testing.assert_allclose(expected.scores, cosines, atol=5e-7)


def test_ready_made_scores_come_first(faces):
    scores = np.linspace(0, 100, len(faces.left))
    data = Dataset(
        embeddings=faces.vectors,
        pairs=faces.pairs | {"score": scores},
        attributes=faces.images,
        score_range=(0, 100),
    )
    np.testing.assert_array_equal(data.scores, scores)
    assert data.score_range == (0.0, 100.0)
    assert data.embeddings is not None
    only = Dataset(
        pairs=faces.pairs | {"score": scores}, attributes=faces.images, score_range=(0, 100)
    )
    assert (only.feature, only.embeddings) == ("score", None)


def test_cosines_lie_in_their_own_range(faces):
    """A range is said of ready-made scores; where there are none it has no say."""
    data = Dataset(
        embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images, score_range=(0, 100)
    )
    assert data.score_range == (-1.0, 1.0)


@pytest.mark.parametrize("score_range", [(1, 1), (1, 0), (0, float("inf")), (float("nan"), 1)])
def test_range_refused(score_range, faces):
    with pytest.raises(ParameterError, match="score_range: expected low < high"):
        Dataset(embeddings=faces.vectors, pairs=faces.pairs, score_range=score_range)


def test_split_shares_the_vectors(faces):
    del faces.images["identity"]  # they are in several folds
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images)
    calibration, test = data.split(test_fold=2)
    for part in (calibration, test):
        assert np.shares_memory(part.embeddings.vectors, faces.vectors)
        assert part.images is data.images
    assert set(calibration.pairs.fold) == {1, 3}
    assert set(test.pairs.fold) == {2}
    assert len(calibration) + len(test) == len(data)
    inside = faces.pairs["fold"] == 2
    np.testing.assert_array_equal(test.scores, data.scores[inside])
    np.testing.assert_array_equal(test.genuine, faces.pairs["genuine"][inside] == 1)


def test_split_by_a_fold_that_is_not_there(expected):
    with pytest.raises(ParameterError, match="no fold 9; expected one of 1, 2, 3"):
        expected.split(9)


def test_folds_by_name(faces):
    pairs = faces.pairs | {"fold": np.array(["x", "y", "z"])[faces.pairs["fold"] - 1]}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes=faces.images)
    assert data.fold_names == ["x", "y", "z"]
    assert len(data.only("y")) == (faces.pairs["fold"] == 2).sum()


def test_people_who_are_calibrated_on_and_tested_on():
    """Of a hundred people five may be in both parts, and are counted; six are refused."""
    person = np.arange(100)
    one = {"left": person, "right": person + 100, "genuine": np.ones(100), "fold": np.full(100, 1)}

    def data(shared):
        more = {"left": person[:shared], "right": person[:shared] + 200, "genuine": np.ones(shared)}
        more["fold"] = np.full(shared, 2)
        return Dataset(
            embeddings=np.eye(300, dtype=np.float32) + 0.1,
            pairs={key: np.concatenate([one[key], more[key]]) for key in one},
            attributes={"identity": [f"p{who}" for who in np.tile(person, 3)]},
        )

    told = (
        r"identities of fold 1 that cross folds: 5 \(for example identity p0 is in folds 1, 2\); "
    )
    for part in data(5).split(1):
        (note,) = part.notes
        assert re.search(told, note)
    with pytest.raises(
        DataError, match=r"data: identities of fold 1 that cross folds: 6 .*drop the column 'fold'"
    ):
        data(6).split(1)
    assert len(data(6).only(1)) == 100
    assert data(0).split(1)[0].notes == ()


def test_subset_by_mask_and_by_rows(expected):
    mask = np.zeros(len(expected), dtype=bool)
    mask[[1, 5]] = True
    by_mask, by_rows = expected.subset(mask), expected.subset(np.array([1, 5]))
    assert by_mask.hash() == by_rows.hash()
    assert by_mask.used_images().tolist() == [0, 2, 6]


@pytest.mark.parametrize(
    "names",
    [
        [f"{i:03}" for i in range(12)],
        [str(i) for i in range(12)],
        list(range(12)),
        [f"face {i}.jpg" for i in range(12)],
        ["007", "8", *[f"x{i}" for i in range(10)]],
    ],
    ids=["leading zeros", "numbers as text", "numbers", "names", "mixed"],
)
def test_ids_of_every_kind(names, faces):
    left, right = ([names[row] for row in rows] for rows in (faces.left, faces.right))
    data = Dataset(
        embeddings=faces.vectors,
        pairs={"left": left, "right": right, "genuine": faces.pairs["genuine"]},
        attributes=faces.images | {"image_id": names},
    )
    np.testing.assert_array_equal(data.pairs.left, faces.left)
    np.testing.assert_array_equal(data.pairs.right, faces.right)
    assert data.images.ids.to_pylist() == (
        [int(name) for name in names] if names[0] in ("0", 0) else names
    )


def test_ids_that_are_numbers_in_one_table_and_text_in_the_other(faces):
    """Pairs that mention none of the images with names look like numbers; images do not."""
    names = ["0", "1", "2", *[f"x{i}" for i in range(9)]]
    data = Dataset(
        embeddings=faces.vectors,
        pairs={"left": [0, 1], "right": [2, 0], "genuine": [1, 0]},
        attributes=faces.images | {"image_id": names},
    )
    assert data.pairs.left.tolist() == [0, 1]
    assert data.pairs.right.tolist() == [2, 0]


def test_an_id_with_a_zero_in_front_is_another(faces):
    names = [f"{i:03}" for i in range(12)]
    with pytest.raises(DataError, match="pairs, column 'left', row 1: image '7'"):
        Dataset(
            embeddings=faces.vectors,
            pairs={"left": ["7"], "right": ["008"], "genuine": [1]},
            attributes={"image_id": names},
        )


@pytest.mark.parametrize("as_what", [bool, float, int, str, object])
def test_labels_of_every_kind(as_what, faces):
    labels = faces.pairs["genuine"].astype(bool).astype(as_what)
    data = Dataset(
        embeddings=faces.vectors, pairs=faces.pairs | {"genuine": labels}, attributes=faces.images
    )
    np.testing.assert_array_equal(data.genuine, faces.pairs["genuine"] == 1)


def test_unlabelled(faces):
    pairs = {key: values for key, values in faces.pairs.items() if key != "genuine"}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes=faces.images)
    assert len(data.scores) == len(data)
    with pytest.raises(DataError, match="no column 'genuine'; add it"):
        _ = data.genuine


def test_unknown_and_cross_group(faces):
    images = faces.images | {"gender": np.array(["", *faces.images["gender"][1:]])}
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=images)
    groups = data.groups("gender")
    assert groups.names == ("F", "M")
    np.testing.assert_array_equal(groups.unknown, (faces.left == 0) | (faces.right == 0))
    crossed = data.groups("ethnicity+gender")
    assert "Asian F" in crossed.names
    assert (crossed.unknown == groups.unknown).all()
    with pytest.raises(DataError, match="'sex' is not in the data"):
        data.groups("sex")


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([1.0, 2.0, float("nan")] * 4, True),
        ([0.25, 0.5, 1.0] * 4, False),
        ([1.0, float("inf"), 2.0] * 4, False),
        ([[1], [2], [3]] * 4, False),
        ([b"\xff", b"x", b"y"] * 4, False),
        ([True, False, None] * 4, True),
    ],
    ids=["whole with gaps", "fractions", "infinite", "lists", "bytes", "booleans"],
)
def test_which_columns_make_groups(values, kept, faces):
    images = pa.table(faces.images | {"more": pa.array(values)})
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=images)
    assert ("more" in data.images.attributes) == kept
    if kept:
        assert data.images.attributes["more"].codes[2] == -1


def test_many_values_make_no_groups_unless_asked():
    n = 150
    data = Dataset(
        embeddings=np.random.default_rng(0).normal(size=(n, 3)),
        pairs={"left": [0, 1], "right": [1, 2], "genuine": [1, 0]},
        attributes={"file": [f"f{i}" for i in range(n)], "gender": ["F"] * n},
    )
    assert data.default_attribute == "gender"
    assert len(data.groups("file").names) == n


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_bad_vector_in_use(bad, faces):
    vectors = faces.vectors.copy()
    vectors[3] = bad
    with pytest.raises(DataError, match=r"'embedding', row 4 \(image i03\): NaN, infinite or zero"):
        Dataset(embeddings=vectors, pairs=faces.pairs, attributes=faces.images)
    unused = (faces.left != 3) & (faces.right != 3)
    pairs = {key: values[unused] for key, values in faces.pairs.items()}
    data = Dataset(embeddings=vectors, pairs=pairs, attributes=faces.images)
    assert np.isfinite(data.scores).all()


def test_refused(faces):
    def make(**changes):
        given = {"embeddings": faces.vectors, "pairs": faces.pairs, "attributes": faces.images}
        return Dataset(**given | changes)

    with pytest.raises(DataError, match="embeddings are missing"):
        make(embeddings=None, attributes=None)
    with pytest.raises(DataError, match="neither embeddings nor a column 'score'"):
        make(embeddings=None)
    with pytest.raises(DataError, match="expected 12 rows, one per row of attributes, found 11"):
        make(embeddings=faces.vectors[:-1])
    with pytest.raises(DataError, match=r"embeddings .b.: expected 12 rows.*.a., found 11"):
        make(embeddings={"a": faces.vectors, "b": faces.vectors[:-1]}, attributes=None)
    with pytest.raises(DataError, match="column 'score' does not say which"):
        pairs = faces.pairs | {"score": np.zeros(len(faces.left))}
        make(embeddings={"a": faces.vectors, "b": faces.vectors}, pairs=pairs)
    with pytest.raises(DataError, match="pairs: column 'left' is missing"):
        make(pairs={"right": [0]})
    with pytest.raises(DataError, match="at least one pair, found none"):
        make(pairs={"left": [], "right": []})
    for nonsense in ("pairs.csv", 5, [1, 2]):
        with pytest.raises(DataError, match=r"pairs: expected a table .*; convert it first"):
            make(pairs=nonsense)
    for ragged in ({"left": [0], "right": [0, 1]}, {"left": 5, "right": 5}):
        with pytest.raises(DataError, match="pairs: cannot be read as a table"):
            make(pairs=ragged)
    with pytest.raises(DataError, match="id 'i00' is not unique"):
        make(attributes=faces.images | {"image_id": ["i00"] * 12})
    with pytest.raises(DataError, match=r"column 'a\+b': .* rename it"):
        make(attributes=faces.images | {"a+b": ["x"] * 12})


def test_frozen(expected):
    with pytest.raises(dataclasses.FrozenInstanceError):
        expected.name = "other"


def test_hash_follows_everything_that_changes_results(faces, expected):
    def changed(**changes):
        given = {"embeddings": faces.vectors, "pairs": faces.pairs, "attributes": faces.images}
        return Dataset(**given | changes).hash()

    zeros = {"score": np.zeros(len(faces.left))}
    hashes = [
        expected.hash(),
        changed(embeddings=faces.vectors * np.float32(1.5)),
        changed(normalize=False),
        changed(pairs=faces.pairs | {"genuine": 1 - faces.pairs["genuine"]}),
        changed(pairs=faces.pairs | {"fold": 4 - faces.pairs["fold"]}),
        changed(pairs=faces.pairs | {"left": faces.pairs["right"], "right": faces.pairs["left"]}),
        changed(attributes=faces.images | {"gender": faces.images["gender"][::-1]}),
        changed(pairs=faces.pairs | zeros),
        changed(pairs=faces.pairs | {"score": zeros["score"] + 0.5}),
        changed(pairs=faces.pairs | zeros, score_range=(0, 1)),
    ]
    assert len(set(hashes)) == len(hashes)
    _ = expected.scores
    assert expected.hash() == hashes[0] == changed()
