"""Enough data? Effective people decide besides pairs, wherever a number would be told."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from faircal.metrics.intervals.sufficient_data import (
    DataNeeded,
    PeopleByGroup,
    insufficient_data_reason,
)
from faircal.metrics.results import read_run, write_run
from faircal.report.explorer import explorer
from faircal.report.store import ResultsFolder


def draw(people, pairs, seed):
    """Return pairs of a group: strangers drawn among its people, and genuine pairs of each."""
    rng = np.random.default_rng(seed)
    left = rng.integers(people, size=pairs)
    right = (left + rng.integers(1, people, size=pairs)) % people
    same = np.arange(pairs) % people
    effect = rng.normal(0, 0.1, people)
    strangers = rng.normal(0.1, 0.15, pairs) + effect[left] + effect[right]
    genuine = rng.normal(0.7, 0.15, pairs) + effect[same]
    scores = np.clip([*strangers, *genuine], -1, 1)
    return scores, [0] * pairs + [1] * pairs, [*left, *same], [*right, *same]


@pytest.fixture(scope="module")
def audited(tmp_path_factory, run_once):
    """An audit of a group of 60 people and one of 15, with 2,000 pairs of each kind in both."""
    folder = tmp_path_factory.mktemp("enough")
    rows = []
    for name, people, seed in (("many", 60, 0), ("lots", 70, 2), ("few", 15, 1)):
        for score, genuine, one, two in zip(*draw(people, 2000, seed), strict=True):
            probability = 1 / (1 + np.exp(-12 * (score - 0.4)))
            row = [genuine, score, probability, name, f"{name}{one}", f"{name}{two}"]
            rows.append(row)
    with (folder / "s.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["genuine", "score", "probability", "group", "left_identity", "right_identity"]
        writer.writerows([names, *rows])
    words = ["audit", folder / "s.csv", "--attribute", "group", "--all-files", "--out", folder]
    said = run_once([*map(str, words)])
    return said, folder


@pytest.fixture(scope="module")
def run_once():
    """Return a function that runs a command and gives what it printed."""
    import contextlib
    import io

    from faircal.cli.main import main

    def run(words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 0
        return out.getvalue()

    return run


class TestRule:
    def test_a_tpr_needs_what_an_fnr_does(self):
        for rate in (0.1, 0.01, 0.001):
            assert DataNeeded.of("tpr", rate) == DataNeeded.of("fnr", rate)
        assert DataNeeded.of("fpr", 0.01).people <= 30
        assert DataNeeded.of("ks", 0.01) == (300, 20)

    def test_pairs_come_first_and_unknown_people_decide_nothing(self):
        assert "pairs" in insufficient_data_reason("fpr", 5, 1.0)
        assert insufficient_data_reason("fpr", 5000, None, 0.01) is None
        assert insufficient_data_reason("fpr", 5000, 24.9, 0.01).startswith(
            "only 24 effective people: not enough"
        )
        assert (
            insufficient_data_reason("fpr", 1, None)
            == "only 1 pair: not enough data (100 are needed)"
        )

    def test_genuine_pairs_have_people_of_their_own(self, audited):
        _, folder = audited
        run = read_run(folder)
        run["effective_people_genuine"] = {"global": 90.0, "many": 7.4}
        effective = PeopleByGroup.of(run, "group").effective
        assert effective["fnr"]["many"] == 7.4
        assert effective["fpr"]["many"] > 30


class TestEverywhere:
    REASON = "only 15 effective people: not enough data (25 are needed)"

    def test_terminal(self, audited):
        said, _ = audited
        (line,) = [text for text in said.splitlines() if text.strip().startswith("few ")]
        assert line.count("not enough data") == 3  # FPR, FNR, KS
        assert f"few: {self.REASON}." in said
        (line,) = [text for text in said.splitlines() if text.strip().startswith("many ")]
        assert len(re.findall(r"[\d.]+ +[\d.]+ to [\d.]+", line)) == 3

    def test_audit_json(self, audited):
        points = json.loads((audited[1] / "audit.json").read_text("utf-8"))["operating_points"]
        (point,) = [p for p in points if p["condition"] == "global_fpr=0.01"]
        few = next(group for group in point["groups"] if group["group"] == "few")
        assert few["people"] == 15
        assert 14 < few["effective_people"] <= 15
        assert few["fpr"] | {"errors": 0} == {
            **dict.fromkeys(("value", "low", "high")),
            "errors": 0,
            "trials": 2000,
            "enough": False,
            "reason": self.REASON,
        }
        assert few["ks"]["value"] is None
        assert point["overall"]["ks"]["low"] < point["overall"]["ks"]["value"]
        assert point["overall"]["ks"]["value"] < point["overall"]["ks"]["high"]
        gap = point["over_groups"]["fpr_gap"]
        assert gap["low"] <= gap["value"] <= gap["high"]
        assert gap["not_enough"] == ["few"]
        assert point["told_apart"]["fpr"] is not None  # of the other two

    def test_tables_figures_and_page(self, audited):
        _, folder = audited
        with next((folder / "tables").glob("*fpr-global_fpr-0.01.csv")).open(newline="") as file:
            told = {row["column"]: row for row in csv.DictReader(file)}
        assert told["few"]["value"] == "not enough data"
        assert float(told["many"]["low"]) < float(told["many"]["value"])
        drawn = (folder / "figures/rates-fpr.csv").read_text()
        assert "few" not in drawn
        assert "many" in drawn
        assert "few" not in (folder / "figures/det.csv").read_text()
        page = (folder / "report.html").read_text("utf-8")
        assert self.REASON in page
        assert "Not drawn, not enough data: few." in page

    def test_the_explorer_knows(self, audited):
        data = explorer(ResultsFolder.read(audited[1]))
        (view,) = data["views"]
        people = dict(zip(view["groups"], view["people"], strict=True))
        assert data["fewest_people"] == 20
        assert people["few"][1] < 20 < people["many"][1]
        rates = dict(
            zip(view["scales"]["fpr"]["rates"], view["scales"]["fpr"]["people"], strict=True)
        )
        assert rates[0.01] == 25
        # How many of 100 pairs tell something new: fewer where fewer people are behind them.
        (shares,) = [dict(zip(view["groups"], each, strict=True)) for each in view["effective"]]
        assert 0 < shares["few"][1] < shares["many"][1] < 1

    def test_without_effective_people_pairs_decide(self, audited, tmp_path):
        _, folder = audited
        for name in ("results.csv", "curves.parquet", "run.json"):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
        run = read_run(tmp_path)
        del run["effective_people"]
        write_run(tmp_path, run)
        assert PeopleByGroup.of(read_run(tmp_path), "group").effective["fpr"] == {}
