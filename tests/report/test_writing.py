"""What is written of a folder of results: inside it, of this run only, and no number untold."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.cli.main import main
from faircal.data.dataset_folder import save_dataset
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.evaluation.curves import Curves, ScoreSource, make_curves
from faircal.metrics.measures import Rankings
from faircal.metrics.results import read_run, write_run
from faircal.report import LabelledResults, ResultsFolder, make_report
from faircal.report.paper import reproduction


@pytest.fixture
def command(monkeypatch, capfd, tmp_path):
    """Return a function that runs a command in an empty folder; gives its standard output."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        with pytest.raises(SystemExit) as left:
            main([*map(str, words)])
        said = capfd.readouterr()
        assert left.value.code == code, said.err
        return said

    return run


def table(path, sizes, seed=0, decimals=3, **more):
    """Write a score table with so many pairs of each class in each group."""
    rng = np.random.default_rng(seed)
    group = np.repeat(list(sizes), [2 * n for n in sizes.values()])
    genuine = np.concatenate([np.arange(2 * n) % 2 for n in sizes.values()])
    score = np.clip(rng.normal(0.2 + 0.3 * genuine, 0.15), -1, 1).round(decimals)
    columns = {"genuine": genuine, "score": score, "group": group, **more}
    pacsv.write_csv(pa.table(columns), path)


