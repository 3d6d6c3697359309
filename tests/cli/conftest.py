"""A small sound world of files that commands work on, and ways to run a command."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal.cli.main import main
from faircal.data import load
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.methods import make_method

PEOPLE, SHOTS, DIMENSION = 8, 3, 4
NAMES = {"ethnicity": ("Asian", "Black"), "gender": ("F", "M")}


def _faces():
    """Return images, pairs and vectors: eight people, three images each, two disjoint folds."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(PEOPLE), SHOTS)
    vectors = rng.normal(size=(PEOPLE, DIMENSION))[person] + 0.6 * rng.normal(
        size=(len(person), DIMENSION)
    )
    images = pa.table(
        {
            "image_id": [f"i{row:02}" for row in range(len(person))],
            "identity": [f"p{who}" for who in person],
            "ethnicity": [NAMES["ethnicity"][who % 2] for who in person],
            "gender": [NAMES["gender"][who // 2 % 2] for who in person],
        }
    )
    left, right = np.triu_indices(len(person), 1)
    fold = 1 + person * 2 // PEOPLE
    keep = fold[left] == fold[right]
    left, right = left[keep], right[keep]
    pairs = pa.table(
        {
            "left": images["image_id"].take(left),
            "right": images["image_id"].take(right),
            "genuine": (person[left] == person[right]).astype(int),
            "fold": fold[left],
        }
    )
    return images, pairs, vectors.astype(np.float32)


@pytest.fixture(scope="session")
def sound_world(tmp_path_factory):
    """A folder with one of everything: datasets, score tables, models, results."""
    home = tmp_path_factory.mktemp("world")
    images, pairs, vectors = _faces()
    for name in ("faces", "two", "wide", "plain"):
        folder = home / name
        folder.mkdir()
        pacsv.write_csv(images, folder / "images.csv")
        pacsv.write_csv(pairs, folder / "pairs.csv")
    np.save(home / "faces/embeddings.npy", vectors)
    (home / "two/embeddings").mkdir()
    np.save(home / "two/embeddings/arc.npy", vectors)
    np.save(home / "two/embeddings/face.npy", vectors[:, ::-1])
    np.save(home / "wide/embeddings.npy", np.hstack([vectors, vectors]))
    # no attributes
    pacsv.write_csv(images.select(["image_id", "identity"]), home / "plain/images.csv")
    np.save(home / "plain/embeddings.npy", vectors)
    data = load(home / "faces")
    groups = data.images.attributes["ethnicity"]
    table = pa.table(
        {
            "genuine": pairs["genuine"],
            "score": data.scores,
            "other": np.abs(data.scores),
            "fold": pairs["fold"],
            "left_ethnicity": [groups.names[c] for c in groups.take(data.pairs.left)],
            "right_ethnicity": [groups.names[c] for c in groups.take(data.pairs.right)],
        }
    )
    pacsv.write_csv(table, home / "scores.csv")
    pq.write_table(table, home / "scores.parquet")
    for method, settings in (("faircal", {"n_clusters": 3}), ("oracle", {}), ("baseline", {})):
        make_method(method, **settings).fit(data).save(home / f"{method}.faircal")
    run_benchmark(data, home / "results", BenchmarkSettings(methods=("baseline",)), jobs=1)
    (home / "notes.txt").write_text("not a folder\n")
    return home


@pytest.fixture
def world(sound_world, tmp_path, monkeypatch):
    """A copy of the sound world to spoil; the working folder while the test runs."""
    home = tmp_path / "world"
    shutil.copytree(sound_world, home)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def run_here(capfd):
    """Return a function that runs a command in this process: code, out, err."""

    def run(words):
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(words)
        out, err = capfd.readouterr()
        return SimpleNamespace(code=stop.value.code, out=out, err=err)

    return run


@pytest.fixture
def without_figures(monkeypatch):
    """Matplotlib is not there, which saves seconds: figures have tests of their own."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def interrupt_at():
    """Return a function that interrupts a command when it tells of the `at`-th step of a stage."""

    def interrupt(patch, command, at):
        @contextmanager
        def bars():
            def update(what, done, total, label):
                if done >= at:
                    raise KeyboardInterrupt

            yield update

        patch.setattr(f"faircal.cli.{command}.progress_bars", bars)

    return interrupt
