"""Folders of block files: what goes in comes out, once, and whatever is wrong is said."""

from __future__ import annotations

import json
import pickle
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from faircal._base.errors import DataError, ParameterError
from faircal.data.dataset_folder import read_images
from faircal.production.spark.blocks.block import VectorKind, block_name
from faircal.production.spark.blocks.folder import HEADER, Blocks
from faircal.production.spark.blocks.places import SharedFolder
from faircal.production.spark.blocks.sources import FolderSource, FrameSource
from faircal.production.spark.blocks.tiles import TILE, with_tiles
from faircal.production.spark.blocks.writing import Writer
from tests.production.spark.blockdata import N, numbers, same_column, texts, write_folder


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory):
    """A folder with text ids and two features, and its blocks: nobody changes them."""
    home = tmp_path_factory.mktemp("blocks")
    folder = write_folder(home / "faces", texts(), two=True)
    return folder, Blocks.write(spark, folder, home / "blocks", rows_per_block=10)


def copied(blocks, path):
    """Return the path of a copy of a folder of blocks."""
    path.mkdir()
    for file in Path(blocks.place.path).iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    return path


def check_same(blocks, folder, features=None):
    """Every image is in one block, with all that the folder says of it."""
    expected = read_images(folder, features)
    read = [blocks.read(k) for k in range(blocks.n_blocks)]
    rows = np.concatenate([block.rows for block in read])
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(expected.images)))
    assert all((np.diff(block.rows) > 0).all() for block in read)
    for name, (_, matrix) in expected.embeddings.items():
        stored = np.concatenate([block.vectors(name) for block in read])
        assert stored.dtype == matrix.vectors.dtype
        np.testing.assert_array_equal(stored, matrix.vectors[rows])
        norms = np.concatenate([block.norms[name] for block in read])
        np.testing.assert_array_equal(norms, matrix.norms[rows])
    images = blocks.images()
    assert images.ids.equals(expected.images.ids)
    assert images.crossed == expected.images.crossed
    assert same_column(images.identity, expected.images.identity)
    assert list(images.attributes) == list(expected.images.attributes)
    for name, column in expected.images.attributes.items():
        assert same_column(images.attributes[name], column)
        assert images.attributes[name].names == column.names


class TestFolder:
    def test_text_ids_and_two_features_come_back(self, written):
        folder, blocks = written
        assert blocks.n_blocks == 9
        assert blocks.ids == "string"
        assert blocks.crossed == ("ethnicity", "age", "file name")
        assert not blocks.reused
        check_same(blocks, folder)
        check_same(Blocks.open(blocks.place.path), folder)

    def test_integer_ids_and_empty_blocks(self, spark, tmp_path):
        folder = write_folder(tmp_path / "faces", numbers(20))
        (folder / "dataset.json").write_text('{"name": "few", "attribute": "age"}')
        blocks = Blocks.write(spark, str(folder), tmp_path / "blocks", rows_per_block=1)
        assert blocks.ids == "int64"
        assert (blocks.sizes == 0).any()
        assert (blocks.name, blocks.crossed) == ("few", ("age",))
        assert blocks.provenance["attribute"] == "age"
        check_same(blocks, folder)

    def test_vectors_are_mapped(self, written):
        _, blocks = written
        vectors = blocks.read(0).vectors("alpha")
        assert not vectors.flags.owndata
        assert not vectors.flags.writeable

    def test_it_travels(self, written):
        _, blocks = written
        again = pickle.loads(pickle.dumps(blocks))  # noqa: S301
        assert again.read(1).images.ids.equals(blocks.read(1).images.ids)

    def test_long_files_are_read_window_by_window(self, tmp_path, monkeypatch):
        folder = write_folder(tmp_path / "faces", numbers())
        source = FolderSource.of(folder, None)
        rows = np.array([0, 3, 40, 41, 89])
        monkeypatch.setattr("faircal.production.spark.blocks.sources._WINDOW", 4 * 12 * 4)
        stored = np.load(folder / "embeddings.npy")
        np.testing.assert_array_equal(source.vectors("embedding", None, rows), stored[rows])

    def test_float64_becomes_float32(self, tmp_path):
        folder = write_folder(tmp_path / "faces", numbers(9))
        np.save(folder / "embeddings.npy", np.random.default_rng(0).random((9, 3)))
        source = FolderSource.of(folder, None)
        taken = source.vectors("embedding", None, np.arange(9))
        np.testing.assert_array_equal(taken, np.load(folder / "embeddings.npy").astype(np.float32))

    def test_archives_are_refused(self, tmp_path):
        folder = write_folder(tmp_path / "faces", numbers(9))
        np.savez(folder / "embeddings.npz", a=np.load(folder / "embeddings.npy"))
        (folder / "embeddings.npy").unlink()
        with pytest.raises(DataError, match="row by row"):
            FolderSource.of(folder, None)

    def test_a_worker_that_sees_another_file(self, tmp_path):
        folder = write_folder(tmp_path / "faces", numbers(9))
        source = FolderSource.of(folder, None)
        np.save(folder / "embeddings.npy", np.zeros((4, 12), np.float32))
        with pytest.raises(DataError, match="sees another file"):
            source.vectors("embedding", None, np.arange(3))
        (folder / "embeddings.npy").unlink()
        with pytest.raises(DataError, match="all machines see"):
            source.vectors("embedding", None, np.arange(3))


