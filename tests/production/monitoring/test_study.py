"""The study of monitoring can be repeated, in small."""

import json
from dataclasses import replace

import pytest

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
