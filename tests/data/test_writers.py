"""Writing a dataset folder, and reading it back."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import DataError
from faircal.data import Dataset, load, save_dataset
from faircal.data.simulation import simulate


def test_round_trip(faces, tmp_path):
    images = faces.images | {"gender": np.array(["", *faces.images["gender"][1:]])}
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=images, name='n, a "b"')
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.name == data.name
    assert again.hash() == data.hash()
    assert again.images.ids.to_pylist() == data.images.ids.to_pylist()
    assert again.images.identity.names == data.images.identity.names
    np.testing.assert_array_equal(again.images.identity.codes, data.images.identity.codes)


def test_round_trip_of_a_simulation(tmp_path):
    data = simulate("small", people=80, images=160, pairs=200, dimension=16)
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.hash() == data.hash()
    assert again.provenance == {"name": data.name, **data.provenance}


def test_round_trip_of_several_networks(faces, tmp_path):
    nets = {"arc": faces.vectors, "web": faces.vectors[:, :2].astype(np.float16)}
    data = Dataset(embeddings=nets, pairs=faces.pairs, attributes=faces.images)
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.hash() == data.hash()
    assert again.select("web").embeddings.vectors.dtype == np.float16


@pytest.mark.parametrize("with_vectors", [True, False])
def test_round_trip_of_scores(faces, tmp_path, with_vectors):
    scores = np.random.default_rng(0).random(len(faces.left))
    data = Dataset(
        embeddings=faces.vectors if with_vectors else None,
        pairs=faces.pairs | {"score": scores},
        attributes=faces.images,
    )
    again = load(save_dataset(data, tmp_path / "d"))
    np.testing.assert_array_equal(again.scores, scores)
    assert again.hash() == data.hash()


def test_round_trip_after_scores_were_worked_out(faces, tmp_path):
    """Cosines are not written: they follow from the embeddings."""
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images)
    _ = data.scores
    save_dataset(data, tmp_path / "d")
    assert "score" not in (tmp_path / "d/pairs.csv").read_text()


def test_round_trip_without_labels(faces, tmp_path):
    pairs = {key: values for key, values in faces.pairs.items() if key != "genuine"}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes=faces.images)
    assert load(save_dataset(data, tmp_path / "d")).pairs.genuine is None


def test_drawn_folds_are_drawn_again(faces, tmp_path):
    """Written, the −1 of pairs that belong to no fold would read as a fold."""
    pairs = {key: values for key, values in faces.pairs.items() if key != "fold"}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes=faces.images)
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.drawn_folds
    np.testing.assert_array_equal(again.pairs.fold, data.pairs.fold)


def test_ids_with_zeros_in_front(faces, tmp_path):
    ids = [f"{i:03}" for i in range(12)]
    pairs = {"left": ["007"], "right": ["011"], "genuine": [1], "fold": [1]}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes={"image_id": ids})
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.images.ids.to_pylist() == ids
    assert again.pairs.left.tolist() == [7]


@pytest.mark.parametrize(
    "name", ["images.parquet", "pairs.parquet", "embeddings.npz", "embeddings"]
)
def test_a_second_of_one_thing_is_refused(faces, tmp_path, name):
    (tmp_path / name).touch()
    data = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images)
    with pytest.raises(DataError, match=f"{name} is there already"):
        save_dataset(data, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_table_is_no_folder(tmp_path):
    (tmp_path / "t.csv").write_text("genuine,score\n1,0.5\n0,0.1\n")
    with pytest.raises(DataError, match="only datasets with images"):
        save_dataset(load(tmp_path / "t.csv"), tmp_path / "d")
    assert not (tmp_path / "d").exists()
