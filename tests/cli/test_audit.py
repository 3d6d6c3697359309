"""``faircal audit``: what it writes and prints, for people and for machines."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from faircal import __version__


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a score table: groups with numbers of strangers and genuine."""

    def make(groups, **columns):
        rng = np.random.default_rng(0)
        rows = []
        for name, (strangers, same) in groups.items():
            scores = [*rng.normal(0.1, 0.1, strangers), *rng.normal(0.6, 0.1, same)]
            for i, score in enumerate(scores):
                row = {"genuine": int(i >= strangers), "score": f"{score:.4f}", "group": name}
                rows.append(row | {key: value(i, name) for key, value in columns.items()})
        path = tmp_path / "scores.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return make


@pytest.fixture
def audit(table, tmp_path, run_here):
    """Return a function that writes a table and audits it: what was printed, and the folder."""

    def run(groups, *words, **columns):
        out = tmp_path / "a"
        done = run_here(["audit", str(table(groups, **columns)), "--out", str(out), *words])
        assert done.code == 0, done.err
        return done, out

    return run


SMALL = {"A": (400, 300), "B": (400, 300), "few": (5, 5)}


def test_without_strangers_it_is_not_for_lack_of_data(audit):
    done, out = audit({"A": (0, 300), "B": (0, 300)})
    assert "error rates at no threshold" in done.out
    assert "not enough" not in done.out
    assert "no error rate is shown here. Those at global FNRs are in audit.json." in done.out
    points = json.loads((out / "audit.json").read_text())["operating_points"]
    at = {point["condition"]: point["overall"]["fnr"] for point in points}
    assert at["global_fpr=0.01"]["reason"] == "undefined: no threshold could be set"
    assert (at["global_fnr=0.01"]["errors"], at["global_fnr=0.01"]["enough"]) == (6, True)


def test_cllr_of_a_table_says_which_share_of_genuine_pairs_it_takes(audit):
    said = "take the share of genuine pairs here, 42.9 %, for the one that the probabilities hold"
    done, out = audit({"A": (400, 300)}, probability=lambda i, _: 0.2 + 0.6 * (i >= 400))
    assert done.err.count(said) == 1
    assert sum(said in note for note in json.loads((out / "run.json").read_text())["notes"]) == 1
    # Of scores alone no Cllr is measured.
    assert "share of genuine pairs" not in audit({"A": (400, 300)})[0].err


def test_the_table_says_not_enough_data(audit):
    done, _ = audit(SMALL, "--threshold", "0.3")
    (line,) = [text for text in done.out.splitlines() if text.strip().startswith("few ")]
    not_enough = ["–", "not", "enough", "data"]
    assert line.split() == ["few", "–", "–", "5", "5", *not_enough, *not_enough]
    (line,) = [text for text in done.out.splitlines() if text.strip().startswith("A ")]
    assert line.split()[3:5] == ["300", "400"]
    assert "not enough" not in line


def test_the_result_in_words(audit):
    done, out = audit(SMALL, "--threshold", "0.3")
    who = json.loads((out / "audit.json").read_text("utf-8"))["summary"]["who"]
    assert len(who) > 3
    for text in who:
        assert text in done.out
    assert "few: only 5 pairs of strangers: not enough data (100 are needed)." in done.out
    assert str(out / "audit.json") in done.out


def test_people_of_each_group(audit):
    who = {"left_identity": lambda i, name: f"{name}{i % 40}"}
    who["right_identity"] = who["left_identity"]
    done, _ = audit(SMALL, "--threshold", "0.3", **who)
    lines = {text.split()[0]: text.split() for text in done.out.splitlines() if text.strip()}
    assert lines["A"][1] == "40"
    assert lines["few"][1] == "10"


def test_json_is_the_file_and_more(audit):
    done, out = audit(SMALL, "--threshold", "0.3", "--json")
    said = json.loads(done.out)
    rows = said.pop("audit")
    files = said.pop("files")
    assert files == {
        "report": str(out / "report.html"),
        "audit": str(out / "audit.json"),
    }
    assert said.pop("report") == files["report"]
    assert said == json.loads((out / "audit.json").read_text("utf-8"))
    assert said["faircal"] == __version__
    with (out / "results.csv").open(newline="") as file:
        raw = list(csv.DictReader(file))
    assert [row["group"] for row in rows] == [row["group"] for row in raw]
    # The raw numbers leave nothing out.
    wanted = {"group": "few", "metric": "fpr", "condition": ""}
    (few,) = [row for row in raw if wanted.items() <= row.items()]
    assert few["value"] != "nan"


