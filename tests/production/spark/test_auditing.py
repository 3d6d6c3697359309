"""Auditing on Spark's workers: the counts of one machine, and errors in one line."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.cli.main import main
from faircal.data import load, open_stream
from faircal.data.dataset_folder import save_dataset
from faircal.evaluation.audit import audit_parts
from faircal.metrics.results import read_results

pytest.importorskip("pyspark")

from faircal.production.spark import audit, open_pairs, pairs_of

SETTINGS = {"threshold": 0.3123, "rates": (0.02, 0.2)}
N = 3000


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=1, people=120, images=360, pairs=1000, dimension=16)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return save_dataset(data, tmp_path_factory.mktemp("audited") / "faces")


@pytest.fixture(scope="module")
def model(data):
    return faircal.FairCal(n_clusters=5).fit(data)


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A score table in three files: groups, some of them unknown, people, probabilities, folds."""
    rng = np.random.default_rng(0)
    genuine = rng.random(N) < 0.4
    score = np.clip(rng.normal(np.where(genuine, 0.5, 0.1), 0.15), -1, 1)
    score[::7] = score[::7].round(1)
    sex = np.array(["F", "M", ""])[np.arange(N) * 3 // N]
    person = rng.integers(0, 90, N)
    table = pa.table(
        {
            "genuine": genuine.astype(np.int8),
            "score": score,
            "probability": 1 / (1 + np.exp(-20 * (score - 0.3))),
            "left_sex": sex,
            "right_sex": np.where(rng.random(N) < 0.9, sex, "M"),
            "left_identity": person,
            "right_identity": np.where(genuine, person, (person + rng.integers(1, 90, N)) % 90),
            "fold": np.arange(N) % 2,
        }
    )
    path = tmp_path_factory.mktemp("audited") / "scored"
    path.mkdir()
    for number, start in enumerate((0, 500, 2100)):
        stop = (500, 2100, N)[number]
        pq.write_table(table.slice(start, stop - start), path / f"part-{number}.parquet")
    return path


def exact(path, model=None, attribute=None, features=None, **settings):
    """What one machine measures with all pairs in memory."""
    data = load(path, score_range=None if model is None else (-1.0, 1.0))
    names = features or list(data.features)
    return audit_parts(data, names, model=model, attribute=attribute, **settings).audits


def same(one, two):
    """Whether nothing differs but the rounding of sums."""
    assert (one.groups, one.people, one.trials) == (two.groups, two.people, two.trials)
    assert [row[:11] for row in one.rows] == [row[:11] for row in two.rows]
    for row, other in zip(one.rows, two.rows, strict=True):
        np.testing.assert_allclose(row[11:19], other[11:19], 1e-9, 1e-12, err_msg=str(row.what))
    for mine, other in zip(one.curves.rows, two.curves.rows, strict=True):
        np.testing.assert_array_equal(mine.histogram.genuine, other.histogram.genuine)
        np.testing.assert_array_equal(mine.histogram.imposter, other.histogram.imposter)


def test_a_folder_with_a_model(spark, folder, model):
    how = {"model": model, "attribute": "ethnicity", **SETTINGS}
    found = audit(open_pairs(spark, folder), **how)
    same(found, *exact(folder, **how))
    assert found.method == "faircal"


def test_a_score_table(spark, scored):
    pairs = open_pairs(spark, scored, score_range=None)
    made = audit_parts(pairs, ["score"], attribute="sex", **SETTINGS)
    same(*made.audits, *exact(scored, attribute="sex", **SETTINGS))
    assert made.shares["pairs"] == N
    assert 0 < made.shares["unknown_pairs"] < N
    assert "unknown sex" in made.notes[0]
    frame = spark.createDataFrame(pq.read_table(scored)).repartition(3)
    found = audit(pairs_of(frame), attribute="sex", **SETTINGS)
    np.testing.assert_allclose(
        [row.value for row in found.rows], [row.value for row in made.audits[0].rows], 1e-9, 1e-12
    )


def test_thresholds_are_those_of_one_machine_and_count_the_same(spark, scored):
    pairs, alone = open_pairs(spark, scored, score_range=None), exact(scored, attribute="sex")[0]
    found = audit(pairs, attribute="sex")
    for row in found.rows:
        if row.metric == "threshold":
            assert row.value == alone.value("threshold", condition=row.condition)
    at = found.value("threshold", condition="global_fpr=0.01")
    again = audit(pairs, attribute="sex", threshold=at)
    for group in ("global", *found.groups):
        for metric in ("fpr", "fnr"):
            one = found.result(metric, group=group, condition="global_fpr=0.01")
            two = again.result(metric, group=group)
            assert (one.errors, one.trials) == (two.errors, two.trials)


def test_of_very_many_pairs_workers_count_scores(spark, scored, monkeypatch):
    monkeypatch.setattr("faircal.evaluation.audit.collected.MOST_EXACT", N - 1)
    found = audit(open_pairs(spark, scored), **SETTINGS)  # by the only attribute there is
    (one,) = audit_parts(open_stream(scored), ["score"], attribute="sex", **SETTINGS).audits
    assert repr(found.rows) == repr(one.rows)
    assert found.uncertainty is None


def test_several_features_at_once_and_no_groups(spark, data, tmp_path):
    folder = save_dataset(data, tmp_path / "two")
    (folder / "embeddings").mkdir()
    (folder / "embeddings.npy").rename(folder / "embeddings/b.npy")
    np.save(folder / "embeddings/a.npy", np.load(folder / "embeddings/b.npy")[:, 3:])
    found = audit_parts(open_pairs(spark, folder), ["a", "b"], **SETTINGS).audits
    for one, two in zip(found, exact(folder, **SETTINGS), strict=True):
        same(one, two)
    assert [one.feature for one in found] == ["a", "b"]
    assert found[0].groups == ()


def test_one_kind_of_pairs_only(spark, tmp_path):
    table = {"genuine": [0, 0, 0], "score": [0.1, 0.4, 0.2], "g": ["A", "A", "B"]}
    pq.write_table(pa.table(table), tmp_path / "one.parquet")
    found = audit(open_pairs(spark, tmp_path / "one.parquet"), threshold=0.4)
    assert found.trials == {"global": (0, 3), "A": (0, 2), "B": (0, 1)}
    assert found.value("fpr", group="A") == 0.5
    assert np.isnan(found.value("fnr"))


def one_line(caught):
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_is_told_before_any_work(spark, data, folder, scored, model):
    pairs = open_pairs(spark, folder)
    with pytest.raises(DataError, match="attribute 'etnicity' is not in the data") as caught:
        audit(pairs, attribute="etnicity")
    one_line(caught)
    with pytest.raises(ParameterError, match="rates between 0 and 1"):
        audit(pairs, rates=(2,))
    ids = spark.createDataFrame(
        pa.table({"left": data.images.ids[:2], "right": data.images.ids[2:4]})
    )
    with pytest.raises(DataError, match="genuine") as caught:
        audit(pairs_of(ids, data))
    one_line(caught)
    with pytest.raises(DataError, match="embeddings") as caught:
        audit(open_pairs(spark, scored), model=model)
    one_line(caught)


def test_what_a_worker_meets_is_one_line(spark):
    scores = np.append(np.zeros(1000), np.nan)
    frame = spark.createDataFrame(pa.table({"genuine": scores == 0, "score": scores}))
    with pytest.raises(
        DataError, match="column 'score', in one of its rows: expected a finite"
    ) as caught:
        audit(pairs_of(frame))
    one_line(caught)


# ------------------------------------------------------------------ the command


@pytest.fixture
def command(spark, capfd, monkeypatch):
    """Return a function that runs a command in this process, with the session there is."""

    @contextmanager
    def session(engine, progress):
        assert (engine.master, engine.settings) == ("local[2]", {"spark.cores.max": "2"})
        yield spark

    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        return stop.value.code, capfd.readouterr().err

    monkeypatch.setattr("faircal.production.spark.session.SparkEngine.session", session)
    # As where Matplotlib is not installed, which saves seconds.
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    return run


def test_the_command_writes_what_a_streamed_audit_writes(scored, tmp_path, command):
    words = ["audit", scored, "--threshold", 0.3123, "--fold", 0, "--out"]
    how = ["--engine=spark", "--master=local[2]", "--conf=spark.cores.max=2"]
    code, said = command(*words, tmp_path / "there", *how)
    assert code == 0, said
    assert all(line.startswith(("note: ", "intervals: ")) for line in said.splitlines())
    assert command(*words, tmp_path / "here", "--stream")[0] == 0
    here, there = (read_results(tmp_path / of) for of in ("here", "there"))
    assert [row[:11] for row in here] == [row[:11] for row in there]
    for one, two in zip(here, there, strict=True):
        np.testing.assert_allclose(one[11:19], two[11:19], 1e-9, 1e-12, err_msg=str(one.what))
    here, there = (json.loads((tmp_path / of / "run.json").read_text()) for of in ("here", "there"))
    assert there.pop("engine").startswith("spark 4")
    assert there["streamed"]
    apart = dict.fromkeys(("wall_time_s", "data_sha256", "data_sha256_of"))
    assert here | apart == there | apart
    assert (tmp_path / "there/report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "spark", "--resume"], "--resume: does not go with --engine spark"),
        (["--master", "local[1]"], "--master: goes with --engine spark"),
    ],
)
def test_options_that_do_not_go_together(scored, tmp_path, command, words, said):
    code, told = command("audit", scored, "--out", tmp_path / "a", *words)
    assert code == 2
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "a").exists()
