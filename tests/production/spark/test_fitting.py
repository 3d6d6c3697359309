"""Fits on pairs of Spark: the model that a stream gives, to the last bit."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal._base.jobs import silent
from faircal.cli.main import main
from faircal.data import load, open_stream
from faircal.data.cohort_overlap import join_cohort
from faircal.data.dataset_folder import save_dataset
from faircal.data.summary import DataSummary
from faircal.methods import METHODS, Needs, make_method
from faircal.production.describe import describe
from faircal.production.monitoring import survey

pytest.importorskip("pyspark")

from faircal.production.spark import open_pairs, pairs_of

#: Clusters and calibrators by cluster; thresholds by group. Other methods that stream are made of
#: the same passes.
METHODS_FITTED = ("faircal", "gst")
K = 20


def new(name, **more):
    takes = METHODS[name]._get_param_names()
    return make_method(name, **({"n_clusters": K} if "n_clusters" in takes else {}), **more)


@pytest.fixture(scope="module")
def data():
    whole = faircal.simulate("small", seed=0)
    return whole.subset(np.arange(0, len(whole), 4))


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return save_dataset(data, tmp_path_factory.mktemp("fit") / "data")


@pytest.fixture(scope="module")
def pairs(spark, folder):
    return open_pairs(spark, folder)


@pytest.fixture(scope="module")
def models(pairs):
    """Fitted when first asked for."""

    @cache
    def fitted(name):
        return new(name).fit(pairs)

    return fitted


@pytest.fixture(scope="module")
def table(data, tmp_path_factory):
    """Scores with who is in the pairs."""
    sides = {
        f"{side}_{name}": pa.array(np.array(column.names)[column.codes[rows]])
        for side, rows in (("left", data.pairs.left), ("right", data.pairs.right))
        for name, column in {"identity": data.images.identity, **data.images.attributes}.items()
    }
    path = tmp_path_factory.mktemp("table") / "scores.parquet"
    pq.write_table(pa.table({"genuine": data.genuine, "score": data.scores, **sides}), path)
    return path


@pytest.fixture(scope="module")
def opened(spark, table):
    return open_pairs(spark, table)


def saved(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", METHODS_FITTED)
def test_the_model_of_a_stream(name, models, folder, tmp_path):
    found = models(name)
    expected = new(name).fit(open_stream(folder, batch=700))
    assert saved(found, tmp_path / "a") == saved(expected, tmp_path / "b")
    assert found.diagnostics_ == expected.diagnostics_


def test_which_images_are_used(pairs, data):
    found = DataSummary.of(pairs, "", silent)
    assert (found.pairs, found.genuine) == (len(data), int(data.genuine.sum()))
    np.testing.assert_array_equal(found.images, load(pairs.where).used_images())


def test_a_cohort(pairs, folder, tmp_path):
    """Who of it is left out, and what workers see of it, is as on one machine."""

    class Comparing(METHODS["baseline"]):
        name, needs = "comparing", Needs(embeddings=True, cohort="required")

        def _fit(self, inputs):
            def score(part):  # moved by what strangers of the cohort look like
                vectors = part.cohort.vectors
                return np.clip(part.score - float((vectors[:100] @ vectors[-100:].T).mean()), -1, 1)

            self.seen_ = inputs.samples(scores=score)

        def _apply(self, inputs):
            raise NotImplementedError

    others = faircal.simulate("small", seed=1, people=160, images=480, pairs=1200)
    names = np.array([f"c{name}" for name in others.images.identity.names])
    names[0] = "p000"
    cohort = faircal.Cohort(
        embeddings=others.embeddings.vectors,
        identity=names[others.images.identity.codes],
        groups=others.image_groups(),
    )
    here, there = (join_cohort(each, cohort) for each in (open_stream(folder, batch=700), pairs))
    assert len(here.cohort) == len(there.cohort) == 477
    assert here.cohort.notes == there.cohort.notes
    found, expected = Comparing().fit(there).seen_, Comparing().fit(here).seen_
    assert (found.scores == expected.scores).all()
    with pytest.raises(DataError, match="it needs a cohort"):
        Comparing().fit(pairs)


class TestDescribed:
    def test_as_on_one_machine(self, models, pairs, folder):
        data = load(folder)
        words = {"intended_use": "a test", "settings": {"method": "faircal"}}
        model, other = models("faircal"), new("faircal").fit(data)
        found, expected = describe(model, pairs, **words), describe(other, data, **words)
        for name in ("counts", "groups", "simulated", "limits", "intended_use", "feature", "data"):
            assert getattr(found.provenance, name) == getattr(expected.provenance, name), name
        population, same = survey(model, pairs), survey(other, data)
        np.testing.assert_array_equal(population.place_buckets, same.place_buckets)
        assert population.people == same.people

    def test_a_model_file(self, models, pairs, folder, tmp_path):
        model = models("faircal")
        about = describe(model, pairs)
        model.save(tmp_path / "m.faircal")
        read = faircal.load_model(tmp_path / "m.faircal")
        assert read.about_.provenance == about.provenance
        part = load(folder)
        np.testing.assert_array_equal(read.predict_proba(part), model.predict_proba(part))


class TestScoreTable:
    def test_as_a_stream(self, opened, table, tmp_path):
        stream = open_stream(table, batch=700)
        model, other = new("oracle").fit(opened), new("oracle").fit(stream)
        assert saved(model, tmp_path / "a") == saved(other, tmp_path / "b")
        found, expected = describe(model, opened).provenance, describe(other, stream).provenance
        assert found.counts == expected.counts
        assert found.counts["people"] == len(load(table).images.identity.names)
        assert found.groups == expected.groups
        assert found.limits == expected.limits


class TestRefused:
    def frame(self, spark, data, **columns):
        ids = {
            "left": data.images.ids.take(data.pairs.left),
            "right": data.images.ids.take(data.pairs.right),
        }
        return spark.createDataFrame(pa.table({**ids, **columns}))

    def test_without_labels(self, spark, data):
        pairs = pairs_of(self.frame(spark, data), data)
        with pytest.raises(DataError, match="no column 'genuine'") as caught:
            new("baseline").fit(pairs)
        assert "\n" not in str(caught.value)

    def test_of_one_class(self, spark, data):
        frame = self.frame(spark, data, genuine=np.ones(len(data), bool))
        with pytest.raises(DataError, match=f"found one class only \\({len(data)} pairs\\)"):
            new("baseline").fit(pairs_of(frame, data))

    def test_methods_that_need_all_pairs(self, pairs):
        with pytest.raises(ParameterError, match=r"smooth needs all pairs .* \(--engine local\)"):
            make_method("smooth").fit(pairs)

    def test_more_clusters_than_images(self, pairs):
        with pytest.raises(ParameterError, match="choose fewer clusters"):
            make_method("faircal", n_clusters=100_000).fit(pairs)


def test_little_travels(folder):
    """What a job ships of a method: its centres, but no vectors and nothing worked out of them."""
    from pyspark import cloudpickle

    data = load(folder)
    model = new("faircal").fit(data)
    model.predict_proba(data)
    shipped = cloudpickle.dumps(model)
    assert (
        len(shipped) < 2 * model.cluster_centers_.nbytes + 50_000 < data.embeddings.vectors.nbytes
    )
    np.testing.assert_array_equal(
        cloudpickle.loads(shipped).predict_proba(data), model.predict_proba(data)
    )


class TestCommand:
    def test_fits(self, spark, folder, tmp_path, capfd, monkeypatch):
        # In the session there is: another Java would take its time.
        monkeypatch.setattr(
            "faircal.production.spark.session.SparkEngine.session",
            lambda *_: nullcontext(spark),
        )
        words = ["fit", folder, "--clusters", K, "--leave-out", "5", "--out"]
        with pytest.raises(SystemExit, match="0"):
            main([*map(str, words), str(tmp_path / "a"), "--engine", "spark"])
        said = capfd.readouterr()
        assert said.out == f"{tmp_path / 'a'}\n"
        assert "pairs whose scores were counted" in said.err
        with pytest.raises(SystemExit, match="0"):
            main([*map(str, words), str(tmp_path / "b"), "--stream"])
        found, expected = (faircal.load_model(tmp_path / name) for name in "ab")
        data = load(folder)
        np.testing.assert_array_equal(found.predict_proba(data), expected.predict_proba(data))
        told, here = found.about_.provenance, expected.about_.provenance
        assert told.counts == here.counts
        assert told.settings == {**here.settings, "engine": "spark", "streamed": False}

    @pytest.mark.parametrize(
        ("words", "match"),
        [
            (["--resume"], "--resume: does not go with --engine spark"),
            (["--stream"], "--stream: does not go with --engine spark"),
            (["--method", "smooth"], "smooth needs all pairs in memory"),
        ],
    )
    def test_refuses(self, folder, tmp_path, capfd, words, match):
        """Before Spark is started."""
        out = tmp_path / "m.faircal"
        with pytest.raises(SystemExit, match="2"):
            main(["fit", str(folder), "--out", str(out), "--engine", "spark", *words])
        said = capfd.readouterr().err
        assert match in said
        assert said.count("\n") == 1
        assert not out.exists()
