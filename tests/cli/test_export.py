"""`faircal export`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import faircal
from faircal._base.files import file_digest
from faircal.production.onnx.export import run


def words(*more, model="faircal.faircal", out="m.onnx"):
    return ["export", model, "--onnx", out, *map(str, more)]


@pytest.mark.parametrize("model", ["baseline", "faircal", "oracle"])
def test_writes_and_tries_out(model, world, run_here):
    done = run_here(words(model=f"{model}.faircal"))
    assert done.code == 0
    assert "graph: m.onnx" in done.out
    assert "tried out on 10000 made-up pairs" in done.out
    assert ("groups, from 0: [" in done.out) == (model == "oracle")
    assert [path.name for path in world.glob("*.onnx*")] == ["m.onnx"]
    assert not list(world.glob(".*"))


def test_graph_says_what_score_says(world, run_here):
    assert run_here(words()).code == 0
    data = faircal.load("faces")
    vectors, pairs = data.embeddings.vectors, data.pairs
    feed = {"left": vectors[pairs.left], "right": vectors[pairs.right]}
    (found,) = run("m.onnx", feed, "probability")
    said = faircal.load_model("faircal.faircal").predict_proba(data)
    np.testing.assert_allclose(found, said, rtol=0, atol=1e-5)


def test_json(world, run_here):
    done = run_here(words("--json", "--prior", 0.01))
    told = json.loads(done.out)
    assert done.code == 0
    assert told["path"] == "m.onnx"
    assert told["bytes"] == Path("m.onnx").stat().st_size
    assert told["agreement"]["largest"] < 1e-9
    assert told["metadata"]["model_sha256"] == file_digest(Path("faircal.faircal"))
    assert told["metadata"]["prior"] == "0.01"
    assert list(told["inputs"]) == ["left", "right"]
    assert {"probability", "left_cluster"} <= set(told["outputs"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "nothing.faircal"}, "no such file"),
        ({"model": "notes.txt"}, "not a faircal model"),
        ({"out": "faces"}, "is a folder"),
        ({"out": "notes.txt/m.onnx"}, "is a file"),
        ({"model": "classifier.faircal"}, "found one of a classifier"),
        ({"model": "trained.faircal"}, "ftc is trained"),
    ],
)
def test_bad_input(change, said, world, run_here, monkeypatch):
    rng = np.random.default_rng(0)
    faircal.FairCalClassifier(n_clusters=1).fit_calibration(
        rng.dirichlet([1, 1], 50), rng.integers(2, size=50), features=rng.normal(size=(50, 2))
    ).save("classifier.faircal")
    if "trained" in change.get("model", ""):
        monkeypatch.setattr("faircal.production.onnx.export.load_method", lambda _: _trained())
        Path("trained.faircal").touch()
    done = run_here(words(**change))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert said in done.err
    assert not list(world.glob("*.onnx"))


def _trained():
    model = faircal.methods.METHODS["ftc"]()
    model._fitted = True
    return model


def test_prior_out_of_range(world, run_here):
    done = run_here(words("--prior", 2))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert not Path("m.onnx").exists()


def test_without_onnx(world, run_here, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = run_here(words())
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "pip install 'faircal[onnx]'" in done.err


def test_without_onnxruntime(world, run_here, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = run_here(words())
    assert done.code == 0
    assert "note: not tried out" in done.err
    assert Path("m.onnx").exists()


def test_a_wrong_graph_is_not_written(world, run_here, monkeypatch):
    Path("m.onnx").write_text("as it was")
    monkeypatch.setattr("faircal.production.onnx.export._shifted", lambda p, before, after: p * 0.9)
    done = run_here(words("--prior", 0.1))
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "not written" in done.err
    assert Path("m.onnx").read_text() == "as it was"
