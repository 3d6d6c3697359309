"""``faircal score --add``: more columns, in parts, resumed, and what a model lacks for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.model import OperatingPoint, Population

ALL = "log_likelihood_ratio,similarity,clusters,outside,decision"


@pytest.fixture
def full(world):
    """The world's FairCal with a population and an operating point: ``full.faircal``."""
    model = faircal.load_model("faircal.faircal")
    centers = model.cluster_centers_
    counted = np.ones(10, np.int64)
    reach = np.full(len(centers), 0.5, np.float32)
    population = Population(centers, reach, np.linspace(-1, 1, 11), counted, counted)
    point = OperatingPoint(0.5, "score")
    model.about_ = replace(model.about_, population=population, operating_point=point)
    model.save("full.faircal")
    return model


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("faircal.data.Dataset.BATCH", 10)


def words(out, *more, model="full.faircal", data="faces"):
    return ["score", model, data, "--out", out, *map(str, more)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_part_by_part(full, run_here, small, suffix):
    done = run_here(words(f"s.{suffix}", "--add", ALL, "--prior", 0.01))
    assert done.code == 0, done.err
    table = pq.read_table("s.parquet") if suffix == "parquet" else pacsv.read_csv("s.csv")
    data = faircal.load("faces")
    said = full.apply(data)
    np.testing.assert_allclose(table["similarity"], data.scores, rtol=1e-12)
    np.testing.assert_array_equal(table["decision"], said.score >= 0.5)
    share = full.diagnostics_.figures["calibrated_at"]
    odds = np.log(said.probability / (1 - said.probability)) - np.log(share / (1 - share))
    inside = np.abs(odds) < 20  # none is surer than 1e-12
    np.testing.assert_allclose(
        np.asarray(table["log_likelihood_ratio"])[inside], odds[inside], rtol=1e-9
    )
    images, clusters, distance = full.image_clusters(data)
    where = np.searchsorted(images, data.pairs.right)
    np.testing.assert_array_equal(table["right_cluster"], clusters[where])
    np.testing.assert_array_equal(table["right_outside"], distance[where] > 0.5)


def test_a_run_goes_on_with_the_same_columns_only(full, run_here, small, interrupt_at, monkeypatch):
    assert run_here(words("whole.parquet", "--add", ALL)).code == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, "score", 60)
        assert run_here(words("s.parquet", "--add", ALL)).code != 0
    done = run_here(words("s.parquet", "--add", "clusters", "--resume"))
    assert done.code == 2
    assert "add" in done.err
    assert run_here(words("s.parquet", "--add", ALL, "--resume")).code == 0
    assert pq.read_table("s.parquet").equals(pq.read_table("whole.parquet"))


def test_a_model_without_its_share_has_no_likelihood_ratio(full, run_here):
    del full.diagnostics_.figures["calibrated_at"]
    full.save("full.faircal")
    add = ["--add", "log_likelihood_ratio"]
    done = run_here(words("s.parquet", *add))
    assert done.code == 2
    assert "--add log_likelihood_ratio: the model does not say" in done.err
    assert "fit it again" in done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--add", "cluster"], "--add cluster: no such column; did you mean clusters"),
        (["--add", "clusters"], "--add clusters: the model says nothing of the images"),
        (["--add", "decision"], "--add decision: the model has no operating point"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(world, run_here, more, said):
    done = run_here(words("s.parquet", *more, model="baseline.faircal"))
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (world / "s.parquet").exists()
