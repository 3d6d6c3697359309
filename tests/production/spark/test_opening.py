"""Opening files and frames in a Spark session: the pairs that one machine reads."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.data import load, open_stream
from faircal.data.tables import read_table

pytest.importorskip("pyspark")

from faircal.production.spark import open_pairs, pairs_of, score

N = 40


def faces(folder, kind="csv", ids=str, **columns):
    """Write a dataset folder of eight images; `columns` go into its pairs."""
    folder.mkdir(parents=True)
    names = [ids(10 + row) for row in range(8)]
    images = {
        "image_id": names,
        "identity": list("aabbccdd"),
        "ethnicity": list("XXYYXXYY"),
        "sex": [*"FFFFMMM", ""],
    }
    left, right = np.triu_indices(8, 1)
    pairs = {
        "left": pa.array(names).take(left),
        "right": pa.array(names).take(right),
        "genuine": (left // 2 == right // 2).astype(np.uint8),
        **columns,
    }
    np.save(folder / "embeddings.npy", np.random.default_rng(0).normal(size=(8, 4)))
    if kind == "csv":
        pacsv.write_csv(pa.table(images), folder / "images.csv")
        pacsv.write_csv(pa.table(pairs), folder / "pairs.csv")
    else:
        pq.write_table(pa.table(images), folder / "images.parquet")
        pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    return folder


def scores(**columns):
    """Return a score table with two attributes, people and folds."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "genuine": rng.random(N) < 0.5,
            "score": rng.random(N),
            "left_ethnicity": rng.choice(["X ", "Y", ""], N),
            "right_ethnicity": rng.choice(["X", "\tY"], N),
            "sex": rng.choice(["F", "M"], N),
            "fold": rng.integers(1, 4, N),
            "left_identity": rng.integers(0, 9, N),
            "right_identity": rng.integers(0, 9, N),
            **columns,
        }
    )


def rows(data, attribute):
    """Return all that is known of each pair, sorted, as parts have no order."""
    sides = [data.images.ids.take(pa.array(side)) for side in (data.pairs.left, data.pairs.right)]
    columns = [side.to_pylist() for side in sides]
    columns += [data.scores.tolist(), data.genuine.tolist()]
    columns += [of.tolist() for of in (data.pairs.fold, data.pairs.probability) if of is not None]
    groups = None if attribute is None else data.groups(attribute)
    for of in (groups, data.people):
        for side in () if of is None else (of.left, of.right):
            columns.append([None if code < 0 else of.names[code] for code in side])
    return sorted(zip(*columns, strict=True), key=lambda row: row[:2])


def taken(pairs):
    """Return all pairs as one dataset, put together as workers do it."""
    everything = ["genuine", "fold", "probability", "identity", *pairs.attributes, "row"]
    return pairs.reader.dataset(pairs.needed(everything).toArrow())


def same(pairs, path, **how):
    """Whether the pairs are those that one machine reads from `path`, and are known as well."""
    here = open_stream(path, **how)
    for name in ("name", "feature", "score_range", "attributes", "default_attribute"):
        assert getattr(pairs, name) == getattr(here, name), name
    assert list(pairs.features) == list(here.features)
    attribute = here.default_attribute
    if attribute is not None:
        assert pairs.group_names() == here.group_names()
    (part,) = here.parts()
    assert len(pairs) == len(part)
    assert rows(taken(pairs), attribute) == rows(part, attribute)


@pytest.mark.parametrize(("kind", "ids"), [("csv", "i{}".format), ("parquet", int)])
def test_a_folder(spark, tmp_path, kind, ids):
    folder = faces(tmp_path / "faces", kind, ids, fold=np.arange(28) % 3)
    pairs = open_pairs(spark, folder)
    same(pairs, folder)
    assert pairs.default_attribute == "ethnicity+sex"
    assert pairs.group_names("sex") == ("F", "M")


def test_scores_of_a_folder(spark, tmp_path):
    folder = faces(tmp_path / "faces", "parquet", score=np.linspace(-3, 7, 28))
    with pytest.raises(DataError, match="expected a score in"):
        taken(open_pairs(spark, folder))
    same(open_pairs(spark, folder, score_range=None), folder, score_range=None)
    (folder / "embeddings.npy").unlink()  # which may be all there is
    pairs = open_pairs(spark, folder, score_range=(-3, 7))
    assert tuple(pairs.features) == ("score",)
    same(pairs, folder, score_range=(-3, 7))
    (folder / "embeddings").mkdir()
    for name in "ab":
        np.save(folder / f"embeddings/{name}.npy", np.eye(8))
    with pytest.raises(DataError, match="does not say which of the features a, b"):
        open_pairs(spark, folder)


