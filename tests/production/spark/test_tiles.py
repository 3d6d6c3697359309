"""Pairs sorted to blocks: the same datasets as on one machine, from two blocks at a time."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import faircal
from faircal._base.errors import DataError
from faircal.data.types import Embeddings
from faircal.production.scoring import score_part
from faircal.production.spark import open_pairs, pairs_of, score
from faircal.production.spark.blocks import tiles
from faircal.production.spark.blocks.block import block_name
from faircal.production.spark.blocks.clusters import recall_clusters
from faircal.production.spark.blocks.folder import Blocks
from faircal.production.spark.blocks.tiles import (
    TILE,
    TiledGallery,
    TiledReader,
    _partitions,
    arranged,
)
from faircal.production.spark.session import errors_in_one_line as spoken
from tests.production.spark.blockdata import numbers, texts, write_folder

SIDES = ("left", "right")
KEPT = ("genuine", "fold", "identity", "ethnicity", "age")


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """Two folders, and their blocks: text ids with two features, and whole numbers."""
    home = tmp_path_factory.mktemp("tiles")
    found = {}
    for name, ids in (("text", texts()), ("numbers", numbers())):
        folder = write_folder(home / name, ids, two=name == "text", bad=(5, 6))
        path = home / f"{name}-blocks"
        found[name] = folder, Blocks.write(spark, folder, path, rows_per_block=20)
    return found


@pytest.fixture(params=["text", "numbers"])
def each(request, made):
    return made[request.param]


def sorted_to(blocks, table):
    """Return pairs as workers get them, sorted by tile, in small batches."""
    images = blocks.images()
    block = np.empty(len(images), dtype=np.int64)
    for number in range(blocks.n_blocks):
        block[blocks.read(number).rows] = number
    place = {name: k for k, name in zip(block.tolist(), images.ids.to_pylist(), strict=True)}
    left, right = ([place.get(name, 0) for name in table[of].to_pylist()] for of in SIDES)
    tile = np.minimum(left, right) * blocks.n_blocks + np.maximum(left, right)
    order = pa.array(np.argsort(tile, kind="stable"))
    return table.append_column(TILE, pa.array(tile)).take(order).combine_chunks().to_batches(30)


def reader_of(blocks, feature=None):
    gallery = TiledGallery(blocks, "pairs.parquet")
    return TiledReader(gallery, (-1.0, 1.0), feature or next(iter(blocks.features)), False)


def scored(model, parts):
    """Return all that a part says of its pairs, in an order that does not depend on parts."""
    return in_order(pa.concat_tables([score_part(model, part, KEPT) for part in parts]))


def in_order(table):
    columns = [table[name].to_pylist() for name in table.column_names]
    order = sorted(range(len(table)), key=lambda k: [str(of[k]) for of in columns])
    return table.take(pa.array(order)).combine_chunks()


def told(data):
    """Return groups and people of each pair, spelt out."""
    ids = [data.images.ids.take(pa.array(getattr(data.pairs, of))).to_pylist() for of in SIDES]
    columns = []
    for of in (data.groups(), data.people):
        names = (*of.names, None)  # an unknown one is −1
        columns += [[names[code] for code in codes] for codes in (of.left, of.right)]
    pairs, values = zip(*ids, strict=True), zip(*columns, strict=True)
    return dict(zip(pairs, values, strict=True))


@pytest.fixture(scope="module")
def model(made):
    data = faircal.load(made["numbers"][0])
    return faircal.FairCal(n_clusters=4).fit(data)


class TestParts:
    @pytest.mark.parametrize("few", [False, True])
    def test_same_as_the_stream(self, each, model, monkeypatch, few):
        folder, blocks = each
        monkeypatch.setattr(TiledReader, "_are_few", lambda *_: few)
        monkeypatch.setattr(tiles, "PART", 40)  # tiles of several parts
        pairs = pq.read_table(folder / "pairs.parquet")
        parts = list(reader_of(blocks).parts(sorted_to(blocks, pairs)))
        assert sum(map(len, parts)) == len(pairs)
        assert max(len(part.images) for part in parts) < len(blocks)
        local = scored(model, [faircal.load(folder)])
        assert scored(model, parts).equals(local)  # to the last bit

    def test_groups_and_people(self, each):
        folder, blocks = each
        data = faircal.load(folder)
        pairs = pq.read_table(folder / "pairs.parquet")
        found = {}
        for part in reader_of(blocks).parts(sorted_to(blocks, pairs)):
            assert part.default_attribute == data.default_attribute
            found |= told(part)
        assert found == told(data)

    def test_the_feature_in_use_alone_is_read(self, made):
        folder, blocks = made["text"]
        pairs = pq.read_table(folder / "pairs.parquet")
        part = next(reader_of(blocks, "beta").parts(sorted_to(blocks, pairs)))
        assert list(part.features) == ["beta"]
        assert part.embeddings.vectors.dtype == np.float16

    def test_ready_made_scores(self, made):
        folder, blocks = made["numbers"]
        pairs = pq.read_table(folder / "pairs.parquet")
        pairs = pairs.append_column("score", pa.array(np.linspace(-1, 1, len(pairs))))
        parts = list(reader_of(blocks).parts(sorted_to(blocks, pairs)))
        assert sorted(np.concatenate([part.scores for part in parts])) == pairs["score"].to_pylist()

    def test_no_more_than_two_blocks(self, made, monkeypatch, request):
        folder, blocks = made["numbers"]
        blocks_read, most, read = [], 0, Blocks.read

        def watched(self, number):
            nonlocal most
            gc.collect()
            block = read(self, number)
            blocks_read.append(weakref.ref(block))
            most = max(most, sum(of() is not None for of in blocks_read))
            return block

        request.addfinalizer(gc.unfreeze)
        gc.freeze()  # what is there already need not be looked through each time
        monkeypatch.setattr(Blocks, "read", watched)
        pairs = pq.read_table(folder / "pairs.parquet")
        batches = sorted_to(blocks, pairs)
        del blocks_read[:]
        most = 0
        for part in reader_of(blocks).parts(batches):
            assert len(part.images)
            del part
        assert most == 2
        # Tiles (0, 0), (0, 1), …, (1, 1), …: the first block stays while the second changes.
        n = blocks.n_blocks
        assert len(blocks_read) <= n * (n + 1) // 2
        gc.collect()
        assert not any(of() is not None for of in blocks_read)  # nothing is held after the last


class TestErrors:
    @pytest.fixture(params=[False, True])
    def few(self, request, monkeypatch):
        monkeypatch.setattr(TiledReader, "_are_few", lambda *_: request.param)

    def fails(self, blocks, said, **pairs):
        table = pa.table(pairs)
        with pytest.raises(DataError, match=said) as caught:
            list(reader_of(blocks).parts(sorted_to(blocks, table)))
        assert "\n" not in str(caught.value)

    @pytest.mark.usefixtures("few")
    def test_an_image_that_is_in_no_block(self, each):
        _, blocks = each
        ids = blocks.images().ids.to_pylist()
        other = "nobody" if blocks.ids == "string" else 12345
        self.fails(
            blocks,
            f"column 'right', in one of its rows: image {other!r} is not among the images",
            left=[ids[0], ids[1]],
            right=[ids[1], other],
        )
        self.fails(blocks, "is not among the images", left=[other], right=[other])

    def test_empty_blocks(self, spark, tmp_path):
        folder = write_folder(tmp_path / "faces", texts(6))
        blocks = Blocks.write(spark, folder, tmp_path / "blocks", rows_per_block=1)
        empty = int(np.flatnonzero(blocks.sizes == 0)[0])
        tile = empty * (blocks.n_blocks + 1)
        batch = pa.record_batch({"left": ["x"], "right": ["y"], TILE: [tile]})
        with pytest.raises(DataError, match="image 'x' is not among the images"):
            list(reader_of(blocks).parts([batch]))
        tile = TiledGallery(blocks).tile(empty, empty)
        assert (len(tile.images), tile.features["embedding"].vectors.shape) == (0, (0, 12))

    @pytest.mark.usefixtures("few")
    def test_a_vector_that_is_none(self, each):
        _, blocks = each
        ids = blocks.images().ids.to_pylist()
        self.fails(blocks, r"NaN, infinite or zero vector", left=[ids[0]], right=[ids[5]])

    def test_a_label_that_is_none(self, each):
        _, blocks = each
        ids = blocks.images().ids.to_pylist()
        self.fails(
            blocks,
            "expected 0, 1, true or false, found 'perhaps'",
            left=[ids[0]],
            right=[ids[1]],
            genuine=["perhaps"],
        )

    def test_a_block_that_is_gone(self, made, tmp_path):
        folder, blocks = made["numbers"]
        for file in Path(blocks.place.path).glob("block*"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        batches = sorted_to(blocks, pq.read_table(folder / "pairs.parquet"))
        (tmp_path / block_name(2)).unlink()
        with pytest.raises(DataError, match=r"block-000002\.arrow: no such file"):
            list(reader_of(Blocks.open(tmp_path)).parts(batches))


class TestGallery:
    def test_tiles(self, each):
        folder, blocks = each
        data, gallery = faircal.load(folder), TiledGallery(blocks)
        name = data.feature
        assert gallery.block_sizes.sum() == len(data.images)
        assert gallery.features[name].vectors.shape == (0, 12)
        assert gallery.features[name].normalize
        for i, j in ((0, 0), (1, 3), (1, 4)):
            tile = gallery.tile(i, j)
            wanted = [blocks.read(k).rows for k in dict.fromkeys((i, j))]
            np.testing.assert_array_equal(tile.rows, np.concatenate(wanted))
            assert tile.images.ids.equals(data.images.ids.take(pa.array(tile.rows)))
            assert tile.images.crossed == data.images.crossed
            found = tile.features[name]
            np.testing.assert_array_equal(found.vectors, data.embeddings.vectors[tile.rows])
            np.testing.assert_array_equal(found.norms, data.embeddings.norms[tile.rows])
            for ours, whole in (
                (tile.images.identity, data.images.identity),
                (tile.images.attributes["age"], data.images.attributes["age"]),
            ):
                codes = whole.codes[tile.rows]
                assert [ours.names[c] if c >= 0 else None for c in ours.codes] == [
                    whole.names[c] if c >= 0 else None for c in codes
                ]
        assert gallery.tile(1, 4) is tile

    def test_it_travels_without_what_was_read(self, made):
        _, blocks = made["text"]
        gallery = TiledGallery(blocks)
        before = len(pickle.dumps(gallery))
        gallery.tile(0, 1).features["alpha"]
        assert len(gallery.images) == len(blocks)
        assert len(pickle.dumps(gallery)) == before

    @pytest.mark.parametrize("marked", [True, False])
    def test_pairs_on_the_driver(self, each, model, marked):
        folder, blocks = each
        table = pq.read_table(folder / "pairs.parquet").slice(0, 7)
        given = pa.Table.from_batches(sorted_to(blocks, table)) if marked else table
        part = reader_of(blocks).local(given)
        assert len(part.images) == len(part.used_images())
        local = faircal.load(folder).subset(np.arange(7))
        assert scored(model, [part]).equals(scored(model, [local]))


class TestRecall:
    """Clusters are kept beside blocks; nothing else may change by it."""

    @pytest.fixture
    def blocks(self, made, tmp_path):
        _, blocks = made["numbers"]
        for file in Path(blocks.place.path).iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        return Blocks.open(tmp_path)

    def score(self, made, blocks, model):
        folder, _ = made["numbers"]
        pairs = pq.read_table(folder / "pairs.parquet")
        parts = []
        for part in reader_of(blocks).parts(sorted_to(blocks, pairs)):
            recall_clusters(model, part)
            parts.append(part)
        return scored(model, parts)

    def test_same_numbers(self, made, blocks, model, tmp_path, monkeypatch):
        expected = scored(model, [faircal.load(made["numbers"][0])])
        assert self.score(made, blocks, model).equals(expected)
        kept = sorted(tmp_path.glob("*.clusters-*.arrow"))
        assert len(kept) == blocks.n_blocks
        # Each image is looked at no more: all clusters are known.
        monkeypatch.setattr(Embeddings, "rows", None)
        assert self.score(made, blocks, model).equals(expected)

    def test_damaged_ones_are_found_again(self, made, blocks, model, tmp_path):
        expected = self.score(made, blocks, model)
        for file in tmp_path.glob("*.clusters-*.arrow"):
            file.write_bytes(file.read_bytes()[:-9])
        assert self.score(made, blocks, model).equals(expected)

    def test_another_model_has_others(self, made, blocks, model, tmp_path):
        self.score(made, blocks, model)
        other = faircal.FairCal(n_clusters=3).fit(faircal.load(made["numbers"][0]))
        expected = scored(other, [faircal.load(made["numbers"][0])])
        assert self.score(made, blocks, other).equals(expected)
        assert len({file.name.split("-")[2] for file in tmp_path.glob("*.clusters-*")}) == 2

    def test_nowhere_to_write(self, made, blocks, model, monkeypatch):
        def fail(*_):
            raise PermissionError("read-only")

        monkeypatch.setattr("faircal.production.spark.blocks.places.atomic_path", fail)
        expected = scored(model, [faircal.load(made["numbers"][0])])
        assert self.score(made, blocks, model).equals(expected)

    def test_other_methods_and_data_are_left_alone(self, made, blocks, model, tmp_path):
        data = faircal.load(made["numbers"][0])
        self.score(made, blocks, faircal.Baseline().fit(data))
        recall_clusters(model, data)
        assert not list(tmp_path.glob("*.clusters-*"))

    def test_vectors_of_another_network(self, made, model):
        folder, blocks = made["text"]
        pairs = pq.read_table(folder / "pairs.parquet")
        part = next(reader_of(blocks, "beta").parts(sorted_to(blocks, pairs)))
        with pytest.raises(DataError, match="expected 12-d embeddings"):
            recall_clusters(model, part)


class TestSpark:
    """The whole way: frame, workers, and errors in one line."""

    def test_same_as_on_one_machine(self, spark, each, model):
        folder, blocks = each
        pairs = open_pairs(spark, folder, embeddings="tiles", blocks=blocks.place.path)
        assert pairs.gallery.blocks.reused
        assert pairs.group_names("age") == ("20", "21", "22")
        assert len(pairs.head()) == 16
        found = score(model, pairs, keep=KEPT).toArrow()
        local = score_part(model, faircal.load(folder), KEPT)
        assert in_order(found.cast(local.schema)).equals(in_order(local))

    def test_blocks_at_an_address(self, spark, made, tmp_path):
        folder, _ = made["text"]
        place = f"file://{tmp_path}/blocks"
        pairs = open_pairs(spark, folder, embeddings="tiles", blocks=place)
        assert pairs.gallery.blocks.place.path == place
        assert Blocks.open(tmp_path / "blocks").n_blocks == pairs.gallery.blocks.n_blocks

    def test_an_image_that_is_in_no_block(self, spark, made, model):
        _, blocks = made["text"]
        ids = blocks.images().ids.to_pylist()
        rows = [(ids[0], ids[k]) for k in range(7, 60)]
        frame = spark.createDataFrame([*rows, (ids[0], "nobody")], "left string, right string")
        scored = score(model, pairs_of(frame, blocks.using(["alpha"], True)))
        with (
            pytest.raises(DataError, match="image 'nobody' is not among the images") as caught,
            spoken(),
        ):
            scored.collect()
        assert "\n" not in str(caught.value)


class TestArranged:
    @pytest.mark.parametrize("n_blocks", [1, 12])
    def test_tiles_come_together(self, spark, n_blocks):
        rng = np.random.default_rng(0)
        pairs = pa.table({"left": rng.integers(0, 500, 3000), "right": rng.integers(0, 500, 3000)})
        frame = spark.createDataFrame(pairs)

        def look(batches):
            tiles = [batch[TILE].to_numpy() for batch in batches]
            if tiles:
                tile = np.concatenate(tiles)
                ordered = bool((np.diff(tile) >= 0).all())
                yield pa.record_batch({"rows": [len(tile)], "sorted": [ordered]})

        found = arranged(frame, "int64", n_blocks, "pairs").cache()
        try:
            told = found.mapInArrow(look, "rows long, sorted boolean").toArrow()
            every = found.toArrow()
        finally:
            found.unpersist()
        assert all(told["sorted"].to_pylist())
        assert len(told) > 1  # even one tile is shared out
        order = [("left", "ascending"), ("right", "ascending")]
        assert every.drop_columns([TILE]).sort_by(order).equals(pairs.sort_by(order))
        assert set(every[TILE].to_pylist()) == {
            i * n_blocks + j for i in range(n_blocks) for j in range(i, n_blocks)
        }

    def test_number_of_partitions_left_to_a_service(self, spark):
        settings = {"spark.sql.shuffle.partitions": "auto"}
        frame = SimpleNamespace(sparkSession=SimpleNamespace(conf=settings))
        assert _partitions(frame) == 200
        assert _partitions(spark.range(1)) == 4
