"""The study of classifiers: nothing leaks, measures are right, intervals widen, cells repeat."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from faircal.metrics import aad, ks
from studies.__main__ import main
from studies.classes import cell, made, running, tables
from studies.classes.measures import TITLES, Measured, units_drawn
from studies.classes.page import page
from studies.classes.prepare import prepare
from studies.classes.table import CALIBRATION, TEST, TRAIN, Table, load, save, split
from studies.classes.tally import HELPS, HURTS, UNCLEAR, Difference, Tally, corrected
from studies.classes.words import SETS


@pytest.fixture(scope="module")
def small():
    """400 rows of two classes; the hidden group shifts the first input and the odds."""
    rng = np.random.default_rng(0)
    units = np.arange(400) // 2
    group = np.repeat(rng.integers(0, 2, 200), 2)
    inputs = rng.normal(0, 1, (400, 3))
    inputs[:, 0] += 2 * group
    codes = (inputs[:, 1] + group + rng.logistic(size=400) > 0.5).astype(np.int64)
    names = ("a", "b")
    return Table("small", inputs.astype(np.float32), codes, ("no", "yes"), group, names, units)


def test_units_stay_together_and_parts_have_their_shares(small):
    part = split(small.units, 3)
    assert (part[::2] == part[1::2]).all()
    assert np.bincount(part).tolist() == [160, 120, 120]
    assert (part != split(small.units, 4)).any()


@pytest.mark.parametrize("base", ["logistic", "network"])
def test_prepared_sets_come_back_without_what_was_trained_on(small, base, tmp_path):
    prepared = prepare(small, base, splits=2)
    back = load(save(prepared, tmp_path))
    assert back.table.name == "small"
    assert back.base == base
    for seed in range(2):
        assert np.isnan(back.probabilities[seed, back.rows(seed, TRAIN)]).all()
        rows = back.rows(seed, TEST)
        assert back.said(seed, rows).sum(axis=1) == pytest.approx(1)
        assert back.seen(seed, rows).shape == (120, 32 if base == "network" else 3)
    for name in ("codes", "groups", "units"):
        assert (getattr(back.table, name) == getattr(small, name)).all()


def test_what_a_classifier_says_does_not_depend_on_labels_it_must_not_see(small):
    before = prepare(small, "logistic", splits=1)
    codes = small.codes.copy()
    held_out = before.parts[0] != TRAIN
    codes[held_out] = 1 - codes[held_out]
    after = prepare(replace(small, codes=codes), "logistic", splits=1)
    rows = before.rows(0, CALIBRATION)
    assert (before.said(0, rows) == after.said(0, rows)).all()


def test_measures_are_those_of_the_library():
    rng = np.random.default_rng(1)
    said = rng.dirichlet([1, 1, 1], 300).round(1)
    said = (said + 0.05) / (said + 0.05).sum(axis=1, keepdims=True)
    codes, groups = rng.integers(0, 3, 300), rng.integers(-1, 2, 300)
    found = Measured(said, codes, groups, 2).values()
    assert set(found) == set(TITLES)
    best, correct = said.max(axis=1), said.argmax(axis=1) == codes
    each = [ks(best[groups == g], correct[groups == g]) for g in (0, 1)]
    assert found["top_ks"] == pytest.approx(ks(best, correct))
    assert found["top_ks_mean"] == pytest.approx(np.mean(each))
    assert found["top_ks_aad"] == pytest.approx(aad(each))
    classwise = [
        ks(said[groups == g, c], codes[groups == g] == c) for g in (0, 1) for c in range(3)
    ]
    assert found["class_ks_mean"] == pytest.approx(np.mean(classwise))
    assert found["nll"] == pytest.approx(-np.log(said[np.arange(300), codes]).mean())
    assert found["accuracy"] == correct.mean()


def test_weights_are_rows_drawn_more_than_once():
    rng = np.random.default_rng(2)
    said, codes = rng.dirichlet([1, 1], 60), rng.integers(0, 2, 60)
    groups = rng.integers(0, 2, 60)
    weights = units_drawn(np.arange(60) // 3, 4, rng)
    drawn = Measured(said, codes, groups, 2).drawn(weights)
    for number, weight in enumerate(weights):
        rows = np.repeat(np.arange(60), weight.astype(int))
        again = Measured(said[rows], codes[rows], groups[rows], 2).values()
        for name in TITLES:
            assert drawn[name][number] == pytest.approx(again[name])


def test_floor_is_what_right_probabilities_measure():
    rng = np.random.default_rng(3)
    said, groups = rng.dirichlet([2, 1, 1], 800), rng.integers(0, 4, 800)
    found = []
    for _ in range(60):
        codes = (said.cumsum(axis=1) < rng.random((800, 1))).sum(axis=1)
        found.append(Measured(said, codes, groups, 4).values()["top_ks_mean"])
    floor = Measured(said, codes, groups, 4).floor(rng, 60)
    assert floor == pytest.approx(np.mean(found), rel=0.1)


def test_intervals_widen_with_the_share_of_test_rows():
    mean, _, high = corrected([1.0, 2.0, 3.0], 0.0)
    assert mean == 2
    assert high - mean == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    wider = corrected([1.0, 2.0, 3.0], 3 / 7)
    assert (wider[2] - 2) / (high - 2) == pytest.approx((1 + 9 / 7) ** 0.5)
    assert np.isnan(corrected([1.0], 0.5)[1])
    ends = ((-2, -1), (-1, 1), (1, 2))
    verdicts = [Difference(0, *end, 0).verdict for end in ends]
    assert verdicts == [HELPS, UNCLEAR, HURTS]


def test_simulations_say_what_they_promise():
    told, alike = made.MADE["told"](), made.MADE["alike"]()
    for table in (told, alike):
        for c in range(4):
            assert (table.codes == c).mean() == pytest.approx(table.truth[:, c].mean(), abs=0.015)
    assert {*tables.TABLES, *made.MADE, "faces"} == set(SETS)
    odds = np.log(alike.given)
    assert np.allclose(np.diff(np.log(alike.truth)), 0.7 * np.diff(odds))
    centre = [told.inputs[told.groups == g].mean(axis=0) for g in range(6)]
    assert np.std(centre, axis=0).mean() > 0.5


def test_digits_are_spoilt_three_times_each_in_other_ways():
    table = made.digits()
    assert np.bincount(table.units).tolist() == [3] * 1797
    assert all(len(set(ways)) == 3 for ways in table.groups.reshape(-1, 3).tolist())


def test_cells_repeat_and_the_page_is_made_of_them(small, tmp_path, capsys, monkeypatch):
    few = [contender._replace(clusters=2) for contender in cell.contenders()]
    monkeypatch.setattr(cell, "contenders", lambda: few)
    folder, kept = tmp_path / "data", tmp_path / "kept.jsonl"
    save(prepare(replace(small, name="voters"), "logistic", splits=2), folder)
    command = ["classes", "--data", str(folder), "--results", str(kept)]
    assert main(command) == 0
    first = kept.read_text()
    assert main(command) == 0
    assert kept.read_text() == first
    assert "2 of 2 cells are kept" in capsys.readouterr().err
    rows = running.read(kept)
    assert [row["seed"] for row in rows] == [0, 1]
    other = tmp_path / "other.jsonl"
    assert main([*command[:-1], str(other), "--splits", "1"]) == 0
    assert json.loads(other.read_text()) == rows[0]
    text = page(Tally(rows), [])
    assert "| voters | logistic |" in text
    assert "nan" not in text