def test_at_a_global_rate(audit):
    done, out = audit({"A": (400, 300), "B": (250, 300)})
    assert "error rates at threshold 0.337 (global FPR at most 1 %)" in done.out
    points = json.loads((out / "audit.json").read_text("utf-8"))["operating_points"]
    point = next(point for point in points if point["condition"] == "global_fpr=0.01")
    assert [group["fpr"]["enough"] for group in point["groups"]] == [True, False]
    assert [group["fnr"]["enough"] for group in point["groups"]] == [True, True]


@pytest.mark.parametrize("names", [("identity_left", "identity_right"), ("person_a", "person_b")])
def test_names_of_people(names, tmp_path, run_here):
    lines = [f"genuine,score,{','.join(names)}"]
    lines += [f"{i % 2},{0.01 * (i % 90)},p{i},p{i + (i + 1) % 2}" for i in range(400)]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines) + "\n")
    done = run_here(["audit", str(table), "--out", str(tmp_path / "out")])
    assert done.code == 0, done.err
    assert "identity-aware" in done.err


@pytest.mark.parametrize("decimals", [0, 15])
def test_the_threshold_that_is_printed_counts_what_was_printed(decimals, tmp_path, run_here):
    """On whole numbers with ties and on others; 'threshold' finds the same one."""
    rng = np.random.default_rng(0)
    genuine = rng.random(6000) < 0.4
    score = np.clip(rng.normal(40 + 30 * genuine, 12), 0, 100).round(decimals)
    left = rng.integers(0, 300, 6000)
    right = (left + np.where(genuine, 0, rng.integers(1, 300, 6000))) % 300
    rows = zip(genuine.astype(int), score.tolist(), left, right, strict=True)
    lines = ["genuine,score,subject1,subject2,site"]
    lines += [f"{','.join(map(str, row))},{'ab'[row[2] % 2]}" for row in rows]
    table = tmp_path / "scores.csv"
    table.write_text("\n".join(lines) + "\n")

    def overall(*words):
        words = ("audit", table, "--score-range", "0,100", "--features", "score", *words)
        done = run_here([*map(str, words), "--out", str(tmp_path / "out")])
        assert done.code == 0, done.err
        record = json.loads((tmp_path / "out/audit.json").read_text("utf-8"))
        assert record["interval_kind"].startswith("identity-aware")
        points = {point["condition"]: point for point in record["operating_points"]}
        return done.out, points

    said, points = overall()
    point = points["global_fpr=0.01"]
    at = said.partition("at threshold ")[2].partition(" (")[0]
    assert f"One threshold ({at}) for everybody, the lowest at which at most 1 % of all" in said
    assert ("tied at the score just below it" in said) == (point["tied"] > 0) == (decimals == 0)
    again, at_threshold = overall("--threshold", at)
    assert f"at threshold {at}, percent" in again
    for of, other in zip(
        [point["overall"], *point["groups"]],
        [at_threshold[""]["overall"], *at_threshold[""]["groups"]],
        strict=True,
    ):
        for metric in ("fpr", "fnr"):
            for what in ("errors", "trials", "value"):
                assert of[metric][what] == other[metric][what]
            assert type(of[metric]["errors"]) is type(of[metric]["trials"]) is int
    words = ["--score-range", "0,100", "--feature", "score", "--fpr", "0.01", "--rule", "measured"]
    done = run_here(["threshold", str(table), *words])
    assert done.out.splitlines()[-1] == f"threshold: {float(at)!r}"


def test_names_cannot_steer_the_terminal(audit):
    done, _ = audit({"[red]x[/red]": (400, 300), "\x1b[31my": (400, 300)}, "--threshold", "0.3")
    assert "[red]x[/red]" in done.out
    assert "\x1b" not in done.out


def test_help_names_the_files_and_the_rule(run_here):
    text = " ".join(run_here(["audit", "--help"]).out.split())
    for said in ("report.html", "audit.json", "results.csv", "100 pairs", "Examples:"):
        assert said in text


def test_bounds_on_evidence_are_those_of_the_people(audit, tmp_path):
    """With a probability: in run.json, and with the figure in the report."""

    def other(i, name):
        return f"{name}{i % 40 if i >= 400 else (i + 1 + i // 40) % 40}"

    people = {"left_identity": lambda i, name: f"{name}{i % 40}", "right_identity": other}
    rows = {"probability": lambda i, _: 0.9 if i >= 400 else 0.1}
    _, out = audit({"A": (400, 300)}, "--all-files", **people, **rows)
    (bounds,) = json.loads((out / "run.json").read_text("utf-8"))["evidence"].values()
    assert bounds["calibrated_at"] == pytest.approx(3 / 7)
    assert (bounds["unit"], round(bounds["genuine"])) == ("people", 40)
    assert bounds["high"] == pytest.approx(np.log(9 * 4 / 3))  # what it says: 40 carry it
    assert "12 to 1 for one person" in (out / "report.html").read_text("utf-8")
    assert list(out.rglob("*tippett*"))
