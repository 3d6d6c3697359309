"""The study of the cohort: its conditions are what they are called, its page says what is kept."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from studies.cohort.conditions import Cell, prepare
from studies.cohort.page import page
from studies.cohort.running import DOCS, KEPT, RESULTS, cells, read, run
from studies.cohort.tally import Condition, Tally


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", 0, people=400)


def cohort_of(data, cohort, people=0):
    return prepare(Cell("small", "random", cohort, people, 0, "cohort"), data, 1)


def test_the_page_agrees_with_the_kept_rows():
    kept = (DOCS / "study-cohort.md").read_text("utf-8")
    assert kept == page(Tally(read(RESULTS))), "run python -m studies cohort --write"


def test_a_condition_of_the_cohort_changes_the_cohort_alone(data):
    plain, _ = cohort_of(data, "20")
    people = plain.cohort.counts()
    for condition in ("out of balance", "10 % wrong", "without Asian F", "moved"):
        changed, _ = cohort_of(data, f"20 {condition}")
        assert (changed.pairs.left == plain.pairs.left).all()
        counts = changed.cohort.counts()
        if condition == "out of balance":
            assert sorted({n for n, _ in counts.values()}) == [2, 20]
        elif condition == "without Asian F":
            assert set(people) - set(counts) == {"Asian F"}
        elif condition == "moved":
            assert counts == people
        else:
            same = changed.cohort.groups.codes == plain.cohort.groups.codes
            assert 0.8 < same.mean() < 1


def test_the_share_of_genuine_pairs_stays_and_few_people_are_few(data):
    given, _ = data.split(test_fold=1)
    for people in (0, 30):
        calibration, _ = cohort_of(data, "10", people)
        assert calibration.genuine.mean() == pytest.approx(given.genuine.mean(), abs=0.002)
    codes = data.images.identity.codes[calibration.used_images()]
    assert len(np.unique(codes)) == 30


def test_a_row_has_every_fold_and_differences_are_to_baseline(data):
    at = Condition("small", cohort="5")
    some = {fold: prepare(Cell(*at, 0, ""), data, fold) for fold in data.fold_names[:2]}
    rows = {
        cell: run(cell, some)
        for cell in (Cell(*at, 0, method) for method in ("baseline", "cohort"))
    }
    tally = Tally(rows)
    assert all(len(values) == 2 for values in rows[Cell(*at, 0, "cohort")]["values"].values())
    assert set(rows[Cell(*at, 0, "baseline")]["values"]) == set(KEPT)
    gap = tally.difference(at, "cohort", "ks_mean")
    means = [tally.mean(at, method, "ks_mean") for method in ("cohort", "baseline")]
    assert gap.mean == pytest.approx(means[0] - means[1])
    assert gap.error > 0
    assert at._replace(cohort="5 moved").reference == at
    assert np.isnan(tally.difference(at, "faircal", "ks").mean)


def test_what_is_worse_by_two_standard_errors():
    rows = {}
    for method, values in {"baseline": [1.0, 1.0], "cohort": [1.5, 1.6]}.items():
        rows[Cell("small", "random", "36", 0, 0, method)] = {
            "seed": 0,
            "values": {"ks": values},
        }
    gap = Tally(rows).difference(Condition("small"), "cohort", "ks")
    assert (gap.mean, gap.error) == pytest.approx((0.55, 0.05))
    assert gap.is_worse("ks")
    assert not gap.is_worse("auroc")


def test_all_cells_differ():
    every = [cell for part in cells().values() for cell in part]
    assert len(every) == len(set(every))
