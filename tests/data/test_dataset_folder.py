"""Dataset folders and score tables on disk."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal._base.errors import DataError
from faircal.data import Dataset, load, open_stream, save_dataset
from faircal.data.simulation import simulate


def to_parquet(path):
    pq.write_table(pacsv.read_csv(path), path.with_suffix(".parquet"))
    path.unlink()


def test_folder_is_the_same_as_in_memory(folder, faces):
    data = load(folder)
    here = Dataset(embeddings=faces.vectors, pairs=faces.pairs, attributes=faces.images)
    assert data.name == "faces"
    assert data.hash() == here.hash()
    np.testing.assert_array_equal(data.scores, here.scores)


def test_parquet_is_the_same_as_csv(folder):
    expected = load(folder).hash()
    to_parquet(folder / "images.csv")
    assert load(folder).hash() == expected
    to_parquet(folder / "pairs.csv")
    assert load(folder).hash() == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_embeddings_stay_mapped(folder, faces, dtype):
    np.save(folder / "embeddings.npy", faces.vectors.astype(dtype))
    data = load(folder)
    assert isinstance(data.embeddings.vectors, np.memmap)
    for part in (data.only(1), data.subset(np.arange(5))):
        assert isinstance(part.embeddings.vectors, np.memmap)
        assert np.shares_memory(part.embeddings.vectors, data.embeddings.vectors)
    expected = Dataset(
        embeddings=faces.vectors.astype(dtype), pairs=faces.pairs, attributes=faces.images
    )
    np.testing.assert_array_equal(data.scores, expected.scores)


def test_float64_becomes_float32(folder, faces):
    np.save(folder / "embeddings.npy", faces.vectors.astype(np.float64))
    assert load(folder).embeddings.vectors.dtype == np.float32


def test_one_file_per_network(folder, faces):
    (folder / "embeddings.npy").unlink()
    (folder / "embeddings").mkdir()
    np.save(folder / "embeddings/webface.npy", faces.vectors[:, :3])
    np.save(folder / "embeddings/arcface.npy", faces.vectors)
    data = load(folder)
    assert list(data.features) == ["arcface", "webface"]
    assert isinstance(data.select("webface").embeddings.vectors, np.memmap)
    assert list(load(folder, features=["webface"]).features) == ["webface"]
    with pytest.raises(DataError, match="no embeddings named 'arc'; did you mean arcface"):
        load(folder, features=["arc"])


def test_folder_with_scores_only(folder):
    pairs = pacsv.read_csv(folder / "pairs.csv")
    scores = np.linspace(0, 100, pairs.num_rows)
    pacsv.write_csv(pairs.append_column("score", pa.array(scores)), folder / "pairs.csv")
    (folder / "embeddings.npy").unlink()
    data = load(folder, score_range=(0, 100))
    np.testing.assert_allclose(data.scores, scores)
    assert data.embeddings is None
    assert data.has_images
    with pytest.raises(DataError, match=r"pairs.csv, column 'score', row 2: .*--score-range"):
        load(folder)


def test_about(folder):
    about = {"name": "My faces", "provenance": "made up", "simulated": True}
    (folder / "dataset.json").write_text(json.dumps(about))
    data = load(folder)
    assert data.name == "My faces"
    assert data.provenance == about


def test_ids_with_zeros_in_front(folder, faces):
    """In CSV as in Parquet, ``007`` is not 7."""
    ids = np.array([f"{i:03}" for i in range(12)])
    pacsv.write_csv(pa.table(faces.images | {"image_id": ids}), folder / "images.csv")
    pairs = faces.pairs | {"left": ids[faces.left], "right": ids[faces.right]}
    lines = zip(pairs["left"], pairs["right"], pairs["genuine"].astype(str), strict=True)
    text = ["left,right,genuine", *(",".join(line) for line in lines)]  # unquoted
    (folder / "pairs.csv").write_text("\n".join(text) + "\n")
    data = load(folder)
    assert data.images.ids.to_pylist() == ids.tolist()
    np.testing.assert_array_equal(data.pairs.left, faces.left)
    (folder / "pairs.csv").unlink()
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    np.testing.assert_array_equal(load(folder).pairs.left, faces.left)


def test_numbers_in_one_file_and_text_in_the_other(folder, faces):
    """Images by number in CSV, the same ids as text in Parquet."""
    expected = load(folder)
    images = pa.table(faces.images | {"image_id": np.arange(12)})
    pacsv.write_csv(images, folder / "images.csv")
    (folder / "pairs.csv").unlink()
    pairs = faces.pairs | {"left": faces.left.astype(str), "right": faces.right.astype(str)}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    np.testing.assert_array_equal(load(folder).scores, expected.scores)


@pytest.mark.parametrize(
    "yes_no", [("1", "0"), ("true", "false"), ("True", "False"), ("1.0", "0.0")]
)
def test_labels_in_csv(folder, faces, yes_no):
    labels = [yes_no[0] if label else yes_no[1] for label in faces.pairs["genuine"]]
    lines = (folder / "pairs.csv").read_text().splitlines()
    pairs = zip(faces.pairs["left"], faces.pairs["right"], labels, strict=True)
    text = ["left,right,genuine", *(",".join(pair) for pair in pairs)]
    assert len(text) == len(lines)
    (folder / "pairs.csv").write_text("\n".join(text) + "\n")
    np.testing.assert_array_equal(load(folder).genuine, faces.pairs["genuine"] == 1)


def test_row_numbers_of_pandas_are_no_attribute(folder, faces):
    frame = pd.DataFrame(faces.images)
    frame.to_csv(folder / "images.csv")  # with its index, as pandas does unless told
    assert list(load(folder).images.attributes) == ["ethnicity", "gender"]
    (folder / "images.csv").unlink()
    frame.set_axis(range(5, 17)).to_parquet(folder / "images.parquet")
    assert list(load(folder).images.attributes) == ["ethnicity", "gender"]


def test_empty_attribute_is_unknown(folder, faces):
    images = faces.images | {"gender": ["", None, *faces.images["gender"][2:]]}
    pacsv.write_csv(pa.table(images), folder / "images.csv")
    assert load(folder).images.attributes["gender"].codes[:3].tolist() == [-1, -1, 1]


def test_folds_are_drawn_where_there_are_none(folder):
    pairs = pacsv.read_csv(folder / "pairs.csv")
    pacsv.write_csv(pairs.drop_columns("fold"), folder / "pairs.csv")
    first, again, other = (load(folder, seed=seed) for seed in (1, 1, 2))
    assert first.drawn_folds
    np.testing.assert_array_equal(first.pairs.fold, again.pairs.fold)
    assert (first.pairs.fold != other.pairs.fold).any()


def test_normalize(folder):
    assert load(folder).embeddings.normalize
    assert not load(folder, normalize=False).embeddings.normalize


def test_error_names_the_file(folder, faces):
    vectors = faces.vectors.copy()
    vectors[3] = 0
    np.save(folder / "embeddings.npy", vectors)
    with pytest.raises(DataError, match=r"faces/embeddings.npy, row 4 \(image i03\)"):
        load(folder)


def test_collected_faults_leave_pairs_out(folder):
    text = (folder / "pairs.csv").read_text().splitlines()
    text[3] = text[3].replace("i00", "nobody", 1)
    text[5] = text[5].replace("i05", "noone", 1)
    (folder / "pairs.csv").write_text("\n".join(text) + "\n")
    faults = []
    data = load(folder, on_fault=faults.append)
    assert len(data) == 64
    assert [fault.count for fault in faults] == [1, 1]
    assert [fault.example for fault in faults] == ["row 3: 'nobody'", "row 5: 'noone'"]
    with pytest.raises(DataError, match="column 'left', row 3: image 'nobody'"):
        load(folder)


# ----------------------------------------------------------------------- score tables

TABLE = {
    "genuine": [1, 0, 1, 0],
    "score": [0.9, 0.1, 0.8, -0.2],
    "ethnicity": ["Asian", "Black", "", "Asian"],
    "left_gender": ["F", "F", "M", None],
    "right_gender": ["F", "M", "M", "F"],
    "left_identity": ["a", "b", "c", "d"],
    "right_identity": ["a", "x", "c", "y"],
    "fold": [1, 2, 1, 2],
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a table in a format and returns its path."""

    def make(suffix, columns):
        path = tmp_path / f"table.{suffix}"
        if suffix == "csv":
            pacsv.write_csv(pa.table(columns), path)
        else:
            pq.write_table(pa.table(columns), path)
        return path

    return make


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "names",
    [
        *(("id1", "id2"), ("identity1", "identity2"), ("subject_1", "subject_2")),
        *(("left_subject", "right_subject"), ("left_person_id", "right_person_id")),
    ],
)
def test_people_by_their_usual_names(suffix, names, write):
    people = ["007", "8", "007", "9"], ["007", "9", "007", "8"]
    columns = {"genuine": [1, 0, 1, 0], "score": [0.9, 0.1, 0.8, -0.2]}
    path = write(suffix, columns | dict(zip(names, people, strict=True)))
    data = load(path)
    for pairs in (data, next(open_stream(path).parts())):
        assert pairs.people.names == ("007", "8", "9")
        assert [pairs.people.names[code] for code in pairs.people.left] == people[0]
        assert [pairs.people.names[code] for code in pairs.people.right] == people[1]
    assert data.attributes == ()
    # What this library writes comes first.
    columns |= dict.fromkeys(names, ["other"] * 4)
    both = {"left_identity": people[0], "right_identity": people[1]}
    assert load(write(suffix, columns | both)).people.names == ("007", "8", "9")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_score_table(suffix, write):
    data = load(write(suffix, TABLE))
    assert data.name == "table"
    assert not data.has_images
    assert list(data.features) == ["score"]
    assert data.scores.tolist() == TABLE["score"]
    assert data.genuine.tolist() == [True, False, True, False]
    assert data.pairs.fold.tolist() == [1, 2, 1, 2]
    assert data.default_attribute == "ethnicity+gender"
    ethnicity, gender = data.groups("ethnicity"), data.groups("gender")
    assert ethnicity.pair.tolist() == [0, 1, -1, 0]
    assert ethnicity.unknown.tolist() == [False, False, True, False]
    assert gender.cross.tolist() == [False, True, False, False]
    assert gender.unknown.tolist() == [False, False, False, True]
    people = data.images.identity
    left, right = (people.take(side) for side in (data.pairs.left, data.pairs.right))
    assert (left == right).tolist() == [True, False, True, False]
    assert data.embeddings is None