@pytest.mark.parametrize("name", ["scores.csv", "a b [1] 100%/scores.parquet"])
def test_a_score_table(spark, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith("csv"):
        pacsv.write_csv(scores(empty=pa.nulls(N), at=[datetime.time(10, 1)] * N), path)
    else:
        pq.write_table(scores(), path)
    same(open_pairs(spark, path), path)


def in_parts(path, table, names=("part-0.parquet", "part-1 ä+%20.parquet", "part-2=.parquet")):
    """Write a table in several files, the second one without rows."""
    path.mkdir(parents=True)
    for file, start, stop in zip(names, (0, 15, 15), (15, 15, N), strict=True):
        pq.write_table(table.slice(start, stop - start), path / file)
    (path / "_SUCCESS").touch()
    return path


def test_a_table_in_several_files(spark, tmp_path):
    whole = scores()
    path = in_parts(tmp_path / "scored", whole)
    same(open_pairs(spark, path), path)
    one = tmp_path / "one.parquet"
    pq.write_table(whole, one)
    # On one machine, too, it is as if it were one file, in memory and part by part.
    assert read_table(path).equals(whole)
    assert rows(load(path), "sex") == rows(load(one), "sex")
    for start, batch in ((0, 7), (14, 1), (15, 40), (33, 5)):
        found = [open_stream(of, batch=batch).parts(start) for of in (path, one)]
        for part, other in zip(*found, strict=True):
            assert rows(part, "sex") == rows(other, "sex")
    before = open_stream(path).fingerprint()
    pq.write_table(whole.slice(0, 3), path / "part-1 ä+%20.parquet")
    assert open_stream(path).fingerprint() != before


def test_pairs_of_a_folder_in_several_files(spark, tmp_path):
    folder = faces(tmp_path / "faces", "parquet")
    pairs = pq.read_table(folder / "pairs.parquet")
    (folder / "pairs.parquet").rename(tmp_path / "one.parquet")
    in_parts(folder / "pairs.parquet", pairs, ("a.parquet", "b.parquet", "c.parquet"))
    same(open_pairs(spark, folder), folder)
    assert len(load(folder)) == 28


def test_types_that_spark_does_not_have(spark, tmp_path):
    unsigned = {
        "left_n": pa.array([2**63] + [1] * (N - 1), pa.uint64()),
        "right_n": pa.array([1] * N, pa.uint64()),
        "row_number": pa.array(range(N), pa.uint64()),  # a whole number makes no groups
        "kind": pa.array(["a", "b"] * (N // 2)).dictionary_encode(),
        "genuine": pa.array([0, 1] * (N // 2), pa.uint8()),
        "fold": pa.array([1, 2] * (N // 2), pa.uint32()),
    }
    plain, strange = tmp_path / "plain.parquet", tmp_path / "strange.parquet"
    pq.write_table(scores(**unsigned), plain)
    same(open_pairs(spark, plain), plain)
    # A column that Spark can't read at all does no harm, where nobody needs it.
    more = {"when": pa.array([0] * N, pa.timestamp("ns")), "half": pa.array(np.ones(N, np.float16))}
    pq.write_table(scores(**unsigned, **more), strange)
    pairs = open_pairs(spark, strange)
    assert rows(taken(pairs), "n+kind") == rows(load(plain), "n+kind")


def test_folds(spark, tmp_path):
    path, number = tmp_path / "scores.parquet", np.arange(N) % 3
    for fold in (number, number * 1.0, np.array(["a", "b", "c"])[number]):
        pq.write_table(scores(fold=fold), path)
        pairs, here = open_pairs(spark, path), open_stream(path)
        assert pairs.fold_names == tuple(map(str, here.fold_names))
        name = pairs.fold_names[1]
        (part,) = here.only(name).parts()
        assert rows(taken(pairs.only(name)), "sex") == rows(part, "sex")
    picked = pairs.without("b")
    (part,) = here.without("b").parts()
    assert len(picked) == len(part)
    assert rows(taken(picked), "sex") == rows(part, "sex")
    assert picked.group_names("ethnicity") == here.group_names("ethnicity")
    assert picked.fingerprint() != pairs.fingerprint()
    with pytest.raises(ParameterError, match="no fold 'd'; expected one of a, b, c"):
        pairs.only("d")
    with pytest.raises(DataError, match="no pairs are left but those of fold 'a'"):
        pairs.only("a").without("a")
    for fold in ([None] + ["a"] * (N - 1), [np.nan] + [1.0] * (N - 1)):
        frame = spark.createDataFrame(scores(fold=fold))
        with pytest.raises(DataError, match="column 'fold': empty in some rows"):
            pairs_of(frame).only("a")
    with pytest.raises(DataError, match="no column 'fold'"):
        pairs_of(frame.drop("fold")).only(1)


def test_frames_of_ones_own(spark, tmp_path):
    folder = faces(tmp_path / "faces", ids=int)
    (here,) = open_stream(folder).parts()
    table = read_table(folder / "pairs.csv")
    text = spark.createDataFrame(table).repartition(3)
    number = text.withColumn("left", text["left"].cast("decimal(20,0)"))
    for frame, templates in ((text, folder), (number, here)):
        assert rows(taken(pairs_of(frame, templates)), "sex") == rows(here, "sex")
    assert len(pairs_of(text.drop("genuine"), folder).head()) == 16
    # Without images, a score table.
    found = taken(pairs_of(spark.createDataFrame(scores())))
    path = tmp_path / "scores.parquet"
    pq.write_table(scores(), path)
    assert [row[2:] for row in rows(found, "ethnicity")] == [
        row[2:] for row in rows(load(path), "ethnicity")
    ]


def test_an_attribute_of_many_values_makes_no_groups(spark, tmp_path):
    path = tmp_path / "scores.parquet"
    names = [f"file{row}" for row in range(300)]
    table = {"genuine": [0, 1, 1] * 100, "score": [0.5] * 300, "file": names, "none": [""] * 300}
    pq.write_table(pa.table(table), path)
    pairs = open_pairs(spark, path)
    assert pairs.default_attribute is None
    assert "no column makes groups by itself (file, none" in pairs.why_no_groups()
    assert len(pairs.group_names("file")) == 300
    with pytest.raises(DataError, match="name one as attribute"):
        pairs.group_names()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"genuine": [1]}, "no column 'score' and no floating-point column"),
        ({"score": [0.5]}, "column 'genuine' is missing"),
        ({"genuine": [], "score": []}, "expected at least one row"),
        ({"genuine": [1], "score": ["a"]}, "expected numbers"),
    ],
)
def test_tables_that_are_none(spark, tmp_path, columns, said):
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(DataError, match=said) as caught:
        taken(open_pairs(spark, path, score_range=None))
    assert "\n" not in str(caught.value)


def test_folders_that_are_none(spark, tmp_path):
    mixed = in_parts(tmp_path / "mixed", scores())
    pq.write_table(scores(more=[1] * N), mixed / "part-1 ä+%20.parquet")
    for opening in (lambda path: open_pairs(spark, path), load, open_stream):
        with pytest.raises(
            DataError, match=r"expected the columns of part-0.parquet, found others"
        ):
            opening(mixed)
        with pytest.raises(DataError, match=r"expected images\.csv"):
            opening(tmp_path)
        with pytest.raises(DataError, match="nowhere"):
            opening(tmp_path / "nowhere")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/part-0.parquet").write_bytes(b"PAR1")
    for opening in (lambda path: open_pairs(spark, path), load, open_stream):
        with pytest.raises(DataError, match="cannot be read"):
            opening(tmp_path / "broken")


def test_what_was_scored_on_spark_can_be_audited(spark, tmp_path):
    folder = faces(tmp_path / "faces", "parquet")
    data = load(folder)
    model = faircal.Baseline().fit(data)
    scored = score(model, open_pairs(spark, folder), keep=["genuine", "ethnicity", "identity"])
    scored.repartition(2).write.parquet(f"file://{tmp_path}/scored")
    found = load(tmp_path / "scored")
    assert sorted(found.scores) == sorted(data.scores)
    assert sorted(found.pairs.probability) == sorted(model.predict_proba(data))
    assert found.groups("ethnicity").shares() == data.groups("ethnicity").shares()
