"""Every command end to end, as a process of its own, on a small simulated dataset."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import shutil
import textwrap
from collections.abc import Iterable
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
import faircal.methods
from faircal.cli.help import COMMANDS
from faircal.data.simulation import PRESETS
from faircal.methods import METHODS

SIZES = ("--people", 80, "--images", 400, "--pairs", 1200, "--dimension", 16)
COLUMNS = (
    "dataset,feature,method,calibrator,clusters,seed,fold,attribute,group,condition,metric,value"
)
MORE = ",low,high,level,errors,trials,people,effective,withheld"
#: What is made of all folds together.
OVER_FOLDS = ("_least_ratio", "_by_chance")
PLAIN = [name for name, method in METHODS.items() if method.needs.extra is None]
#: Those that need no cohort besides.
ALONE = [name for name in PLAIN if METHODS[name].needs.cohort != "required"]
CLUSTERED = {name for name in PLAIN if "n_clusters" in METHODS[name]._get_param_names()}
BENCH = ("--clusters", 5, "--methods", ",".join(ALONE))


def rows_of(folder: Path) -> list[dict[str, str]]:
    """Return the rows of ``results.csv``; its header must be the published one."""
    with (folder / "results.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert ",".join(reader.fieldnames) == COLUMNS + MORE
        return list(reader)


def values_of(rows: Iterable[dict[str, str]], **where: str) -> dict[tuple[str, ...], float]:
    """Return the values of the rows that agree with `where`, by the other columns."""
    keys = [key for key in COLUMNS.split(",") if key not in where and key != "value"]
    return {
        tuple(row[key] for key in keys): float(row["value"])
        for row in rows
        if all(row[key] == value for key, value in where.items())
    }


def same(a: dict, b: dict) -> bool:
    """Whether two sets of values are equal, NaN to NaN."""
    return a.keys() == b.keys() and np.array_equal(
        np.array([*a.values()]), np.array([*b.values()]), equal_nan=True
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def faces(home, run_command):
    done = run_command("simulate", "small", home / "faces", *SIZES)
    assert done.stdout.split() == [str(home / "faces")]
    assert done.stderr == ""
    return home / "faces"


@pytest.fixture(scope="module")
def data(faces):
    return faircal.load(faces)


@pytest.fixture(scope="module")
def model(faces, home, run_command):
    run_command("fit", faces, "--clusters", 5, "--out", home / "m.faircal")
    return home / "m.faircal"


@pytest.fixture(scope="module")
def table(data, home):
    """The same pairs as a table of scores."""
    sides = {
        f"{side}_{name}": [column.names[c] for c in column.take(getattr(data.pairs, side))]
        for name, column in data.images.attributes.items()
        for side in ("left", "right")
    }
    columns = {"score": data.scores, "genuine": data.genuine, "fold": data.pairs.fold, **sides}
    pacsv.write_csv(pa.table(columns), home / "table.csv")
    return home / "table.csv"


@pytest.fixture(scope="module")
def bench(faces, home, run_command):
    done = run_command("benchmark", faces, *BENCH, "--jobs", 1, "--out", home / "bench")
    assert str(home / "bench/report.html") in done.stdout
    return home / "bench"


@pytest.fixture
def run_plain(run_command):
    """Run a command where Matplotlib is not installed: figures have tests of their own."""
    return partial(run_command)


# ------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples(command, run_command):
    done = run_command(*command.split(), "--help")
    assert f"faircal {command}" in done.stdout.partition("\nExamples:\n")[2].partition("\nExit")[0]
    assert done.stderr == ""


def test_version(run_command):
    assert run_command("--version").stdout.split() == ["faircal,", "version", faircal.__version__]


def test_methods(run_command):
    done = run_command("methods", "--json")
    assert [row["method"] for row in json.loads(done.stdout)] == list(METHODS)
    assert "FairCal" in run_command("methods").stdout


# --------------------------------------------------------------------------- simulate


def test_simulate_gives_the_same_bytes_for_the_same_seed(faces, tmp_path, run_command):
    done = run_command("simulate", "small", tmp_path / "again", *SIZES, "--json")
    assert json.loads(done.stdout) == {
        "folder": str(tmp_path / "again"),
        "pairs": 1200,
        "images": 400,
        "seed": 0,
    }
    run_command("simulate", "small", tmp_path / "other", *SIZES, "--seed", 1)
    names = {path.name for path in faces.iterdir()}
    assert names == {"images.csv", "pairs.csv", "embeddings.npy", "dataset.json"}
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (faces / name).read_bytes()
    vectors = [np.load(folder / "embeddings.npy") for folder in (faces, tmp_path / "other")]
    assert not np.array_equal(*vectors)


# ------------------------------------------------------------------------------ check


def test_check_describes(faces, run_command):
    done = run_command("check", faces)
    assert done.stderr == ""
    assert "1200 (400 genuine, 800 imposter)" in done.stdout
    assert "African F" in done.stdout
    assert "too small to say anything about" in done.stdout


def test_check_for_machines(faces, run_command):
    about = json.loads(run_command("check", faces, "--attribute", "gender", "--json").stdout)
    assert about["usable"]
    assert about["simulated"]
    assert (about["pairs"], about["images"], about["identities"]) == (1200, 400, 80)
    assert about["features"] == {"embedding": "16-d embeddings"}
    assert [group["group"] for group in about["groups"]] == ["F", "M"]
    assert sum(about["folds"].values()) == 1200
    inside = sum(group["genuine"] + group["imposter"] for group in about["groups"])
    assert inside + about["cross_group_pairs"] + about["unknown_pairs"] == 1200


def test_check_of_a_table(table, run_command):
    about = json.loads(run_command("check", table, "--json").stdout)
    assert about["attribute"] == "ethnicity+gender"
    assert about["images"] is None
    assert about["features"] == {"score": "scores"}


def test_check_gives_each_fault_a_count_an_example_and_a_remedy(world, run_here):
    vectors = np.load("faces/embeddings.npy")
    vectors[2] = np.nan
    np.save("faces/embeddings.npy", vectors)
    lines = Path("faces/pairs.csv").read_text().splitlines()
    lines[3] = lines[3].replace("i00", "nobody")
    lines.append(lines[1])
    Path("faces/pairs.csv").write_text("\n".join(lines) + "\n")
    done = run_here(["check", "faces", "--json"])
    assert done.code == 2
    about = json.loads(done.out)
    assert not about["usable"]
    for fault in about["faults"]:
        assert list(fault) == ["severity", "what", "count", "example", "remedy"]
        assert fault["count"] >= 1
        assert fault["example"]
        assert fault["remedy"]
    severities = [fault["severity"] for fault in about["faults"]]
    assert severities[:2] == ["error", "error"]
    assert "duplicate pairs" in {fault["what"] for fault in about["faults"]}
    said = " ".join(run_here(["check", "faces"]).out.split())
    for fault in about["faults"]:
        assert f"{fault['what']}: {fault['count']} (for example {fault['example']})" in said


# ---------------------------------------------------------------------- fit and score


@pytest.mark.parametrize("method", ALONE)
def test_fit_every_method(method, faces, data, tmp_path, run_command):
    out = tmp_path / "m.faircal"
    clusters = ("--clusters", 5) if method in CLUSTERED else ()
    words = ("fit", faces, "--method", method, *clusters, "--leave-out", 5, "--out", out, "--json")
    said = json.loads(run_command(*words).stdout)
    assert said["model"] == str(out)
    assert said["method"] == method
    parameters = {"n_clusters": 5} if clusters else {}
    here = faircal.methods.make_method(method, **parameters).fit(data.split(5)[0])
    fitted = faircal.load_model(out)
    assert fitted.name == method
    np.testing.assert_array_equal(fitted.predict_proba(data), here.predict_proba(data))


def test_fit_options(faces, tmp_path, run_command):
    out = tmp_path / "m.faircal"
    options = ("--clusters", 4, "--calibrator", "isotonic", "--seed", 7, "--set", "min_pairs=20")
    done = run_command("fit", faces, *options, "--out", out)
    assert done.stdout.split() == [str(out)]
    fitted = faircal.load_model(out)
    expected = {"n_clusters": 4, "calibrator": "isotonic", "random_state": 7, "min_pairs": 20}
    assert expected.items() <= fitted.get_params().items()


def test_fit_says_that_folds_were_drawn(faces, tmp_path, run_command):
    folder = tmp_path / "faces"
    shutil.copytree(faces, folder)
    pairs = pacsv.read_csv(folder / "pairs.csv")
    pacsv.write_csv(pairs.drop_columns("fold"), folder / "pairs.csv")
    out = tmp_path / "m"
    words = ("fit", folder, "--method", "baseline", "--out", out)
    threshold = f"next: faircal threshold {out}"
    end = f"--fpr 0.01 --out {out}"
    assert run_command(*words).stderr == f"{threshold} DATA {end}, on people left out\n"
    said = run_command(*words, "--leave-out", 2).stderr
    assert "note: folds drawn: 5" in said
    assert said.endswith(f"\n{threshold} {folder} --fold 2 {end}\n")
    assert run_command(*words, "--json").stderr == ""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_score(suffix, faces, data, model, tmp_path, run_command):
    out = tmp_path / f"scored.{suffix}"
    done = run_command("score", model, faces, "--out", out)
    assert done.stdout.split() == [str(out)]
    scored = pacsv.read_csv(out) if suffix == "csv" else pq.read_table(out)
    assert scored.column_names == [
        *("left", "right", "score", "probability", "left_identity", "right_identity")
    ]
    names = data.images.identity.names
    assert scored["left_identity"].to_pylist() == [names[code] for code in data.people.left]
    fitted = faircal.load_model(model)
    np.testing.assert_array_equal(scored["probability"], fitted.predict_proba(data))
    np.testing.assert_array_equal(scored["score"], fitted.decision_scores(data))
    np.testing.assert_array_equal(scored["left"], np.asarray(data.images.ids)[data.pairs.left])
    np.testing.assert_array_equal(scored["right"], np.asarray(data.images.ids)[data.pairs.right])
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_score_keeps_columns_of_one_fold(faces, data, model, tmp_path, run_command):
    out = tmp_path / "scored.parquet"
    keep = ("--keep", "genuine,fold,ethnicity", "--fold", 2)
    done = run_command("score", model, faces, "--out", out, *keep, "--json")
    part = data.split(2)[1]
    assert json.loads(done.stdout) == {"out": str(out), "pairs": len(part)}
    scored = pq.read_table(out)
    assert scored.column_names[4:] == [
        *("genuine", "fold", "left_ethnicity", "right_ethnicity"),
        *("left_identity", "right_identity"),
    ]
    assert set(scored["fold"].to_pylist()) == {2}
    np.testing.assert_array_equal(np.asarray(scored["genuine"]) == 1, part.genuine)
    groups = part.groups("ethnicity")
    assert scored["left_ethnicity"].to_pylist() == [groups.names[c] for c in groups.left]
    assert scored["right_ethnicity"].to_pylist() == [groups.names[c] for c in groups.right]


def test_folds_by_name(world, run_here):
    """A fold that looks like a number among others that do not is found by its name."""
    table = pacsv.read_csv("scores.csv")
    names = ["1" if fold == 1 else "b" for fold in table["fold"].to_pylist()]
    table = table.drop_columns("fold").append_column("fold", pa.array(names))
    pacsv.write_csv(table, "named.csv")
    for fold in ("1", "b"):
        words = ["score", "baseline.faircal", "named.csv", "--fold", fold, "--out", "s.csv"]
        done = run_here([*words, "--json"])
        assert (done.code, json.loads(done.out)["pairs"]) == (0, names.count(fold))


def test_score_needs_no_labels(faces, model, data, tmp_path, run_command):
    folder = tmp_path / "new"
    shutil.copytree(faces, folder)
    pairs = pacsv.read_csv(folder / "pairs.csv")
    pacsv.write_csv(pairs.select(["left", "right"]), folder / "pairs.csv")
    run_command("score", model, folder, "--out", tmp_path / "s.parquet")
    scored = pq.read_table(tmp_path / "s.parquet")
    expected = faircal.load_model(model).predict_proba(data)
    np.testing.assert_array_equal(scored["probability"], expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_score_in_batches_is_the_same(suffix, faces, model, tmp_path, run_here, monkeypatch):
    files = [tmp_path / f"{name}.{suffix}" for name in ("whole", "parts")]
    assert run_here(["score", str(model), str(faces), "--out", str(files[0])]).code == 0
    monkeypatch.setattr("faircal.data.Dataset.BATCH", 500)
    assert run_here(["score", str(model), str(faces), "--out", str(files[1])]).code == 0
    whole, parts = (pacsv.read_csv(f) if suffix == "csv" else pq.read_table(f) for f in files)
    assert whole.equals(parts)


def test_score_of_a_table(table, tmp_path, run_command):
    model = tmp_path / "m.faircal"
    run_command("fit", table, "--method", "baseline", "--out", model)
    run_command("score", model, table, "--out", tmp_path / "s.csv")
    scored = pacsv.read_csv(tmp_path / "s.csv")
    assert scored["left"].to_pylist() == list(range(1, 1201))
    expected = faircal.load_model(model).predict_proba(faircal.load(table))
    np.testing.assert_array_equal(scored["probability"], expected)


# ------------------------------------------------------------------------------ audit


def check_audit(folder: Path, attribute: str = "", **run: object) -> list[dict[str, str]]:
    rows = rows_of(folder)
    more = {"matrix.csv"} if json.loads((folder / "run.json").read_text())["groups"] else set()
    assert {path.name for path in folder.iterdir()} == more | {
        "results.csv",
        "replicates.parquet",
        "curves.parquet",
        "run.json",
        "report.html",
        "audit.json",
    }
    record = json.loads((folder / "run.json").read_text())
    record |= record["groups"].get(attribute, {})
    assert {key: record[key] for key in run} == run
    assert record["wall_time_s"] > 0
    assert len(record["data_sha256"]) == 64
    intervals = [row for row in rows if row["level"]]
    for row in intervals:
        if row["value"] != "nan" and row["low"]:
            assert 0 <= float(row["low"]) <= float(row["value"]) + 1e-12
            assert float(row["value"]) <= float(row["high"]) + 1e-12
            if row["metric"] in ("fpr", "fnr", "tpr"):
                assert float(row["high"]) <= 1
                assert float(row["effective"]) <= float(row["trials"])
    return rows


def test_audit_of_a_table(table, tmp_path, run_plain):
    out = tmp_path / "a"
    words = ("audit", table, "--attribute", "ethnicity", "--threshold", 0.3, "--out", out)
    done = run_plain(*words)
    assert str(out / "report.html") in done.stdout
    assert "Asian" in done.stdout
    assert "intervals: " in done.stderr
    rows = check_audit(out, "ethnicity", kind="audit", pairs=1200, unknown_pairs=0)
    data = faircal.load(table)
    groups = data.groups("ethnicity")
    found = values_of(rows, metric="fpr", condition="")
    for code, name in enumerate(groups.names):
        negatives = (groups.pair == code) & ~data.genuine
        expected = (data.scores[negatives] >= 0.3).mean()
        (value,) = [value for key, value in found.items() if name in key]
        assert value == pytest.approx(expected)
    assert {row["attribute"] for row in rows} == {"ethnicity"}
    assert not any(row["metric"] == "ks" for row in rows)


def test_audit_with_a_model(faces, data, model, tmp_path, run_plain):
    out = tmp_path / "a"
    words = ("audit", faces, "--model", model, "--fold", 5, "--out", out, "--json")
    said = json.loads(run_plain(*words).stdout)
    assert said["report"] == str(out / "report.html")
    rows = check_audit(out, "ethnicity+gender", kind="audit", simulated=True, cross_group_pairs=64)
    assert {row["method"] for row in rows} == {"faircal"}
    part = data.split(5)[1]
    expected = faircal.metrics.ks(faircal.load_model(model).predict_proba(part), part.genuine)
    (found,) = values_of(rows, metric="ks", group="global").values()
    assert found == pytest.approx(expected)
    assert len(said["audit"]) > 0


def test_audit_of_a_scored_file(faces, model, tmp_path, run_plain):
    """What ``score`` wrote can be audited without the model."""
    scored = tmp_path / "s.parquet"
    run_plain("score", model, faces, "--keep", "genuine,gender", "--out", scored)
    run_plain("audit", scored, "--out", tmp_path / "table")
    run_plain("audit", faces, "--attribute", "gender", "--model", model, "--out", tmp_path / "m")
    labels = {"dataset": "", "feature": "", "method": ""}
    found, expected = (
        values_of(
            # Who is in the pairs says which groups may be shown, and of whom this is a ratio.
            row | labels
            for row in check_audit(tmp_path / name)
            if not row["metric"].endswith("_least_ratio")
        )
        for name in ("table", "m")
    )
    assert same(found, expected)


def test_audit_without_attributes(table, tmp_path, run_plain):
    bare = pacsv.read_csv(table).select(["score", "genuine"])
    pq.write_table(bare, tmp_path / "bare.parquet")
    done = run_plain("audit", tmp_path / "bare.parquet", "--out", tmp_path / "a")
    assert "only global figures" in done.stderr
    assert {row["group"] for row in check_audit(tmp_path / "a")} == {"global"}


# -------------------------------------------------------------------------- benchmark


def test_benchmark_results(bench, data):
    rows = rows_of(bench)
    assert {row["method"] for row in rows} == set(ALONE)
    assert {row["fold"] for row in rows} == {"1", "2", "3", "4", "5", "mean", "std"}
    assert {row["attribute"] for row in rows} == {"ethnicity+gender"}
    names = set(data.groups().names)
    assert {row["group"] for row in rows} == names | {"global", "all"}
    assert {row["condition"] for row in rows} == {
        *("", "fpr=0.001", "fpr=0.01", "global_fpr=0.001", "global_fpr=0.01"),
        *("global_fnr=0.001", "global_fnr=0.01"),
    }
    for row in rows:
        assert row["clusters"] == ("5" if row["method"] in CLUSTERED else "")
        assert (row["calibrator"], row["seed"]) == ("beta", "0")
        over = ("_mean", "_aad", "_mad", "_std", "_gap", "_gini", "_max_min", "_max_geomean")
        over += OVER_FOLDS
        single = row["metric"] in ("fdr", "ir", "garbe")
        assert (row["group"] == "all") == (single or row["metric"].endswith(over))
    metrics = {row["metric"] for row in rows}
    assert {"auroc", "tpr", "fpr", "fnr", "threshold", "ks", "ece", "brier", "nll"} <= metrics
    assert {"ks_mean", "ks_aad", "ks_mad", "ks_std", "fpr_aad", "fnr_mad"} <= metrics


def test_benchmark_folds_are_summarised(bench):
    def value_name(row):
        return [row[key] for key in COLUMNS.split(",") if key not in ("fold", "value")]

    rows = [row for row in rows_of(bench) if not row["metric"].endswith(OVER_FOLDS)]
    for _, several in groupby(rows, key=value_name):
        by_fold = {row["fold"]: float(row["value"]) for row in several}
        mean, std = by_fold.pop("mean"), by_fold.pop("std")
        known = [value for value in by_fold.values() if not np.isnan(value)]
        assert len(by_fold) == 5
        if np.isinf(known).any():  # a ratio to a group without an error
            assert mean == np.inf and np.isnan(std)
        elif known:
            assert mean == pytest.approx(np.mean(known), abs=1e-12)
            assert std == pytest.approx(np.std(known), abs=1e-12)


def test_benchmark_record(bench, data):
    run = json.loads((bench / "run.json").read_text())
    assert run["kind"] == "benchmark"
    assert run["simulated"] is True
    assert run["data_sha256"] == data.hash()
    assert run["settings"]["seed"] == 0
    assert run["settings"]["clusters"] == [5]
    assert run["wall_time_s"] > 0
    assert {"faircal", "numpy", "python"} <= run["versions"].keys()
    page = (bench / "report.html").read_text()
    assert "African F" in page
    assert not re.search(r"<[^>]*\ssrc=", page)
    assert re.findall(r"<link[^>]*>", page) == ['<link rel="icon" href="data:,">']


def test_benchmark_is_the_same_whatever_the_jobs(bench, faces, tmp_path, run_plain):
    run_plain("benchmark", faces, *BENCH, "--jobs", 2, "--out", tmp_path / "b")
    results = (bench / "results.csv").read_bytes()
    assert (tmp_path / "b/results.csv").read_bytes() == results
    run_plain("benchmark", faces, *BENCH, "--jobs", 2, "--out", tmp_path / "b")
    assert (tmp_path / "b/results.csv").read_bytes() == results


def test_benchmark_goes_on_where_it_stopped(bench, faces, tmp_path, run_plain):
    out = tmp_path / "b"
    shutil.copytree(bench, out)
    parts = sorted((out / "parts").glob("*/*.json"))
    for part in parts[::2]:
        part.unlink()
    (out / "results.csv").unlink()
    (out / "report.html").unlink()
    before = {part: part.stat().st_mtime_ns for part in parts[1::2]}
    run_plain("benchmark", faces, *BENCH, "--jobs", 1, "--resume", "--out", out)
    assert (out / "results.csv").read_bytes() == (bench / "results.csv").read_bytes()
    assert before == {part: part.stat().st_mtime_ns for part in before}  # not worked out again
    assert sorted((out / "parts").glob("*/*.json")) == parts


def test_benchmark_sweep_and_settings(bench, faces, tmp_path, run_plain):
    out = tmp_path / "b"
    options = ("--methods", "baseline,faircal", "--clusters", "5,10", "--jobs", 1)
    more = ("--set", "faircal.min_pairs=5", "--attribute", "ethnicity,gender", "--json")
    done = run_plain("benchmark", faces, *options, *more, "--out", out)
    assert json.loads(done.stdout)["results"] == str(out / "results.csv")
    rows = rows_of(out)
    assert {(row["method"], row["clusters"]) for row in rows} == {
        ("baseline", ""),
        ("faircal", "5"),
        ("faircal", "10"),
    }
    assert {row["attribute"] for row in rows} == {"ethnicity", "gender"}
    assert len(json.loads(done.stdout)["tables"]) > 0
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["parameters"] == {"faircal": {"min_pairs": 5}}
    # The baseline knows no groups: its global figures are those of the first benchmark.
    of_baseline = {"method": "baseline", "group": "global"}
    first = values_of(rows_of(bench), **of_baseline, attribute="ethnicity+gender")
    assert same(values_of(rows, **of_baseline, attribute="gender"), first)


def test_benchmark_min_pairs_is_heeded(faces, tmp_path, run_plain):
    """With no cluster large enough FairCal is the baseline."""
    options = ("--methods", "baseline,faircal", "--clusters", 5, "--jobs", 1)
    more = ("--set", "faircal.min_pairs=100000")
    run_plain("benchmark", faces, *options, *more, "--out", tmp_path / "b")
    rows = rows_of(tmp_path / "b")
    of_baseline = values_of(rows, method="baseline", clusters="", metric="ks")
    of_faircal = values_of(rows, method="faircal", clusters="5", metric="ks")
    assert of_faircal == pytest.approx(of_baseline, nan_ok=True)


def test_benchmark_retune(bench, faces, tmp_path, run_plain):
    run_plain(
        "benchmark", faces, *BENCH, "--jobs", 1, "--retune", "--out", tmp_path / "b", figures=False
    )
    tuned, plain = rows_of(tmp_path / "b"), rows_of(bench)
    for name in ALONE:
        kept = [values_of(rows, method=name, condition="") for rows in (tuned, plain)]
        assert same(*kept)
        at_rates = [values_of(rows, method=name) for rows in (tuned, plain)]
        assert same(*at_rates) != METHODS[name].fitted_to_rate


def test_benchmark_threshold_on_calibration(bench, faces, tmp_path, run_plain):
    options = ("--methods", "baseline", "--jobs", 1, "--threshold-on", "calibration")
    run_plain("benchmark", faces, *options, "--out", tmp_path / "b")
    deployed, paper = (values_of(rows_of(f), method="baseline") for f in (tmp_path / "b", bench))
    assert deployed.keys() == paper.keys()
    assert not same(deployed, paper)
    without = [
        values_of(rows_of(f), method="baseline", condition="") for f in (tmp_path / "b", bench)
    ]
    assert same(*without)


def test_benchmark_of_a_table_leaves_out_what_needs_embeddings(table, bench, tmp_path, run_plain):
    out = tmp_path / "b"
    done = run_plain("benchmark", table, "--jobs", 1, "--out", out)
    left_out = json.loads((out / "run.json").read_text())["left_out"]
    assert "faircal" in left_out
    for name in left_out:
        assert METHODS[name].needs.embeddings
        assert f"note: {name} is left out: it needs embeddings" in done.stderr
    rows = rows_of(out)
    assert {row["method"] for row in rows} == set(METHODS) - set(left_out)
    labels = {"dataset": "", "feature": ""}
    found, expected = (
        values_of([row | labels for row in each], method="oracle")
        for each in (rows, rows_of(bench))
    )
    assert found == pytest.approx(expected, nan_ok=True, rel=1e-9)


def test_benchmark_draws_folds_and_says_so(table, tmp_path, run_plain):
    bare = pacsv.read_csv(table).drop_columns("fold")
    pacsv.write_csv(bare, tmp_path / "bare.csv")
    options = ("--methods", "baseline", "--jobs", 1, "--seed", 3)
    done = run_plain(
        "benchmark", tmp_path / "bare.csv", *options, "--out", tmp_path / "b", figures=False
    )
    assert "note: folds drawn: 5 folds of pairs, seed 3" in done.stderr
    assert {row["fold"] for row in rows_of(tmp_path / "b")} == {*"12345", "mean", "std"}


# ----------------------------------------------------------------------------- report


def test_report_recomputes_nothing(bench, tmp_path, run_command):
    out = tmp_path / "b"
    shutil.copytree(bench, out)
    shutil.rmtree(out / "parts")
    (out / "report.html").write_text("old")
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.*") if path.suffix != ".html"}
    done = run_command("report", out)
    assert (out / "report.html").read_bytes() == (bench / "report.html").read_bytes()
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert str(out / "report.html") in done.stdout
    assert done.stderr.splitlines() == [
        "simulated data: nothing here is about real people or a real system"
    ]
    said = json.loads(run_command("report", out, "--json").stdout)
    assert said["results"] == str(out / "results.csv")
    assert said["tables"]


def test_report_follows_the_results(bench, tmp_path, run_plain):
    """A number changed in ``results.csv`` is the number on the page."""
    out = tmp_path / "b"
    shutil.copytree(bench, out)
    lines = (out / "results.csv").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if ",mean," in line and ",global,,auroc," in line)
    cells = lines[at].split(",")
    cells[COLUMNS.count(",")] = "0.12345"
    lines[at] = ",".join(cells)
    (out / "results.csv").write_text("\n".join(lines) + "\n")
    run_plain("report", out)
    shown = f"<td>{100 * 0.12345:.2f}"
    assert shown in (out / "report.html").read_text()
    assert shown not in (bench / "report.html").read_text()


# -------------------------------------------------------------------------------- demo


@pytest.mark.usefixtures("without_figures")
def test_demo_on_a_smaller_preset(tmp_path, run_here, monkeypatch):
    """The demo is the benchmark on a preset: here on a small one, in this process."""
    monkeypatch.setattr("faircal.workflows.benchmark.DEMO", "small")
    monkeypatch.setattr("faircal.workflows.benchmark.DEMO_SIZE", {})
    # A cohort of ten people a group is drawn from them.
    sizes = {"people": 200, "images": 800, "pairs": 2400, "dimension": 16}
    fewer = dataclasses.replace(PRESETS["small"], **sizes)
    monkeypatch.setitem(PRESETS, "small", fewer)
    done = run_here(["demo", "--out", str(tmp_path / "demo"), "--json"])
    assert done.code == 0
    assert "simulated, no real people" in done.err
    assert json.loads(done.out)["report"] == str(tmp_path / "demo/report.html")
    assert {row["method"] for row in rows_of(tmp_path / "demo")} == set(PLAIN)


# -------------------------------------------------------------------- the rest of a journey


@pytest.mark.parametrize("method", ["gst", "fsn"])
def test_scores_that_leave_the_cosine_range_can_be_audited(faces, tmp_path, run_plain, method):
    model, scored = tmp_path / "m.faircal", tmp_path / "s.csv"
    run_plain("fit", faces, "--method", method, "--set", "target_fpr=0.4", "--out", model)
    run_plain("score", model, faces, "--keep", "genuine,ethnicity", "--out", scored)
    table = pacsv.read_csv(scored)
    high = np.asarray(table["score"]) + 2  # as shifted scores may be
    position = table.column_names.index("score")
    pacsv.write_csv(table.set_column(position, "score", [high]), scored)
    run_plain("audit", scored, "--attribute", "ethnicity", "--out", tmp_path / "a")
    refused = run_plain(
        "audit", scored, "--score-range=-1,1", "--out", tmp_path / "b", code=2, figures=False
    )
    assert "expected a score in [-1, 1]" in refused.stderr


def test_json_has_null_where_a_value_is_undefined(tmp_path, run_plain):
    table = tmp_path / "one.csv"
    table.write_text("genuine,score,group\n" + "0,0.1,a\n0,0.3,b\n" * 20)
    done = run_plain("audit", table, "--out", tmp_path / "a", "--json")

    def refuse(text):
        raise AssertionError(text)

    said = json.loads(done.stdout, parse_constant=refuse)
    assert {row["value"] for row in said["audit"] if row["metric"] == "fnr"} == {None}


def documented_plugin() -> str:
    """Return the example of the documentation: it must work as it stands there."""
    example = faircal.methods.__doc__.split("::\n\n")[1].split("\n\nOn the command line")[0]
    return textwrap.dedent(example)


def test_a_method_of_ones_own_in_one_file(faces, tmp_path, run_plain):
    plugin, model = tmp_path / "doubtful.py", tmp_path / "m.faircal"
    plugin.write_text(documented_plugin())
    first = ("--plugin", plugin)
    words = ("benchmark", faces, "--methods", "baseline,doubtful", "--out", tmp_path / "b")
    assert "Doubtful" in run_plain(*first, *words).stdout
    rows = rows_of(tmp_path / "b")
    assert {row["calibrator"] for row in rows if row["method"] == "doubtful"} == {""}
    run_plain(*first, "fit", faces, "--method", "doubtful", "--out", model)
    run_plain(*first, "score", model, faces, "--out", tmp_path / "s.csv")
    refused = run_plain("score", model, faces, "--out", tmp_path / "t.csv", code=2)
    assert "import the file with its method first (--plugin)" in refused.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "expected a Python file"), ("1 / 0", "ZeroDivisionError"), ("import nix", "nix")],
)
def test_a_plugin_that_cannot_be_imported(tmp_path, run_command, content, said):
    plugin = tmp_path / "broken.py"
    if content is not None:
        plugin.write_text(content)
    refused = run_command("--plugin", plugin, "methods", code=2)
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
