"""Scoring on Spark's workers: the numbers of one machine, every pair once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal._base.errors import DataError, ParameterError
from faircal.data.dataset_folder import save_dataset
from faircal.data.pairing import draw_cohort
from faircal.methods.prior import Shift
from faircal.production.scoring import score_part
from faircal.production.spark import open_pairs, pairs_of, score, write

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=0)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return save_dataset(data, tmp_path_factory.mktemp("spark") / "faces")


@pytest.fixture(scope="module")
def model(data):
    fitted = faircal.FairCal(n_clusters=20).fit(data)
    faircal.survey(fitted, data)
    return fitted


@pytest.fixture(scope="module")
def pairs(spark, folder):
    return open_pairs(spark, folder)


@pytest.fixture(scope="module")
def expected(data, model):
    return score_part(model, data)


def in_order(table):
    return table.sort_by([("left", "ascending"), ("right", "ascending")])


def same(found, expected):
    """Whether two tables have the same rows, to the last digit, in whatever order."""
    found, expected = in_order(found), in_order(expected)
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        np.testing.assert_array_equal(found[name].to_numpy(), expected[name].to_numpy(), name)


@pytest.mark.parametrize("way", ["map", "send"])
def test_probabilities_are_those_of_one_machine(spark, data, folder, model, way):
    keep, add = ["genuine", "fold", "identity", "ethnicity"], ["clusters", "log_likelihood_ratio"]
    pairs = open_pairs(spark, folder, embeddings=way)
    found = score(model, pairs, keep=keep, add=add).toArrow()
    from faircal.production.scoring import Adding

    same(found, score_part(model, data, keep, adding=Adding.of(model, add)))


def test_a_frame_of_ones_own_and_a_dataset_in_memory(spark, data, model):
    ids = data.images.ids
    table = {side: ids.take(pa.array(getattr(data.pairs, side))) for side in ("left", "right")}
    frame = spark.createDataFrame(pa.table(table)).repartition(5)
    found = score(model, pairs_of(frame, data)).toArrow()
    same(found, score_part(model, data))


def test_a_method_that_is_told_groups(data, pairs):
    fitted = faircal.Oracle().fit(data)
    same(score(fitted, pairs).toArrow(), score_part(fitted, data))


def test_a_method_with_products_of_matrices_but_for_rounding(data, pairs):
    fitted = faircal.CohortFairCal().fit(draw_cohort(data, 5))
    found = in_order(score(fitted, pairs).toArrow())
    expected = in_order(score_part(fitted, data))
    assert found["left"] == expected["left"]
    np.testing.assert_allclose(found["probability"], expected["probability"], rtol=0, atol=1e-12)


def test_a_score_table_keeps_the_numbers_of_its_rows(spark, data, tmp_path):
    genuine = data.genuine.astype(np.int8)
    parts = np.array_split(np.arange(len(data)), 3)
    (tmp_path / "scores").mkdir()
    for number, rows in enumerate(parts):  # in three files: rows are counted through all of them
        table = pa.table({"genuine": genuine[rows], "score": data.scores[rows]})
        pq.write_table(table, tmp_path / "scores" / f"part-{number}.parquet")
    fitted = faircal.Baseline().fit(data)
    found = score(fitted, open_pairs(spark, tmp_path / "scores")).toArrow()
    found = found.sort_by("left")
    assert found["left"].to_pylist() == list(range(1, len(data) + 1))
    np.testing.assert_array_equal(found["probability"], fitted.predict_proba(data))


def test_probabilities_for_another_share(data, pairs, model):
    shift = Shift(0.5, 0.01)
    found = score(model, pairs, shift=shift).toArrow()
    same(found, score_part(model, data, shift=shift))


def test_all_pairs_can_be_had_here(data, pairs):
    parts = list(pairs.parts(columns=["genuine"]))
    assert sum(map(len, parts)) == len(data)
    assert sum(int(part.genuine.sum()) for part in parts) == int(data.genuine.sum())
    with pytest.raises(ParameterError, match="no numbers to go on from"):
        next(pairs.parts(5))


def test_some_pairs_are_always_the_same(data, pairs):
    some = pairs.sample(2000)
    assert len(some) == pytest.approx(2000, rel=0.1)
    np.testing.assert_array_equal(some.scores, pairs.sample(2000).scores)


@pytest.mark.parametrize("name", ["scored.parquet", "scored.csv", "scored"])
def test_what_is_written_has_every_pair_once(data, pairs, model, expected, tmp_path, name):
    scored = score(model, pairs).repartition(3)
    out = tmp_path / name
    if name == "scored":  # a folder of an earlier run is written anew
        out.mkdir()
        (out / "part-0.parquet").write_bytes(b"")
    assert write(scored, out) == len(data) == len(pairs)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith("csv"):
        import pyarrow.csv as pacsv

        found = pacsv.read_csv(out)
    else:
        found = pq.read_table(out)
    same(found, expected)


def test_writing_leaves_nothing_behind_where_it_fails(spark, data, model, tmp_path):
    table = pa.table({"left": [0, 1], "right": [1, 10**9]})
    pairs = pairs_of(spark.createDataFrame(table), data)
    with pytest.raises(DataError, match="image 1000000000 is not among the images") as caught:
        write(score(model, pairs), tmp_path / "scored.parquet")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["scored", "scored.spark", "scored.parquet.spark"])
def test_what_others_have_written_stays(pairs, model, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("years of work")
    out = tmp_path / ("scored.parquet" if "parquet" in name else "scored")
    with pytest.raises(ParameterError, match=r"holds thesis\.txt, which is not of scored"):
        write(score(model, pairs), out)
    assert (tmp_path / name / "thesis.txt").exists()


def test_a_model_that_does_not_fit_is_told_at_once(spark, model):
    other = faircal.Dataset(
        embeddings=np.eye(4), pairs={"left": [0, 1], "right": [2, 3], "genuine": [0, 1]}
    )
    frame = spark.createDataFrame(pa.table({"left": [0], "right": [1]}))
    with pytest.raises(DataError, match="expected 128-d embeddings"):
        score(model, pairs_of(frame, other))


def test_ways_that_are_not(spark, folder):
    with pytest.raises(ParameterError, match="unknown way 'maps'; did you mean map"):
        open_pairs(spark, folder, embeddings="maps")


def test_settings_of_the_session_stay(spark, pairs, model):
    before = dict(spark.conf.getAll)
    score(model, pairs).count()
    assert dict(spark.conf.getAll) == before
    assert not spark.catalog.listTables()
