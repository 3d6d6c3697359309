"""``faircal benchmark --calibrate-on A --test-on B``: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import pytest

import faircal
from faircal.data import save_dataset
from faircal.evaluation.benchmark.transfer import (
    labelling_curves,
    read_moved,
)
from faircal.report import ResultsFolder
from faircal.report.figures import standard_figures

SIZE = {"people": 80, "images": 400, "pairs": 1500, "dimension": 16}
QUICK = ["--methods", "baseline,faircal", "--clusters", "40", "--labels", "30,200", "--jobs", "1"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    home = tmp_path_factory.mktemp("both")
    for name, seed in (("here", 0), ("there", 1)):
        save_dataset(faircal.simulate("small", seed=seed, **SIZE), home / name)
    return home


@pytest.fixture(scope="module")
def moved(both, run_command):
    options = ["--calibrate-on", "here", "--test-on", "there", *QUICK, "--out", "moved"]
    done = run_command("benchmark", *options, cwd=both)
    return SimpleNamespace(folder=both / "moved", out=done.stdout, err=done.stderr)


def test_table_and_words_say_what_the_curves_do(moved):
    curves = labelling_curves(read_moved(moved.folder), "ks", "global")
    again = next(c for c in curves if (c.method, c.strategy) == ("faircal", "recalibrated"))
    at = again.points[200]
    assert f"{100 * at.mean:.2f} ± {100 * at.error:.2f}" in moved.out
    assert f"FairCal: {again.words}" in moved.out
    assert "Calibration error (KS, %) as mean over groups" in moved.out
    assert "note: fitted on all 1500 pairs of small (simulated)" in moved.err


def test_the_figure_shows_the_curves_of_each_method(moved):
    with (moved.folder / "figures/moving.csv").open(newline="") as file:
        drawn = list(csv.DictReader(file))
    assert {row["panel"] for row in drawn} == {"Baseline", "FairCal"}
    curves = labelling_curves(read_moved(moved.folder), "ks_mean", "all")
    fresh = next(c for c in curves if (c.method, c.strategy) == ("baseline", "fresh"))
    found = {
        int(row["labels"]): float(row["value"])
        for row in drawn
        if (row["panel"], row["line"]) == ("Baseline", "fresh, mean over groups")
    }
    assert found == pytest.approx({labels: at.mean for labels, at in fresh.points.items()})
    store = ResultsFolder.read(moved.folder)
    figure = standard_figures(store, store.results.attributes[0])[0]
    assert "labelled pairs, about" in figure.words
    ax = figure.plot().axes[0]
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > max(at.mean for at in fresh.points.values())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "30", "200"]
    assert "KS by labelled pairs" in (moved.folder / "report.html").read_text()


def test_json(both, run_here, monkeypatch, tmp_path):
    monkeypatch.chdir(both)
    options = ["--methods", "baseline", "--labels", "30,200", "--jobs", "1", "--json"]
    populations = ["--calibrate-on", "here", "--test-on", "there"]
    done = run_here(["benchmark", *populations, *options, "--out", str(tmp_path / "o")])
    assert done.code == 0, done.err
    curves = json.loads(done.out)["moving"]
    assert {(c["strategy"], c["metric"]) for c in curves} == {
        (strategy, metric) for strategy in ("recalibrated", "fresh") for metric in ("ks", "ks_mean")
    }
    assert [point["labels"] for point in curves[0]["points"]] == [0, 30, 200]
    assert curves[0]["enough"] in (0, 30, 200)


def test_score_tables_move_too(world, run_here):
    table = (world / "scores.csv").read_text()
    (world / "others.csv").write_text(table.replace("Asian", "Indian").replace("Black", "White"))
    options = ["--methods", "baseline,oracle", "--labels", "20", "--rates", "0.1", "--jobs", "1"]
    populations = ["--calibrate-on", "scores.csv", "--test-on", "others.csv"]
    done = run_here(["benchmark", *populations, "--features", "score", *options, "--out", "o"])
    assert done.code == 0, done.err
    assert "warning: scores.csv does not name its people" in done.err
    assert {row.people for row in read_moved("o") if row.labels == "20"} == {""}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "expected either DATA or --calibrate-on"),
        (["--calibrate-on", "faces"], "--calibrate-on and --test-on go together"),
        (["--test-on", "faces"], "--calibrate-on and --test-on go together"),
        (["faces", "--calibrate-on", "faces", "--test-on", "two"], "expected either DATA or"),
        (["faces", "--labels", "100"], "--labels and --people-apart go with --calibrate-on"),
        (["--calibrate-on", "faces", "--test-on", "two"], "people have names that"),
        (["--calibrate-on", "faces", "--test-on", "faces"], "the same data twice"),
        (["--calibrate-on", "faces", "--test-on", "wide"], "--people-apart"),
        (["--calibrate-on", "faces", "--test-on", "wide", "--people-apart"], "4 and 8 numbers"),
        (["--calibrate-on", "no", "--test-on", "faces"], "no: no such file"),
        (
            ["--calibrate-on", "faces", "--test-on", "plain", "--people-apart", "--labels", "9999"],
            "labels: expected 0, or 10 to",
        ),
    ],
)
def test_one_line_and_nothing_written(world, run_here, words, says):
    done = run_here(["benchmark", *words, "--methods", "baseline", "--out", "new"])
    assert done.code == 2
    assert says.replace("people have names that", "people have names that") in done.err
    assert done.err.count("\n") == 1
    assert not (world / "new").exists()


def test_help_has_an_example(run_here):
    done = run_here(["benchmark", "--help"])
    assert "[DATA]" in done.out
    assert "faircal benchmark --calibrate-on here/" in " ".join(done.out.split())