class TestTwice:
    """A task may be run again, or by two workers at a time."""

    @pytest.fixture
    def task(self, written, tmp_path):
        folder, blocks = written
        path = copied(blocks, tmp_path / "blocks")
        source = FolderSource.of(folder, None)
        table = source.table
        parts = []
        for number in range(blocks.n_blocks):
            some = table.take(pa.array(blocks.read(number).rows))
            parts.append(some.append_column("block", pa.array(np.full(len(some), number))))
        return Writer(SharedFolder(str(path)), source, None), pa.concat_tables(parts), path

    def test_the_same_files(self, task):
        writer, table, path = task
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        (path / block_name(3)).unlink()
        found = list(writer(table.to_batches(7)))
        assert sum(batch["images"][0].as_py() for batch in found) == N
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before

    def test_one_that_fails_leaves_nothing(self, task, monkeypatch):
        writer, table, path = task
        before = {file.name: file.read_bytes() for file in path.iterdir()}

        def fail(*_):
            raise OSError("no room")

        monkeypatch.setattr("pyarrow.ipc.new_file", fail)
        with pytest.raises(OSError, match="no room"):
            list(writer(table.to_batches()))
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before


class TestAgain:
    def test_unchanged_data_is_not_written_again(self, spark, written):
        folder, blocks = written
        times = [file.stat().st_mtime_ns for file in Path(blocks.place.path).iterdir()]
        said = []
        again = Blocks.write(
            spark,
            folder,
            blocks.place.path,
            features=["beta"],
            normalize=False,
            progress=lambda *words: said.append(words),
        )
        assert again.reused
        assert said == [("blocks", 9, 9, "there already: the data has not changed")]
        assert (list(again.features), again.normalize) == (["beta"], False)
        assert [f.stat().st_mtime_ns for f in Path(blocks.place.path).iterdir()] == times

    def test_changed_data_is_refused(self, spark, tmp_path, written):
        _, blocks = written
        folder = write_folder(tmp_path / "faces", texts(), two=True)
        with pytest.raises(ParameterError, match="as it was before, or of another folder"):
            Blocks.write(spark, folder, blocks.place.path)

    def test_a_touched_file_counts_as_changed(self, spark, written, tmp_path):
        folder, blocks = written
        path = copied(blocks, tmp_path / "blocks")
        header = json.loads((path / HEADER).read_text())
        header["stamps"]["embeddings beta"][2] += 1
        (path / HEADER).write_text(json.dumps(header))
        with pytest.raises(ParameterError, match="as it was before"):
            Blocks.write(spark, folder, path)
        assert Blocks.write(spark, folder, path, features=["alpha"]).reused

    def test_other_sizes_are_refused(self, spark, written):
        folder, blocks = written
        with pytest.raises(ParameterError, match="9 blocks of other sizes than 30"):
            Blocks.write(spark, folder, blocks.place.path, rows_per_block=30)

    def test_foreign_files_are_left_alone(self, spark, written, tmp_path):
        folder, _ = written
        (tmp_path / "thesis.txt").write_text("all I have")
        with pytest.raises(ParameterError, match=r"found thesis\.txt"):
            Blocks.write(spark, folder, tmp_path)

    def test_what_was_cut_short_is_written_over(self, spark, tmp_path):
        folder = write_folder(tmp_path / "faces", numbers(9))
        path = tmp_path / "blocks"
        path.mkdir()
        for name in (block_name(0), block_name(77), f".{block_name(1)}.x1y.tmp"):
            (path / name).write_bytes(b"half")
        blocks = Blocks.write(spark, folder, path, rows_per_block=4)
        assert sorted(file.name for file in path.iterdir()) == [*map(block_name, range(3)), HEADER]
        check_same(blocks, folder)

    def test_a_file_in_its_place(self, spark, written, tmp_path):
        folder, _ = written
        (tmp_path / "blocks").write_text("not a folder")
        with pytest.raises(ParameterError, match="expected a folder"):
            Blocks.write(spark, folder, tmp_path / "blocks")


