"""Promises judged by real people and by newcomers: truths are true, tables say what fails."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from studies.uncertainty import judged, real_people, running
from studies.uncertainty.judged import Many
from studies.uncertainty.newcomers import NEWCOMERS, WORLDS
from studies.uncertainty.part import Kept
from studies.uncertainty.real_people import REAL_PEOPLE

SET = "lfw-dlib"


def circle(angles, person, group=None):
    """Return images at angles, in degrees, so that scores are cosines of what lies between."""
    turns = np.radians(angles)
    vectors = np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)
    people = np.zeros(max(person) + 1, np.int64) if group is None else np.array(group)
    return Many(vectors, np.array(person), people)


def test_truths_are_of_those_who_were_not_drawn(monkeypatch):
    monkeypatch.setattr(judged, "_KEPT", 1.0)
    many = circle([0, 10, 20, 60, 80], [0, 0, 1, 2, 3])
    nobody, first = many.nobody, np.arange(4) == 0
    assert many.trials(nobody).tolist() == [6, 4, 4, 4]
    assert many.trials(first).tolist() == [0, 2, 2, 2]
    at = float(np.cos(np.radians(45)))  # 0-20, 10-20, 60-20 and 80-60 are nearer
    assert np.bincount(many._errors(at, nobody).ravel()).tolist() == [2, 3, 2, 1]
    assert many.fpr(at, nobody) == 4 / 9
    assert many.fpr(at, first) == 2 / 3
    assert np.isnan(many.fpr(float("nan"), nobody))
    assert many.threshold(4 / 9) == pytest.approx(np.cos(np.radians(40)))
    assert np.isnan(many.above(at, 0.5, nobody))  # too few pairs to tell
    monkeypatch.setattr(judged, "_ERRORS", 1)
    assert many.above(at, 0.4, nobody) == 0.5
    drawn = many.imposters(first | (np.arange(4) == 2))
    assert np.degrees(np.arccos(drawn.scores)).tolist() == pytest.approx([60, 50], abs=1e-3)


def test_pairs_in_groups_are_of_one_group(monkeypatch):
    monkeypatch.setattr(judged, "_KEPT", 1.0)
    many = circle([0, 10, 20, 60], [0, 1, 2, 3], [0, 1, 0, 1])
    assert many.trials(many.nobody).tolist() == [1, 1, 1, 1]
    assert len(many.highest[0]) == len(many.imposters().scores) == 2


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a set of 90 simulated people."""
    (tmp_path / SET).mkdir()
    rng = np.random.default_rng(0)
    identity = np.repeat(np.arange(90), 1 + np.arange(90) % 6)
    np.save(tmp_path / SET / "embeddings.npy", 3 * rng.normal(size=(len(identity), 16)))
    with (tmp_path / SET / "images.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image_id", "identity", "gender", "ethnicity"])
        groups = [("M", "White"), ("F", "White"), ("", "Black")]
        writer.writerows([i, 7 * p, *groups[p % 3]] for i, p in enumerate(identity))
    return tmp_path


def test_whose_pairs(folder):
    sizes = {}
    for pairs in real_people.PAIRS:
        many = real_people.load(folder, f"{SET}: {pairs}")
        assert np.linalg.norm(many.vectors, axis=1) == pytest.approx(1)
        most = int(np.bincount(many.person).max())
        sizes[pairs] = (len(many.group), len(set(many.group)), most)
    assert sizes == {
        "everybody": (90, 1, 6), "everybody, 3 images": (90, 1, 3), "in groups": (60, 2, 5),
        "in groups, 3 images": (60, 2, 3), "White M": (30, 1, 4),
    }  # fmt: skip


def test_real_cells_repeat_and_are_skipped_without_their_sets(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(real_people, "_TOLD", 1)
    monkeypatch.setattr(running, "RESULTS", tmp_path / "rows.jsonl")
    monkeypatch.setattr(running, "DOCS", tmp_path / "docs")
    spec = {"crowd": f"{SET}: everybody", "people": 60, "draws": 2}
    values = REAL_PEOPLE.cell(spec, 0, folder)
    assert values == REAL_PEOPLE.cell(spec, 0, folder)
    assert values["0.01"]["draws"] == 2
    text = REAL_PEOPLE.section([Kept(spec, 0, values)])
    assert "nan" not in text
    assert running.main(["real-people"]) == 0
    assert "skipped; expected --data FOLDER" in capsys.readouterr().err
    assert running.main(["real-people", "--data", str(folder)]) == 0
    assert "without lfw-mobilefacenet" in capsys.readouterr().err


def test_worlds_are_what_they_say():
    drawn = WORLDS["split"].draw(np.random.default_rng(0), 200)
    images = np.bincount(drawn.person)
    assert images.min() == 1
    assert images.max() == 15
    score = {}
    for split in (True, False):
        many = WORLDS["split"].draw(np.random.default_rng(0), 200, split=split)
        pairs = many.imposters()
        score[split] = pairs.scores[(pairs.left == 2) & (pairs.right == 3)].mean()
    assert score[True] > score[False] + 0.3
    spread = {}
    for name in ("sphere", "hubs"):
        pairs = WORLDS[name].draw(np.random.default_rng(0), 300).imposters()
        of_person = np.bincount(pairs.left, pairs.scores, 300) / np.bincount(pairs.left)[:299].max()
        spread[name] = of_person.std()
    assert spread["hubs"] > spread["sphere"]


def test_newcomers_repeat():
    spec, seed = NEWCOMERS.cells(True)[0]
    values = NEWCOMERS.cell(spec, seed)
    assert values == NEWCOMERS.cell(spec, seed)
    assert "nan" not in NEWCOMERS.section([Kept(spec, seed, values)])


@pytest.mark.parametrize(
    ("broken", "covered", "wrong"),
    [(8, 188, "ok"), (15, 188, "broken too often"), (8, 170, "covers too little")],
)
def test_what_fails_comes_first(broken, covered, wrong):
    names = ("draws", "given", "extrapolated", "broken", "times", "of_rate", "covered")
    tally = dict(zip(names, (200, 100, 0, broken, 2 * broken, 50, covered), strict=True))
    tally |= {"by_people": 200, "asked": 200, "people_broken": 8, "people_above": 4}
    fine = tally | {"broken": 0, "times": 0, "covered": 190, "people_broken": 0}
    kept = [Kept({"crowd": name, "people": 60}, 0, {"0.01": of}) for name, of in
            (("good", fine), ("bad", tally))]  # fmt: skip
    text = judged.judged(kept, "world")
    assert f"fails in {int(wrong != 'ok')} of 2 settings" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| bad"))
    assert line.endswith(f"| {wrong} |")
    assert (text.index("| bad") < text.index("| good")) == (wrong != "ok")
