"""Who is in both a cohort and the data, judged by name and by this network's own scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import faircal
from faircal import Cohort, DataError, Dataset
from faircal.data import Embeddings, Feature, open_stream
from faircal.data.cohort_overlap import join_cohort
from faircal.data.dataset_folder import save_dataset

SIZES = {"people": 320, "images": 960, "pairs": 2400, "dimension": 48}


@pytest.fixture(scope="module")
def whole():
    return faircal.simulate("small", seed=0, **SIZES)


@pytest.fixture(scope="module")
def held_out(whole):
    """Images of fold 5, whose people are in no other pair."""
    return whole.split(5)[1].used_images()


@pytest.fixture(scope="module")
def data(whole):
    return whole.split(5)[0]


def names_of(column, rows):
    return np.array([*column.names, ""])[column.codes[rows]]


def cohort_of(data, rows, vectors=None, prefix=""):
    identity = names_of(data.images.identity, rows)
    return Cohort(
        embeddings=(data.embeddings.vectors if vectors is None else vectors)[rows],
        identity=[prefix + name for name in identity],
        groups=names_of(data.image_groups(), rows),
        name="public",
    )


def changed(data, vectors):
    return Dataset.assemble(
        data.name, data.images, data.pairs, {"embedding": Feature(Embeddings(vectors))}
    )


def test_nobody_shared(data, whole, held_out):
    joined = join_cohort(data, cohort_of(whole, held_out))
    assert len(joined.cohort) == len(held_out)
    assert joined.cohort.notes == ()


def test_people_of_the_same_name_are_left_out(data, whole, held_out):
    of_data = data.used_images()[:2]
    joined = join_cohort(data, cohort_of(whole, np.concatenate([held_out, of_data])))
    assert len(joined.cohort) == len(held_out)
    (note,) = joined.cohort.notes
    assert "1 of 65 people are in small (simulated), too (1 by name, 0 by a picture; " in note


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("away", [0.0, 3.0, 30.0])
def test_the_same_picture_under_another_name(whole, held_out, away, dtype):
    """Whatever this network's cosines are like: near 1 where a constant direction is added."""
    unit = whole.embeddings.rows(np.arange(len(whole.images)))
    vectors = np.column_stack([unit, np.full(len(unit), away, np.float32)])
    data = changed(whole, vectors).split(5)[0]
    rows = np.concatenate([held_out, data.used_images()[[0, 400]]])
    joined = join_cohort(data, cohort_of(whole, rows, vectors.astype(dtype), prefix="new "))
    assert len(joined.cohort) == len(held_out)
    (note,) = joined.cohort.notes
    assert "2 of 66 people are in small (simulated), too (0 by name, 2 by a picture; " in note


def test_mislabelled_pictures_of_the_data_do_not_hide_it(whole, held_out):
    """Real sets have imposter pairs of one picture, and genuine pairs of one."""
    vectors = whole.embeddings.vectors.copy()
    data = whole.split(5)[0]
    for genuine in (True, False):
        for row in np.flatnonzero(data.genuine == genuine)[:5]:
            vectors[data.pairs.left[row]] = vectors[data.pairs.right[row]]
    data = changed(whole, vectors).split(5)[0]
    rows = np.concatenate([held_out, data.used_images()[:1]])
    assert len(join_cohort(data, cohort_of(whole, held_out)).cohort) == len(held_out)
    joined = join_cohort(data, cohort_of(whole, rows, vectors, prefix="new "))
    assert len(joined.cohort) == len(held_out)


@pytest.mark.parametrize("prefix", ["", "new "])
def test_the_people_of_the_data(data, whole, prefix):
    with pytest.raises(DataError, match=r"256 of 256 people are in .*: more than 5 %; take other"):
        join_cohort(data, cohort_of(whole, data.used_images(), prefix=prefix))


def test_a_group_that_would_be_empty(data, whole, held_out):
    group, of_data = whole.image_groups().codes, data.used_images()
    rows = [held_out[group[held_out] != 0], of_data[group[of_data] == 0][:1]]
    with pytest.raises(DataError, match="nobody else is in group 'African F'; take other people"):
        join_cohort(data, cohort_of(whole, np.concatenate(rows)))


def test_people_who_are_numbered_alike(data):
    """Both simulations number their people from 0."""
    others = faircal.simulate("small", seed=1, **SIZES)
    joined = join_cohort(data, cohort_of(others, np.arange(960)))
    assert len(joined.cohort) == 960
    (note,) = joined.cohort.notes
    assert "256 of 320 people are called as people of small (simulated) are, but look" in note


def test_images_in_no_pair_may_be_a_cohort(whole, held_out, tmp_path):
    """Of a folder only those count that pairs name, in memory and in a stream."""
    data = whole.split(5)[0]
    cohort = cohort_of(whole, np.concatenate([held_out, data.used_images()[:2]]))
    folder = save_dataset(data, tmp_path / "data")
    loaded = faircal.load(folder, cohort=cohort)
    streamed = open_stream(folder, batch=700, cohort=cohort)
    assert len(loaded.cohort) == len(held_out)
    assert loaded.cohort.fingerprint() == streamed.cohort.fingerprint()
    assert loaded.cohort.notes == streamed.cohort.notes