class TestDamage:
    def test_no_blocks(self, tmp_path):
        with pytest.raises(DataError, match=r"no blocks\.json in it"):
            Blocks.open(tmp_path / "nowhere")

    @pytest.mark.parametrize("content", ["{", "[]", '{"format": "other", "version": 1}'])
    def test_foreign_header(self, tmp_path, content):
        (tmp_path / HEADER).write_text(content)
        with pytest.raises(DataError, match="not the description of blocks") as caught:
            Blocks.open(tmp_path)
        assert "\n" not in str(caught.value)

    def test_files(self, written, tmp_path):
        _, blocks = written
        path = copied(blocks, tmp_path / "blocks")
        whole = (path / block_name(0)).read_bytes()
        for content, said in (
            (whole[: len(whole) // 2], "cannot be read"),
            (b"", "cannot be read"),
            ((path / block_name(1)).read_bytes(), "found another file"),
        ):
            (path / block_name(0)).write_bytes(content)
            with pytest.raises(DataError, match=said) as caught:
                Blocks.open(path).read(0)
            assert "\n" not in str(caught.value)
        (path / block_name(0)).unlink()
        with pytest.raises(DataError, match="no such file"):
            Blocks.open(path).read(0)


class TestFrame:
    def templates(self, spark, **changes):
        rng = np.random.default_rng(1)
        n = 40
        columns = {
            "image_id": pa.array([f"t{k}" for k in range(n)]),
            "alpha": pa.array(rng.standard_normal((n, 4)).tolist(), pa.list_(pa.float32())),
            "beta": pa.array(rng.standard_normal((n, 3)).tolist(), pa.list_(pa.float64())),
            "identity": pa.array(rng.integers(0, 9, n), pa.int32()),
            "gen.der": pa.array([["F", "M", " ", None][k % 4] for k in range(n)]),
            "year": pa.array([None if k % 9 == 0 else float(2000 + k % 3) for k in range(n)]),
            "quality": pa.array(rng.random(n)),
            "tags": pa.array([["x"]] * n),
        }
        table = pa.table({**columns, **changes})
        return table, spark.createDataFrame(table)

    def test_everything_comes_back(self, spark, tmp_path):
        table, frame = self.templates(spark)
        blocks = Blocks.write(spark, frame, tmp_path / "blocks", rows_per_block=9)
        assert (blocks.attributes, blocks.crossed) == (("gen.der", "year"), ("gen.der", "year"))
        images = blocks.images()
        assert sorted(images.ids.to_pylist()) == sorted(table["image_id"].to_pylist())
        rows = np.concatenate([blocks.read(k).rows for k in range(blocks.n_blocks)])
        np.testing.assert_array_equal(rows, np.arange(40))
        where = {name: k for k, name in enumerate(table["image_id"].to_pylist())}
        order = [where[name] for name in images.ids.to_pylist()]
        for name in ("alpha", "beta"):
            stored = np.concatenate([blocks.read(k).vectors(name) for k in range(blocks.n_blocks)])
            given = np.array(table[name].to_pylist(), np.float32)
            np.testing.assert_array_equal(stored, given[order])
        gender, year = images.attributes["gen.der"], images.attributes["year"]
        assert (gender.names, year.names) == (("F", "M"), ("2000", "2001", "2002"))
        assert [gender.names[c] if c >= 0 else None for c in gender.codes] == [
            {"F": "F", "M": "M"}.get(table["gen.der"][k].as_py()) for k in order
        ]
        people = images.identity
        assert [people.names[c] for c in people.codes] == [
            str(table["identity"][k].as_py()) for k in order
        ]
        with pytest.raises(ParameterError, match=r"Blocks\.open"):
            Blocks.write(spark, frame, tmp_path / "blocks")

    def test_what_is_wrong_is_said(self, spark, tmp_path):
        ragged = pa.array([[1.0, 2.0]] * 39 + [[1.0]], pa.list_(pa.float32()))
        _, frame = self.templates(spark, alpha=ragged)
        said = "column 'alpha': expected vectors of 2 numbers, found one of 1"
        with pytest.raises(DataError, match=said) as caught:
            Blocks.write(spark, frame, tmp_path / "blocks")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "blocks" / HEADER).exists()

    @pytest.mark.parametrize(
        ("ids", "vectors", "said"),
        [
            (["a", "b", "a"], [[1.0]] * 3, "id 'a' is not unique"),
            (["a", None, "b"], [[1.0]] * 3, "empty id"),
            (["a", "b", "c"], [[1.0], None, [1.0]], "vectors of 1 numbers, found one of 0"),
            (["a", "b"], [[1.0]] * 2, "change from one time to the next"),
        ],
    )
    def test_what_a_worker_finds(self, tmp_path, ids, vectors, said):
        source = FrameSource(
            "t", "t", {}, 3, "string", {"of": VectorKind(1, "float32")}, False, (), None
        )
        writer = Writer(SharedFolder(str(tmp_path)), source, np.array([0, 3]))
        columns = {
            "block": np.zeros(len(ids), np.int64),
            "image_id": pa.array(ids, pa.string()),
            "vector:0": pa.array(vectors, pa.list_(pa.float32())),
        }
        with pytest.raises(DataError, match=said):
            list(writer(pa.table(columns).to_batches()))
        assert list(tmp_path.iterdir()) == []

    def test_columns(self, spark, tmp_path):
        _, frame = self.templates(spark)
        for given, said in (
            (frame.drop("image_id"), "expected a column 'image_id'"),
            (frame.drop("alpha", "beta"), "array of float or double"),
            (frame.withColumn("image_id", frame["quality"]), "whole numbers or text, found double"),
            (frame.withColumn("a+b", frame["quality"]), r"cannot hold '\+'"),
            (frame.limit(0), "at least one image"),
        ):
            with pytest.raises(DataError, match=said):
                Blocks.write(spark, given, tmp_path / "blocks")
        with pytest.raises(DataError, match="did you mean alpha"):
            Blocks.write(spark, frame, tmp_path / "blocks", features=["alhpa"])


class TestIds:
    """The same id is in the same block, in whatever type it comes."""

    def test_types(self, spark):
        kinds = ("long", "int", "smallint", "string", "decimal(20,0)")
        written = spark.createDataFrame([("7", "12"), ("-3", "7")], "left string, right string")
        odd = spark.createDataFrame([("007", "x"), (None, "")], "left string, right string")
        none = spark.createDataFrame([(None, None)] * 2, "left long, right long")
        frames = [(odd, "int64"), (none, "int64")]
        for kind in kinds:
            cast = written.select(*(written[side].cast(kind) for side in ("left", "right")))
            frames += [(cast, "int64"), (cast, "string")]
        tiles = [
            with_tiles(frame, ids, 1000, "pairs").select(TILE, F.lit(k).alias("k"))
            for k, (frame, ids) in enumerate(frames)
        ]
        rows = reduce(DataFrame.union, tiles).collect()
        found = [[row[TILE] for row in rows if row["k"] == k] for k in range(len(frames))]
        assert found[0] == found[1]  # what is no number is like no id
        assert all(tile == found[2] for tile in found[2::2])
        assert all(tile == found[3] for tile in found[3::2])

    def test_fractions_are_refused(self, spark):
        frame = spark.createDataFrame([(1.0, 2)], "left double, right long")
        with pytest.raises(DataError, match="column 'left': expected ids that are whole numbers"):
            with_tiles(frame, "int64", 4, "pairs")


class Elsewhere(SharedFolder):
    """Storage that has no path on this machine, for all that anybody knows."""

    @property
    def _at(self):
        return pafs.SubTreeFileSystem(self.path, pafs.LocalFileSystem()), "deep"


class TestPlaces:
    def test_addresses(self, tmp_path):
        place = SharedFolder(tmp_path.as_uri())
        assert place.local == tmp_path
        with pytest.raises(ParameterError, match="not a place for files"):
            SharedFolder("nonsense://x").names()

    def test_storage_elsewhere(self, tmp_path):
        place = pickle.loads(pickle.dumps(Elsewhere(str(tmp_path))))  # noqa: S301
        assert place.local is None
        assert place.names() == []
        assert place.read("a") is None
        batch = pa.record_batch({"x": [1, 2]})
        place.write_batch("a", batch)
        place.write_batch("a", batch)
        assert place.names() == ["a"]
        assert place.read_batch("a").equals(batch)
        with pytest.raises(DataError, match="no such file"):
            place.read_batch("b")
        place.remove("a")
        place.remove("a")
        assert list((tmp_path / "deep").iterdir()) == []

    def test_what_fails_elsewhere_leaves_nothing(self, tmp_path):
        def fail(stream):
            raise OSError("no room")

        with pytest.raises(ParameterError, match="no room"):
            Elsewhere(str(tmp_path)).write("a", fail)
        assert list((tmp_path / "deep").iterdir()) == []
