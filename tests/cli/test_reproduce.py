"""``faircal reproduce``: the paper's experiment from one command, on a small population."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.csv as pacsv
import pytest
from PIL import Image

import faircal
from faircal.data.dataset_folder import save_dataset

WORDS = ("reproduce", "rfw", "faces", "--no-training", "--clusters", "1,4,10", "--n-init", "2")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("reproduce")
    data = faircal.simulate("small", seed=0, people=80, images=480, pairs=2400, dimension=16)
    save_dataset(data, home / "faces")
    return home


@pytest.fixture(scope="module")
def finished(home, run_command):
    return run_command(*WORDS, "--out", "done", cwd=home)


@pytest.fixture(scope="module")
def real(home, tmp_path_factory):
    """The same people without the word that they are simulated, with pictures of them."""
    folder = tmp_path_factory.mktemp("real")
    shutil.copytree(home / "faces", folder / "faces")
    about = {"name": "people", "attribute": "ethnicity"}
    (folder / "faces" / "dataset.json").write_text(json.dumps(about))
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for name in pacsv.read_csv(folder / "faces" / "images.csv")["image_id"].to_pylist():
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(
            folder / "photos" / str(name), format="png"
        )
    return folder


#: One run is enough for what is compared and what is shown.
QUICK = (*WORDS[:-4], "--clusters", "4", "--calibrators", "beta", "--n-init", "1")
QUICK += ("--methods", "baseline,faircal")


@pytest.fixture(scope="module")
def compared(real, run_command):
    words = ("--as", "embedding=facenet-webface", "--pictures", "photos", "--out", "out")
    run_command(*QUICK, *words, cwd=real)
    return real / "out"


def test_everything_of_the_paper_is_written(home, finished):
    done = home / "done"
    names = {path.name for path in done.iterdir()}
    assert {
        "results.csv",
        "run.json",
        "report.html",
        "agreement.md",
        "tables",
        "figures",
    } <= names
    stems = {path.name.split(".")[0] for path in (done / "tables").iterdir()}
    for label in ("global_performance_beta", "fair_calibration_ks", "properties_comparison"):
        (stem,) = [s for s in stems if s[3:] == label]
        for end in ("md", "csv", "tex"):
            assert (done / "tables" / f"{stem}.{end}").stat().st_size > 100
    figures = sorted(path.name for path in (done / "figures").iterdir())
    pdfs = {name[:-4] for name in figures if name.endswith(".pdf")}
    assert len([name for name in pdfs if "robustness" in name]) >= 11
    for kind in ("png", "csv"):
        assert pdfs == {name[:-4] for name in figures if name.endswith(kind)} - {"index"}


def test_results_hold_the_whole_sweep(home, finished):
    rows = pacsv.read_csv(home / "done" / "results.csv").to_pylist()
    found = {(row["method"], row["calibrator"], str(row["clusters"])) for row in rows}
    swept = {(m, str(c), k) for m, c, k in found if m == "faircal"}
    assert {c for _, c, _ in swept} == {"beta", "histogram:n_bins=10", "isotonic"}
    assert len(swept) == 9
    assert len([1 for m, *_ in found if m == "fsn"]) == 3
    assert {m for m, *_ in found} == {"baseline", "gst", "fsn", "faircal", "oracle"}
    assert {row["fold"] for row in rows} == {*"12345", "mean", "std"}


def test_every_page_says_that_the_data_is_simulated(home, finished):
    done = home / "done"
    pages = [done / "report.html", done / "agreement.md"]
    pages += [path for path in (done / "tables").iterdir() if path.suffix in (".md", ".tex")]
    for path in pages:
        assert "simulated data" in path.read_text("utf-8").lower(), path
    for path in (done / "tables").glob("*.csv"):
        lines = path.read_text("utf-8").splitlines()
        assert lines[0].endswith(",simulated")
        assert {line.rsplit(",", 1)[1] for line in lines[1:]} == {"true"}


def test_nothing_is_compared_on_simulated_data(home, finished):
    tables = home / "done" / "tables"
    assert not list(tables.glob("*compared*"))
    for path in tables.glob("*.csv"):
        for row in pacsv.read_csv(path).to_pylist():
            assert row["published"] in (None, ""), path


def test_the_record(home, finished):
    run = json.loads((home / "done" / "run.json").read_text())
    assert (run["kind"], run["paper"], run["simulated"]) == ("reproduce", "rfw", True)
    assert run["settings"]["n_init"] == 2
    assert run["left_out"]["ftc"] == "it trains a network"
    assert "note: ftc is left out: it trains a network" in finished.stderr
    assert "no montages" in finished.stderr


def test_paths_are_printed(finished):
    for name in ("results.csv", "report.html", "tables", "figures", "agreement.md"):
        assert f"done/{name}" in finished.stdout


def test_report_makes_the_same_again(home, finished, run_command):
    done = home / "done"

    def listed():
        return {
            path.relative_to(done): path.read_bytes()
            for path in done.rglob("*")
            if path.is_file() and "parts" not in path.parts
        }

    before = listed()
    run_command("report", "done", cwd=home)
    assert listed() == before


def test_killed_and_resumed_it_ends_the_same(home, finished, run_command):
    words = (*WORDS, "--out", "again", "--jobs", "1")
    command = [sys.executable, "-m", "faircal", *words]
    process = subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(list(home.glob("again/parts/*/*.json"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in home.glob("again/parts/*/*.json")}
    assert 4 <= len(kept) < 85
    run_command(*words, "--resume", cwd=home)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    for name in ("results.csv", "clusters.csv", "curves.parquet"):
        assert (home / "again" / name).read_bytes() == (home / "done" / name).read_bytes()


def test_with_a_network_of_the_paper_numbers_stand_beside_the_published(compared):
    text = (compared / "agreement.md").read_text("utf-8")
    assert "simulated" not in text.lower()
    (table,) = (compared / "tables").glob("*-global_performance_beta.csv")
    rows = pacsv.read_csv(table).to_pylist()
    (row,) = [r for r in rows if r["method"] == "FairCal" and r["column"] == "AUROC"]
    assert row["published"] == pytest.approx(0.8671)
    assert row["published_std"] > 0
    expected = (row["value"] - row["published"]) / row["published_std"]
    assert row["difference_in_std"] == pytest.approx(expected)
    assert "86.71" in (compared / "report.html").read_text("utf-8")


def test_montages_where_pictures_are_at_hand(compared, real, run_command):
    figures = [path.name for path in (compared / "figures").glob("*cluster*.png")]
    assert any("fig-clusters" in name for name in figures), figures
    run_command(*QUICK, "--pictures", "none", "--out", "without", cwd=real)
    assert not list((real / "without" / "figures").glob("fig-clusters*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("reproduce", "lfw", "faces", "--out", "x"), "'lfw' is not one of 'rfw', 'bfw', 'ijbc'"),
        ((*WORDS, "--as", "embedding=vgg", "--out", "x"), "vgg"),
        ((*WORDS, "--as", "nosuch=arcface", "--out", "x"), "nosuch"),
        ((*WORDS, "--as", "embedding", "--out", "x"), "name=value"),
        ((*WORDS, "--methods", "fairkal", "--out", "x"), "fairkal"),
        ((*WORDS, "--attribute", "age", "--out", "x"), "age"),
        ((*WORDS, "--clusters", "0", "--out", "x"), "clusters: expected 1 or more"),
        ((*WORDS, "--clusters", "100000", "--out", "x"), "100000 clusters"),
        ((*WORDS, "--calibrators", "histogram:bins=3", "--out", "x"), "n_bins"),
        ((*WORDS, "--pictures", "nowhere", "--out", "x"), "nowhere"),
        ((*WORDS, "--pictures", "faces", "--out", "x"), "found no picture such as"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(home, words, said, run_command):
    done = run_command(*words, code=2, cwd=home)
    assert done.stderr.count("\n") <= 1 + done.stderr.count("note:")
    assert said in done.stderr
    assert not (home / "x").exists()