@pytest.mark.parametrize("make", [np.copy, lambda x: x**3, lambda x: x * 2.0 ** np.arange(16)])
def test_few_dimensions_are_crowded(make):
    """Strangers are near each other there: they have no picture in common."""
    whole, others = (faircal.simulate("small", seed=seed, dimension=16) for seed in (0, 1))
    data = changed(whole, make(whole.embeddings.vectors).astype(np.float32))
    vectors = make(others.embeddings.vectors).astype(np.float32)
    joined = join_cohort(data, cohort_of(others, np.arange(2000), vectors, prefix="new "))
    assert len(joined.cohort.identity.names) > 195


class TestAnotherNetwork:
    """It has other directions, whatever its cosines are."""

    @pytest.mark.parametrize("common", [0, 2])
    def test_is_refused(self, whole, held_out, common):
        """Also where all images have a direction in common, as on a strongly biased network."""
        vectors = whole.embeddings.rows(np.arange(960))
        vectors += np.eye(1, 48, dtype=np.float32) * common
        data = changed(whole, vectors).split(5)[0]
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(48, 48)))[0]
        with pytest.raises(
            DataError, match=r"agree .* only by chance .*: another network, or prep"
        ):
            join_cohort(data, cohort_of(whole, held_out, (vectors @ turn).astype(np.float32)))
        assert join_cohort(data, cohort_of(whole, held_out, vectors)).cohort is not None

    def test_other_groups_are_none(self, whole, held_out):
        """People unlike those of the data: of all groups but the data's only one."""
        group = whole.image_groups().codes
        inside = (group[whole.pairs.left] == 0) & (group[whole.pairs.right] == 0)
        rows = held_out[group[held_out] != 0]
        assert join_cohort(whole.subset(inside), cohort_of(whole, rows)).cohort is not None

    def test_nor_is_a_camera(self, whole, held_out):
        """Noise as long as the vectors, and all of them moved."""
        rng, vectors = np.random.default_rng(0), whole.embeddings.rows(np.arange(960))
        noisy = vectors + rng.normal(size=vectors.shape) / np.sqrt(48) + rng.normal(size=48) / 14
        data = changed(whole, vectors).split(5)[0]
        assert join_cohort(data, cohort_of(whole, held_out, noisy)).cohort is not None

    def test_lengths_where_they_count(self, whole, held_out):
        raw = Dataset.assemble(
            "raw",
            whole.images,
            whole.pairs,
            {"embedding": Feature(replace(whole.embeddings, normalize=False))},
        ).split(5)[0]
        longer = 30 * whole.embeddings.vectors
        with pytest.raises(DataError, match="30 times as long as those of raw, which are used as"):
            join_cohort(raw, cohort_of(whole, held_out, longer))


@given(seed=st.integers(0, 2**32 - 1), shared=st.integers(0, 6))
def test_nobody_is_in_both(seed, shared):
    """Whoever is drawn for the cohort: it is refused, or without anybody of the data."""
    rng = np.random.default_rng(seed)
    person = np.arange(150) // 3
    vectors = rng.normal(size=(150, 16)) + 3 * rng.normal(size=(50, 16))[person]
    group = np.array(["F", "M"])[person % 2]
    left, right = np.triu_indices(60, 1)
    data = Dataset(
        embeddings=vectors[:60],
        attributes={"identity": person[:60]},
        pairs={"left": left, "right": right, "genuine": person[left] == person[right]},
    )
    rows = np.concatenate([np.arange(60, 150), rng.permutation(60)[:shared]])
    others = {"embeddings": vectors[rows], "identity": person[rows], "groups": group[rows]}
    try:
        cohort = join_cohort(data, Cohort(**others)).cohort
    except DataError as error:
        assert shared > 0
        assert "more than 5 %" in str(error)
    else:
        assert set(cohort.identity.names) == set(map(str, range(20, 50)))
        assert len(cohort) == 90


@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_images_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    whole = faircal.simulate("small", seed=0, **SIZES)
    data, others = whole.split(5)[0], whole.split(5)[1].used_images()
    rows = np.concatenate([others, data.used_images()[:3]])
    one, two = (
        join_cohort(data, cohort_of(whole, each)).cohort for each in (rows, rng.permutation(rows))
    )
    assert one.identity.names == two.identity.names
    assert one.counts() == two.counts()
    assert one.notes == two.notes


@given(seed=st.integers(0, 2**32 - 1), dimension=st.sampled_from([8, 64, 512]))
def test_vectors_without_any_direction_are_no_other_network(seed, dimension):
    """Where all directions are alike, nobody can tell: nothing is refused.

    In 8 dimensions two strangers are, once in forty draws, as near as two copies of a picture, and
    one of them is left out.
    """
    rng = np.random.default_rng(seed)
    person = np.arange(300) // 2
    vectors = rng.normal(size=(300, dimension)) + rng.normal(size=(150, dimension))[person]
    left, right = np.triu_indices(150, 1)
    data = Dataset(
        embeddings=vectors[:150],
        attributes={"identity": person[:150]},
        pairs={"left": left, "right": right, "genuine": person[left] == person[right]},
    )
    cohort = Cohort(embeddings=vectors[150:], identity=person[150:], groups=person[150:] % 3)
    left_out = 150 - len(join_cohort(data, cohort).cohort)
    assert left_out == 0 if dimension > 8 else left_out <= 4
