"""The population in a model file: what goes in comes out, and what cannot be is refused."""

import numpy as np
import pytest

import faircal
from faircal._base.errors import DataError
from faircal.model import Population
from faircal.production.monitoring import survey


@pytest.fixture(scope="module")
def model():
    cal, _ = faircal.simulate("small", seed=0).split(test_fold=5)
    fitted = faircal.FairCal(n_clusters=10).fit(cal)
    survey(fitted, cal)
    return fitted


def test_it_comes_back_from_a_model_file(model, tmp_path):
    model.save(tmp_path / "m.faircal")
    before, after = model.about_.population, None
    after = faircal.load_model(tmp_path / "m.faircal").about_.population
    assert before.parts()[0] == after.parts()[0]
    for key, value in before.parts()[1].items():
        np.testing.assert_array_equal(value, after.parts()[1][key])
        assert value.dtype == after.parts()[1][key].dtype


def test_one_of_pictures_only_can_be_kept_but_not_watched():
    plain = Population(
        np.zeros((3, 4), np.float32),
        np.ones(3, np.float32),
        np.linspace(-1, 1, 6),
        np.zeros(5, np.int64),
        np.zeros(5, np.int64),
    )
    again = Population.restore(*plain.parts())
    assert not again.watchable
    assert not again.stratified
    assert again.region.tolist() == [0, 0, 0]


def test_images_are_outside_beyond_reach():
    of = Population(
        np.array([[0.0, 0.0], [3.0, 0.0]], np.float32),
        np.array([1.0, 2.0], np.float32),
        np.linspace(-1, 1, 3),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
    )
    vectors = np.array([[0, 0.9], [0, 1.1], [3, 1.9], [3, 2.1]], np.float32)
    found = of.place(vectors, np.array([0, 0, 1, 1], np.int32))
    assert found.outside.tolist() == [False, True, False, True]
    np.testing.assert_allclose(found.distance, [0.9, 1.1, 1.9, 2.1], rtol=1e-6)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("centers", lambda a: a[:, 0]),
        ("reach", lambda a: a[1:]),
        ("centers", lambda a: a * np.nan),
        ("score_edges", lambda a: a[::-1].copy()),
        ("genuine_counts", lambda a: a[1:]),
        ("imposter_counts", lambda a: a.astype(float)),
        ("region", lambda a: a + 1000),
        ("region", lambda a: a - 1),
        ("stratum", lambda a: a + 1000),
        ("stratum", lambda a: a[:1]),
        ("ranked_edges", lambda a: a[:, :-1]),
        ("ranked_edges", lambda a: -a),
        ("ranked_counts", lambda a: a[:, :, 1:]),
        ("ranked_lots", lambda a: a[:1]),
        ("place_lots", lambda a: a[:, :5]),
        ("outside_lots", lambda a: -a - 1),
        ("place_pairs", lambda a: a[:, :1]),
        ("outside_pairs", lambda a: a[0]),
    ],
)
def test_what_cannot_be_is_refused(model, key, change):
    values, arrays = model.about_.population.parts()
    arrays[key] = change(arrays[key])
    with pytest.raises(DataError, match="population"):
        Population.restore(values, arrays)


def test_a_lacking_array_is_named(model):
    _, arrays = model.about_.population.parts()
    del arrays["place_lots"]
    with pytest.raises(DataError, match="place_lots"):
        Population.restore({}, arrays)
