"""The study of monitoring can be repeated, in small."""

import json
from dataclasses import replace

import numpy as np
import pytest

from studies.monitoring.crowds import (
    LOOKS,
    TOLD,
    CrowdSetting,
    ScoredTable,
    crowd_settings,
    run_crowd,
)
from studies.monitoring.page import PAGE, interval, write
from studies.monitoring.running import Setting, run, settings
from studies.monitoring.streams import Stream


def test_a_setting_runs_and_tells_what_it_found():
    stream = Stream(pairs=5000, quiet=5000, change="imposters_plus_0.05", labels=0.1)
    row = run(Setting("changed", "small", "baseline", 1, 2, stream))
    assert row["runs"] == 2
    assert row["early"] == 0
    assert json.loads(json.dumps(row)) == row


def test_the_page_has_every_setting(tmp_path):
    rows = [
        {"setting": json.loads(one.key), "runs": 200, "any": 3, "early": 1, "median_pairs": 500}
        for one in settings()
    ]
    write(rows, tmp_path)
    lines = (tmp_path / PAGE).read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith(("| small", "| rfw", "| bfw")) for line in lines) == len(rows)


def test_settings_are_told_apart():
    keys = [one.key for one in settings()]
    assert len(set(keys)) == len(keys)
    one = settings()[0]
    assert replace(one, rate=0.1).key != one.key


def test_intervals_of_shares():
    assert interval(0, 1000)[1] == pytest.approx(0.0037, abs=1e-4)
    assert interval(200, 200) == pytest.approx((0.9817, 1.0), abs=1e-4)


def test_a_crowd_runs_and_tells_who_alarmed():
    row = run_crowd(CrowdSetting("wolves, 10 %", 40, 30, 2))
    assert row["runs"] == 2
    assert set(row["alarms"]) == {f"{told}, {look}" for told in TOLD for look in LOOKS}
    again = run_crowd(CrowdSetting("wolves, 10 %", 40, 30, 2))
    assert {**row, "seconds": 0} == {**again, "seconds": 0}


@pytest.mark.parametrize("name", ["0.3 · t₃", "siblings", "ties", "embeddings, 16"])
def test_tables_of_crowds_fit_together(name):
    table = ScoredTable.draw(name, np.random.default_rng(0), 40)
    left, right = table.person
    assert ((left == right) == table.genuine).all()
    assert table.score[table.genuine].mean() > table.score[~table.genuine].mean() + 0.2
    of_image = dict(zip(table.image.ravel(), table.person.ravel(), strict=True))
    assert all(
        of_image[image] == person
        for image, person in zip(table.image.ravel(), table.person.ravel(), strict=True)
    )
    assert table.score.min() >= -1
    assert table.score.max() <= 1


def test_the_page_says_first_where_crowds_fail(tmp_path):
    rows = []
    for one in crowd_settings():
        found = {"any": 40, "scores": 3, "calibration": 38, "off": 30} if one.use == 30 else {}
        alarms = {f"{told}, {look}": found for told in TOLD for look in LOOKS}
        rows.append({"setting": json.loads(one.key), "runs": one.runs, "alarms": alarms})
    write(rows[::-1], tmp_path)
    text = (tmp_path / PAGE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(lines) == len(rows) + 1  # and the ruler
    worst = sum(one.use == 30 for one in crowd_settings())
    assert ["**40, 40" in line for line in lines[1:]] == [True] * worst + [False] * (
        len(rows) - worst
    )
    assert text.index("Where it fails") < text.index("| crowd |")
    assert f"surely too often in {worst} of {len(rows)} rows" in text


def test_settings_of_crowds_are_told_apart():
    keys = [one.key for one in crowd_settings()]
    assert len(set(keys)) == len(keys)