def test_every_floating_column_is_a_score_unless_there_is_one_so_named(write):
    two = {"genuine": [1, 0], "arc": [0.5, 0.25], "web": [0.5, 0.75], "split": [1, 2]}
    assert list(load(write("csv", two)).features) == ["arc", "web"]
    assert list(load(write("csv", two | {"score": [0.1, 0.2]})).features) == ["score"]
    data = load(write("csv", two), features=["web"])
    assert list(data.features) == ["web"]
    assert "arc" not in data.images.attributes


def test_named_score_columns_may_be_whole_numbers(write):
    path = write("csv", {"genuine": [1, 0], "points": [90, 10], "group": ["a", "b"]})
    data = load(path, features=["points"], score_range=(0, 100))
    assert data.scores.tolist() == [90, 10]
    assert list(data.images.attributes) == ["group"]


def test_probability_is_measured_beside_the_score(write):
    data = load(write("parquet", {"genuine": [1, 0], "score": [0.5, 0.1], "probability": [0.9, 0]}))
    assert data.pairs.probability.tolist() == [0.9, 0]
    assert list(data.features) == ["score"]
    only = load(write("parquet", {"genuine": [1, 0], "probability": [0.9, 0.0]}))
    assert only.scores.tolist() == [0.9, 0]


def test_whole_numbers_make_no_groups_unless_asked(write):
    columns = {"genuine": [1, 0], "score": [0.5, 0.1], "split": [1, 2], "group": ["a", "a"]}
    data = load(write("csv", columns))
    assert data.default_attribute == "group"
    assert data.groups("split").names == ("1", "2")


