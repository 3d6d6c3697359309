"""A benchmark on Spark: the same files as without it, and it can be resumed."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import faircal
from faircal.cli.main import main
from faircal.data.dataset_folder import save_dataset
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.production.spark.benchmarking import DatasetFiles, benchmark, workers
from faircal.production.spark.session import SparkEngine

pytest.importorskip("pyspark")

SETTINGS = BenchmarkSettings(
    methods=("baseline", "faircal"), clusters=(4,), attributes=("ethnicity",)
)
SIZES = {"people": 80, "images": 240, "pairs": 700, "dimension": 16}
#: Two methods on five folds.
N_CELLS = 10


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=3, **SIZES)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "faces"
    save_dataset(data, path)
    return path


@pytest.fixture(scope="module")
def here(folder, tmp_path_factory):
    """What a run without Spark wrote."""
    out = tmp_path_factory.mktemp("here")
    run_benchmark(faircal.load(folder), out, SETTINGS, jobs=1)
    return out


@pytest.fixture(scope="module")
def there(spark, folder, tmp_path_factory):
    """What a run on Spark wrote, and the progress it told of."""
    out, told = tmp_path_factory.mktemp("there"), []
    benchmark(spark, folder, out, SETTINGS, progress=lambda *of: told.append(of))
    return out, told


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.json" and path.parent.parent.name != "parts"
    }


def kept(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("parts/*/*")}


def test_same_bytes_as_without_spark(here, there):
    found, expected = files(there[0]), files(here)
    assert {"results.csv", "curves.parquet", "replicates.parquet", "clusters.csv"} <= set(found)
    assert found.keys() == expected.keys()
    for name, content in expected.items():
        assert found[name] == content, name
    assert kept(there[0]).keys() == kept(here).keys()


def test_run_json_says_where_it_ran(here, there, spark):
    ours, theirs = (json.loads((out / "run.json").read_text()) for out in (here, there[0]))
    assert theirs["engine"] == f"spark {spark.version}"
    assert theirs["jobs"] == 2
    same = ours.keys() - {"jobs", "wall_time_s", "fits", "versions"}
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    for one, other in zip(ours["fits"], theirs["fits"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}


def test_progress_is_told_as_cells_end(there):
    whole = [of for of in there[1] if of[0] == "benchmark"]
    assert whole[0] == ("benchmark", 0, N_CELLS, "start")
    assert whole[-1][1:3] == (N_CELLS, N_CELLS)


def test_resuming_runs_what_is_missing(spark, folder, there, here):
    out, told = there[0], []
    before = kept(out)
    lost = min(out.glob("parts/*/baseline-*.json"))
    lost.unlink()
    sent = faircal.load(folder)  # not read by the workers, as the folder is
    benchmark(spark, sent, out, SETTINGS, resume=True, progress=lambda *of: told.append(of))
    assert told[0] == ("benchmark", N_CELLS - 1, N_CELLS, "start")
    after = kept(out)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {name for name in after if name.startswith(lost.stem)}
    assert files(out) == files(here)


def test_an_error_on_a_worker_is_one_line_here(spark, data, tmp_path):
    files = DatasetFiles(tmp_path / "away", {})
    with (
        workers(spark, data, files) as runner,
        pytest.raises(faircal.DataError, match="away: a worker does not see it; use sto") as found,
    ):
        run_benchmark(data, tmp_path / "out", SETTINGS, jobs=2, runner=runner)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_workers_notice_other_data(spark, data, folder, tmp_path):
    other = faircal.simulate("small", seed=4, **SIZES)
    with (
        workers(spark, other, DatasetFiles(folder, {})) as runner,
        pytest.raises(faircal.DataError, match="a worker finds other data there"),
    ):
        run_benchmark(other, tmp_path / "out", SETTINGS, runner=runner, jobs=1)


def test_tiles_are_refused(spark, folder, tmp_path):
    with pytest.raises(faircal.ParameterError, match="expected auto, map or send, found tiles"):
        benchmark(spark, folder, tmp_path / "out", SETTINGS, embeddings="tiles")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def command(spark, monkeypatch, capfd):
    """Return a function that runs a command, on the session of the tests."""
    monkeypatch.setattr(SparkEngine, "session", lambda *_: nullcontext(spark))
    # As where Matplotlib is not installed, which saves seconds.
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main(["benchmark", *map(str, words), "--engine", "spark"])
        return stop.value.code, *capfd.readouterr()

    return run


def test_command(command, folder, here, tmp_path):
    chosen = ("--methods", "baseline,faircal", "--clusters", "4", "--attribute", "ethnicity")
    code, out, err = command(folder, *chosen, "--out", tmp_path / "out", "--json")
    note = "note: figures need matplotlib: pip install 'faircal[figures]'\n"
    assert (code, err) == (0, note)
    found = Path(json.loads(out)["results"]).read_bytes()
    assert found == (here / "results.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--calibrate-on", "A", "--test-on", "B"], "--calibrate-on: does not go with --engine"),
        (["A", "--blocks", "C"], "--blocks: does not go with --engine spark; leave it out"),
        (["A", "--device", "cuda"], "--device: Spark's workers use processors; leave it out"),
    ],
)
def test_what_does_not_go_with_spark(command, folder, tmp_path, words, said):
    known = {"A": folder, "B": folder, "C": tmp_path / "blocks"}
    words = [known.get(word, word) for word in words]
    code, out, err = command(*words, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith(f"faircal: {said}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