@pytest.fixture
def without_figures(monkeypatch):
    """As where Matplotlib is not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


def test_a_group_with_too_few_pairs_has_no_number_anywhere(command, tmp_path):
    table(tmp_path / "s.csv", {"A": 900, "B": 800, "Tiny": 40})
    command(
        "audit",
        "s.csv",
        "--attribute",
        "group",
        "--rates",
        "0.01,0.1",
        "--all-files",
        "--out",
        "out",
    )
    rows = [
        row
        for path in sorted((tmp_path / "out/tables").glob("*groups-*.csv"))
        for row in pacsv.read_csv(path).to_pylist()
    ]
    tiny = [row for row in rows if row["column"] == "Tiny"]
    assert tiny
    assert {row["value"] for row in tiny} == {"not enough data"}
    assert all(float(row["value"]) >= 0 for row in rows if row["column"] in ("A", "B"))
    drawn = pacsv.read_csv(tmp_path / "out/figures/rates-fpr.csv")["group"].to_pylist()
    assert set(drawn) == {"A", "B"}
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "Part of it, but with not enough data to be told alone: Tiny." in page
    assert "Not drawn, not enough data: Tiny." in page
    raw = (tmp_path / "out/results.csv").read_text()
    assert "Tiny,global_fpr=0.1,fpr,0." in raw  # for machines, with its count beside it


@pytest.mark.usefixtures("without_figures")
def test_names_of_attributes_stay_inside_the_folder(command, tmp_path):
    rng = np.random.default_rng(0)
    n, names = 600, ["a/b", "../../../evil", "[/x]", "[bold]", "a=b"]
    table(
        tmp_path / "s.csv",
        {"A": n // 4, "B": n // 4},
        fold=np.arange(n) // 2 % 2,
        **{name: rng.choice(["x", "y"], n) for name in names},
    )
    before = set(tmp_path.parent.rglob("*"))
    out = "deep/er/out"
    said = command("benchmark", "s.csv", "--attribute", ",".join(names), "--out", out)
    assert all(f"groups by {name}" in said.out for name in names)
    written = {path for path in tmp_path.parent.rglob("*") if path.is_file()} - before
    assert written
    assert all(path.is_relative_to(tmp_path / out) for path in written)
    assert any(path.parent.name == "tables" for path in written)
    command("report", out)  # clears what an earlier run left, and is not led astray


def test_nothing_of_another_run_is_left(command, tmp_path):
    table(tmp_path / "s.csv", {"A": 300, "B": 300})
    out = tmp_path / "out"
    command("audit", "s.csv", "--attribute", "group", "--all-files", "--out", "out")
    assert (out / "figures/roc.png").exists()
    assert not list(out.rglob("*.tex"))
    (out / "figures/mine.png").write_bytes(b"the user's own")
    command("report", "out")
    assert not (out / "tables").exists()
    assert {path.name for path in (out / "figures").iterdir()} == {"mine.png"}
    assert sum(path.is_file() for path in out.rglob("*")) <= 12 + 1
    command("report", "out", "--all-files")
    assert (out / "figures/roc.png").exists()
    table(tmp_path / "one.csv", {"A": 300, "B": 300})
    one = pacsv.read_csv(tmp_path / "one.csv")
    pacsv.write_csv(one.filter(pa.compute.equal(one["genuine"], 1)), tmp_path / "one.csv")
    said = command("audit", "one.csv", "--attribute", "group", "--out", "out")
    assert "matplotlib" not in said.err  # it is installed; there is just nothing to draw
    assert {path.name for path in (out / "figures").iterdir()} == {"mine.png"}
    data = faircal.simulate("small", seed=0, people=80, images=400, pairs=1200, dimension=16)
    run_benchmark(data, out, BenchmarkSettings(methods=("baseline",)), jobs=1)
    make_report(out)
    left = {path.name for path in out.iterdir()}
    assert not left & {"audit.json", "matrix.csv", "clusters.csv", "members.csv"}


@pytest.mark.usefixtures("without_figures")
def test_rates_that_are_none_are_refused_before_anything_is_written(command, tmp_path):
    table(tmp_path / "s.csv", {"A": 300, "B": 300})
    for rates in ("0", "1", "0.01,1"):
        command("audit", "s.csv", "--rates", rates, "--out", "out", code=2)
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_figures")
def test_scores_that_are_all_alike_are_said(command, tmp_path):
    table(tmp_path / "s.csv", {"A": 600, "B": 600}, decimals=1)
    command("audit", "s.csv", "--attribute", "group", "--rates", "0.01", "--out", "out")
    record = json.loads((tmp_path / "out/audit.json").read_text("utf-8"))
    score = pacsv.read_csv(tmp_path / "s.csv")
    imposters = np.asarray(score["score"])[np.asarray(score["genuine"]) == 0]
    tied, errors = ((imposters.round(1) == 0.5).sum(), (imposters.round(1) > 0.5).sum())
    (said,) = [text for text in record["summary"]["who"] if "tied" in text]
    assert said == (
        f"{errors} of {len(imposters):,} pairs of strangers reach that threshold. {tied} more are "
        "tied at the score just below it; with them the rate would be above 1 %."
    )
    (point,) = [p for p in record["operating_points"] if p["global_fpr"] == 0.01]
    assert (point["threshold"], point["tied"]) == (0.55, tied)
    assert point["overall"]["fpr"]["errors"] == errors


@pytest.mark.usefixtures("without_figures")
def test_a_group_without_an_error_in_words(command, tmp_path):
    table(tmp_path / "s.csv", {"A": 400, "B": 400}, seed=3)
    scores = pacsv.read_csv(tmp_path / "s.csv")
    high = np.asarray(scores["score"]).copy()
    genuine, group = np.asarray(scores["genuine"]), np.asarray(scores["group"])
    of_b = (genuine == 0) & (group == "B")
    high[of_b] = np.linspace(-0.5, 0.2, of_b.sum()).round(3)
    high[np.flatnonzero((genuine == 0) & (group == "A"))[:20]] = np.linspace(0.8, 0.9, 20)
    pacsv.write_csv(scores.set_column(1, "score", [high]), tmp_path / "s.csv")
    command("audit", "s.csv", "--attribute", "group", "--rates", "0.01", "--out", "out")
    record = json.loads((tmp_path / "out/audit.json").read_text("utf-8"))
    (point,) = [p for p in record["operating_points"] if p["global_fpr"] == 0.01]
    (b,) = [g for g in point["groups"] if g["group"] == "B"]
    assert b["fpr"]["errors"] == 0
    assert point["ratio"]["fpr"] is None
    (told,) = [text for text in record["summary"]["who"] if text.startswith("False matches")]
    assert "fewest among B with 0 % (0 % to" in told
    assert "times as many, and" not in told


@pytest.mark.usefixtures("without_figures")
def test_letters_that_turn_text_round_are_left_out_of_the_page(command, tmp_path):
    table(tmp_path / "s.csv", {"\u202eevil": 300, "B\u2066": 300})
    command("audit", "s.csv", "--attribute", "group", "--out", "out")
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "evil" in page
    assert not {"\u202e", "\u2066"} & set(page)


def reproduced(folder, **run):
    """A store of a reproduction that has curves and nothing else of note."""
    found = faircal.audit(score=[0.9, 0.2, 0.7, 0.1], genuine=[1, 0, 1, 0], groups=list("AABB"))
    run = {"kind": "reproduce", "paper": "rfw", **run}
    return ResultsFolder(folder, LabelledResults(found.rows), run, found.curves, [], [])


def test_pictures_come_from_their_folder_only(tmp_path):
    (tmp_path / "photos/deep").mkdir(parents=True)
    for name in ("photos/deep/in.jpg", "out.jpg"):
        (tmp_path / name).write_bytes(b"")
    made = reproduction(reproduced(tmp_path, pictures=str(tmp_path / "photos")))
    assert made._picture_of("deep/in.jpg") == tmp_path / "photos/deep/in.jpg"
    assert made._picture_of("../out.jpg") is None
    assert made._picture_of(str(tmp_path / "out.jpg")) is None
    assert made._picture_of("deep") is None
    assert reproduction(reproduced(tmp_path))._picture_of("deep/in.jpg") is None


@pytest.mark.usefixtures("without_figures")
def test_json_of_a_reproduction_has_claims_and_counts(command, tmp_path):
    data = faircal.simulate("small", seed=0, people=80, images=400, pairs=1200, dimension=16)
    told = {"kind": "reproduce", "paper": "rfw", "published": {"embedding": "facenet-webface"}}
    settings = BenchmarkSettings(
        methods=("baseline", "faircal"), clusters=(5,), attributes=("ethnicity",)
    )
    run_benchmark(data, tmp_path, settings, jobs=1, more=told)
    for simulated in (True, False):
        write_run(tmp_path, read_run(tmp_path) | {"simulated": simulated})
        said = json.loads(command("report", tmp_path, "--json").out)
        assert said["simulated"] is simulated
        assert {"text", "won", "of", "published_won", "published_of", "holds"} <= set(
            said["claims"][0]
        )
        counts = said["agreement"]
        assert (counts is None) == simulated
        if counts:
            assert 0 <= counts["within_one"] <= counts["within_two"] <= counts["compared"] > 0


def test_the_main_variant_is_that_of_the_curves_else_the_nearest(tmp_path):
    rows = reproduced(tmp_path).results.rows
    variants = [("beta", "5"), ("beta", "500"), ("isotonic", "100"), ("beta", "90")]
    several = [
        row._replace(method="faircal", calibrator=calibrator, clusters=k)
        for calibrator, k in variants
        for row in rows
    ]
    rankings = Rankings.of(np.array([0.1, 0.9]), None, np.array([False, True]), None)
    source = ScoreSource("", "faircal", "beta", "500")
    for curves, expected in (
        (Curves([]), ("faircal", "beta", "90")),
        (Curves(make_curves(rankings, source, (-1.0, 1.0))), ("faircal", "beta", "500")),
    ):
        store = ResultsFolder(tmp_path, LabelledResults(several), {}, curves, [], [])
        (found,) = store.main_variants.values()
        assert (found.method, found.calibrator, found.clusters) == expected


def test_what_the_fits_of_a_benchmark_say_is_said_once(command, tmp_path, without_figures):
    """Notes that differ in numbers are one; what was only chosen is for the page alone."""
    data = faircal.simulate("small", seed=0, people=80, images=400, pairs=800)
    save_dataset(data, "faces")
    lines = (tmp_path / "faces" / "images.csv").read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace('"African"', '"Asian"')  # whose genuine pairs are of two groups
    (tmp_path / "faces" / "images.csv").write_text("".join(lines))
    words = "benchmark faces --methods baseline,faircal,oracle,snorm --clusters 20 --jobs 1 --out b"
    first = command(*words.split())
    run = read_run("b")
    few, lost = run["notes"]
    assert few.startswith("FairCal, in 5 of 5 fits: half of the 20 clusters with a map of their ")
    (in_fit,) = (f["notes"] for f in run["fits"] if (f["method"], f["fold"]) == ("faircal", 1))
    assert few.endswith(in_fit[0])
    assert lost.startswith("Oracle, in 1 of 5 fits: ")
    assert lost.endswith(" probability 0: correct the attribute of one of their images")
    said = [line for line in first.err.splitlines() if " fits: " in line]
    assert said == [f"note: {few}", f"note: {lost}"]
    (tmp_path / "b" / "run.json").unlink()
    assert command(*words.split(), "--resume").err == first.err
    assert read_run("b")["notes"] == run["notes"]
    page = (tmp_path / "b" / "report.html").read_text()
    assert page.count("with a map of their own have") == 1
    assert "S-norm: scores are compared with those of 64 calibration people" in page
