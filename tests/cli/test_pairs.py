"""``faircal pairs``: from a folder of images with identities to pairs that every command takes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.cli.main import main

PEOPLE, SHOTS, DIMENSION = 48, 4, 8


@pytest.fixture
def folder(tmp_path):
    """A dataset folder without pairs: people of two ethnicities and genders, four images each."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), SHOTS)
    images = {
        "image_id": [f"p{who}/{shot}.jpg" for who in range(PEOPLE) for shot in range(SHOTS)],
        "identity": [f"p{who}" for who in person],
        "ethnicity": np.where(person % 2, "Asian", "Black"),
        "gender": np.where(person // 2 % 2, "F", "M"),
    }
    vectors = rng.normal(size=(PEOPLE, DIMENSION))[person]
    home = tmp_path / "faces"
    (home / "embeddings").mkdir(parents=True)
    pacsv.write_csv(pa.table(images), home / "images.csv")
    noisy = vectors + 0.5 * rng.normal(size=vectors.shape)
    np.save(home / "embeddings/one.npy", noisy.astype(np.float32))
    return home


@pytest.fixture
def run(capsys, folder):
    def run(*words, code=0):
        with pytest.raises(SystemExit) as ended:
            main(["pairs", str(folder), *map(str, words)])
        found = capsys.readouterr()
        assert ended.value.code == code, found.err
        if code:
            assert found.out == ""
            assert found.err.startswith("faircal: ")
            assert found.err.count("\n") == 1
        return found.err if code else found

    return run


def rows(folder):
    return pacsv.read_csv(folder / "pairs.csv").to_pydict()


def people_of(folder):
    images = pacsv.read_csv(folder / "images.csv").to_pydict()
    return dict(zip(images["image_id"], images["identity"], strict=True))


@pytest.mark.parametrize("kind", ["random", "group", "cross", "cluster", "matched", "hard"])
def test_every_kind_makes_a_dataset(folder, run, kind):
    found = run("--imposters", kind, "--clusters", 2, "--ratio", 1, "--seed", 3)
    assert found.out == f"{folder / 'pairs.csv'}\n"
    data = faircal.load(folder)
    assert data.fold_names == [1, 2, 3, 4, 5]
    assert not data.drawn_folds
    assert int(data.genuine.sum()) == PEOPLE * SHOTS * (SHOTS - 1) // 2
    people = data.images.identity.codes
    assert ((people[data.pairs.left] == people[data.pairs.right]) == data.genuine).all()
    for side in (data.pairs.left, data.pairs.right):
        where = np.stack([people[side], data.pairs.fold])
        assert len(np.unique(where, axis=1).T) == len(np.unique(where[0]))
    groups = data.groups()
    strangers = ~data.genuine
    if kind == "group":
        assert (groups.pair[strangers] >= 0).all()
    if kind == "cross":
        assert groups.cross[strangers].all()


def test_the_same_seed_gives_the_same_bytes(folder, run):
    made = []
    for seed in (0, 0, 1):
        run("--seed", seed, "--replace")
        made.append((folder / "pairs.csv").read_bytes())
    assert made[0] == made[1] != made[2]


def test_sizes(folder, run):
    found = run("--genuine", 2, "--ratio", 1, "--cap", 1, "--json")
    about = json.loads(found.out)
    assert about["genuine"] == 2 * PEOPLE
    assert about["pairs"] == str(folder / "pairs.csv")
    table, people = rows(folder), people_of(folder)
    met = [
        frozenset(map(people.get, both))
        for *both, same in zip(table["left"], table["right"], table["genuine"], strict=True)
        if not same
    ]
    assert len(set(met)) == len(met) == about["imposter"]
    run("--size", 40, "--ratio", 3, "--replace")
    assert len(rows(folder)["left"]) <= 40
    run("--genuine", "all", "--replace")


def test_folds_of_the_images_are_kept(folder, run):
    table = pacsv.read_csv(folder / "images.csv")
    fold = np.repeat(np.arange(PEOPLE) % 3 + 7, SHOTS)
    pacsv.write_csv(table.append_column("fold", [fold]), folder / "images.csv")
    run()
    assert set(rows(folder)["fold"]) == {7, 8, 9}
    assert faircal.load(folder).default_attribute == "ethnicity+gender"
    run("--folds", 4, "--replace")
    assert set(rows(folder)["fold"]) == {1, 2, 3, 4}


def test_a_person_of_no_fold_is_left_out(folder, run):
    table = pacsv.read_csv(folder / "images.csv")
    fold = pa.array([None if who < SHOTS else who // SHOTS % 2 for who in range(PEOPLE * SHOTS)])
    pacsv.write_csv(table.append_column("fold", fold), folder / "images.csv")
    assert f"{SHOTS} images have no fold" in run().err
    assert not [image for image in rows(folder)["left"] if image.startswith("p0/")]


def test_images_without_a_vector_are_in_no_cluster(folder, run):
    vectors = np.load(folder / "embeddings/one.npy")
    vectors[0] = np.nan
    np.save(folder / "embeddings/one.npy", vectors)
    run("--imposters", "cluster", "--clusters", 2)
    table = rows(folder)
    assert "p0/0.jpg" not in {*table["left"], *table["right"]}


def test_many_pairs_are_written_as_parquet(folder, run, monkeypatch):
    run()
    before = rows(folder)
    monkeypatch.setattr("faircal.data.tables.MOST_CSV_ROWS", 10)
    run("--replace")
    assert not (folder / "pairs.csv").exists()
    assert pq.read_table(folder / "pairs.parquet").to_pydict() == before


def test_how_pairs_were_made_is_kept(folder, run):
    run("--imposters", "cluster", "--seed", 4, "--cap", 3)
    kept = json.loads((folder / "dataset.json").read_text())["pairs"]
    assert kept["imposters"] == "cluster"
    assert (kept["seed"], kept["cap"], kept["ratio"]) == (4, 3, 3.0)
    assert kept["attribute"] == "ethnicity+gender"


def test_clusters_are_few_where_people_are(folder, run):
    assert "clusters: 1, found without attributes" in run("--imposters", "cluster").err


class TestOut:
    def test_a_copy_of_the_folder(self, folder, run, tmp_path):
        run("--seed", 1)
        before = (folder / "pairs.csv").read_bytes()
        (folder / "embeddings/.two.partial").mkdir()
        found = run("--imposters", "hard", "--out", tmp_path / "other")
        assert found.out == f"{tmp_path / 'other' / 'pairs.csv'}\n"
        assert (folder / "pairs.csv").read_bytes() == before
        data = faircal.load(tmp_path / "other")
        assert len(data.images) == PEOPLE * SHOTS
        assert list(data.features) == ["one"]
        assert not (tmp_path / "other/embeddings/.two.partial").exists()
        assert "choose a new folder" in run("--out", tmp_path / "other", code=2)

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_a_file(self, folder, run, tmp_path, suffix):
        path = tmp_path / f"new/mine{suffix}"
        run("--out", path)
        read = pacsv.read_csv if suffix == ".csv" else pq.read_table
        assert read(path).column_names == ["left", "right", "genuine", "fold"]
        assert not (folder / "pairs.csv").exists()


class TestRefusals:
    def check(self, folder, run, *words, said):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        error = run(*words, code=2)
        for text in said:
            assert text in error
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert after == before

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--imposters", "hrad"], ["hrad", "did you mean hard"]),
            (["--ratio", "0"], ["ratio", "above 0"]),
            (["--ratio", "nan"], ["ratio", "above 0"]),
            (["--ratio", "1e20"], ["ratio", "above 0"]),
            (["--genuine", "9" * 30], ["genuine", "at most"]),
            (["--genuine", "few"], ["'all' or a number", "few"]),
            (["--genuine", "0"], ["genuine", "1 or more"]),
            (["--cap", "0"], ["cap", "1 or more"]),
            (["--size", "1"], ["size", "2 or more"]),
            (["--folds", "1"], ["folds", "2 or more"]),
            (["--folds", "50"], ["50 people", "fewer folds"]),
            (["--attribute", "race"], ["race", "known: ethnicity, gender"]),
            (["--imposters", "cluster", "--clusters", "1000"], ["n_clusters", "fewer"]),
            (
                ["--imposters", "matched", "--clusters", "49"],
                ["n_clusters", "1 to 48 (the", "fewer"],
            ),
            (["--imposters", "hard", "--feature", "two"], ["'two'", "known: one"]),
        ],
    )
    def test_options(self, folder, run, words, said):
        self.check(folder, run, *words, said=said)

    def test_pairs_that_are_there(self, folder, run):
        run()
        self.check(folder, run, said=["pairs.csv is there already", "--replace"])

    def test_no_embeddings(self, folder, run):
        (folder / "embeddings/one.npy").unlink()
        (folder / "embeddings").rmdir()
        self.check(folder, run, "--imposters", "hard", said=["embeddings", "faircal embed"])

    def test_pairs_with_scores_are_not_replaced(self, folder, run):
        run()
        table = pacsv.read_csv(folder / "pairs.csv")
        scored = table.append_column("score", [np.full(len(table), 0.5)])
        pacsv.write_csv(scored, folder / "pairs.csv")
        self.check(folder, run, "--replace", said=["pairs.csv", "scores", "--out"])

    def test_folds_in_words(self, folder, run):
        table = pacsv.read_csv(folder / "images.csv")
        fold = np.repeat(np.where(np.arange(PEOPLE) % 2, "x", "y"), SHOTS)
        pacsv.write_csv(table.append_column("fold", [fold]), folder / "images.csv")
        self.check(folder, run, said=["column 'fold'", "--folds"])

    def test_two_features(self, folder, run):
        np.save(folder / "embeddings/two.npy", np.load(folder / "embeddings/one.npy"))
        self.check(folder, run, "--imposters", "hard", said=["one, two", "--feature"])

    def test_no_groups(self, folder, run):
        table = pacsv.read_csv(folder / "images.csv").select(["image_id", "identity"])
        pacsv.write_csv(table, folder / "images.csv")
        self.check(folder, run, "--imposters", "group", said=["group", "--attribute"])

    def test_no_identities(self, folder, run):
        table = pacsv.read_csv(folder / "images.csv").drop_columns(["identity"])
        pacsv.write_csv(table, folder / "images.csv")
        self.check(folder, run, said=["no identity", "add the column"])

    def test_people_who_cross_folds(self, folder, run):
        table = pacsv.read_csv(folder / "images.csv")
        fold = np.arange(PEOPLE * SHOTS) % 2
        pacsv.write_csv(table.append_column("fold", [fold]), folder / "images.csv")
        self.check(folder, run, said=["leakage", f"{PEOPLE} of {PEOPLE} people"])

    def test_a_file(self, folder, run, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["pairs", str(folder / "images.csv")])
        assert ended.value.code == 2
        assert "expected a dataset folder" in capsys.readouterr().err
