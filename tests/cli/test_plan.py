"""``faircal plan``: what it prints, with and without a pilot."""

from __future__ import annotations

import json

import pytest

from faircal.metrics.intervals.planning import expect, plan


def test_both_rates_have_a_line_with_the_people(run_here):
    done = run_here(["plan", "--rate", "0.01", "--within", "0.005", "--groups", "8"])
    assert done.code == 0, done.err
    for metric in ("fpr", "fnr"):
        people = plan(0.01, metric, within=0.005).people
        (line,) = [text for text in done.out.splitlines() if text.split()[:1] == [metric.upper()]]
        assert line.split()[1] == f"{people:,}"
        assert line.split()[-1] == f"{8 * people:,}"
    assert "typical of LFW" in done.err


def test_what_so_many_people_give(run_here):
    words = ["--people", "60", "--images", "3", "--per-person", "40", "--level", "0.9"]
    done = run_here(["plan", "--rate", "0.001", *words, "--json"])
    fpr, fnr = json.loads(done.out)["plans"]
    found = expect(0.001, 60, images=3, per_person=40, level=0.9)
    assert (fpr["low"], fpr["high"], fpr["pairs"]) == (found.low, found.high, 1200)
    assert (fnr["people"], fnr["pairs"]) == (60, 180)
    assert "FPR: under 78 people a rate of 0.001 is not told" in done.err


def test_a_pilot_says_how_alike_pairs_are(tmp_path, run_command, run_here):
    sizes = ("--people", 80, "--images", 640, "--pairs", 6000, "--dimension", 16)
    run_command("simulate", "small", tmp_path / "pilot", *sizes)
    words = ["plan", "--rate", "0.05", "--ratio", "1.5", "--pilot", str(tmp_path / "pilot")]
    done = run_here([*words, "--json"])
    assert done.code == 0, done.err
    fpr, fnr = json.loads(done.out)["plans"]
    assert fpr["correlations_from"] == fnr["correlations_from"] == "pilot, 80 people"
    assert fpr["high"] <= 1.5 * 0.05
    assert 0 <= fpr["error_correlation_one_person"] < fpr["error_correlation_same_people"]
    within = run_here([*words, "--attribute", "ethnicity", "--json"])
    assert within.code == 0, within.err
    assert json.loads(within.out)["plans"][0]["people"] != fpr["people"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "0.01"], "expected one of --within, --ratio and --people"),
        (["--rate", "0.01", "--within", "0.1", "--people", "9"], "give just one"),
        (["--rate", "1", "--people", "9"], "rate: expected between 0 and 1, found 1"),
        (["--rate", "0.01", "--ratio", "0.5"], "ratio, above 1"),
        (["--rate", "0.01", "--people", "9", "--attribute", "gender"], "are for --pilot"),
        (["--rate", "0.01", "--people", "9", "--pilot", "faces"], "use a larger pilot"),
        (["--rate", "0.01", "--people", "9", "--pilot", "scores.csv"], "expected identities"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(world, run_here, words, said):
    done = run_here(["plan", *words])
    assert done.code == 2, done.out
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""