def test_categories_and_nested_columns_in_parquet(write):
    columns = {
        "genuine": [1, 0],
        "score": [0.5, 0.1],
        "group": pa.array(["b", "a"]).dictionary_encode(),
        "left_region": pa.array(["b", "a"]).dictionary_encode(),
        "right_region": ["b", "b"],
        "box": [[1, 2], [3, 4]],
    }
    data = load(write("parquet", columns))
    assert list(data.images.attributes) == ["group", "region"]
    assert data.groups("region").cross.tolist() == [False, True]


def test_folds_of_a_table_are_drawn_from_identities(write):
    n = 60
    columns = {
        "genuine": [1, 0] * (n // 2),
        "score": [0.5] * n,
        "left_identity": [f"p{i // 3}" for i in range(n)],
        "right_identity": [f"p{i // 3}" for i in range(n)],
    }
    data = load(write("csv", columns))
    assert data.drawn_folds
    assert (data.pairs.fold.reshape(-1, 3) == data.pairs.fold.reshape(-1, 3)[:, :1]).all()


def test_what_score_adds_makes_groups_only_where_it_is_asked_for(tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(
        "score,genuine,left_sex,right_sex,left_cluster,right_cluster,left_outside,right_outside,"
        "decision\n"
        "0.9,1,F,F,3,3,false,false,true\n0.1,0,F,M,3,2,false,true,false\n",
        encoding="utf-8",
    )
    data = load(path)
    assert data.default_attribute == "sex"
    assert data.groups("outside").names == ("false", "true")


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


@pytest.mark.parametrize("name", ["images.parquet", "pairs.parquet", "embeddings"])
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


def test_saved_ids_keep_zeros_in_front(faces, tmp_path):
    ids = [f"{i:03}" for i in range(12)]
    pairs = {"left": ["007"], "right": ["011"], "genuine": [1], "fold": [1]}
    data = Dataset(embeddings=faces.vectors, pairs=pairs, attributes={"image_id": ids})
    again = load(save_dataset(data, tmp_path / "d"))
    assert again.images.ids.to_pylist() == ids
    assert again.pairs.left.tolist() == [7]
