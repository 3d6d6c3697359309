"""``--imposters-from``: a promise, and an audit, of every group of a cohort; and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

import faircal
from tests.cohorts import own_and_cohort, write_both


@pytest.fixture(scope="module")
def people():
    return faircal.simulate("small", seed=3, people=400, images=1200, pairs=3500, dimension=64)


@pytest.fixture(scope="module")
def home(tmp_path_factory, people):
    """Folders ``own`` and ``cohort``; those in ``other`` are of two cameras."""
    home = tmp_path_factory.mktemp("two")
    write_both(*own_and_cohort(people, "ethnicity"), home)
    write_both(*own_and_cohort(people, "ethnicity", camera=0.5), home / "other")
    faircal.Baseline().fit(own_and_cohort(people, "ethnicity")[0]).save(home / "m.faircal")
    return home


def threshold(run_here, home, *words):
    return run_here(
        ["threshold", *map(str, words), f"{home}/own", "--imposters-from", f"{home}/cohort"]
    )


def test_every_group_of_the_cohort_has_a_promise(home, run_here):
    done = threshold(run_here, home, "--fpr", "0.05", "--json")
    assert done.code == 0, done.out + done.err
    record = json.loads(done.out)
    assert [row["name"] for row in record["rows"]] == [
        "global",
        "African",
        "Asian",
        "Caucasian",
        "Indian",
    ]
    cohort = faircal.load_cohort(home / "cohort")
    scores = cohort.embeddings["embedding"].vectors @ cohort.embeddings["embedding"].vectors.T
    for code, row in enumerate(record["rows"][1:]):
        images = np.flatnonzero(cohort.groups.codes == code)
        person = cohort.identity.codes[images]
        strangers = np.triu(person[:, None] != person, 1)
        pairs = scores[np.ix_(images, images)][strangers]
        assert row["people"] == 50
        assert row["status"] == "counted, model-based"
        assert row["upper"] <= 0.05
        assert row["imposters"] == len(pairs)  # nine of every two people
        assert row["errors"] == (pairs >= record["threshold"] - 1e-6).sum()
    assert record["reason"] is None
    assert record["imposters_from"]["people"] == dict.fromkeys(cohort.groups.names, 50)
    low, high = (record["imposters_from"]["strangers"][end] for end in ("low", "high"))
    assert low < 1 < high
    genuine = {row["name"]: row["genuine"] for row in record["measured"]}
    assert genuine["global"] == faircal.load(home / "own").genuine.sum()
    assert genuine["Asian"] == 0
    # A monotone map of the scores finds the same pairs.
    done = threshold(run_here, home, "--fpr", "0.05", "--json", f"{home}/m.faircal")
    mapped = json.loads(done.out)
    assert [row["errors"] for row in mapped["rows"]] == [row["errors"] for row in record["rows"]]


def test_the_promise_says_what_it_rests_on(home, run_here):
    done = threshold(run_here, home, "--fpr", "0.05")
    words = done.out.splitlines()
    assert "the cohort and the data were photographed alike" in words[-3]
    assert words[-2] == (
        "FPR at most 5 % in every group, with 95 % confidence (model-based), for people"
        " photographed as those of cohort are"
    )
    assert float(words[-1].removeprefix("threshold: ")) < 1


def test_other_cameras_are_refused(home, run_here):
    done = threshold(run_here, home / "other", "--fpr", "0.05", "--json")
    assert done.code == 1
    record = json.loads(done.out)
    assert record["threshold"] is None
    assert record["reason"].startswith("African, Asian, Caucasian, Indian are refused: the data's")
    done = threshold(run_here, home / "other", "--fpr", "0.05")
    assert done.code == 1
    assert "WARNING: the cohort and the data were not photographed alike" in done.out
    assert "for the others alone" not in done.out
    measured = threshold(run_here, home / "other", "--fpr", "0.05", "--rule", "measured")
    assert measured.code == 0
    assert "WARNING" in measured.err


def test_global_and_measured_are_of_all_imposters_of_the_cohort(home, run_here):
    done = threshold(run_here, home, "--fpr", "0.05", "--within", "global", "--json")
    (row,) = json.loads(done.out)["rows"]
    assert row["people"] == 200
    assert row["imposters"] == 4 * 50 * 49 // 2 * 9


def test_an_audit_takes_the_same(home, run_here, without_figures, tmp_path):
    words = ["audit", f"{home}/own", "--imposters-from", f"{home}/cohort", "--out", f"{tmp_path}/a"]
    done = run_here([*words, "--json"])
    assert done.code == 0, done.err
    rows = json.loads(done.out)["audit"]
    groups = {row["group"] for row in rows if row["metric"] == "fpr"}
    assert {"African", "Asian", "Caucasian", "Indian"} <= groups
    assert "the cohort and the data were photographed alike" in done.err
    run = json.loads((tmp_path / "a" / "run.json").read_text())
    assert run["imposters_from"]["cohort"] == "cohort"
    assert len(run["imposters_from"]["sha256"]) == 64
    assert run["settings"]["imposters_from"] == f"{home}/cohort"
    streamed = run_here([*words, "--stream"])
    assert streamed.code == 2
    assert "--imposters-from: takes all pairs in memory" in streamed.err


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (
            lambda own, _: _pairs(own, "left,right,genuine\n0,3,0\n"),
            "expected genuine pairs beside",
        ),
        (lambda _, cohort: _columns(cohort, "image_id"), "a cohort needs a column 'identity'"),
        (lambda _, cohort: _columns(cohort, "image_id,identity"), "a cohort needs groups"),
        (
            lambda _, cohort: np.save(cohort / "embeddings.npy", np.ones((600, 8), np.float32)),
            "expected 64-d embeddings",
        ),
    ],
)
def test_what_is_no_source_is_one_line(people, tmp_path, run_here, spoil, problem):
    own, cohort = write_both(*own_and_cohort(people, "ethnicity"), tmp_path)
    spoil(own, cohort)
    done = threshold(run_here, tmp_path, "--fpr", "0.05")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert problem in line


def _pairs(own, text):
    (own / "pairs.csv").write_text(text)


def _columns(cohort, kept):
    lines = [line.split(",") for line in (cohort / "images.csv").read_text().splitlines()]
    n = len(kept.split(","))
    (cohort / "images.csv").write_text("\n".join(",".join(line[:n]) for line in lines) + "\n")
