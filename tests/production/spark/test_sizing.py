"""Sizes of jobs: arithmetic by hand, and Spark's own hashes."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.errors import ParameterError
from faircal.production.spark.sizing.planning import plan
from faircal.production.spark.sizing.resources import Rates, duration, size
from faircal.production.spark.sizing.volumes import (
    SHARES,
    Dealt,
    fullest,
    naive_bytes,
    row_bytes,
    tiles_of,
)


def test_a_job_by_hand():
    rates = Rates(
        read=1, shuffle=2, score=3, write=4, vector=5, load=6, tile=0, worker=100, image=10, pair=0
    )
    found = plan(
        1000,
        2_000_000,
        dimension=100,
        rows_per_block=500,
        executors=1,
        cores=1,
        heap=1000,
        price=2,
        rates=rates,
    )
    assert (found.blocks, found.tiles, found.partitions) == (2, 3, 6)
    assert found.vector_bytes == 1000 * 400
    assert found.task_bytes == 100 + 2 * 500 * 410
    assert found.executor_bytes == 1000 + found.task_bytes
    assert found.shuffle_bytes == 2e6 * row_bytes(1000, 2, kept=["genuine"])
    # 24 shares: each of the three tiles in eight pieces, one of two blocks and two of one.
    assert found.read_bytes == 8 * (1 + 1 + 2) * 500 * 400
    seconds = 2 * (1 + 2 + 3 + 5 + 4) + 6 * found.read_bytes / 1e9
    assert found.core_hours == pytest.approx(seconds / 3600)
    assert found.cost == pytest.approx(2 * seconds / 3600)


def test_vectors_within_reach():
    mapped = plan(1000, 10**6, way="map", executors=3, cores=4, dimension=10)
    sent = plan(1000, 10**6, way="send", executors=3, cores=4, dimension=10)
    assert mapped.read_bytes == 3 * 1000 * 40
    assert sent.read_bytes == 12 * 1000 * 40
    assert sent.task_bytes - mapped.task_bytes == 1000 * 40
    assert mapped.shuffle_bytes == sent.shuffle_bytes == 0
    assert sent.executor_bytes - mapped.executor_bytes == 3 * 1000 * 40  # four copies, not one
    assert (mapped.blocks, mapped.tiles) == (0, 0)
    assert mapped.partitions == 72


def test_more_memory_makes_no_job_longer():
    few = plan(10**8, 10**10, task_memory=5e8, executors=50)
    much = plan(10**8, 10**10, task_memory=8e9, executors=50)
    assert few.task_bytes <= 5e8
    assert much.task_bytes <= 8e9
    assert much.hours <= few.hours
    assert much.shuffle_bytes <= few.shuffle_bytes


def test_ids_are_a_hundredth_of_vectors():
    found = plan(10**7, 10**9)
    assert found.naive_bytes / found.shuffle_bytes > 100
    assert found.naive_bytes == naive_bytes(10**7, 10**9, 2048)
    assert naive_bytes(10**7, 10**9, 2048) > 10**9 * 2048


def test_of_tiles_with_few_pairs_only_their_images_are_read():
    found = plan(10**7, 10**6, rows_per_block=100_000)
    assert found.tiles == 5050  # 198 pairs each, and 200,000 images
    assert found.read_bytes == 2 * 10**6 * 2048


@pytest.mark.parametrize(
    ("blocks", "partitions", "least"), [(153, 200, 0.9), (60, 40, 0.9), (10, 3, 0.8), (5, 50, 0.6)]
)
def test_loads_of_blocks_are_those_of_a_simulation(blocks, partitions, least):
    from studies.spark.hashing import partitions_of, pieces_of

    if tiles_of(blocks) < SHARES * partitions:
        tiles, home = pieces_of(blocks, partitions)
    else:
        one, two = np.triu_indices(blocks)
        tiles = one * blocks + two
        home = partitions_of(tiles, blocks, partitions)
    loads = 0
    for number in range(partitions):
        held = set()
        for tile in np.sort(tiles[home == number]).tolist():
            wanted = set(divmod(tile, blocks))
            loads += len(wanted - held)
            held = wanted
    # Where shares with the same first block meet in a partition, it is loaded once for both.
    expected = Dealt.of(blocks, partitions)
    assert least * expected.loads < loads <= expected.loads


@pytest.mark.parametrize(("things", "bins"), [(1000, 1000), (11781, 300), (10**5, 100), (5, 1)])
def test_the_fullest_bin(things, bins):
    rng = np.random.default_rng(0)
    found = [np.bincount(rng.integers(0, bins, things)).max() for _ in range(50)]
    assert fullest(things, bins) == pytest.approx(np.mean(found), abs=0.8, rel=0.02)


def test_what_is_printed():
    text = str(plan(10**7, 10**9, executors=25))
    assert "10,000,000 × 512, 20.5 GB" in text
    assert "cost" in text.splitlines()[-1]
    assert "tiles" not in str(plan(10**6, 10**8, way="map")).replace("files", "")
    assert (size(0), size(1234), size(2.5e12), size(99.96e9)) == (
        "0 B",
        "1.23 kB",
        "2.5 TB",
        "100 GB",
    )
    assert (duration(0.001), duration(1), duration(100)) == ("4 s", "60 min", "100 h")


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ({"way": "tile"}, "way: unknown way 'tile'; did you mean tiles"),
        ({"way": "map", "rows_per_block": 5}, "rows_per_block: is for way 'tiles'"),
        ({"rows_per_block": 0}, "rows_per_block: expected a whole number"),
        ({"task_memory": 1e8}, "task_memory: expected more than"),
        ({"executors": 0}, "executors: expected a whole number"),
        ({"dimension": 0}, "dimension: expected a whole number"),
    ],
)
def test_what_is_refused(of, message):
    with pytest.raises(ParameterError, match=message):
        plan(1000, 1000, **of)


def test_hashes_are_sparks(spark):
    from pyspark.sql import functions as F  # noqa: N812

    from studies.spark.hashing import blocks_of, murmur3, xxhash64

    numbers = (
        spark.range(-50, 2000, 7)
        .select(
            "id",
            F.xxhash64("id").alias("long"),
            F.hash("id").alias("int"),
            F.hash("id", F.pmod("id", F.lit(100))).alias("both"),
            F.pmod(F.xxhash64("id"), F.lit(153)).alias("block"),
        )
        .toArrow()
    )
    ids = np.asarray(numbers["id"])
    np.testing.assert_array_equal(xxhash64(ids), np.asarray(numbers["long"]))
    np.testing.assert_array_equal(murmur3(ids), np.asarray(numbers["int"]))
    np.testing.assert_array_equal(murmur3(ids, ids % 100), np.asarray(numbers["both"]))
    np.testing.assert_array_equal(blocks_of(ids, 153), np.asarray(numbers["block"]))


@pytest.mark.parametrize("blocks", [3, 20])  # pieces of tiles, and runs of them
def test_tiles_go_where_the_study_says(spark, blocks):
    from pyspark.sql import functions as F  # noqa: N812

    from faircal.production.spark.blocks.tiling import TILE, arranged
    from studies.spark.hashing import blocks_of, partitions_of, pieces_of

    n = int(spark.conf.get("spark.sql.shuffle.partitions"))
    frame = spark.range(4000).select(
        F.pmod(F.xxhash64("id"), F.lit(997)).alias("left"), F.col("id").alias("right")
    )
    dealt = arranged(frame, "int64", blocks, "pairs")
    found = dealt.withColumn("at", F.spark_partition_id()).toArrow()
    left, right, tile, at = (np.asarray(found[name]) for name in ("left", "right", TILE, "at"))
    one, two = np.sort([blocks_of(left, blocks), blocks_of(right, blocks)], axis=0)
    np.testing.assert_array_equal(tile, one * blocks + two)
    # Spark may put neighbouring partitions together, but takes none apart.
    if tiles_of(blocks) < SHARES * n:
        pieces, home = pieces_of(blocks, n)
        places = {}
        for piece, place in zip(pieces.tolist(), home.tolist(), strict=True):
            places.setdefault(piece, set()).add(place)
        for number in np.unique(tile).tolist():
            assert len(np.unique(at[tile == number])) <= len(places[number])
    else:
        home = partitions_of(tile, blocks, n)
        together = {(h, a) for h, a in zip(home.tolist(), at.tolist(), strict=True)}
        assert len(together) == len(np.unique(home)) > 1
        order = sorted(together)
        assert [a for _, a in order] == sorted(a for _, a in order)


def test_the_page_is_what_is_kept(tmp_path):
    pytest.importorskip("matplotlib")
    from studies.spark.page import PAGE, PICTURE, write
    from studies.spark.running import HERE, read

    write(read(), tmp_path)
    assert (tmp_path / PAGE).read_text("utf-8") == (HERE / PAGE).read_text("utf-8")
    assert (tmp_path / PICTURE).stat().st_size > 10_000
    assert (HERE / PICTURE).exists()


def test_a_part_of_the_study_gives_what_is_kept():
    from studies.spark.running import read
    from studies.spark.simulating import dealt, in_tiles

    (kept,) = [row for row in read() if row["part"] == "blocks" and row["templates"] == 10**6]
    sizes = dealt(10**6, kept["blocks"])
    assert sizes.sum() == 10**6
    assert round(float(sizes.max() / sizes.mean()), 4) == kept["fullest"]
    tiles, counts = in_tiles(10**6, sizes, sizes, np.random.default_rng(0))
    assert counts.sum() == 10**6
    diagonal = tiles // 16 == tiles % 16
    assert counts[diagonal].mean() == pytest.approx(counts[~diagonal].mean() / 2, rel=0.05)
