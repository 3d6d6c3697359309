"""``faircal compare``: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import faircal
from faircal.data import save_dataset
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark

SIZE = {"people": 160, "images": 640, "pairs": 2800, "dimension": 16}


def scored(path, people=60, pairs=4000):
    """Write scores of people who are in no group."""
    rng = np.random.default_rng(5)
    left = rng.integers(people, size=pairs)
    genuine = rng.random(pairs) < 0.5
    right = np.where(genuine, left, (left + rng.integers(1, people, size=pairs)) % people)
    score = np.round(rng.normal(np.where(genuine, 0.6, 0.1), 0.2), 4)
    rows = zip(genuine.astype(int), np.clip(score, -1, 1), left, right, strict=True)
    text = "".join(f"{g},{s},p{one},p{two}\n" for g, s, one, two in rows)
    path.write_text("genuine,score,left_identity,right_identity\n" + text)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, run_command):
    """A benchmark of two methods, and audits of the same people by two of them."""
    home = tmp_path_factory.mktemp("compare")
    data = faircal.simulate("small", seed=0, **SIZE)
    save_dataset(data, home / "data")
    settings = BenchmarkSettings(
        methods=("baseline", "faircal"), clusters=(10,), attributes=("gender",)
    )
    run_benchmark(data, home / "bench", settings, jobs=1)
    by = ["--attribute", "gender"]
    run_command("audit", "data", *by, "--out", "audit", cwd=home, figures=False)
    scored(home / "scores.csv")
    for name in ("alone", "alone2"):
        run_command("audit", "scores.csv", "--out", name, cwd=home, figures=False)
    return home


@pytest.fixture
def here(runs, monkeypatch):
    monkeypatch.chdir(runs)
    return runs


def test_two_methods_of_a_benchmark(here, run_here):
    words = ["compare", "bench", "bench", "--method", "baseline,faircal", "--gate"]
    told = json.loads(run_here([*words, "--json"]).out)
    worse = any(row["verdict"] == "worse" for row in told["comparisons"])
    done = run_here(words)
    assert done.code == int(worse), done.err
    assert told["passed"] is not worse
    assert "Baseline (A) and FairCal (B)" in done.out
    assert "FPR at 1 % global FPR" in done.out
    assert "A worsening would have been noticed, 8 times in 10" in done.out
    assert "gate: " in done.out


def test_json_says_what_the_table_does(here, run_here):
    words = ["compare", "bench", "bench", "--method", "baseline,faircal", "--json"]
    done = run_here([*words, "--metrics", "auroc,ks_aad"])
    told = json.loads(done.out)
    assert {(row["group"], row["metric"]) for row in told["comparisons"]} >= {
        ("global", "auroc"),
        ("all", "ks_aad"),
    }
    for row in told["comparisons"]:
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["difference"] == pytest.approx(row["b"] - row["a"])
        assert row["p"] <= row["p_holm"] <= 1
    assert told["passed"] is None
    wider = json.loads(run_here([*words, "--metrics", "auroc,ks_aad", "--unpaired"]).out)
    assert all(
        b["high"] - b["low"] > a["high"] - a["low"]
        for a, b in zip(told["comparisons"], wider["comparisons"], strict=True)
        if a["correlation"] > 0.3
    )


def test_a_run_against_its_copy_passes_and_non_inferiority_needs_proof(here, run_here, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("results.csv", "run.json", "replicates.parquet"):
        shutil.copy(here / "audit" / name, copy)
    same = run_here(["compare", "audit", str(copy), "--gate"])
    assert same.code == 0, same.err
    assert "nothing has been shown to be worse" in same.out
    assert "the same" in same.out
    assert "-0.00" not in same.out
    proof = ["--gate", "noninferior", "--margin"]
    apart = ["compare", "audit", str(copy), "--unpaired", "--metrics", "fnr"]
    done = run_here([*apart, *proof, "0.9"])
    assert done.code == 0, done.out
    assert "everything has been shown to be worse by less than 90 points" in done.out
    done = run_here([*apart, *proof, "0.0001"])
    assert done.code == 1
    assert "gate: failed; not shown to be worse by less than 0.01 points: FNR" in done.out
    (tmp_path / "link").symlink_to(here / "audit")
    assert run_here(["compare", "audit", str(tmp_path / "link")]).code == 2  # the same folder


def test_what_is_no_share_is_not_told_in_percent(here, run_here):
    words = ["compare", "alone", "alone2", "--unpaired", "--metrics"]
    rows = json.loads(run_here([*words, "auroc,min_cllr", "--json"]).out)["comparisons"]
    shares = {row["metric"]: row for row in rows}
    done = run_here([*words, "auroc,min_cllr", "--gate", "noninferior", "--margin", "0.5"])
    assert "percent (Min. Cllr as it is)" in done.out
    (line,) = [text for text in done.out.splitlines() if text.strip().startswith("Min. Cllr  ")]
    assert f" {shares['min_cllr']['a']:.4f} " in line
    (line,) = [text for text in done.out.splitlines() if text.strip().startswith("AUROC  ")]
    assert f" {100 * shares['auroc']['a']:.2f} " in line
    (noticed,) = [text for text in done.out.splitlines() if text.startswith("  Min. Cllr:")]
    assert f"{shares['min_cllr']['detectable']:.2g} (all pairs)" in noticed
    assert "by less than 50 points or 0.5, if at all" in done.out
    alone = run_here([*words, "min_cllr"])
    assert "percent" not in alone.out


def test_an_update_that_is_worse_is_stopped(here, run_here, tmp_path):
    # The update: the same people, with noise on what is known of their images.
    shutil.copytree(here / "data", tmp_path / "bad")
    path = tmp_path / "bad/embeddings.npy"
    vectors = np.load(path)
    noise = np.random.default_rng(0).normal(size=vectors.shape).astype(vectors.dtype)
    np.save(path, vectors + 2 * noise / np.sqrt(vectors.shape[1]))
    options = ["--attribute", "gender", "--out", str(tmp_path / "after")]
    assert run_here(["audit", str(tmp_path / "bad"), *options]).code == 0
    done = run_here(["compare", "audit", str(tmp_path / "after"), "--gate"])
    assert done.code == 1, done.out + done.err
    assert "gate: failed; worse: FNR" in done.out
    assert "the two runs are not of the same data" in done.err
    better = run_here(["compare", str(tmp_path / "after"), "audit", "--gate"])
    assert better.code == 0
    assert "better" in better.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bench", "nowhere"], "nowhere: no such file or folder"),
        (["bench", "data"], "give the folder that 'faircal benchmark' or 'audit' wrote"),
        (["bench", "bench"], "name two of its methods: --method baseline,faircal"),
        (["bench", "bench", "--method", "baseline"], "--method: expected one method of each run"),
        (["bench", "bench", "--method", "baseline,fsn"], "has no method 'fsn'"),
        (
            ["bench", "bench", "--gate", "noninferior"],
            "--gate noninferior and --margin go together",
        ),
        (["bench", "audit"], "no method in common"),
        (["audit", "audit"], "an audit has one set of scores; give another run"),
        (
            ["alone", "alone2", "--metrics", "fpr", "--gate"],
            "nothing is left to compare: the FPR of all pairs is what the operating point sets",
        ),
        (["audit", "alone", "--tolerance", "nan"], "tolerance: expected a number from 0 on"),
        (
            ["audit", "alone", "--gate", "noninferior", "--margin", "nan"],
            "margin: expected a number above 0",
        ),
        (
            ["bench", "bench", "--method", "baseline,faircal", "--metrics", "kss"],
            "'kss' is not in both runs; did you mean ks?",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_2(here, run_here, words, says):
    done = run_here(["compare", *words])
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1
