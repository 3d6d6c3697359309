"""``faircal threshold``: what it promises, what it refuses, and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

import faircal

SIZES = ("--people", "120", "--images", "960", "--pairs", "9000", "--dimension", "16")


@pytest.fixture(scope="module")
def faces(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("threshold") / "faces"
    run_command("simulate", "small", folder, *SIZES)
    return str(folder)


@pytest.fixture(scope="module")
def model(faces):
    path = f"{faces}.faircal"
    faircal.FairCal(n_clusters=4).fit(faircal.load(faces)).save(path)
    return path


def test_the_threshold_is_at_the_end_and_keeps_the_promise(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.05"])
    assert done.code == 0, done.err
    words = done.out.splitlines()
    assert words[-2] == "FPR at most 5 % in all pairs, with 95 % confidence"
    threshold = float(words[-1].removeprefix("threshold: "))
    data = faircal.load(faces)
    counted = (data.scores[~data.genuine] >= threshold).mean()
    assert 0 < counted < 0.05
    (line,) = [text for text in words if text.strip().startswith("global ") and "%" not in text][1:]
    assert f"{100 * counted:.3g}" in line.split()


def test_every_group_has_a_row_with_its_interval(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.2", "--within", "groups", "--json"])
    found = json.loads(done.out)
    data = faircal.load(faces)
    groups = data.groups()
    assert [row["name"] for row in found["rows"]] == ["global", *groups.names]
    assert (found["scope"], found["fpr"], found["confidence"]) == ("groups", 0.2, 0.95)
    assert found["people_known"] is True
    for g, row in enumerate(found["rows"][1:]):
        scores = data.scores[(groups.pair == g) & ~data.genuine]
        assert row["imposters"] == len(scores)
        if found["told_threshold"] is not None:
            assert row["errors"] == (scores >= found["told_threshold"]).sum()
        if row["rate"] is not None:
            assert row["low"] <= row["rate"] <= row["high"]
    refused = [row for row in found["rows"] if row["status"].startswith("refused")]
    assert done.code == bool(refused)
    assert (found["threshold"] is None) == bool(refused)


def test_a_model_brings_scores_and_clusters(faces, model, run_here):
    done = run_here(["threshold", model, faces, "--fpr", "0.1", "--within", "clusters", "--json"])
    assert done.code == 0, done.out + done.err
    found = json.loads(done.out)
    data = faircal.load(faces)
    scores = faircal.load_model(model).decision_scores(data)[~data.genuine]
    whole, *rows = found["rows"]
    assert whole["errors"] == (scores >= found["threshold"]).sum()
    assert 2 <= len(rows) <= 4
    assert all(row["upper"] <= 0.1 for row in rows)
    # A pair counts for the clusters of both its images.
    assert len(scores) < sum(row["imposters"] for row in rows) <= 2 * len(scores)
    assert "people whom the model was not fitted on" in done.err


def test_clusters_can_be_found_in_the_data(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "0.1", "--within", "clusters", "--clusters", "3"])
    assert done.code == 0, done.out + done.err
    assert "in every cluster" in done.out


def test_what_cannot_be_promised_is_refused_with_exit_1(faces, run_here):
    done = run_here(["threshold", faces, "--fpr", "1e-7"])
    assert done.code == 1
    assert "threshold: " not in done.out
    assert "no threshold promises an FPR of at most 1e-05 %" in done.out
    assert "an FPR of 1e-07 is below what can be counted in every set (down to" in done.err


def test_few_people_cannot_speak_for_all_kinds(tmp_path, run_here):
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(32, 1)
    pairs = zip(left, right, 0.2 * rng.normal(size=len(left)), strict=True)
    lines = ["genuine,score,left_identity,right_identity", "1,0.9,p0,p0"]
    lines += [f"0,{score:.6f},p{a},p{b}" for a, b, score in pairs]
    (tmp_path / "few.csv").write_text("\n".join(lines) + "\n")
    done = run_here(["threshold", str(tmp_path / "few.csv"), "--fpr", "0.05"])
    assert done.code == 0, done.out + done.err
    assert "nobody is among 32 people with a probability of 19 %" in done.err
    assert "identities are unknown" not in done.err


def test_few_people_are_not_enough_data(world, run_here):
    done = run_here(["threshold", "faces", "--fpr", "0.1"])
    assert done.code == 1
    assert "not enough data" in " ".join(done.out.split())


def test_unknown_people_are_said_to_be(tmp_path, run_here):
    rng = np.random.default_rng(0)
    lines = [f"{int(i < 50)},{0.2 * rng.normal() + 0.5 * (i < 50):.4f}" for i in range(2000)]
    (tmp_path / "scores.csv").write_text("genuine,score\n" + "\n".join(lines) + "\n")
    done = run_here(["threshold", str(tmp_path / "scores.csv"), "--fpr", "0.01"])
    assert done.code == 0, done.err
    assert "identities are unknown: pairs are taken as independent" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["faces"], "Missing option '--fpr'"),
        (["faces", "--fpr", "2"], "fpr: expected a rate between 0 and 0.5, found 2"),
        (["faces", "--fpr", "0.1", "--confidence", "95"], "confidence: expected between"),
        (["a", "b", "faces", "--fpr", "0.1"], "expected [MODEL] DATA, found a b before DATA"),
        (["faces", "--fpr", "0.1", "--attribute", "gender"], "is for --within groups"),
        (["faces", "--fpr", "0.1", "--clusters", "3"], "is for --within clusters"),
        (["faces", "--fpr", "0.1", "--within", "clusters"], "give --clusters"),
        (
            ["scores.csv", "--fpr", "0.1", "--within", "clusters", "--clusters", "2"],
            "has no embeddings to cluster",
        ),
        (["plain", "--fpr", "0.1", "--within", "groups"], "plain: no groups: "),
        (["two", "--fpr", "0.1"], "choose one with --feature"),
        (["none", "--fpr", "0.1"], "none"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(world, run_here, words, said):
    done = run_here(["threshold", *words])
    assert done.code == 2, done.out
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""
